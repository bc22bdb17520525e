"""Prepares blocks for the memory planner: compresses time, bounds the arena, finds a first plan by first fit.

It also tells the easy blocks, which fit anywhere below a limit, from the core that has to be searched.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from uaccel.memory.blocks import Block, Overlap, saved
from uaccel.util.text import round_up

# The planner's working form: blocks in a canonical order, time compressed to the steps that matter.
#
# Offsets are constrained by pairs of blocks that are live together, and by nothing else of time. So a step whose live
# set is contained in a neighbouring step's adds no constraint and is dropped. What remains are the ``sections``,
# numbered from 0; a block covers the sections ``begin[i]`` up to but without ``end[i]``.


@dataclass(frozen=True)
class Problem:
    """Blocks with at least one byte, connected in time; index ``i`` means ``blocks[i]`` everywhere."""

    blocks: tuple[Block, ...]
    begin: tuple[int, ...]
    end: tuple[int, ...]
    sections: int
    # By (low, high): how many bytes ``low`` must begin before ``high``, at least, to overlap it.
    overlaps: Mapping[tuple[int, int], int] = field(default_factory=dict)

    @cached_property
    def sizes(self) -> list[int]:
        return [block.size for block in self.blocks]

    @cached_property
    def alignments(self) -> list[int]:
        return [block.alignment for block in self.blocks]

    @cached_property
    def neighbours(self) -> list[list[int]]:
        """Gives for each block those that are live with it; found by a sweep over the blocks as they begin."""
        result: list[list[int]] = [[] for _ in self.blocks]
        active: list[int] = []
        for i in sorted(range(len(self.blocks)), key=self.begin.__getitem__):
            active = [j for j in active if self.end[j] > self.begin[i]]
            for j in active:
                result[j].append(i)
            result[i] = list(active)
            active.append(i)
        return result

    def clearance(self, lower: int, upper: int) -> int:
        """The least distance from the beginning of the lower block to that of the upper one: the lower one's size,
        or the distance of their overlap where that is less."""
        return min(self.sizes[lower], self.overlaps.get((lower, upper), self.sizes[lower]))

    @cached_property
    def clearances(self) -> list[list[tuple[int, int, int]]]:
        """Gives each block's neighbours, with the clearance where the neighbour is above it and where it is below."""
        return [
            [(j, self.clearance(i, j), self.clearance(j, i)) for j in near] for i, near in enumerate(self.neighbours)
        ]

    @cached_property
    def written(self) -> dict[int, tuple[int, list[int]]]:
        """Gives for each section in which a block may overlap others, that block and those. An overlap is in the
        section where its ``low`` begins: ``high`` ends in the same step, so that this step is never dropped."""
        result: dict[int, tuple[int, list[int]]] = {}
        for low, high in self.overlaps:
            result.setdefault(self.begin[low], (low, []))[1].append(high)
        return result

    def saved(self, low: int, highs: Iterable[int], sizes: Sequence[int], grain: int = 1) -> int:
        """The bytes that overlaps save at most, for blocks of these ``sizes`` that begin at multiples of ``grain``: the
        distance of two such blocks is a multiple of it, too, and so is rounded up."""
        return saved(sizes[low], [(sizes[high], round_up(self.overlaps[low, high], grain)) for high in highs])

    @cached_property
    def live(self) -> list[list[int]]:
        """Gives for each section, the blocks that are live in it."""
        result: list[list[int]] = [[] for _ in range(self.sections)]
        for i in range(len(self.blocks)):
            for section in range(self.begin[i], self.end[i]):
                result[section].append(i)
        return result


def split(blocks: Sequence[Block], overlaps: Sequence[Overlap] = ()) -> list[Problem]:
    """The independent parts of a problem in time order: no block of one part is ever live with one of another.

    The result does not depend on the order in which the blocks are given: names break the last ties.
    """
    ordered = sorted(
        (block for block in blocks if block.size),
        key=lambda block: (block.first, block.last, -block.size, -block.alignment, block.name),
    )
    parts: list[list[Block]] = []
    last = 0
    for block in ordered:
        if not parts or block.first > last:
            parts.append([])
            last = block.last
        parts[-1].append(block)
        last = max(last, block.last)
    return [_compress(part, overlaps) for part in parts]


