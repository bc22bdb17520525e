"""Estimates cycles of executed blocks by published timings of a core, and finds the loops that take the most.

The counting plugin of QEMU tells which blocks of instructions were executed, how often, and behind which others. Cycles
of a block are computed once for each predecessor and multiplied by the counts; nothing is simulated for an estimate.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from math import ceil
from pathlib import Path
from typing import Any, Final, NamedTuple

from uaccel.board import Board, Memory
from uaccel.cycles.instructions import (
    Code,
    Executed,
    ExecutedBlock,
    ExecutedInstruction,
    Mark,
    functions_in,
    listed,
    parse,
)
from uaccel.util import incoming
from uaccel.util.files import parse_toml

# Timings of cores: a file each in ``cores/``, named as a board file names the core. Each says whose figures it has.

FOLDER: Final = Path(__file__).with_name("cores")
CONDITION: Final = "(eq|ne|cs|cc|hs|lo|mi|pl|vs|vc|hi|ls|ge|lt|gt|le)?"  # Arm's suffix of a conditional instruction.


@dataclass(frozen=True)
class InstructionKind:
    """Describes instructions that take the same: a row of a core's table.

    The fields from ``units`` on matter only for cores that are modelled as a pipeline.
    """

    match: str  # Regular expression for the whole name, without width and condition.
    operands: str = ""  # Regular expression for any part of the operands.
    cycles: int = 1
    registers_each_cycle: float = 0  # Registers between braces that a cycle moves; they add to ``cycles``. 0: no cost.
    # Names of kinds: directly behind one of these it takes a cycle less, unless its address is that one's result.
    follows: tuple[str, ...] = ()
    taken: int | None = None  # Cycles that its jump adds; None: the core's usual number.
    name: str = ""
    units: tuple[str, ...] = ()  # Units that it keeps busy for ``cycles``.
    latency: int = 1  # Cycles from issue until its results can be used.
    alone: bool = False  # Nothing else is issued in the same cycle.
    first: bool = False  # It is issued first in a cycle, never behind another one.
    second: bool = False  # Where the core has ``narrow_pairs``, one of a pair must be of such a kind.
    blocks: bool = False  # Nothing is issued until its cycles are over.
    early: int = 0  # Cycles by which it needs its sources earlier than others do.
    late: int = 0  # Cycles by which it needs what it stores, or adds to, later than others do.

    def fits(self, instruction: ExecutedInstruction) -> bool:
        fits = _compiled(self.match).fullmatch(instruction.name) is not None
        return fits and (not self.operands or re.search(self.operands, instruction.operands) is not None)

    def time(self, instruction: ExecutedInstruction) -> int:
        """Cycles of an instruction by itself, jumps and waiting apart."""
        each = self.registers_each_cycle
        return self.cycles + (ceil(instruction.listed / each) if each else 0)


@lru_cache(maxsize=1024)
def _compiled(match: str) -> re.Pattern[str]:
    """A pattern that also takes a condition and, unless it names them itself, the types of vectors (``.s8``)."""
    return re.compile(f"(?:{match}){CONDITION}(?:\\..*)?")


@dataclass(frozen=True)
class Core:
    """Describes the timings of a core; ``source`` says whose figures these are."""

    name: str
    source: str
    taken: int  # Cycles that a jump adds.
    kinds: tuple[InstructionKind, ...]
    units: Mapping[str, int] = field(default_factory=dict)  # How many of each; without any: one instruction at a time.
    issue: int = 1  # Instructions that are issued in a cycle, at most.
    narrow_pairs: bool = False  # Only instructions of 16 bits are issued together.
    address_early: int = 0  # Cycles by which an address is needed earlier than other operands.
    otherwise: InstructionKind = InstructionKind("")  # The kind of instructions that fit no row.
    objdump: tuple[str, ...] = ()  # Options of objdump for this core.

    def kind(self, instruction: ExecutedInstruction) -> InstructionKind:
        """The first row that fits."""
        return next((kind for kind in self.kinds if kind.fits(instruction)), self.otherwise)


@lru_cache(maxsize=16)
def core_of(name: str) -> Core | None:
    """The timings of a core; None where nothing is known of it. ``like`` in its file takes another core's table."""
    file = FOLDER / f"{name}.toml"
    if not re.fullmatch(r"[a-z0-9-]+", name) or not file.is_file():
        return None
    content = parse_toml(incoming.read_text(file))
    like = content.pop("like", None)
    if like is not None:
        base = core_of(like)
        return None if base is None else replace(base, name=name, **content)
    kinds = tuple(_kind(row) for row in content.pop("kind"))
    options = tuple(content.pop("objdump", ()))
    otherwise = _kind({"match": "", **content.pop("otherwise", {})})
    return Core(name=name, kinds=kinds, otherwise=otherwise, objdump=options, **content)


