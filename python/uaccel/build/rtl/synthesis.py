"""Measures area and clock of an accelerator's RTL by yosys and nextpnr, and can make a bitstream."""

from __future__ import annotations

import json
import os
import re
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from uaccel.build.children import start
from uaccel.build.programs import FoundProgram, find_program, pip_install, show_version
from uaccel.build.rtl.description import Rtl, content_of, read_rtl, reason, sources_of
from uaccel.errors import ToolError, UaccelError
from uaccel.util import incoming
from uaccel.util.cache import Entry, Key, cache_of_user, programs_digest
from uaccel.util.files import write_atomically
from uaccel.util.text import did_you_mean, named

# FPGAs that open tools know: their resources, and the options of the tools for them.

KINDS: Final = ("lut", "ff", "bram", "dsp")
DEFAULT: Final = "ecp5-85k"


@dataclass(frozen=True)
class FpgaFamily:
    """Describes the tools of a family of FPGAs.

    ``cells`` says what each type of cell in a netlist takes; ``format`` is the router's option for the placed design.
    """

    synthesis: str
    router: str
    packer: str
    format: str
    loose: tuple[str, ...]  # Options of the router for a design without pins, of which figures alone are wanted.
    pinned: tuple[str, ...]  # Options for one with pins, which the tool chooses.
    cells: Mapping[str, Mapping[str, int]]


ECP5: Final = FpgaFamily(
    "synth_ecp5",
    "nextpnr-ecp5",
    "ecppack",
    "--textcfg",
    ("--out-of-context",),
    ("--lpf-allow-unconstrained",),
    {
        "LUT4": {"lut": 1},
        "CCU2C": {"lut": 2},
        "TRELLIS_DPR16X4": {"lut": 6},
        "TRELLIS_FF": {"ff": 1},
        "DP16KD": {"bram": 1},
        "PDPW16KD": {"bram": 1},
        "MULT18X18D": {"dsp": 1},
    },
)
ICE40: Final = FpgaFamily(
    "synth_ice40",
    "nextpnr-ice40",
    "icepack",
    "--asc",
    (),
    (),
    {"SB_LUT4": {"lut": 1}, "SB_DFF": {"ff": 1}, "SB_RAM40_4K": {"bram": 1}, "SB_MAC16": {"dsp": 1}},
)


@dataclass(frozen=True)
class FpgaPart:
    """Describes an FPGA; ``available`` are its resources in the order of :data:`KINDS`."""

    family: FpgaFamily
    flags: tuple[str, ...]
    available: tuple[int, int, int, int]
    synthesis: tuple[str, ...] = ()

    @property
    def has(self) -> dict[str, int]:
        return dict(zip(KINDS, self.available, strict=True))


PARTS: Final[Mapping[str, FpgaPart]] = {
    "ecp5-25k": FpgaPart(ECP5, ("--25k", "--package", "CABGA381"), (24288, 24288, 56, 28)),
    "ecp5-45k": FpgaPart(ECP5, ("--45k", "--package", "CABGA554"), (43848, 43848, 108, 72)),
    "ecp5-85k": FpgaPart(ECP5, ("--85k", "--package", "CABGA756"), (83640, 83640, 208, 156)),
    "ice40-hx8k": FpgaPart(ICE40, ("--hx8k", "--package", "ct256"), (7680, 7680, 32, 0)),
    "ice40-up5k": FpgaPart(ICE40, ("--up5k", "--package", "sg48"), (5280, 5280, 30, 8), ("-dsp",)),
}


def part_of(name: str) -> FpgaPart:
    """The part of that name; :class:`UaccelError` for an unknown one."""
    if name not in PARTS:
        raise UaccelError(f"--part: there is no part '{name}'{did_you_mean(name, PARTS)}; known: {', '.join(PARTS)}")
    return PARTS[name]


def counted(family: FpgaFamily, types: Mapping[str, int]) -> dict[str, int]:
    """The resources that a netlist takes, from the number of its cells of each type. iCE40 has a type of flip-flop for
    each combination of reset, enable and edge, all called ``SB_DFF...``."""
    taken = dict.fromkeys(KINDS, 0)
    for cell, number in types.items():
        known = "SB_DFF" if cell.startswith("SB_DFF") else cell
        for kind, each in family.cells.get(known, {}).items():
            taken[kind] += number * each
    return taken


# A tool that takes minutes: its progress is reported, and it is stopped when its time is over.

OFTEN: Final = 15.0  # Seconds between two reports.
KEPT: Final = 1 << 22  # Bytes of its output that are kept, the last.
_PASS: Final = re.compile(r"^[\d.]+\. Executing (\w+)")
_ROUTER: Final = re.compile(r"^Info: (\w[\w ]+?)(?:\.\.\.|:|\.)")


class OutOfTimeError(ToolError):
    """Is raised when a tool was stopped because its time was over."""


