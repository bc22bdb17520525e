"""How small an arena could be at best, padding for alignment included.

The blocks live in one section must all lie side by side, so the best packing of each section alone is a bound.
Alignments are powers of two, and only residues matter: whole multiples of the largest alignment can be taken off
every size, and what then has size zero never costs padding.
"""

from __future__ import annotations

from collections.abc import Sequence

from uaccel.basics.numbers import round_up
from uaccel.memory.problem import Problem

#: Sections with more odd-sized blocks than this get a weaker bound instead of the exact 2^n one.
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
        if sum(round_up(size, widest) for size, _ in items) > best:
            best = max(best, side_by_side(items))
    return best


def _overlapped(problem: Problem, section: int, live: Sequence[int]) -> int:
    """Of a section in which a block overlaps others. One other makes one block with it, or lies beside it."""
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
    """A bound on the bytes that blocks of these (size, alignment) take side by side; exact in the usual cases."""
    widest = max(alignment for _, alignment in items)
    whole = sum(size & -widest for size, _ in items)
    odd = sorted((size & (widest - 1), alignment) for size, alignment in items if size & (widest - 1))
    if not odd:
        return whole
    if len(odd) <= MAX_ODD_BLOCKS and len({alignment for _, alignment in odd}) > 1:
        return whole + _best_order(odd)
    return whole + max(_class_bound(odd, alignment) for alignment in {alignment for _, alignment in odd})


def _class_bound(items: Sequence[tuple[int, int]], alignment: int) -> int:
    """Blocks of at least this alignment fill whole cells, all but the topmost one; exact if there is no other class."""
    sizes = [size for size, own in items if own >= alignment]
    slack = max(round_up(size, alignment) - size for size in sizes)
    padded = sum(round_up(size, alignment) for size in sizes) - slack
    return max(padded, sum(size for size, _ in items))


def _best_order(items: Sequence[tuple[int, int]]) -> int:
    """The least end over all orders: to end early with a set, end early with the set without its last block."""
    ends = [0] * (1 << len(items))
    for chosen in range(1, len(ends)):
        ends[chosen] = min(
            round_up(ends[chosen & ~(1 << i)], alignment) + size
            for i, (size, alignment) in enumerate(items)
            if chosen >> i & 1
        )
    return ends[-1]
