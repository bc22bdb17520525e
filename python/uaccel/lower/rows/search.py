"""Searches which layers run together by rows, and how many rows at a time: least RAM, or least time within some RAM."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from uaccel.errors import ModelError
from uaccel.kernels import Work
from uaccel.kernels.choice import Selection
from uaccel.lower.placement import ELEMENT_ALIGNMENT, needed_by_layer
from uaccel.lower.program import Layer, Program, Value, view_roots
from uaccel.lower.rows.geometry import row_bytes
from uaccel.lower.rows.layer import Parts, RowGroup, Sketch, distance_behind, sketch
from uaccel.lower.rows.schedule import Chains, RowChain
from uaccel.util.text import round_up

# For one limit of RAM the layers are cut into chains and single layers, each of which stays within it, such that the
# estimated time is least. A chain's time and bytes do not depend on how the layers before and behind it are cut, since
# values between chains are whole. So the best cut up to each layer is kept (dynamic programming). A lower limit allows
# fewer cuts and so costs time: least RAM for a time is found by bisection of the limit.

BANDS: Final = (16, 8, 4, 2, 1)  # Rows at once, from what is fast to what is small.
ANY: Final = 1 << 62  # A limit above any size: no limit.
MOST_POINTS: Final = 40  # Points of a frontier.
LONGEST: Final = 40  # Layers of a chain.
# Chains that are sketched for one program. It bounds the time: of those that come later, none is chosen. MobileNetV2
# at 224x224 asks for 2,118 of them for its whole frontier.
MOST_SKETCHES: Final = 3000


@dataclass(frozen=True)
class ChainPlan:
    """Holds the chains of a cut, the most bytes that are needed at once, and the estimated time."""

    groups: tuple[RowGroup, ...]
    bytes: int
    cost: float


@dataclass(frozen=True)
class _Block:
    """Holds the bytes of a value and its views, and the first and the last layer that needs them."""

    size: int
    first: int
    last: int


class RowSearch:
    """Searches the cuts of one program. ``feed``: the caller hands over an input's rows. ``longest``: the most
    layers of a chain; ``tallest``: the most rows of a tensor in it, each of which costs time to plan.

    ``alone``: the bytes that are needed while each layer runs as a whole; ``costs``: its estimated time.
    """

    def __init__(
        self,
        program: Program,
        selection: Selection,
        *,
        workspace_io: bool = False,
        feed: bool = False,
        longest: int = LONGEST,
        tallest: int = ANY,
    ) -> None:
        self.program, self.longest, self.tallest = program, longest, tallest
        self.parts = Parts(selection)
        self.chains = Chains(program)
        self.feed = feed
        self.fed = self.chains.feedable if feed else None
        self.workspace_io = workspace_io
        self._outputs = {value.name for value in program.outputs}
        self.blocks = _blocks(program, workspace_io=workspace_io, fed=self.fed)
        self.costs = [self._cost(layer) for layer in program.layers]
        needed = needed_by_layer(program, workspace_io=workspace_io)
        most = max(needed.values(), default=0)
        self.alone = [
            needed[i] if i in needed else min(most, self._around(i, i, frozenset()) + round_up(layer.scratch, 8))
            for i, layer in enumerate(program.layers)
        ]
        self._sketches: dict[RowGroup, Sketch | None] = {}

    @cached_property
    def whole(self) -> ChainPlan:
        """The cut without chains: every layer as a whole."""
        return ChainPlan((), max(self.alone, default=0), sum(self.costs))

    def within(self, limit: int) -> ChainPlan | None:
        """The fastest cut that needs no more bytes than ``limit``; None where there is none. ``best[n]`` is the fastest
        cut of the first n layers (of equally fast ones the smallest); it is final when the loop comes to n, since all
        its last steps begin before."""
        count = len(self.program.layers)
        best: list[ChainPlan | None] = [ChainPlan((), 0, 0.0)] + [None] * count
        for first in range(count):
            before = best[first]
            if before is None:
                continue
            if self.alone[first] <= limit and not (self.feed and first == 0):
                self._offer(
                    best,
                    first + 1,
                    ChainPlan(before.groups, max(before.bytes, self.alone[first]), before.cost + self.costs[first]),
                )
            for group, size, cost in self._chains_from(first, limit):
                after = ChainPlan((*before.groups, group), max(before.bytes, size), before.cost + cost)
                self._offer(best, group.last + 1, after)
        return best[count]

    @staticmethod
    def _offer(best: list[ChainPlan | None], at: int, cut: ChainPlan) -> None:
        known = best[at]
        if known is None or (cut.cost, cut.bytes) < (known.cost, known.bytes):
            best[at] = cut

    def _chains_from(self, first: int, limit: int) -> Iterator[tuple[RowGroup, int, float]]:
        """The chains that begin with a layer and stay within the limit, each with the most rows at once that do.

        A chain is worth trying only if one of its layers exceeds the limit alone (or must be fed): elsewhere whole
        layers are faster. Cheap tests come before the sketch, which is dear: rows that must be kept in buffers, which
        only grow with the chain, and the best that overlapping input and output could save.
        """
        needed = self.feed and first == 0
        shortest = first if needed else first + 1
        for last in range(first, min(len(self.program.layers), first + self.longest)):
            output = self.program.layers[last].outputs[0].info
            if self.chains.windows[last] is None or output.shape[1] > self.tallest:
                return
            needed = needed or self.alone[last] > limit
            if not needed or last < shortest:
                continue
            fed = self.fed if first == 0 else None
            chain = self.chains.of(first, last, fed)
            if chain is None:
                continue
            if fed is not None and not self.workspace_io and self._outputs & {v.name for v in chain.made}:
                continue  # feed does not know where the caller wants them
            kept = self._kept(chain)
            if kept > limit:
                return  # longer ones keep more
            around = self._around(first, last, chain.inside)
            if around + kept - self._most_saved(chain) <= limit:
                yield from self._fastest(RowGroup(first, last), around, limit)

    def _fastest(self, group: RowGroup, around: int, limit: int) -> Iterator[tuple[RowGroup, int, float]]:
        """The chain with the most rows at once that stays within the limit; none if one row at a time exceeds it. One
        row is sketched first, as a test, and is chosen only at the end, when all larger bands were too large."""
        sizes = {}
        for band in (1, *BANDS):
            drawn = self._sketch(replace(group, band=band))
            if drawn is None:
                return
            sizes[band] = around + round_up(drawn.scratch, 8) - self._saved(drawn)
            if sizes[1] > limit:
                return
            if sizes[band] <= limit and (band > 1 or len(sizes) == len(BANDS)):
                yield replace(group, band=band), sizes[band], drawn.cost
                return

    @staticmethod
    def _kept(chain: RowChain) -> int:
        """A lower bound of the buffers: bytes of the rows that stay in them from one row to the next."""
        kept: dict[str, int] = {}
        buffered = {value.name: row_bytes(value.info) for value in chain.buffered}
        for layer, windows in zip(chain.layers, chain.windows, strict=True):
            for value, window in zip(layer.inputs, windows, strict=True):
                name = chain.home(value.name)
                if window is not None and name in buffered:
                    kept[name] = max(kept.get(name, 0), window.kept * buffered[name])
        return sum(kept.values())

    def _sketch(self, group: RowGroup) -> Sketch | None:
        if group not in self._sketches:
            if len(self._sketches) >= MOST_SKETCHES:
                return None
            fed = self.fed if group.first == 0 else None
            chain = self.chains.of(group.first, group.last, fed)
            self._sketches[group] = None if chain is None else sketch(chain, group.band, self.parts)
        return self._sketches[group]

    def _cost(self, layer: Layer) -> float:
        if layer.is_view:
            return 0.0
        return self.parts.costs.of(layer.kernel, Work(layer.macs, sum(v.info.elements for v in layer.outputs)))

    def _around(self, first: int, last: int, inside: frozenset[str]) -> int:
        """Bytes of the values that are needed while these layers run, except for those inside the chain."""
        return sum(
            block.size
            for name, block in self.blocks.items()
            if block.first <= last and block.last >= first and name not in inside
        )

    def _ending(self, chain: RowChain) -> list[tuple[Value, _Block, _Block]]:
        """Inputs that nobody needs after the chain, with their blocks, and the block of the output that may overlap."""
        target, last = chain.made[0], chain.layers[-1].index
        output = self.blocks.get(target.name)
        read = {value.name: value for layer in chain.layers for value in layer.inputs}
        blocks = [(value, self.blocks[name]) for name, value in read.items() if name in self.blocks]
        if output is None:
            return []
        return [
            (value, block, output)
            for value, block in blocks
            if block.last <= last and value.name not in chain.inside and value.name != target.name
        ]

    def _most_saved(self, chain: RowChain) -> int:
        return max((min(block.size, output.size) for _, block, output in self._ending(chain)), default=0)

    def _saved(self, drawn: Sketch) -> int:
        """The most bytes that the first output can share with an input that it overwrites row by row."""
        target = drawn.chain.made[0]
        saved = [
            block.size + output.size - max(block.size + distance_behind(drawn, value, target), output.size)
            for value, block, output in self._ending(drawn.chain)
        ]
        return max([0, *saved])


def _blocks(program: Program, *, workspace_io: bool, fed: Value | None) -> dict[str, _Block]:
    """The blocks of the arena, by the name of the value whose bytes they hold."""
    roots = view_roots(program.layers)
    found: dict[str, _Block] = {}

    def needed(name: str, size: int, step: int) -> None:
        name = roots.get(name, name)
        known = found.get(name)
        size = round_up(size, ELEMENT_ALIGNMENT)
        found[name] = _Block(size, step, step) if known is None else _Block(max(size, known.size), known.first, step)

    for value in program.inputs if workspace_io else ():
        needed(value.name, value.info.size, -1)
    for layer in program.layers:
        for value in (*layer.inputs, *layer.outputs):
            needed(value.name, value.info.size, layer.index)
    for value in program.outputs if workspace_io else ():
        needed(value.name, value.info.size, len(program.layers))
    outside = {value.name for entry in program.state for value in (entry.before, entry.after) if value is not None}
    outside |= {fed.name} if fed is not None else set()
    if not workspace_io:
        outside |= {value.name for value in (*program.inputs, *program.outputs)}
    homes = {roots.get(name, name) for name in outside}
    return {name: block for name, block in found.items() if name not in homes}


def least(search: RowSearch, slower: float) -> ChainPlan:
    """The least RAM at no more than ``slower`` times the time of whole layers; these if nothing is gained. Bisection:
    ``best`` needs no more than ``high``, and at ``low`` nothing is fast enough. It ends at a 512th of the RAM of whole
    layers."""
    whole = search.whole
    low, high = 0, whole.bytes
    best = search.within(high) or whole
    limit = slower * whole.cost
    while high - low > max(16, whole.bytes // 512):
        middle = (low + high) // 2
        cut = search.within(middle)
        if cut is not None and cut.cost <= limit:
            best, high = cut, min(middle, cut.bytes)
        else:
            low = middle
    return best


def frontier(search: RowSearch) -> Sequence[ChainPlan]:
    """The cuts from the fastest to the least RAM, each (but the last) a 32nd smaller at least than the one before."""
    smallest = least(search, float("inf"))  # first, while chains may be sketched
    cut = search.within(ANY)
    found: list[ChainPlan] = []
    while cut is not None and len(found) < MOST_POINTS:
        found.append(cut)
        cut = search.within(min(cut.bytes - 1, cut.bytes * 31 // 32))
    return [*found, smallest] if found and smallest.bytes < found[-1].bytes else found


def require_feedable(search: RowSearch) -> None:
    """Raises ModelError where no input can come by rows."""
    program = search.program
    if search.fed is not None and search.within(ANY) is not None:
        return
    names = [f'"{spec.name}"' for spec in program.signature.inputs]
    which = f"none of the inputs {', '.join(names)} of {program.model.name} can"
    if len(names) == 1:
        which = f"input {names[0]} of {program.model.name} cannot"
    raise ModelError(
        f"--feed: {which} come by rows, because the first layer does not read it by rows or others read it as a whole; "
        "leave --feed away"
    )
