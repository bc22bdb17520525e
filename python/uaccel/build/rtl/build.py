"""Verilates RTL and compiles it: an accelerator's as a device library, a core's as a simulator program.

Both are made at first use and kept in the cache by the content of all that they are made of.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

from uaccel.board import RtlRun
from uaccel.build.children import run
from uaccel.build.doctor import CORES, require_package
from uaccel.build.programs import FoundProgram, find_program
from uaccel.build.rtl.description import Rtl, content_of, read_rtl, reason, sources_of
from uaccel.build.rtl.wrapper import glue, ports_of, unit_module
from uaccel.errors import ToolError
from uaccel.util import incoming
from uaccel.util.cache import Entry, Key, cache_of_user, file_digest, folder_digest, programs_digest
from uaccel.util.files import data_dir

# A device library: the ``rtl/`` folder of an accelerator as a shared library that stands in for the device's C model.

LIBRARY: Final = "device.so"
DEVICES: Final = "rtl"
_COMPILER_OPTIONS: Final = ("-std=c++17", "-O2", "-fPIC", "-fvisibility=hidden", "-w")
_COMMON: Final = ("--cc", "--no-timing", "-O3")
_VERILATOR_OPTIONS: Final = (*_COMMON, "--x-assign", "unique", "--x-initial", "unique", "-Wno-fatal")
# What the RTL prints goes to stderr, since standard output may be the line of a session.
PRINT: Final = "-DVL_PRINTF(...)=std::fprintf(stderr, __VA_ARGS__)"
# The C++ around the module handles $finish, $stop and fatal errors; Verilator's own handlers would end the process.
_ENDS: Final = [f"-DVL_USER_{how}" for how in ("FINISH", "STOP", "FATAL")]
_Tools = tuple[FoundProgram, FoundProgram]  # Verilator, and the C++ compiler.
_HELD: Final[list[Entry]] = []  # Libraries that this process uses, held so that nobody removes them from the cache.
# Libraries that it built without a cache; their folders live as long as the process.
_MADE_HERE: Final[dict[str, Path]] = {}


@dataclass(frozen=True)
class Variant:
    """Says what is built into a library besides the device: ``waves`` is empty, ``vcd`` or ``fst``."""

    waves: str = ""
    coverage: bool = False

    @property
    def verilator(self) -> list[str]:
        traced = {"": [], "vcd": ["--trace"], "fst": ["--trace-fst"]}[self.waves]
        return [*traced, *(["--coverage"] if self.coverage else [])]

    @property
    def macros(self) -> list[str]:
        waves = [f"-DUACCEL_RTL_{self.waves.upper()}"] if self.waves else []
        coverage = ["-DVM_COVERAGE=1", "-DUACCEL_RTL_COVERAGE"] if self.coverage else []
        return [*waves, *coverage, f"-DVM_TRACE={int(bool(self.waves))}", f"-DVM_TRACE_FST={int(self.waves == 'fst')}"]

    @property
    def runtime(self) -> list[str]:
        """Verilator's own sources that are compiled with it."""
        traced = {"": [], "vcd": ["verilated_vcd_c.cpp"], "fst": ["verilated_fst_c.cpp"]}[self.waves]
        return ["verilated.cpp", "verilated_threads.cpp", *traced, *(["verilated_cov.cpp"] if self.coverage else [])]


def device_library(
    name: str, folder: Path, variant: Variant = Variant(), progress: Callable[[str], None] = lambda _step: None
) -> Path:
    """The device library of accelerator ``name``, whose ``folder`` holds ``rtl/``; it is built if it is not there."""
    rtl = read_rtl(folder)
    tools = find_program("verilator"), find_program("C++ compiler")
    firmware = data_dir("firmware")
    key = (
        Key(DEVICES)
        .add("rtl", [name, *content_of(rtl)])
        .add("adapters", [folder_digest(firmware / "rtl"), folder_digest(firmware / "include")])
        .add("how", [repr(variant), _told(*tools), _COMPILER_OPTIONS, _VERILATOR_OPTIONS, _TEXT_OF_GLUE])
    )
    cache = cache_of_user()
    entry = cache.find(key) if cache is not None else None
    if entry is None:
        made = _MADE_HERE.get(key.digest)
        if made is not None:
            return made
        progress(f"verilate {name}")
        made = _Library(rtl, name, variant, tools, progress).library()
        entry = cache.add(key, {LIBRARY: made}, f"RTL of {name}") if cache is not None else None
        if entry is None:
            return _MADE_HERE.setdefault(key.digest, made)
    _HELD.append(entry)
    return entry.path(LIBRARY)


