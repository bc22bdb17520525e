"""A core as RTL in a machine of ours: verilated and compiled at first use, kept by content."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple

from uaccel.board import RtlRun
from uaccel.cache import Entry, Key, cache_of_user, file_digest, folder_digest
from uaccel.errors import ToolError
from uaccel.resources import data_dir
from uaccel.rtl.build import PRINT
from uaccel.rtl.description import Rtl, read_rtl
from uaccel.rtl.glue import unit_module
from uaccel.rtl.sources import sources_of
from uaccel.toolchain import FoundProgram, find_program
from uaccel.toolchain.children import run as run_program
from uaccel.toolchain.needs import CORES
from uaccel.toolchain.python_packages import require_package

PROGRAM: Final = "machine"
KIND: Final = "rtl"
TOP: Final = "uaccel_machine"
UNIT: Final = "uaccel_unit"
"""The module in it that answers custom instructions."""
_VERILOG: Final = {"vexriscv": Path("verilog", "VexRiscv_FullCfu.v")}
"""In the package that brings the core."""
_FLAGS: Final = ("-std=c++17", "-O2", "-w")
_MACROS: Final = ("VM_COVERAGE=0", "VM_SC=0", "VM_TRACE=0", "VM_TRACE_FST=0", "VM_TRACE_VCD=0", "VERILATOR=1")
_VERILATOR: Final = ("--cc", "--no-timing", "-O3", "--x-assign", "fast", "--x-initial", "fast", "--noassert")
_QUIET: Final = ("-Wno-fatal", "-Wno-lint", "-Wno-style")
_RUNTIME: Final = ("verilated.cpp", "verilated_threads.cpp")


class _Made(NamedTuple):
    """``entry`` is held: nobody removes it from the cache while this process uses the program."""

    program: Path
    entry: Entry | None


_MADE: Final[dict[str, _Made]] = {}


def simulator(run: RtlRun, progress: Callable[[str], None] = lambda _step: None, unit: Path | None = None) -> Path:
    """The program that simulates this core; built where it is not there yet. ``unit``: of the accelerator whose custom
    instructions it has, the folder that holds ``rtl/``."""
    core = require_package(CORES[run.core]) / _VERILOG[run.core]
    verilator, compiler = find_program("verilator"), find_program("C++ compiler")
    folders = _own_folders()
    rtl = None if unit is None else read_rtl(unit)
    tools = [[*program.command, program.version] for program in (verilator, compiler)]
    key = (
        Key(KIND)
        .add("machine", [run.core, file_digest(core), *map(folder_digest, folders)])
        .add("how", [tools, _FLAGS, PRINT, _MACROS, _VERILATOR])
        .add("unit", None if rtl is None else [folder_digest(folder) for folder in rtl.folders])
    )
    if key.digest not in _MADE:
        cache = cache_of_user()
        entry = cache.find(key) if cache is not None else None
        if entry is None:
            progress(f"verilate {run.core}")
            made = _Build(run.core, core, rtl, verilator, compiler, progress).program()
            entry = cache.add(key, {PROGRAM: made}, f"{run.core} as RTL") if cache is not None else None
        _MADE[key.digest] = _Made(made if entry is None else entry.path(PROGRAM), entry)
        _MADE[key.digest].program.chmod(0o755)
    return _MADE[key.digest].program


def _own_folders() -> list[Path]:
    """The machine's sources, and headers that it shares."""
    firmware = data_dir("firmware")
    return [firmware / "simulator", firmware / "ports" / "machine_devices", firmware / "include"]


class _Build:
    """In a folder of its own, which lives as long as the process: without a cache the program stays there."""

    def __init__(
        self,
        name: str,
        core: Path,
        unit: Rtl | None,
        verilator: FoundProgram,
        compiler: FoundProgram,
        progress: Callable[[str], None],
    ) -> None:
        self._name, self._core, self._unit = name, core, unit
        self._verilator, self._compiler = verilator, compiler
        self._progress = progress
        self._folder = Path(tempfile.mkdtemp(prefix="uaccel-rtl-"))
        atexit.register(shutil.rmtree, self._folder, ignore_errors=True)

    def program(self) -> Path:
        generated = self._folder / "obj"
        words = [*_VERILATOR, *_QUIET, "--top-module", TOP, "--prefix", f"V{TOP}", "-Mdir", str(generated)]
        self._do([*self._verilator.command, *words, *map(str, self._verilog())], "Verilator")
        root = self._include(generated)
        sources = [*sorted(generated.glob("*.cpp")), *sorted(_own_folders()[0].glob("*.cpp"))]
        sources += [root / name for name in _RUNTIME]
        self._progress(f"compile the RTL of {self._name}")
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            objects = list(pool.map(lambda source: self._compile(source, [generated, root, root / "vltstd"]), sources))
        made = self._folder / PROGRAM
        self._do([*self._compiler.command, "-pthread", "-o", str(made), *map(str, objects), "-ldl"], "linking")
        return made

    def _verilog(self) -> list[Path]:
        machine = [*sorted(_own_folders()[0].glob("*.v")), self._core]
        if self._unit is None:
            return machine
        module = self._folder / f"{UNIT}.v"
        module.write_text(unit_module(self._unit, UNIT), encoding="utf-8")
        folder = self._folder / UNIT
        folder.mkdir()
        unit = sources_of(self._unit, self._unit.folder.parent.name, folder, self._progress)
        return [*(path for path in machine if path.stem != UNIT), module, *unit]

    def _include(self, generated: Path) -> Path:
        """Verilator's own headers and sources."""
        makefile = (generated / f"V{TOP}.mk").read_text(encoding="utf-8")
        roots = [line.partition("=")[2].strip() for line in makefile.splitlines() if line.startswith("VERILATOR_ROOT")]
        return Path(roots[0]) / "include"

    def _compile(self, source: Path, folders: Sequence[Path]) -> Path:
        made = self._folder / f"{source.name}.o"
        includes = [f"-I{folder}" for folder in (*folders, *_own_folders())]
        words = [*_FLAGS, PRINT, *(f"-D{macro}" for macro in _MACROS), *includes, "-c", str(source), "-o", str(made)]
        self._do([*self._compiler.command, *words], f"compiling {source.name}")
        return made

    def _do(self, command: Sequence[str], what: str) -> None:
        done = run_program(command)
        if done.returncode != 0:
            lines = [line.strip() for line in done.stdout.splitlines() if "rror" in line] or ["no message"]
            raise ToolError(f"the RTL of {self._name}: {what} failed: {lines[0]}")
