"""The state of one problem while it is being solved, and its first state: the best of the cheap orders."""

from __future__ import annotations

from dataclasses import dataclass

from uaccel.memory.bound import aligned_bound
from uaccel.memory.firstfit import arena, first_fit, orders
from uaccel.memory.problem import Problem


@dataclass
class Solution:
    """The best offsets known, what found them, and a size that no plan of this problem can go below."""

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
    """The best of the cheap orders, or the first that is as good as can be."""
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
    """An order in which first fit gives each block its present offset or a lower one: where two begin at the same byte,
    what overlaps comes before what it overlaps."""
    return sorted(range(len(offsets)), key=lambda i: (offsets[i], -problem.begin[i], i))