def _told(*tools: FoundProgram) -> list[Any]:
    """What is known of programs: commands, versions, and where and from when the files are."""
    words = [[*tool.command, tool.version] for tool in tools]
    return [words, programs_digest(tool.command[0] for tool in tools)]


_TEXT_OF_GLUE: Final = folder_digest(Path(__file__).parent)


class _Verilated:
    """Verilates and compiles RTL in a folder that lives as long as the process; without a cache it stays there.

    ``where`` is what messages call the RTL, beside its ``name``; ``prefix`` is that of the C++ that Verilator makes.
    """

    def __init__(self, name: str, where: str, prefix: str, tools: _Tools, progress: Callable[[str], None]) -> None:
        self._name, self._where, self._prefix, self._progress = name, where, prefix, progress
        self._verilator, self._compiler = tools
        self._folder = Path(tempfile.mkdtemp(prefix="uaccel-rtl-"))
        self._generated = self._folder / "obj"
        atexit.register(shutil.rmtree, self._folder, ignore_errors=True)

    def _verilate(self, top: str, words: Sequence[str], sources: Sequence[Path]) -> None:
        named = ["--top-module", top, "--prefix", self._prefix, "-Mdir", str(self._generated)]
        self._do([*self._verilator.command, *words, *named, *map(str, sources)], "Verilator")

    @cached_property
    def _include(self) -> Path:
        """Verilator's own headers and sources."""
        makefile = incoming.read_text(self._generated / f"{self._prefix}.mk")
        roots = [line.partition("=")[2].strip() for line in makefile.splitlines() if line.startswith("VERILATOR_ROOT")]
        return Path(roots[0]) / "include"

    def _linked(
        self, file: str, sources: Sequence[Path], options: Sequence[str], folders: Sequence[Path], words: Sequence[str]
    ) -> Path:
        """Compiles the sources in parallel and links them; ``words`` are the linker's."""
        self._progress(f"compile the RTL of {self._name}")
        includes = [f"-I{folder}" for folder in (self._generated, self._include, self._include / "vltstd", *folders)]

        def compiled(source: Path, number: int) -> str:
            made = str(self._folder / f"{number}.o")
            command = [*self._compiler.command, *options, *includes, "-c", str(source), "-o", made]
            self._do(command, f"compiling {source.name}")
            return made

        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            objects = list(pool.map(compiled, sources, range(len(sources))))
        made = self._folder / file
        self._do([*self._compiler.command, "-pthread", "-o", str(made), *objects, *words], "linking")
        return made

    def _do(self, command: Sequence[str], what: str) -> None:
        done = run(command)
        if done.returncode != 0:
            raise ToolError(f"the RTL of {self._name}{self._where}: {what} failed: {reason(done.stdout)}")


class _Library(_Verilated):
    """Builds a device library."""

    def __init__(self, rtl: Rtl, name: str, variant: Variant, tools: _Tools, progress: Callable[[str], None]) -> None:
        super().__init__(name, f" in {rtl.folder}", f"V{name}", tools, progress)
        self._rtl, self._variant = rtl, variant

    def library(self) -> Path:
        rtl, variant = self._rtl, self._variant
        sources = sources_of(rtl, self._name, self._folder, self._progress)
        words = [*_VERILATOR_OPTIONS, *variant.verilator, *rtl.verilator]
        words += [f"-I{folder}" for folder in dict.fromkeys(source.parent for source in sources)]
        words += [f"-G{name}={value}" for name, value in rtl.parameters.items()]
        self._verilate(rtl.top, words, sources)
        generated = sorted(self._generated.glob("*.cpp"))
        if rtl.registers is not None:
            header = incoming.read_text(self._generated / f"{self._prefix}.h")
            glued = self._folder / "glue.cpp"
            glued.write_text(glue(rtl, self._name, self._prefix, ports_of(header)), encoding="utf-8")
            generated.append(glued)
        generated += [rtl.folder / name for name in rtl.cpp]
        generated += [self._include / name for name in variant.runtime]
        firmware = data_dir("firmware")
        folders = [self._include / "gtkwave", firmware / "rtl", firmware / "include", rtl.folder]
        defined = ["-DVERILATOR=1", "-DVM_SC=0", "-DVM_TRACE_VCD=0", PRINT, *variant.macros]
        defined += _ENDS if rtl.registers is not None else []
        libraries = ["-shared", *rtl.libraries, *(["-lz"] if variant.waves == "fst" else [])]
        return self._linked(LIBRARY, generated, [*_COMPILER_OPTIONS, *defined, *rtl.flags], folders, libraries)