def _kind(row: dict[str, Any]) -> InstructionKind:
    values: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}
    return InstructionKind(**values)


# Cycles of a sequence of instructions on a core: one after the other, or through the units of a pipeline.


def cycles(core: Core, instructions: Sequence[ExecutedInstruction]) -> int:
    """Cycles of instructions in a row; jumps are not counted."""
    return _piped(core, instructions) if core.units else _in_turn(core, instructions)


def _in_turn(core: Core, instructions: Iterable[ExecutedInstruction]) -> int:
    """The sum of their own cycles, less one for each access that is pipelined with the one before."""
    total, before = 0, None
    for instruction in instructions:
        kind = core.kind(instruction)
        total += kind.time(instruction) - int(_is_pipelined(core, before, instruction, kind))
        before = instruction
    return total


def _is_pipelined(
    core: Core, before: ExecutedInstruction | None, instruction: ExecutedInstruction, kind: InstructionKind
) -> bool:
    """Whether this is a load or store directly behind a load, with an address that does not come from that load."""
    if before is None or not kind.follows or core.kind(before).name not in kind.follows:
        return False
    return not before.writes & instruction.address_registers


def _piped(core: Core, instructions: Iterable[ExecutedInstruction]) -> int:
    """The cycle in which the next instruction could be issued, when the first one is issued in cycle 0."""
    pipeline = _Pipeline(core)
    for instruction in instructions:
        pipeline.issue(instruction)
    return pipeline.end


