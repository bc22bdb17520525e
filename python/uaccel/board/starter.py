"""A starting point for a board of one's own: a board that works, under another name, with every choice explained."""

from __future__ import annotations

import re
import textwrap
from typing import Final

from uaccel.board.types import DEFAULT_STACK, Board
from uaccel.resources import page

_WIDTH: Final = 110
_ABOUT: Final = {
    "[settings]": "What the port asks for: its port.toml explains each.",
    "[cpu]": "The processor. 'toolchain' is the prefix of the compiler's name; 'flags' are for compiling and linking, "
    "'link_flags' for linking alone; 'features' allow kernels to use more than the base architecture has.",
    "[[memory]]": "Memories, what shall be used first in front. Kinds: flash (code and constants), ram and tcm (stack, "
    "variables, arena), external (for an arena that fits nowhere else). Sizes: 4096, '64K', '16M'. With "
    "'accelerator = true' an accelerator reaches it.",
    "[[device]]": "Accelerators that the board itself has: the accelerator's 'name', 'base', where its registers lie, "
    "and on Cortex-M 'irq', the number of its interrupt, where drivers shall sleep until it comes.",
    "[console]": "The UART that the session goes over: its registers, its interrupt's number, and the clock that the "
    "baud rate is divided from ('clock_hz'; the timer's where it is left out).",
    "[timer]": "What measures time: systick with the CPU's clock; on RISC-V mtime with 'base', or mcycle.",
    "[run.qemu]": "How QEMU runs it. 'serial' tells which of the machine's UARTs the console is. A file that an "
    "accelerator's model shares can stand behind the RAM from 'ram_origin' on. Leave the section out where QEMU knows "
    "no such machine.",
    "[run.serial]": "On the real board: 'port' (a device or a URL), or 'usb' (\"vendor:product\") and 'serial_number' "
    "to find it by. 'uaccel run --port' overrides both.",
    "[flash]": "How it is flashed: tool = 'openocd' with config files, 'pyocd' with a target, or 'command' with a "
    "program of your own, where {elf} and {port} stand for those.",
}
_ABSENT: Final = ("[[device]]", "[run.serial]", "[flash]")


def starter_text(like: Board, name: str, port: str | None) -> str:
    """The text of ``NAME.toml``; ``port`` is a folder beside it, where the board shall have a port of its own."""
    text = re.sub(r"\A(#.*\n)+", "", like.file.read_text(encoding="utf-8"))
    text = re.sub(r'^description = ".*"$', f'description = "{name}, made from {like.name}"', text, flags=re.MULTILINE)
    if port is not None:
        text = re.sub(r'^port = ".*"$', f'port = "./{port}"', text, flags=re.MULTILINE)
    if not re.search(r"^stack = ", text, re.MULTILINE):
        text = re.sub(
            r'^(port = ".*"\n)', r"\1" + f"# stack = {DEFAULT_STACK} # bytes\n", text, count=1, flags=re.MULTILINE
        )
    for header, about in _ABOUT.items():
        text = _explained(text, header, about)
    absent = [f"{_commented(_ABOUT[header])}# {header}\n" for header in _ABSENT if header not in text]
    return _head(like, name, port) + text.rstrip() + "\n" + "".join(f"\n{section}" for section in absent)


def _explained(text: str, header: str, about: str) -> str:
    """With a comment before the first such section, and before any comment that it has."""

    def insert(match: re.Match[str]) -> str:
        return _commented(about) + ("\n" if match[1] else "") + match[0]

    return re.sub(rf"^((?:#.*\n)*){re.escape(header)}", insert, text, count=1, flags=re.MULTILINE)


def _head(like: Board, name: str, port: str | None) -> str:
    own = "" if port is None else f" and in {port}/"
    about = _commented(
        f"Board {name}. As it stands it is {like.name} under another name, and works: change here{own} what differs. "
        "The file's name is the board's. Every key, and how a port is written, is explained in:"
    )
    return f"{about}# {page('boards.md')}\n"


def _commented(text: str) -> str:
    return textwrap.fill(text, _WIDTH, initial_indent="# ", subsequent_indent="# ") + "\n"