# A simulator: a core as RTL in a machine of ours, compiled to a program.

PROGRAM: Final = "machine"
KIND: Final = "rtl"
TOP: Final = "uaccel_machine"
UNIT: Final = "uaccel_unit"  # The module in it that answers custom instructions.
_VERILOG: Final = {"vexriscv": Path("verilog", "VexRiscv_FullCfu.v")}  # Paths in the package that brings the core.
_FLAGS: Final = ("-std=c++17", "-O2", "-w")
_MACROS: Final = ("VM_COVERAGE=0", "VM_SC=0", "VM_TRACE=0", "VM_TRACE_FST=0", "VM_TRACE_VCD=0", "VERILATOR=1")
_VERILATOR: Final = (*_COMMON, "--x-assign", "fast", "--x-initial", "fast", "--noassert")
_QUIET: Final = ("-Wno-fatal", "-Wno-lint", "-Wno-style")
_RUNTIME: Final = ("verilated.cpp", "verilated_threads.cpp")


class _Made(NamedTuple):
    """Names a program; ``entry`` is held, so that nobody removes it from the cache while this process uses it."""

    program: Path
    entry: Entry | None


_MADE: Final[dict[str, _Made]] = {}


def simulator(run: RtlRun, progress: Callable[[str], None] = lambda _step: None, unit: Path | None = None) -> Path:
    """The program that simulates a core; it is built if it is not there. ``unit`` is the folder with ``rtl/`` of the
    accelerator whose custom instructions the core has."""
    core = require_package(CORES[run.core]) / _VERILOG[run.core]
    tools = find_program("verilator"), find_program("C++ compiler")
    folders = _own_folders()
    rtl = None if unit is None else read_rtl(unit)
    key = (
        Key(KIND)
        .add("machine", [run.core, file_digest(core), *map(folder_digest, folders)])
        .add("how", [_told(*tools), _FLAGS, PRINT, _MACROS, _VERILATOR])
        .add("unit", None if rtl is None else content_of(rtl))
    )
    if key.digest not in _MADE:
        cache = cache_of_user()
        entry = cache.find(key) if cache is not None else None
        if entry is None:
            progress(f"verilate {run.core}")
            made = _Simulator(run.core, core, rtl, tools, progress).program()
            entry = cache.add(key, {PROGRAM: made}, f"{run.core} as RTL") if cache is not None else None
        _MADE[key.digest] = _Made(made if entry is None else entry.path(PROGRAM), entry)
        _MADE[key.digest].program.chmod(0o755)
    return _MADE[key.digest].program


def _own_folders() -> list[Path]:
    """The folders of the machine's sources, and of headers that it shares."""
    firmware = data_dir("firmware")
    return [firmware / "simulator", firmware / "ports" / "machine_devices", firmware / "include"]


class _Simulator(_Verilated):
    """Builds a simulator."""

    def __init__(self, name: str, core: Path, unit: Rtl | None, tools: _Tools, progress: Callable[[str], None]) -> None:
        super().__init__(name, "", f"V{TOP}", tools, progress)
        self._core, self._unit = core, unit

    def program(self) -> Path:
        self._verilate(TOP, [*_VERILATOR, *_QUIET], self._verilog())
        sources = [*sorted(self._generated.glob("*.cpp")), *sorted(_own_folders()[0].glob("*.cpp"))]
        sources += [self._include / name for name in _RUNTIME]
        options = [*_FLAGS, PRINT, *(f"-D{macro}" for macro in _MACROS)]
        return self._linked(PROGRAM, sources, options, _own_folders(), ["-ldl"])

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
