"""What is called to flash or to reset a board: the one place that knows the tools' command lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from uaccel.board import Flash, OpenOcdFlash, PyOcdFlash

ELF: Final = "{elf}"
"""Stands for the firmware, as ``{port}`` does for the serial port and ``{board}`` for the board file's folder."""


@dataclass(frozen=True)
class Step:
    """One call, in the folder of the board file or in that of the firmware."""

    folder: Literal["board", "build"]
    command: tuple[str, ...]


def flash_steps(flash: Flash) -> list[Step]:
    """One after the other. OpenOCD runs beside the firmware: its scripts would take a whole path apart at blanks."""
    if isinstance(flash, OpenOcdFlash):
        return [_openocd(flash, "program firmware.elf verify reset exit")]
    if isinstance(flash, PyOcdFlash):
        return [_pyocd(flash, "flash", ELF)]
    return [Step("board", words) for words in (flash.command, flash.reset) if words]


def reset_steps(flash: Flash) -> list[Step]:
    """None where the user's own command is not given."""
    if isinstance(flash, OpenOcdFlash):
        return [_openocd(flash, "init; reset run; shutdown")]
    if isinstance(flash, PyOcdFlash):
        return [_pyocd(flash, "reset")]
    return [Step("board", flash.reset)] if flash.reset else []


def _openocd(flash: OpenOcdFlash, task: str) -> Step:
    """Its configuration may lie beside the board file."""
    words = ["openocd", "-s", "{board}", *(word for file in flash.config for word in ("-f", file))]
    words += [word for command in (*flash.commands, task) for word in ("-c", command)]
    return Step("build", tuple(words))


def _pyocd(flash: PyOcdFlash, task: str, *what: str) -> Step:
    """Runs where the board file is, as its own configuration (pyocd.yaml) may be; does not wait for a probe."""
    pack = () if flash.pack is None else ("--pack", flash.pack)
    return Step("board", ("pyocd", task, "--no-wait", "--target", flash.target, *pack, *flash.options, *what))
