"""Local search over orders of placement: look at what makes the arena large, and place that earlier.

The number of trials bounds the time, never a clock, and the seed is fixed: the same blocks give the same plan on every
machine. Only ``Random.random`` is used, the one generator whose sequence Python promises to keep.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from uaccel.memory.firstfit import arena, first_fit
from uaccel.memory.problem import Problem
from uaccel.memory.solution import bottom_up


def trial_cost(problem: Problem) -> int:
    """Elementary operations of one trial, about; to share out an allowance of work."""
    return len(problem.blocks) + sum(map(len, problem.neighbours))


def improve(problem: Problem, offsets: list[int], target: int, trials: int) -> tuple[list[int], int]:
    """Offsets at least as good as those given, and the trials made; at most ``target`` bytes are good enough."""
    random = Random(0).random
    order = bottom_up(problem, offsets)
    current = first_fit(problem, order)
    score = _score(problem, current)
    made = 0
    while made < trials and score[0] > target:
        made += 1
        changed = _promote_something_on_top(problem, current, order, score[0], random)
        trial = first_fit(problem, changed)
        trial_score = _score(problem, trial)
        if trial_score <= score:
            order, current, score = changed, trial, trial_score
    return current, made


def _score(problem: Problem, offsets: Sequence[int]) -> tuple[int, int]:
    """The arena, and for how many sections some block reaches its end.

    Blocks would be the wrong thing to count: a long one that reaches the end alone hides what many short ones won.
    """
    size = arena(problem, offsets)
    ends = zip(offsets, problem.sizes, problem.begin, problem.end, strict=True)
    return size, sum(end - begin for offset, own, begin, end in ends if offset + own == size)


def _promote_something_on_top(
    problem: Problem, offsets: Sequence[int], order: Sequence[int], size: int, random: Callable[[], float]
) -> list[int]:
    """The order with a block that reaches the arena's end, or a neighbour of one, placed earlier."""
    top = [i for i in order if offsets[i] + problem.sizes[i] == size]
    moved = _pick(top, random)
    if random() < 0.5 and problem.neighbours[moved]:
        moved = _pick(problem.neighbours[moved], random)
    rank = {i: position for position, i in enumerate(order)}
    earlier = [j for j in problem.neighbours[moved] if rank[j] < rank[moved]]
    changed = list(order)
    if earlier:
        other = _pick(earlier, random)
        if random() < 0.5:
            changed.insert(rank[other], changed.pop(rank[moved]))
        else:
            changed[rank[moved]], changed[rank[other]] = other, moved
    return changed


def _pick(items: Sequence[int], random: Callable[[], float]) -> int:
    return items[int(random() * len(items))]