def _compress(blocks: Sequence[Block], overlaps: Sequence[Overlap]) -> Problem:
    number = {block.name: i for i, block in enumerate(blocks)}
    within = {
        (number[overlap.low], number[overlap.high]): overlap.distance
        for overlap in overlaps
        if overlap.low in number and overlap.high in number
    }
    steps = _telling_steps(blocks)
    begin = tuple(bisect_left(steps, block.first) for block in blocks)
    end = tuple(bisect_right(steps, block.last) for block in blocks)
    return Problem(tuple(blocks), begin, end, len(steps), within)


def _telling_steps(blocks: Iterable[Block]) -> list[int]:
    """The steps with a maximal live set: a block begins there and one ends before the next begins.

    Between two beginnings live sets only shrink, so the largest of such a stretch is at its first step. If no block
    ends before the next beginning, that set is contained in the next one and says nothing new.
    """
    firsts = sorted({block.first for block in blocks})
    lasts = sorted({block.last for block in blocks})
    telling = []
    for step, following in zip(firsts, [*firsts[1:], None], strict=True):
        index = bisect_left(lasts, step)
        if following is None or lasts[index] < following:
            telling.append(step)
    return telling


# First fit: place blocks one by one, in some order, each at the lowest offset that is free over its whole live range.
#
# Every plan in which no block can move down is the result of some order (that of its offsets). So searching among
# orders is enough to find a smallest arena, and local search in ``planner`` does just that.


def first_fit(problem: Problem, order: Iterable[int]) -> list[int]:
    """The offsets of all blocks when they are placed in this order.

    For each neighbour that is placed, an interval of beginnings is forbidden: those nearer than the clearance below it
    and above it. Its ends are allowed themselves. So the block counts as a point, of 0 bytes, among these intervals.
    """
    alignments, clearances = problem.alignments, problem.clearances
    offsets = [-1] * len(alignments)
    for i in order:
        forbidden = [(offsets[j] - below, offsets[j] + above) for j, below, above in clearances[i] if offsets[j] >= 0]
        offsets[i] = lowest_free(0, alignments[i], forbidden)
    return offsets


def lowest_free(size: int, alignment: int, taken: Iterable[tuple[int, int]]) -> int:
    """The lowest offset at which so many bytes touch nothing of what is taken, given as (begin, end) in any order.

    One pass in order of beginnings is enough: ``at`` is aligned and at or above the end of all that came before. If it
    fits below the next beginning, it fits below all later ones.
    """
    at, mask = 0, alignment - 1
    for begin, end in sorted(taken):
        if at + size <= begin:
            break
        if end > at:
            at = (end + mask) & ~mask
    return at


def arena(problem: Problem, offsets: Sequence[int]) -> int:
    return max(offset + size for offset, size in zip(offsets, problem.sizes, strict=True))


def orders(problem: Problem) -> dict[str, Callable[[], list[int]]]:
    """Named orders worth trying, best average first; each is computed only when called."""
    everyone = range(len(problem.blocks))
    sizes, begin, end = problem.sizes, problem.begin, problem.end

    def by(key: Callable[[int], tuple[int, ...]]) -> Callable[[], list[int]]:
        return lambda: sorted(everyone, key=key)

    return {
        "greedy-by-size": by(lambda i: (-sizes[i],)),
        "greedy-by-area": by(lambda i: (-sizes[i] * (end[i] - begin[i]),)),
        "greedy-by-lifetime": by(lambda i: (begin[i] - end[i], -sizes[i])),
        "greedy-by-first-use": by(lambda i: (begin[i], -sizes[i])),
        "greedy-by-last-use": by(lambda i: (-end[i], -sizes[i])),
        "greedy-by-conflicts": by(lambda i: (-sum(sizes[j] for j in problem.neighbours[i]), -sizes[i])),
        "greedy-by-pressure": lambda: _by_pressure(problem),
        "greedy-by-pressure-area": lambda: _by_pressure_area(problem),
    }


