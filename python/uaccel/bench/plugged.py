"""What is plugged in: serial ports and debug probes, each with the boards that it may be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from serial.tools import list_ports
from serial.tools.list_ports_common import ListPortInfo

from uaccel.board import Board, SerialRun

USB_DEVICES: Final = Path("/sys/bus/usb/devices")
"""Where Linux tells what is plugged in."""
PROBES: Final[dict[str, str]] = {
    "0483:3744": "ST-LINK/V1",
    "0483:3748": "ST-LINK/V2",
    **dict.fromkeys(("0483:374b", "0483:3752"), "ST-LINK/V2-1"),
    **dict.fromkeys(
        ("0483:374d", "0483:374e", "0483:374f", "0483:3753", "0483:3754", "0483:3755", "0483:3757"), "ST-LINK/V3"
    ),
    "0d28:0204": "DAPLink",
    **dict.fromkeys(("2e8a:0004", "2e8a:000c"), "Raspberry Pi Debug Probe"),
    **dict.fromkeys(("03eb:2111", "03eb:2145", "03eb:2175"), "Atmel EDBG"),
    "03eb:2141": "Atmel-ICE",
    "1fc9:0090": "LPC-Link2",
    "1fc9:0143": "MCU-Link",
    "1d50:6018": "Black Magic Probe",
    **dict.fromkeys(("0403:6010", "0403:6011", "0403:6014"), "FTDI (JTAG)"),
}
MAKERS: Final = {"1366": "J-Link"}
"""Makers of nothing but probes."""
CMSIS_DAP: Final = "CMSIS-DAP"
"""Whatever speaks that protocol has it in its product's name."""


@dataclass(frozen=True)
class SerialPort:
    """A serial port. ``boards``: those that come with uaccel and have its USB identity."""

    port: str
    usb: str | None
    serial_number: str | None
    description: str
    boards: tuple[str, ...]


@dataclass(frozen=True)
class Probe:
    """A debug probe at USB."""

    kind: str
    usb: str
    serial_number: str | None
    description: str
    boards: tuple[str, ...]


def usb_ports() -> list[ListPortInfo]:
    """Plugs of USB only: a computer's own serial ports are there even when nothing is at them."""
    return [info for info in list_ports.comports() if info.vid is not None]


def identity(info: ListPortInfo) -> str:
    """``vendor:product``, as board files have it."""
    return f"{info.vid:04x}:{info.pid:04x}"


def fits(run: SerialRun, usb: str | None, serial_number: str | None) -> bool:
    """Whether a plug can be the one that a board file describes."""
    return run.usb in (None, usb) and run.serial_number in (None, serial_number)


def serial_ports(boards: Sequence[Board]) -> list[SerialPort]:
    """All that this computer has, those of USB first."""
    found = []
    for info in sorted(list_ports.comports(), key=lambda info: (info.vid is None, str(info.device))):
        usb = None if info.vid is None else identity(info)
        about = "" if info.description in (None, "n/a") else str(info.description)
        guesses = _guesses(boards, usb, info.serial_number)
        found.append(SerialPort(str(info.device), usb, info.serial_number, about, guesses))
    return found


def probes(boards: Sequence[Board], devices: Path = USB_DEVICES) -> list[Probe]:
    """Those that this computer's system lists; ``devices`` is its folder of USB devices."""
    found = []
    for folder in sorted(devices.glob("*")):
        vendor, product = _word(folder / "idVendor"), _word(folder / "idProduct")
        about = _word(folder / "product")
        kind = _kind_of_probe(vendor, product, about)
        if kind:
            number = _word(folder / "serial") or None
            usb = f"{vendor}:{product}"
            found.append(Probe(kind, usb, number, about, _guesses(boards, usb, number)))
    return found


def _kind_of_probe(vendor: str, product: str, about: str) -> str:
    """Empty where it is something else."""
    known = PROBES.get(f"{vendor}:{product}") or MAKERS.get(vendor)
    return known or (CMSIS_DAP if CMSIS_DAP in about else "")


def _guesses(boards: Iterable[Board], usb: str | None, serial_number: str | None) -> tuple[str, ...]:
    """A board that says nothing of its USB identity is nobody's guess."""
    return tuple(
        board.name
        for board in boards
        for run in board.runs
        if isinstance(run, SerialRun) and run.usb and fits(run, usb, serial_number)
    )


def _word(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