def watched(
    command: Sequence[str], folder: Path, step: str, limit: float, progress: Callable[[str], None]
) -> tuple[int, str]:
    """Run a tool; its exit status, and what it wrote. After ``limit`` seconds it is stopped."""
    progress(step)
    begun = told = time.monotonic()
    stage = "begins"
    output = bytearray()
    with start(
        command, group=True, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(process.stdout, selectors.EVENT_READ)
                while True:
                    if selector.select(1.0):
                        block = process.stdout.read(1 << 16)
                        if block == b"":
                            break
                        output += block or b""
                        del output[:-KEPT]
                    now = time.monotonic()
                    if now - begun > limit:
                        raise _out_of_time(step, command[0], limit)
                    if now - told > OFTEN:
                        told, stage = now, at(output) or stage
                        progress(f"{step}: {stage}, {now - begun:.0f} s")
            process.wait(max(0.0, begun + limit - time.monotonic()))  # it may say no more, and go on
        except BaseException as error:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                raise _out_of_time(step, command[0], limit) from None
            raise
    return process.returncode, output.decode(errors="replace")


def _out_of_time(step: str, program: str, limit: float) -> OutOfTimeError:
    return OutOfTimeError(f"{step}: {Path(program).name} was stopped after {limit:.0f} s; --limit gives it longer")


def at(output: bytes | bytearray) -> str:
    """The pass that a tool was in when it wrote the end of this output; empty where that does not tell."""
    lines = bytes(output[-20000:]).decode(errors="replace").splitlines()
    found = (match[1] for line in reversed(lines) if (match := _PASS.match(line) or _ROUTER.match(line)))
    return next(found, "").lower()


# Synthesis and placement of an accelerator's RTL, by yosys and nextpnr. The results of both are kept by content.

Progress = Callable[[str], None]
TARGET_MHZ: Final = 100  # The clock that the router tries to reach.
NETLIST: Final = "netlist.json"
_TYPES, _REPORT, _PLACED, _BITSTREAM = "types.json", "report.json", "placed", "bitstream"
# The end of the script for figures of area alone. It leaves out the pass that names cells for readers, which may take
# longer than all the rest. Placement depends on these names, so netlists for it are made with them.
WITHOUT_NAMES: Final = f"-run :check; blackbox =A:whitebox; write_json {NETLIST}"


@dataclass(frozen=True)
class SynthesisRequest:
    """States what is asked of synthesis; ``limit`` are seconds for each tool. A design for a ``bitstream`` gets
    pins."""

    name: str
    folder: Path
    part_name: str
    part: FpgaPart
    place: bool = True
    bitstream: Path | None = None
    limit: float = 1800


@dataclass
class Answer:
    """Holds area, clock and the versions of the tools that were called.

    ``clock`` is in MHz by the net's name, and empty where nothing was placed, which ``not_placed`` explains.
    """

    accelerator: str
    part: str
    area: dict[str, int]
    available: dict[str, int]
    tools: dict[str, str]
    clock: dict[str, float] = field(default_factory=dict)
    not_placed: str | None = None
    bitstream: str | None = None

    @property
    def excess(self) -> list[str]:
        """The kinds of resources that the part has too few of."""
        return [kind for kind, taken in self.area.items() if taken > self.available[kind]]

    def to_json(self) -> dict[str, Any]:
        return {
            **named(self, "accelerator", "part", "area", "available"),
            "fits": not self.excess,
            "clock_mhz": self.clock,
            **named(self, "not_placed", "bitstream", "tools"),
        }


def synthesise(question: SynthesisRequest, progress: Progress) -> Answer:
    """Synthesise, and place if that is asked for; :class:`ToolError` says which tool is missing, or failed."""
    rtl = read_rtl(question.folder)
    with tempfile.TemporaryDirectory(prefix="uaccel-synth-") as folder:
        return _Flow(question, rtl, Path(folder), progress).answer()


def packer_of(part: FpgaPart) -> Path:
    """The program that makes a bitstream; it tells no version, so that it is looked for by name alone."""
    name = part.family.packer
    beside = str(Path(sys.executable).parent)
    found = shutil.which(name) or shutil.which(f"yowasp-{name}") or shutil.which(f"yowasp-{name}", path=beside)
    if found is None:
        fix = pip_install("uaccel[synth]")
        raise ToolError(f"{name} (needed for bitstreams): not found; to get it: {fix}")
    return Path(found)


class _Flow:
    """Runs the tools in a folder of its own. Files have names without folders: tools as WebAssembly see no others."""

    def __init__(self, question: SynthesisRequest, rtl: Rtl, folder: Path, progress: Progress) -> None:
        self._question, self._rtl, self._folder, self._progress = question, rtl, folder, progress
        self._name, self._part, self._family = question.name, question.part, question.part.family
        self._pinned = question.bitstream is not None

    def answer(self) -> Answer:
        packer = packer_of(self._part) if self._pinned else None
        yosys = find_program("yosys")
        router = find_program(self._family.router) if self._question.place else None
        key = self._key(yosys)
        types = json.loads(incoming.read_bytes(self._kept(key, self._synthesise, yosys, (_TYPES, NETLIST))))
        area = counted(self._family, types)
        answer = Answer(self._name, self._question.part_name, area, self._part.has, _told(yosys))
        if router is None:
            answer.not_placed = "not asked for"
        elif answer.excess:
            answer.not_placed = f"it does not fit: {', '.join(answer.excess)}"
        else:
            self._place(answer, key.digest, router, packer)
        return answer

    def _key(self, yosys: FoundProgram) -> Key:
        script = self._script(["sources"])
        return (
            Key("synthesis")
            .add("rtl", [self._name, *content_of(self._rtl)])
            .add("how", [script, yosys.version, programs_digest(yosys.command[:1])])
        )

    def _script(self, sources: Sequence[str]) -> str:
        top = self._rtl.top
        values = "".join(f" -chparam {name} {_value(value)}" for name, value in self._rtl.parameters.items())
        options = " ".join(self._part.synthesis)
        read = f"read_verilog -sv {' '.join(sources)}; hierarchy -top {top}{values}"
        ends = f"-json {NETLIST}" if self._question.place else WITHOUT_NAMES
        return f"{read}; {self._family.synthesis} {options} -top {top} {ends}"

    def _synthesise(self, yosys: FoundProgram) -> None:
        names = []
        for number, source in enumerate(sources_of(self._rtl, self._name, self._folder, self._progress)):
            names.append(f"{number}_{source.name}")
            incoming.copy(source, self._folder / names[-1])
        for header in self._rtl.folder.glob("*.vh"):
            incoming.copy(header, self._folder / header.name)
        self._do(yosys.command, ["-p", self._script(names)], f"synthesise {self._name}")
        cells = json.loads(incoming.read_bytes(self._folder / NETLIST))["modules"][self._rtl.top]["cells"]
        types = Counter(cell["type"] for cell in cells.values())
        (self._folder / _TYPES).write_text(json.dumps(types), encoding="utf-8")

    def _place(self, answer: Answer, netlist: str, router: FoundProgram, packer: Path | None) -> None:
        answer.tools |= _told(router)
        words = [*self._part.flags, *(self._family.pinned if self._pinned else self._family.loose)]
        words += ["--freq", str(TARGET_MHZ), "--timing-allow-fail", "--json", NETLIST, "--report", _REPORT]
        words += [self._family.format, _PLACED] if self._pinned else []
        files = (_REPORT, _PLACED) if self._pinned else (_REPORT,)
        key = Key("placement").add("netlist", netlist).add("how", [words, _told(router)])
        try:
            report = self._kept(key, lambda tool: self._route(tool, words), router, files)
        except OutOfTimeError as error:
            answer.not_placed = str(error)
            return
        answer.clock = clocks(json.loads(incoming.read_bytes(report)))
        if packer is not None and self._question.bitstream is not None:
            self._do([str(packer)], [_PLACED, _BITSTREAM], f"pack {self._name}")
            with incoming.opened(self._folder / _BITSTREAM) as made:
                write_atomically(self._question.bitstream, partial(shutil.copyfileobj, made), "--bitstream")
            answer.bitstream = str(self._question.bitstream)

    def _route(self, router: FoundProgram, words: Sequence[str]) -> None:
        self._do(router.command, words, f"place and route {self._name}")

    def _kept(self, key: Key, make: Callable[[FoundProgram], None], tool: FoundProgram, files: tuple[str, ...]) -> Path:
        """Make ``files`` in the folder by a tool, or copy them from the cache; gives the first of them."""
        cache = cache_of_user()
        entry: Entry | None = cache.find(key) if cache is not None else None
        if entry is not None:
            with closing(entry):
                for file in files:
                    incoming.copy(entry.path(file), self._folder / file)
        else:
            make(tool)
            if cache is not None:
                kept = cache.add(key, {file: self._folder / file for file in files}, f"{key.kind} of {self._name}")
                if kept is not None:
                    kept.close()
        return self._folder / files[0]

    def _do(self, command: Sequence[str], words: Sequence[str], step: str) -> None:
        status, said = watched([*command, *words], self._folder, step, self._question.limit, self._progress)
        if status != 0:
            raise ToolError(f"{step}: {Path(command[0]).name} failed: {reason(said)}")


def clocks(report: Mapping[str, Any]) -> dict[str, float]:
    """The highest frequencies in nextpnr's report, by the clock's own name."""
    found = report.get("fmax", {})
    return {_port(net): round(one["achieved"], 2) for net, one in sorted(found.items())}


def _told(tool: FoundProgram) -> dict[str, str]:
    """The version of a tool by the name it was found by: as WebAssembly the same version gives other figures."""
    return {tool.path.name: show_version(tool.version)}


def _port(net: str) -> str:
    """The clock's own name, ``clk``, from nets such as ``$glbnet$clk`` and ``clk$SB_IO_IN_$glb_clk``."""
    return net.removeprefix("$glbnet$").partition("$")[0] or net


def _value(value: int | str) -> str:
    return str(value) if isinstance(value, int) else json.dumps(value)