def _by_pressure(problem: Problem) -> list[int]:
    """The fullest sections first, and in each the largest blocks first."""
    order: dict[int, None] = {}
    for section in sorted(problem.live, key=lambda live: -sum(problem.sizes[i] for i in live)):
        order.update(dict.fromkeys(sorted(section, key=lambda i: -problem.sizes[i])))
    return list(order)


def _by_pressure_area(problem: Problem) -> list[int]:
    """The fullest sections first, and in each the blocks that live longest first."""
    order: dict[int, None] = {}
    for section in sorted(problem.live, key=lambda live: -sum(problem.sizes[i] for i in live)):
        order.update(
            dict.fromkeys(sorted(section, key=lambda i: (problem.begin[i] - problem.end[i], -problem.sizes[i])))
        )
    return list(order)


# Lower bounds on the arena, padding for alignment included.
#
# The blocks live in one section must all lie side by side, so the best packing of each section alone is a bound.
# Alignments are powers of two, so each divides the largest one, and only residues matter: taking whole multiples of the
# largest alignment off a size moves all that lies above by as much, and keeps it aligned. What then has size zero is
# placed at offset 0 and never costs padding.

#: Sections with more odd-sized blocks than this get a weaker bound. The exact one tries the last block of each of the
#: 2**n sets: for 8 blocks some 2000 steps, a small part of what a search takes.
MAX_ODD_BLOCKS = 8


def aligned_bound(problem: Problem) -> int:
    """A size that no plan of this problem can go below; at least the largest sum of live bytes."""
    best = 0
    for section, live in enumerate(problem.live):
        if section in problem.written:
            best = max(best, _overlapped(problem, section, live))
            continue
        items = [(problem.sizes[i], problem.alignments[i]) for i in live]
        widest = max(alignment for _, alignment in items)
        # Rounded up to the widest alignment blocks can be stacked in any order, so this section needs no more.
        if sum(round_up(size, widest) for size, _ in items) > best:
            best = max(best, side_by_side(items))
    return best


def _overlapped(problem: Problem, section: int, live: Sequence[int]) -> int:
    """The bound of a section in which a block may overlap others.

    Where it overlaps one other, there are two cases: the two overlap as far as they may and make one block, aligned as
    the lower one, or they lie side by side. The smaller case is a bound. With several others, padding is left out.
    """
    sizes, alignments = problem.sizes, problem.alignments
    low, highs = problem.written[section]
    grain = min(alignments[i] for i in (low, *highs))
    least = sum(sizes[i] for i in live) - problem.saved(low, highs, sizes, grain)
    if len(highs) > 1:
        return least
    both = sizes[low] + sizes[highs[0]] - problem.saved(low, highs, sizes, grain)
    others = [(sizes[i], alignments[i]) for i in live if i not in (low, highs[0])]
    apart = side_by_side([(sizes[i], alignments[i]) for i in live])
    return max(least, min(apart, side_by_side([*others, (both, alignments[low])])))


def side_by_side(items: Sequence[tuple[int, int]]) -> int:
    """A bound on the bytes that blocks of these (size, alignment) take side by side.

    It is exact for up to ``MAX_ODD_BLOCKS`` sizes that are no multiples of the widest alignment, and wherever these
    have the same alignment; else it is the best of the bounds for each alignment.
    """
    widest = max(alignment for _, alignment in items)
    whole = sum(size & -widest for size, _ in items)
    odd = sorted((size & (widest - 1), alignment) for size, alignment in items if size & (widest - 1))
    if not odd:
        return whole
    if len(odd) <= MAX_ODD_BLOCKS and len({alignment for _, alignment in odd}) > 1:
        return whole + _best_order(odd)
    return whole + max(_class_bound(odd, alignment) for alignment in {alignment for _, alignment in odd})


def _class_bound(items: Sequence[tuple[int, int]], alignment: int) -> int:
    """Blocks of at least this alignment fill whole cells of it, all but the topmost one, for which the block with the
    most padding is assumed. Exact if no block has a smaller alignment."""
    sizes = [size for size, own in items if own >= alignment]
    slack = max(round_up(size, alignment) - size for size in sizes)
    padded = sum(round_up(size, alignment) for size in sizes) - slack
    return max(padded, sum(size for size, _ in items))


