"""What a row of instructions takes on a core: one after the other, or through the units of a pipeline."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from uaccel.cycles.code import Instruction
from uaccel.cycles.cores import Core, Kind


def cycles(core: Core, instructions: Sequence[Instruction]) -> int:
    """Jumps apart."""
    return _piped(core, instructions) if core.units else _in_turn(core, instructions)


def _in_turn(core: Core, instructions: Iterable[Instruction]) -> int:
    total, before = 0, None
    for instruction in instructions:
        kind = core.kind(instruction)
        total += kind.time(instruction) - int(_is_pipelined(core, before, instruction, kind))
        before = instruction
    return total


def _is_pipelined(core: Core, before: Instruction | None, instruction: Instruction, kind: Kind) -> bool:
    """A load or store behind a load, whose address is known already."""
    if before is None or not kind.follows or core.kind(before).name not in kind.follows:
        return False
    return not before.writes & instruction.address_registers


def _piped(core: Core, instructions: Iterable[Instruction]) -> int:
    """Until the next instruction can be issued."""
    pipeline = _Pipeline(core)
    for instruction in instructions:
        pipeline.issue(instruction)
    return pipeline.end


class _Pipeline:
    """Instructions start in their order, as soon as their sources are there and their units are free."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._now, self._issued = -1, core.issue
        self._last: tuple[Instruction, Kind] | None = None
        self._free = {unit: [0] * count for unit, count in core.units.items()}
        self._ready: dict[str, int] = {}
        self._blocked = 0

    @property
    def end(self) -> int:
        return max(self._now + 1, self._blocked)

    def issue(self, instruction: Instruction) -> None:
        kind = self._core.kind(instruction)
        if kind.cycles == 0 and not kind.registers_each_cycle:
            return
        start = self._now if self._may_join(instruction, kind) else self._now + 1
        start = max(start, self._blocked, self._sources(instruction, kind))
        start = max([start, *(min(self._free[unit]) for unit in kind.units)])
        self._issued = self._issued + 1 if start == self._now else 1
        self._now, self._last = start, (instruction, kind)
        self._occupy(instruction, kind)

    def _may_join(self, instruction: Instruction, kind: Kind) -> bool:
        """In the same cycle as the instruction before."""
        if self._last is None or self._issued >= self._core.issue or kind.alone or kind.first or self._last[1].alone:
            return False
        narrow = instruction.size == self._last[0].size == 2
        return not self._core.narrow_pairs or (narrow and (kind.second or self._last[1].second))

    def _sources(self, instruction: Instruction, kind: Kind) -> int:
        """When they are there. What is stored or added to may come late."""
        late = instruction.reads if instruction.is_store else instruction.reads & instruction.writes
        shift = {name: kind.early - (kind.late if name in late else 0) for name in instruction.reads}
        times = [self._ready[name] + shift[name] for name in instruction.reads if name in self._ready]
        early = self._core.address_early
        return max([0, *times, *(self._ready.get(name, -early) + early for name in instruction.address_registers)])

    def _occupy(self, instruction: Instruction, kind: Kind) -> None:
        taken = kind.time(instruction)
        for unit in kind.units:
            free = self._free[unit]
            free[free.index(min(free))] = self._now + max(1, taken)
        if kind.blocks:
            self._blocked = self._now + max(1, taken)
        latency = max(kind.latency, taken if kind.blocks else 0)
        self._ready |= dict.fromkeys(instruction.updated, self._now + 1)
        self._ready |= dict.fromkeys(instruction.writes, self._now + latency)
