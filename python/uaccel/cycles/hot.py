"""Where the time of a layer goes: the loops and functions in which it spends the most."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

from uaccel.cycles.blocks import Block, Executed, Mark
from uaccel.cycles.estimate import Estimator

MOST: Final = 4
"""Spots of a layer."""
LEAST: Final = 0.02
"""Of a layer's cycles: what takes less is not hot."""
LONGEST: Final = 48
"""Instructions of a spot that are listed."""


@dataclass(frozen=True)
class Spot:
    """``cycles`` of those in the addresses from ``begin`` to ``end`` that are in no spot further inside. ``times``: how
    often its first instruction was executed. ``function``: its name, and where the spot begins in it."""

    function: str
    offset: int
    loop: bool
    instructions: int
    times: int
    cycles: float
    share: float
    listing: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """For the report."""
        row = {"function": self.function, "offset": self.offset, "loop": self.loop}
        row |= {"instructions": self.instructions, "times": self.times, "cycles": round(self.cycles)}
        return row | {"share": round(self.share, 4), "listing": list(self.listing)}


class _Range(NamedTuple):
    begin: int
    end: int

    def holds(self, address: int) -> bool:
        return self.begin <= address < self.end


def hot_spots(estimator: Estimator, mark: Mark) -> tuple[Spot, ...]:
    """The hottest first. Empty where code was executed that the listing does not have."""
    costs = estimator.each(mark)
    return _Hot(estimator, mark.executed, costs).spots() if costs else ()


@dataclass(frozen=True)
class _Hot:
    """``costs``: cycles of each row of ``executed``."""

    estimator: Estimator
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
    def _addresses(self) -> dict[Block, list[int]]:
        """Of each instruction of a block."""
        blocks = dict.fromkeys(block for row in self.executed for block in (row.block, *row.before))
        return {block: self._walked(block) for block in blocks}

    def _walked(self, block: Block) -> list[int]:
        found = [block.address]
        while len(found) < block.instructions:
            found.append(found[-1] + self.estimator.code[found[-1]].size)
        return found

    def _place(self, address: int) -> tuple[bool, _Range]:
        """The innermost loop, else the function."""
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
        """Of each first instruction the longest. A jump backwards ends one if what it jumps to leads to it."""
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
    def _followers(self) -> Mapping[Block, Iterable[Block]]:
        found: dict[Block, list[Block]] = {}
        for row in self.executed:
            for before in row.before:
                found.setdefault(before, []).append(row.block)
        return found

    def _leads(self, first: Block, last: Block, inside: _Range) -> bool:
        """Whether one block is executed behind the other without leaving these addresses, calls apart."""
        if last.address < first.address:
            return True  # both are in it: the first round came from above
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
