"""Writes board files for chips: by data sheet figures of ``chips.toml``, or from a board that works already."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from uaccel.board.types import DEFAULT_STACK, Arch, Board, Feature
from uaccel.errors import BoardError
from uaccel.util import incoming
from uaccel.util.files import data_dir, page, parse_toml
from uaccel.util.text import did_you_mean

# Chips that a board file can be written for, with figures of their data sheets: ``boards/chips/chips.toml``.

KIB: Final = 1 << 10
SMALL: Final = 32 << 10  # Bytes of RAM; with no more than these stack and rings are made smaller.
CLOCK_HZ: Final = 8_000_000  # A guess for chips whose clock after reset is unknown; the user corrects it.


@dataclass(frozen=True)
class ChipCore:
    """Describes a processor, and how code for it is compiled."""

    name: str
    arch: Arch
    toolchain: str
    flags: tuple[str, ...]
    features: tuple[Feature, ...] = ()


@dataclass(frozen=True)
class Chip:
    """Describes a chip: ``code`` and ``ram`` are origins and lengths in bytes, ``hz`` is the clock after reset."""

    name: str
    about: str
    core: str
    hz: int
    code: tuple[int, int]
    ram: tuple[tuple[int, int], ...]
    pyocd: str | None
    openocd: tuple[str, ...] = ()
    port: str = "rtt"
    pack: str | None = None  # The CMSIS-Pack that pyOCD needs for it, where that is not installed.
    guessed_clock: bool = False


def _arm(cpu: str, arch: Arch, *flags: str, features: tuple[Feature, ...] = ()) -> ChipCore:
    return ChipCore(cpu.partition("+")[0], arch, "arm-none-eabi", (f"-mcpu={cpu}", "-mthumb", *flags), features)


_HARD: Final = "-mfloat-abi=hard"
CORES: Final[dict[str, ChipCore]] = {
    "cortex-m0": _arm("cortex-m0", "armv6m"),
    "cortex-m0plus": _arm("cortex-m0plus", "armv6m"),
    "cortex-m3": _arm("cortex-m3", "armv7m"),
    "cortex-m4": _arm("cortex-m4", "armv7em", features=("dsp",)),
    "cortex-m4f": _arm("cortex-m4", "armv7em", _HARD, "-mfpu=fpv4-sp-d16", features=("fpu", "dsp")),
    "cortex-m7": _arm("cortex-m7", "armv7em", features=("dsp",)),
    "cortex-m7f": _arm("cortex-m7", "armv7em", _HARD, "-mfpu=fpv5-sp-d16", features=("fpu", "dsp")),
    "cortex-m7fd": _arm("cortex-m7", "armv7em", _HARD, "-mfpu=fpv5-d16", features=("fpu", "dsp")),
    "cortex-m33": _arm("cortex-m33+nodsp+nofp", "armv8m"),
    "cortex-m33d": _arm("cortex-m33+nofp", "armv8m", features=("dsp",)),
    "cortex-m33f": _arm("cortex-m33", "armv8m", _HARD, features=("fpu", "dsp")),
    "cortex-m55": _arm("cortex-m55", "armv8.1m", _HARD, features=("fpu", "dsp", "helium")),
    "rv32imac": ChipCore(
        "rv32imac",
        "rv32",
        "riscv64-unknown-elf",
        ("-march=rv32imac", "-mabi=ilp32", "-misa-spec=2.2", "-mno-relax", "--specs=picolibc.specs"),
    ),
}


def known_chips() -> dict[str, Chip]:
    """The chips of ``chips.toml`` by name."""
    text = incoming.read_text(data_dir("boards") / "chips" / "chips.toml")
    return {name: _chip(name, row) for name, row in parse_toml(text).items()}


def find_chip(name: str) -> Chip | None:
    """The chip of that name, or the only one that the name fits as ``_same`` says; None for an unknown one."""
    chips = known_chips()
    wanted = name.lower().replace("-", "_")
    if wanted in chips:
        return chips[wanted]
    near = [chip for known, chip in chips.items() if _same(wanted, known)]
    if len(near) > 1:
        raise BoardError(f"target {name!r} may be {' or '.join(chip.name for chip in near)}; name one of them")
    return near[0] if near else None


def _same(wanted: str, known: str) -> bool:
    """Whether a name may mean a chip: where either has an x, the other may have any letter, so that ``stm32h743zi`` is
    ``stm32h743xx``. The beginning of a name is enough, from five letters on."""
    if len(wanted) < len(known) and not wanted.endswith("x"):
        return len(wanted) >= 5 and all(map(_fits, wanted, known))
    return len(wanted) == len(known) and all(map(_fits, wanted, known))


def _fits(one: str, other: str) -> bool:
    return one == other or "x" in (one, other)


def core_named(name: str) -> ChipCore:
    """The core of that name among :data:`CORES`; an error for an unknown one."""
    if name not in CORES:
        raise BoardError(f"no core is called {name!r}{did_you_mean(name, CORES)} (known: {', '.join(CORES)})")
    return CORES[name]


def unknown_chip(name: str, others: Sequence[str] = ()) -> BoardError:
    """The error for an unknown target."""
    known = [*known_chips(), *others]
    return BoardError(
        f"no chip is called {name!r}{did_you_mean(name, known)}; uaccel knows {', '.join(known_chips())}; "
        "--pack FILE takes those of a CMSIS-Pack; "
        "pip install 'uaccel[probe]' adds pyOCD's, with --core for their processor; "
        "--like BOARD begins with a board like it, of which you change memories and clock"
    )


def _chip(name: str, row: dict[str, Any]) -> Chip:
    ram = tuple((origin, kib * KIB) for origin, kib in row["ram"])
    origin, kib = row["code"]
    openocd = tuple(row.get("openocd", ()))
    pyocd = None if openocd else row.get("pyocd", name)
    return Chip(
        name, row["about"], row["core"], row["hz"], (origin, kib * KIB), ram, pyocd, openocd, row.get("port", "rtt")
    )


# Board files for a chip: memories and core, with the session through a debug probe, without drivers or clock setup.

_COMMENT_WIDTH: Final = 110
_GUESS: Final = "A guess, since no list of memories tells the clock after reset: what is told in seconds depends on it."


def chip_board_text(name: str, chip: Chip) -> str:
    """The text of ``NAME.toml``."""
    return "\n".join(_lines(name, chip)) + "\n"


def _lines(name: str, chip: Chip) -> Iterator[str]:
    core = core_named(chip.core)
    small = sum(length for _, length in chip.ram) <= SMALL
    yield from _comment(
        f"Board {name}: {chip.about}. There is no driver and no clock to write: the session goes through rings in RAM, "
        "which a debug probe reads and writes. The core runs as it does after reset."
    )
    yield f'description = "{chip.about}"'
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
    yield from _run(chip)


def _memory(name: str, kind: str, area: tuple[int, int]) -> Iterator[str]:
    origin, length = area
    yield from ("[[memory]]", f'name = "{name}"', f'kind = "{kind}"')
    yield from (f"origin = 0x{origin >> 16:04X}_{origin & 0xFFFF:04X}", f'length = "{length >> 10}K"')


def _run(chip: Chip) -> Iterator[str]:
    if chip.pyocd is not None:
        yield from _comment("By pyOCD (pip install 'uaccel[probe]'), or by any debugger's GDB port: rtt://HOST:PORT.")
        yield from ("[run.serial]", 'port = "rtt://pyocd"', "")
        yield from ("[flash]", 'tool = "pyocd"', f'target = "{chip.pyocd}"')
        yield from (f"pack = {json.dumps(chip.pack, ensure_ascii=False)}",) if chip.pack is not None else ()
        return
    configuration = " ".join(f"-f {file}" for file in chip.openocd)
    yield from _comment("OpenOCD loads the firmware of a project, and is the way to it as long as it runs:")
    yield f"#   openocd {configuration} -c 'init; program firmware.elf reset'"
    yield from ("[run.serial]", 'port = "rtt://localhost:3333"')


def _strings(words: tuple[str, ...]) -> str:
    return ", ".join(f'"{word}"' for word in words)


def _comment(text: str) -> list[str]:
    return textwrap.wrap(text, _COMMENT_WIDTH, initial_indent="# ", subsequent_indent="# ")


# Starter files: a board that works, under another name and with every choice explained, for a board of one's own.

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
_CONSOLES: Final = {
    "rtt": "The session goes through rings in RAM, which a debug probe reads and writes: there is no UART to describe.",
    "semihosting": "The session goes through the debugger, which reads and writes for the core: there is no UART.",
    "stdio": "The session goes through standard input and output of the process.",
}
# What is seldom the same on another board; marked in the file.
_OF_THAT_BOARD: Final = r"^((?:usb|serial_number|target|pack|config|hz|clock_hz|hse_hz) = [^#\n]*)$"
_ABSENT: Final = ("[[device]]", "[run.serial]", "[flash]")


def starter_text(like: Board, name: str, port: str | None) -> str:
    """The text of ``NAME.toml``; ``port`` is a folder beside it, where the board shall have a port of its own."""
    text = re.sub(r"\A(#.*\n)+", "", incoming.read_text(like.file))
    text = re.sub(r'^description = ".*"$', f'description = "{name}, made from {like.name}"', text, flags=re.MULTILINE)
    if port is not None:
        text = re.sub(r'^port = ".*"$', f'port = "./{port}"', text, flags=re.MULTILINE)
    if not re.search(r"^stack = ", text, re.MULTILINE):
        text = re.sub(
            r'^(port = ".*"\n)', r"\1" + f"# stack = {DEFAULT_STACK} # bytes\n", text, count=1, flags=re.MULTILINE
        )
    text = re.sub(_OF_THAT_BOARD, rf"\1 # as on {like.name}: yours may differ", text, flags=re.MULTILINE)
    console = {"[console]": _CONSOLES.get(like.console.kind, _ABOUT["[console]"])}
    for header, about in (_ABOUT | console).items():
        text = _explained(text, header, about)
    absent = [f"{_commented(_ABOUT[header])}# {header}\n" for header in _ABSENT if header not in text]
    return _head(like, name, port) + text.rstrip() + "\n" + "".join(f"\n{section}" for section in absent)


def _explained(text: str, header: str, about: str) -> str:
    """The text with ``about`` as a comment before the first such section, above any comment that the section has."""

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
