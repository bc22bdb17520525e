"""Area and clock of an accelerator's RTL, by yosys and nextpnr. Both are kept by content."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from uaccel.basics.files import write_atomically
from uaccel.cache import Entry, Key, cache_of_user, folder_digest
from uaccel.errors import ToolError
from uaccel.rtl.description import Rtl, read_rtl
from uaccel.rtl.messages import reason
from uaccel.rtl.parts import Part, counted
from uaccel.rtl.sources import sources_of
from uaccel.rtl.watched import OutOfTimeError, watched
from uaccel.toolchain import FoundProgram, find_program
from uaccel.toolchain.install import pip_install
from uaccel.toolchain.version import show_version

Progress = Callable[[str], None]
TARGET_MHZ: Final = 100
"""What the router tries to reach."""
NETLIST: Final = "netlist.json"
_TYPES, _REPORT, _PLACED, _BITSTREAM = "types.json", "report.json", "placed", "bitstream"
WITHOUT_NAMES: Final = f"-run :check; blackbox =A:whitebox; write_json {NETLIST}"
"""Names of cells for people may take longer than all the rest, and placement goes by them."""


@dataclass(frozen=True)
class Question:
    """``limit``: seconds for each tool. With ``pins`` the design gets them, and can become a bitstream."""

    name: str
    folder: Path
    part_name: str
    part: Part
    place: bool = True
    bitstream: Path | None = None
    limit: float = 1800


@dataclass
class Answer:
    """``clock`` in MHz by its net, empty where nothing was placed, which ``not_placed`` explains. ``tools``: versions
    of the programs that were called."""

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
        """What the part has too little of."""
        return [kind for kind, taken in self.area.items() if taken > self.available[kind]]

    def to_json(self) -> dict[str, Any]:
        return {
            "accelerator": self.accelerator,
            "part": self.part,
            "area": self.area,
            "available": self.available,
            "fits": not self.excess,
            "clock_mhz": self.clock,
            "not_placed": self.not_placed,
            "bitstream": self.bitstream,
            "tools": self.tools,
        }


def synthesise(question: Question, progress: Progress) -> Answer:
    """:class:`ToolError` says which tool is missing, or failed."""
    rtl = read_rtl(question.folder)
    with tempfile.TemporaryDirectory(prefix="uaccel-synth-") as folder:
        return _Flow(question, rtl, Path(folder), progress).answer()


def packer_of(part: Part) -> Path:
    """What makes a bitstream; it tells no version, so that it is looked for by name alone."""
    name = part.family.packer
    beside = str(Path(sys.executable).parent)
    found = shutil.which(name) or shutil.which(f"yowasp-{name}") or shutil.which(f"yowasp-{name}", path=beside)
    if found is None:
        fix = pip_install("uaccel[synth]")
        raise ToolError(f"{name} (needed for bitstreams): not found; to get it: {fix}")
    return Path(found)


class _Flow:
    """In a folder of its own, by names without folders: tools that run as WebAssembly see no others."""

    def __init__(self, question: Question, rtl: Rtl, folder: Path, progress: Progress) -> None:
        self._question, self._rtl, self._folder, self._progress = question, rtl, folder, progress
        self._name, self._part, self._family = question.name, question.part, question.part.family
        self._pinned = question.bitstream is not None

    def answer(self) -> Answer:
        packer = packer_of(self._part) if self._pinned else None
        yosys = find_program("yosys")
        router = find_program(self._family.router) if self._question.place else None
        key = self._key(yosys)
        types = json.loads(self._kept(key, self._synthesise, yosys, (_TYPES, NETLIST)).read_bytes())
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
            .add("rtl", [self._name, *map(folder_digest, self._rtl.folders)])
            .add("how", [script, yosys.version])
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
            shutil.copy(source, self._folder / names[-1])
        for header in self._rtl.folder.glob("*.vh"):
            shutil.copy(header, self._folder)
        self._do(yosys.command, ["-p", self._script(names)], f"synthesise {self._name}")
        cells = json.loads((self._folder / NETLIST).read_text(encoding="utf-8"))["modules"][self._rtl.top]["cells"]
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
        answer.clock = clocks(json.loads(report.read_text(encoding="utf-8")))
        if packer is not None and self._question.bitstream is not None:
            self._do([str(packer)], [_PLACED, _BITSTREAM], f"pack {self._name}")
            with (self._folder / _BITSTREAM).open("rb") as made:
                write_atomically(self._question.bitstream, partial(shutil.copyfileobj, made), "--bitstream")
            answer.bitstream = str(self._question.bitstream)

    def _route(self, router: FoundProgram, words: Sequence[str]) -> None:
        self._do(router.command, words, f"place and route {self._name}")

    def _kept(self, key: Key, make: Callable[[FoundProgram], None], tool: FoundProgram, files: tuple[str, ...]) -> Path:
        """The first of the files that a tool makes in the folder, or made before."""
        cache = cache_of_user()
        entry: Entry | None = cache.find(key) if cache is not None else None
        if entry is not None:
            with closing(entry):
                for file in files:
                    shutil.copy(entry.path(file), self._folder / file)
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
    """By the name it was found by: as WebAssembly the same version gives other figures."""
    return {tool.path.name: show_version(tool.version)}


def _port(net: str) -> str:
    """Of ``$glbnet$clk`` and of ``clk$SB_IO_IN_$glb_clk``: ``clk``."""
    return net.removeprefix("$glbnet$").partition("$")[0] or net


def _value(value: int | str) -> str:
    return str(value) if isinstance(value, int) else json.dumps(value)
