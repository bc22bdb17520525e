"""First fit: place blocks one by one, in some order, each at the lowest offset that is free over its whole life."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from uaccel.memory.problem import Problem


def first_fit(problem: Problem, order: Iterable[int]) -> list[int]:
    """The offsets of all blocks when they are placed in this order."""
    alignments, clearances = problem.alignments, problem.clearances
    offsets = [-1] * len(alignments)
    for i in order:
        forbidden = [(offsets[j] - below, offsets[j] + above) for j, below, above in clearances[i] if offsets[j] >= 0]
        offsets[i] = lowest_free(0, alignments[i], forbidden)
    return offsets


def lowest_free(size: int, alignment: int, taken: Iterable[tuple[int, int]]) -> int:
    """The lowest offset at which so many bytes touch nothing of what is taken, given as (begin, end) in any order."""
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