class _Pipeline:
    """Issues instructions in their order, each as soon as its sources are there and its units are free.

    Times are in cycles from the first issue. Registers that nothing has written yet are there from the beginning.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._now, self._issued = -1, core.issue  # The cycle of the last issue, and how many were issued in it.
        self._last: tuple[ExecutedInstruction, InstructionKind] | None = None
        self._free = {unit: [0] * count for unit, count in core.units.items()}  # When each unit is free.
        self._ready: dict[str, int] = {}  # When each register can be used.
        self._blocked = 0

    @property
    def end(self) -> int:
        return max(self._now + 1, self._blocked)

    def issue(self, instruction: ExecutedInstruction) -> None:
        """Find the cycle in which it starts; an instruction of 0 cycles (an ``le`` of a loop) takes no slot at all."""
        kind = self._core.kind(instruction)
        if kind.cycles == 0 and not kind.registers_each_cycle:
            return
        start = self._now if self._may_join(instruction, kind) else self._now + 1
        start = max(start, self._blocked, self._sources(instruction, kind))
        start = max([start, *(min(self._free[unit]) for unit in kind.units)])
        self._issued = self._issued + 1 if start == self._now else 1
        self._now, self._last = start, (instruction, kind)
        self._occupy(instruction, kind)

    def _may_join(self, instruction: ExecutedInstruction, kind: InstructionKind) -> bool:
        """Whether it may be issued in the same cycle as the instruction before, units and sources apart."""
        if self._last is None or self._issued >= self._core.issue or kind.alone or kind.first or self._last[1].alone:
            return False
        narrow = instruction.size == self._last[0].size == 2
        return not self._core.narrow_pairs or (narrow and (kind.second or self._last[1].second))

    def _sources(self, instruction: ExecutedInstruction, kind: InstructionKind) -> int:
        """The cycle in which all sources are there. A value to be stored, or an accumulator, may come ``late``; an
        address must be there early, by ``address_early`` cycles."""
        late = instruction.reads if instruction.is_store else instruction.reads & instruction.writes
        shift = {name: kind.early - (kind.late if name in late else 0) for name in instruction.reads}
        times = [self._ready[name] + shift[name] for name in instruction.reads if name in self._ready]
        early = self._core.address_early
        return max([0, *times, *(self._ready.get(name, -early) + early for name in instruction.address_registers)])

    def _occupy(self, instruction: ExecutedInstruction, kind: InstructionKind) -> None:
        """Keep its units busy, and its results unknown until its latency is over; a base register that the access
        updates is there in the next cycle."""
        taken = kind.time(instruction)
        for unit in kind.units:
            free = self._free[unit]
            free[free.index(min(free))] = self._now + max(1, taken)
        if kind.blocks:
            self._blocked = self._now + max(1, taken)
        latency = max(kind.latency, taken if kind.blocks else 0)
        self._ready |= dict.fromkeys(instruction.updated, self._now + 1)
        self._ready |= dict.fromkeys(instruction.writes, self._now + latency)


# Cycles of what was executed: blocks that the counting plugin saw, their instructions, and a core's timings.
#
# The cost of a block depends on what came directly before it: the refill after a jump, results that are not there yet.
# So it is counted for each predecessor as a difference: cycles of both blocks in a row, less those of the predecessor.


class _UnknownCodeError(Exception):
    """Is raised where something was executed that the listing does not have."""


@dataclass(frozen=True)
class CycleEstimator:
    """Estimates cycles for one firmware on one core; costs are kept by block and predecessor."""

    core: Core
    code: Code
    functions: Mapping[int, str] = field(default_factory=dict)  # By the address at which each begins.
    _rows: dict[ExecutedBlock, list[ExecutedInstruction]] = field(default_factory=dict)
    _costs: dict[tuple[ExecutedBlock, ExecutedBlock | None], int] = field(default_factory=dict)

    def of(self, marks: Iterable[Mark]) -> int | None:
        """Cycles between the readings; None where code was executed that the listing does not have."""
        try:
            return sum(self._executed(row) for mark in marks for row in mark.executed)
        except _UnknownCodeError:
            return None

    def each(self, mark: Mark) -> list[int]:
        """Cycles of each row of what was executed; empty where the listing does not have all of it."""
        try:
            return [self._executed(row) for row in mark.executed]
        except _UnknownCodeError:
            return []

    def _executed(self, row: Executed) -> int:
        """All executions of a block: those behind known predecessors, and the rest, which count as jumps."""
        known = sum(times * self._cost(row.block, before) for before, times in row.before.items())
        unknown = (row.times - sum(row.before.values())) * self._cost(row.block, None)
        return known + unknown + row.code_waits + row.data_waits

    def _cost(self, block: ExecutedBlock, before: ExecutedBlock | None) -> int:
        """Cycles of one execution directly behind another block; behind one that is unknown there was a jump.

        A jump that costs cycles refills the pipeline, and nothing of the predecessor matters any more. On a core
        without a pipeline no jump keeps anything. Otherwise the predecessor is the context that the block runs in. A
        block that follows itself is a loop: two rounds before it make the third one steady.
        """
        key = (block, before)
        if key not in self._costs:
            row, earlier = self._row(block), self._row(before) if before is not None else []
            last = earlier[-1] if earlier else None
            jumped = last is None or last.address + last.size != block.address
            jump = self._jump(last) if jumped else 0
            context = [] if jump or (jumped and not self.core.units) else earlier
            if before == block:
                context = context * 2  # what goes on and on is steady by then
            self._costs[key] = jump + cycles(self.core, context + row) - cycles(self.core, context)
        return self._costs[key]

    def _row(self, block: ExecutedBlock) -> list[ExecutedInstruction]:
        """The instructions of a block."""
        if block not in self._rows:
            row: list[ExecutedInstruction] = []
            address = block.address
            for _ in range(block.instructions):
                instruction = self.code.get(address)
                if instruction is None:
                    raise _UnknownCodeError
                row.append(instruction)
                address += instruction.size
            self._rows[block] = row
        return self._rows[block]

    def _jump(self, last: ExecutedInstruction | None) -> int:
        """Cycles that a taken jump adds, by the instruction that jumped."""
        taken = self.core.kind(last).taken if last is not None else None
        return self.core.taken if taken is None else taken


def estimator_for(core_name: str, elf: Path, objdump: str) -> tuple[CycleEstimator | None, str]:
    """An estimator for an ELF file, or the reason in words why there is none."""
    core = core_of(core_name)
    if core is None:
        return None, f"the timings of {core_name} are not published, or not known here"
    listing = listed(elf, objdump, core.objdump)
    code = parse(listing)
    if not code:
        return None, f"{objdump} is missing or does not read {elf.name}; install the binutils of the board's toolchain"
    return CycleEstimator(core, code, functions_in(listing)), ""


# What must be known of a board to estimate cycles on it; a project keeps this in its ``board/board.json``.


class SlowMemory(NamedTuple):
    """Names the addresses from ``begin`` to before ``end``, what the CPU waits for a line there, and bytes of caches.

    The counting plugin takes these numbers, in this order, for its model of the memory."""

    begin: int
    end: int
    wait_states: int
    line: int = 4
    code_cache: int = 0
    data_cache: int = 0
    cache: int = 0
    prefetch: int = 0


def slow_memory(memory: Memory) -> SlowMemory:
    """A board's memory that the CPU waits for."""
    sizes = memory.line, memory.code_cache, memory.data_cache, memory.cache
    return SlowMemory(memory.origin, memory.end, memory.wait_states, *sizes, int(memory.prefetch))


