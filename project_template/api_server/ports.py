"""Serial ports and TCP ports: finding and opening them. pyserial helps where it is installed."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import termios
from pathlib import Path
from typing import Callable, NamedTuple
from urllib.parse import urlsplit

from .connection import Connection
from .errors import ServerError
from .lines import Line

try:
    import serial
except ImportError:
    HAVE_PYSERIAL = False  # then what the operating system has must do
else:
    HAVE_PYSERIAL = True

TERMINALS = Path("/sys/class/tty")
TCP_SECONDS = 5.0
REASONS = {
    errno.ENOENT: "there is none of that name; is the board plugged in?",
    errno.EACCES: "you may not; on Linux add yourself to the group dialout and log in again",
    errno.EBUSY: "another program has it open",
    errno.EAGAIN: "another program has it open",
}


class DeviceFaultError(ServerError):
    """A board that is not there, or not as wanted."""

    def __init__(self, message: str) -> None:
        super().__init__(message, {"kind": "device"})


class PortLine(Line):
    """A line whose one descriptor belongs to something that closes it."""

    def __init__(self, connection: Connection, name: str, descriptor: int, release: Callable[[], None]) -> None:
        super().__init__(connection, name, descriptor, descriptor)
        self._release = release

    def close(self) -> None:
        self._release()


def open_port(connection: Connection, port: str, baud: int) -> Line:
    """A device path, or ``socket://HOST:NUMBER``."""
    if port.startswith("socket://"):
        return open_socket(connection, port)
    if port.startswith("rtt://"):
        raise DeviceFaultError(
            f"port {port}: uaccel itself speaks RTT: uaccel run MODEL --board FILE, or uaccel.Session.open"
        )
    try:
        if HAVE_PYSERIAL:
            # With inter_byte_timeout reading nothing is no success, as it is for any other descriptor.
            device = serial.Serial(port, baud, timeout=0, inter_byte_timeout=0, exclusive=True)
            return PortLine(connection, port, device.fileno(), device.close)
        descriptor = open_terminal(port, baud)
    except (OSError, ValueError, termios.error) as error:  # pyserial's own errors are OSErrors
        raise DeviceFaultError(f"cannot open port {port}: {reason(error)}") from error
    return PortLine(connection, port, descriptor, lambda: os.close(descriptor))


def reason(error: Exception) -> str:
    if "exclusively lock" in str(error):
        return REASONS[errno.EBUSY]
    return REASONS.get(getattr(error, "errno", None) or 0) or " ".join(str(error).split())


def open_terminal(port: str, baud: int) -> int:
    """Raw, eight bits, no parity, one stop bit; for this process alone."""
    speed = getattr(termios, f"B{baud}", None)
    if speed is None:
        raise ValueError(f"{baud} baud takes pyserial: pip install pyserial")
    descriptor = os.open(port, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        control = list(termios.tcgetattr(descriptor)[6])
        control[termios.VMIN], control[termios.VTIME] = 1, 0
        flags = termios.CS8 | termios.CREAD | termios.CLOCAL
        termios.tcsetattr(descriptor, termios.TCSANOW, [0, 0, flags, 0, speed, speed, control])
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def open_socket(connection: Connection, url: str) -> Line:
    try:
        parts = urlsplit(url)
        host, number = parts.hostname, parts.port
    except ValueError:
        host = number = None
    if not host or number is None:
        raise DeviceFaultError(f"port {url} is no address; wanted socket://HOST:NUMBER")
    try:
        link = socket.create_connection((host, number), TCP_SECONDS)
    except (OSError, ValueError) as error:  # ValueError: no name of a host
        words = getattr(error, "strerror", None) or error
        raise DeviceFaultError(f"cannot connect to {url}: {words}; is it running?") from error
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return PortLine(connection, url, link.fileno(), link.close)


class UsbPort(NamedTuple):
    """A serial port that a USB device is."""

    path: str
    usb: str
    serial_number: str


def find_port(usb: str | None, serial_number: str | None) -> str:
    """The one port of a board with that USB id and, where given, serial number."""
    if usb is None and serial_number is None:
        raise DeviceFaultError("port auto: the board file says neither 'usb' nor 'serial_number'; name the port")
    ports = usb_ports()
    fits = [port for port in ports if usb in (None, port.usb) and serial_number in (None, port.serial_number)]
    wanted = " and ".join(filter(None, [usb and f"USB id {usb}", serial_number and f"serial number {serial_number}"]))
    if not fits:
        there = ", ".join(f"{port.path} {port.usb} {port.serial_number}" for port in ports) or "no USB port at all"
        raise DeviceFaultError(f"port auto: no board with {wanted}; is it plugged in? There is: {there}")
    if len(fits) > 1:
        several = ", ".join(f"{port.path} (serial number {port.serial_number})" for port in fits)
        raise DeviceFaultError(f"port auto: several boards have {wanted}: {several}; name the port")
    return fits[0].path


def usb_ports() -> list[UsbPort]:
    """By path."""
    if TERMINALS.is_dir():
        found = [_usb_port(entry) for entry in sorted(TERMINALS.iterdir())]
        return [port for port in found if port is not None]
    if not HAVE_PYSERIAL:
        raise DeviceFaultError("port auto takes pyserial on this system: pip install pyserial, or name the port")
    from serial.tools.list_ports import comports

    return [
        UsbPort(port.device, f"{port.vid:04x}:{port.pid:04x}", port.serial_number or "")
        for port in sorted(comports())
        if port.vid is not None
    ]


def _usb_port(entry: Path) -> UsbPort | None:
    """What Linux says of a terminal: its USB device is one of the folders above its own."""
    device = entry / "device"
    if not device.exists():
        return None
    for folder in device.resolve().parents:
        if (folder / "idVendor").is_file():
            vendor, product, number = (_word(folder / name) for name in ("idVendor", "idProduct", "serial"))
            return UsbPort(f"/dev/{entry.name}", f"{vendor}:{product}", number)
    return None


def _word(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""
