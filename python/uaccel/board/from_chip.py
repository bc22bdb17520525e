"""The text of a board file for a chip: memories and core, the session through a debug probe, no driver and no clock."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from typing import Final

from uaccel.board.chips import SMALL, Chip, core_named

_WIDTH: Final = 110
_GUESS: Final = "A guess, since no list of memories tells the clock after reset: what is told in seconds depends on it."


def chip_board_text(name: str, chip: Chip, about: str = "", usb: str = "") -> str:
    """``NAME.toml``; ``about`` is the board's description, ``usb`` the identity of the probe that is on it."""
    return "\n".join(_lines(name, chip, about, usb)) + "\n"


def _lines(name: str, chip: Chip, about: str, usb: str) -> Iterator[str]:
    core = core_named(chip.core)
    small = sum(length for _, length in chip.ram) <= SMALL
    yield from _comment(
        f"Board {name}: {chip.about}. There is no driver and no clock to write: the session goes through rings in RAM, "
        "which a debug probe reads and writes. The core runs as it does after reset."
    )
    yield f'description = "{about or chip.about}"'
    yield f'port = "{chip.port}"'
    yield from (("stack = 2048",) if small else ())
    yield from ("", "[cpu]", f'name = "{core.name}"', f'arch = "{core.arch}"', f'toolchain = "{core.toolchain}"')
    flags = (*core.flags, *(("-DUACCEL_PORT_RECEIVE_BYTES=512",) if small else ()))
    yield f"flags = [{_strings(flags)}]"
    yield from ((f"features = [{_strings(core.features)}]",) if core.features else ())
    yield ""
    yield from _memory("flash", "flash", chip.code)
    for number, area in enumerate(chip.ram):
        yield ""
        yield from _memory(f"ram{number + 1}" if len(chip.ram) > 1 else "ram", "ram", area)
    yield from ("", "[console]", 'kind = "rtt"', "", "[timer]")
    yield f'kind = "{"mcycle" if core.arch == "rv32" else "systick"}"'
    yield from (*(_comment(_GUESS) if chip.guessed_clock else ()), f"hz = {chip.hz:_}", "")
    yield from _run(chip, usb)


def _memory(name: str, kind: str, area: tuple[int, int]) -> Iterator[str]:
    origin, length = area
    yield from ("[[memory]]", f'name = "{name}"', f'kind = "{kind}"')
    yield from (f"origin = 0x{origin >> 16:04X}_{origin & 0xFFFF:04X}", f'length = "{length >> 10}K"')


def _run(chip: Chip, usb: str) -> Iterator[str]:
    own = (f'usb = "{usb}"',) if usb else ()
    if chip.pyocd is not None:
        yield from _comment("By pyOCD (pip install 'uaccel[probe]'), or by any debugger's GDB port: rtt://HOST:PORT.")
        yield from ("[run.serial]", 'port = "rtt://pyocd"', *own, "")
        yield from ("[flash]", 'tool = "pyocd"', f'target = "{chip.pyocd}"')
        yield from (f"pack = {json.dumps(chip.pack, ensure_ascii=False)}",) if chip.pack is not None else ()
        return
    configuration = " ".join(f"-f {file}" for file in chip.openocd)
    yield from _comment("OpenOCD loads the firmware of a project, and is the way to it as long as it runs:")
    yield f"#   openocd {configuration} -c 'init; program firmware.elf reset'"
    yield from ("[run.serial]", 'port = "rtt://localhost:3333"', *own)


def _strings(words: tuple[str, ...]) -> str:
    return ", ".join(f'"{word}"' for word in words)


def _comment(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent="# ", subsequent_indent="# ")