def _best_order(items: Sequence[tuple[int, int]]) -> int:
    """The least end over all orders, by dynamic programming over sets: to end a set early, end it early without its
    last block. That is right because rounding up to an alignment is monotone: an earlier end never makes a later one.
    ``ends[chosen]`` is the least end of the blocks whose bits ``chosen`` has; a subset has a smaller number."""
    ends = [0] * (1 << len(items))
    for chosen in range(1, len(ends)):
        ends[chosen] = min(
            round_up(ends[chosen & ~(1 << i)], alignment) + size
            for i, (size, alignment) in enumerate(items)
            if chosen >> i & 1
        )
    return ends[-1]


# The state of one problem while it is being solved; at first it is the best of the cheap orders.


@dataclass
class Solution:
    """Keeps the best offsets known, what found them, and a ``proven`` size that no plan can go below."""

    problem: Problem
    offsets: list[int]
    size: int
    proven: int
    method: str

    def offer(self, offsets: list[int], method: str) -> None:
        """Take these offsets if they are better."""
        size = arena(self.problem, offsets)
        if size < self.size:
            self.offsets, self.size, self.method = offsets, size, method

    def by_name(self) -> dict[str, int]:
        return {block.name: at for block, at in zip(self.problem.blocks, self.offsets, strict=True)}


def cheap_solution(problem: Problem) -> Solution:
    """The best of the cheap orders, or the first that reaches the bound."""
    candidates = iter(orders(problem).items())
    method, order = next(candidates)
    offsets = first_fit(problem, order())
    solution = Solution(problem, offsets, arena(problem, offsets), aligned_bound(problem), method)
    for method, order in candidates:
        if solution.size <= solution.proven:
            break
        solution.offer(first_fit(problem, order()), method)
    return solution


def bottom_up(problem: Problem, offsets: list[int]) -> list[int]:
    """An order in which first fit gives each block its present offset or a lower one.

    When a block's turn comes, everything placed so far began at or below it, and has not moved up since. So its present
    offset is free. If two begin at the same byte, the one that overlaps (it begins later in time) comes first.
    """
    return sorted(range(len(offsets)), key=lambda i: (offsets[i], -problem.begin[i], i))


# The core of a problem: what is hard in it. Everything outside the core fits whatever the core's plan looks like.
#
# A block surely fits below a limit if its neighbours leave more bytes free than can be lost in gaps too small for it.
# Such a block can be placed last, so it is taken out, and its neighbours are looked at again. In a network this leaves
# little more than the layers near the memory peak, usually in several groups that never meet.
#
# How much can be lost: n neighbours leave n + 1 gaps at most, one at the bottom and one above each neighbour. The
# bottom one begins at 0, which is aligned, and is too small with size - 1 bytes. A gap above a neighbour may lose
# alignment - 1 bytes more, and so is too small with size + alignment - 2. If more bytes than the sum are free, some gap
# is wide enough.


def easy_blocks(problem: Problem, limit: int) -> list[int]:
    """Blocks that fit below ``limit`` if placed by first fit after the others, in this order.

    The order is that of taking out, reversed: each was easy without those taken out before it, so these come after it.
    """
    sizes, alignments, neighbours = problem.sizes, problem.alignments, problem.neighbours
    taken = [sum(sizes[j] for j in near) for near in neighbours]
    count = [len(near) for near in neighbours]
    easy: dict[int, None] = {}
    waiting = list(range(len(sizes)))
    while waiting:
        i = waiting.pop()
        if i in easy:
            continue
        gap = sizes[i] + alignments[i] - 2  # the widest gap above a neighbour in which the block may still not fit
        if limit - taken[i] < count[i] * gap + sizes[i]:
            continue
        easy[i] = None
        for j in neighbours[i]:
            if j not in easy:
                taken[j] -= sizes[i]
                count[j] -= 1
                waiting.append(j)
    return list(reversed(easy))