@dataclass(frozen=True)
class Timing:
    """Names the core and the objdump to estimate with; ``slow`` are the memories that the CPU waits for."""

    core: str
    objdump: str
    slow: Sequence[SlowMemory] = ()

    @classmethod
    def of(cls, board: Board) -> Timing:
        slow = [slow_memory(memory) for memory in board.memories if memory.wait_states]
        return cls(board.cpu.name, f"{board.cpu.toolchain}-objdump", slow)

    def to_json(self) -> dict[str, Any]:
        return {"core": self.core, "objdump": self.objdump, "slow": [list(region) for region in self.slow]}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Timing:
        return cls(data["core"], data["objdump"], [SlowMemory(*row[: len(SlowMemory._fields)]) for row in data["slow"]])


# Hot spots: the loops and functions in which a layer spends the most cycles.
#
# A block's cycles are divided evenly among its instructions, and each address counts for the innermost loop around it,
# else for its function. Loops are found in what was executed: a jump backwards within a function, from a block that
# its target leads to.

MOST: Final = 4  # Spots of a layer that are reported.
LEAST: Final = 0.02  # Share of a layer's cycles; what takes less is not hot.
LONGEST: Final = 48  # Instructions of a spot that are listed, at most.


@dataclass(frozen=True)
class Spot:
    """Describes a loop or a function that takes much time.

    ``cycles`` are those of its own addresses, without loops further inside. ``times`` says how often its first
    instruction was executed. It begins ``offset`` bytes behind the beginning of ``function``.
    """

    function: str
    offset: int
    loop: bool
    instructions: int
    times: int
    cycles: float
    share: float
    listing: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Gives the row of the report."""
        row = {"function": self.function, "offset": self.offset, "loop": self.loop}
        row |= {"instructions": self.instructions, "times": self.times, "cycles": round(self.cycles)}
        return row | {"share": round(self.share, 4), "listing": list(self.listing)}


class _Range(NamedTuple):
    begin: int
    end: int

    def holds(self, address: int) -> bool:
        return self.begin <= address < self.end


def hot_spots(estimator: CycleEstimator, mark: Mark) -> tuple[Spot, ...]:
    """The hot spots of a layer, the hottest first; none where code was executed that the listing does not have."""
    costs = estimator.each(mark)
    return _Hot(estimator, mark.executed, costs).spots() if costs else ()


@dataclass(frozen=True)
class _Hot:
    """Finds the spots of one layer; ``costs`` are the cycles of each row of ``executed``."""

    estimator: CycleEstimator
    executed: Sequence[Executed]
    costs: Sequence[int]

    def spots(self) -> tuple[Spot, ...]:
        taken: dict[tuple[bool, _Range], float] = {}
        for row, cost in zip(self.executed, self.costs, strict=True):
            addresses = self._addresses[row.block]
            for address in addresses:
                key = self._place(address)
                taken[key] = taken.get(key, 0) + cost / len(addresses)
        whole = sum(self.costs) or 1
        hottest = sorted(taken.items(), key=lambda pair: -pair[1])[:MOST]
        found = [self._spot(place, cycles, cycles / whole) for place, cycles in hottest]
        return tuple(spot for spot in found if spot.share >= LEAST)

    def _spot(self, place: tuple[bool, _Range], cycles: float, share: float) -> Spot:
        is_loop, at = place
        function = self._function(at.begin)
        code = self.estimator.code
        inside = [code[address] for address in range(at.begin, at.end) if address in code]
        words = [f"{one.address:x}  {one.name} {one.operands}".rstrip() for one in inside[:LONGEST]]
        if len(inside) > LONGEST:
            words.append(f"... {len(inside) - LONGEST} more")
        times = sum(row.times for row in self.executed if at.begin in self._addresses[row.block])
        name = self.estimator.functions.get(function.begin, f"{function.begin:#x}")
        offset = at.begin - function.begin
        return Spot(name, offset, is_loop, len(inside), times, cycles, share, tuple(words) if is_loop else ())

    @cached_property
    def _addresses(self) -> dict[ExecutedBlock, list[int]]:
        """The address of each instruction of every block."""
        blocks = dict.fromkeys(block for row in self.executed for block in (row.block, *row.before))
        return {block: self._walked(block) for block in blocks}

    def _walked(self, block: ExecutedBlock) -> list[int]:
        found = [block.address]
        while len(found) < block.instructions:
            found.append(found[-1] + self.estimator.code[found[-1]].size)
        return found

    def _place(self, address: int) -> tuple[bool, _Range]:
        """The innermost loop around an address, else its function; and whether it is a loop."""
        if address not in self._places:
            around = [loop for loop in self._loops if loop.holds(address)]
            inner = min(around, key=lambda loop: loop.end - loop.begin, default=None)
            self._places[address] = (inner is not None, inner or self._function(address))
        return self._places[address]

    @cached_property
    def _places(self) -> dict[int, tuple[bool, _Range]]:
        return {}

    @cached_property
    def _starts(self) -> list[int]:
        return sorted(self.estimator.functions)

    def _function(self, address: int) -> _Range:
        at = bisect_right(self._starts, address)
        begin = self._starts[at - 1] if at else 0
        return _Range(begin, self._starts[at] if at < len(self._starts) else max(self.estimator.code) + 1)

    @cached_property
    def _loops(self) -> list[_Range]:
        """All loops, for each first instruction the longest. A jump backwards ends one if its target leads to it: a
        compiler also jumps back to code that several branches share, which is no loop."""
        ends: dict[int, int] = {}
        for row in self.executed:
            for before in row.before:
                last = self._addresses[before][-1]
                begin, end = row.block.address, last + self.estimator.code[last].size
                backwards = begin <= last and self._function(begin).holds(last)
                if backwards and self._leads(row.block, before, _Range(begin, end)):
                    ends[begin] = max(end, ends.get(begin, 0))
        return [_Range(begin, end) for begin, end in ends.items()]

    @cached_property
    def _followers(self) -> Mapping[ExecutedBlock, Iterable[ExecutedBlock]]:
        found: dict[ExecutedBlock, list[ExecutedBlock]] = {}
        for row in self.executed:
            for before in row.before:
                found.setdefault(before, []).append(row.block)
        return found

    def _leads(self, first: ExecutedBlock, last: ExecutedBlock, inside: _Range) -> bool:
        """Whether one block is executed behind the other without leaving these addresses, calls apart."""
        if last.address < first.address:
            return True  # the block before began above the loop and ran into it: that was the first round
        function, seen, ahead = self._function(first.address), {first}, [first]
        while ahead:
            block = ahead.pop()
            if block == last:
                return True
            others = set(self._followers.get(block, ())) - seen
            more = {other for other in others if inside.holds(other.address) or not function.holds(other.address)}
            seen |= more
            ahead += more
        return False
