"""From blocks to a plan: cheap orders first, then search, and only in what is hard.

1. First fit in several orders. If the best reaches the bound it is optimal, and that is the usual end.
2. Otherwise the core of the problem (``reduce``) falls into groups that never meet. Each is searched alone until it
   fits into the bound of the whole.
3. The easy blocks are placed around the core.

The plan depends on the set of blocks and on ``effort`` alone: not on their order, the machine or the clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from uaccel.memory.block import Block, Overlap, Plan, live_bytes, validate
from uaccel.memory.firstfit import first_fit
from uaccel.memory.problem import split
from uaccel.memory.reduce import easy_blocks
from uaccel.memory.solution import Solution, bottom_up, cheap_solution
from uaccel.memory.solve import Allowance, search


def plan(blocks: Sequence[Block], overlaps: Sequence[Overlap] = (), *, effort: float = 1.0) -> Plan:
    """Offsets for all blocks in as small an arena as can be found; some may overlap.

    ``effort`` multiplies the work that search may take; 0 leaves it at the cheap orders of placement.
    """
    validate(blocks, overlaps)
    parts = [cheap_solution(problem) for problem in split(blocks, overlaps)]
    bound = max((part.proven for part in parts), default=0)
    if effort > 0:
        _search_cores([part for part in parts if part.size > bound], overlaps, bound, Allowance.of_effort(effort))
    size = max((part.size for part in parts), default=0)
    offsets = {block.name: 0 for block in blocks}
    for part in parts:
        offsets.update(part.by_name())
    return Plan(
        offsets=offsets,
        size=size,
        lower_bound=max(live_bytes(blocks, overlaps).values(), default=0),
        optimal=size <= max((part.proven for part in parts), default=0),
        method=next((part.method for part in parts if part.size == size), "empty"),
    )


@dataclass(frozen=True)
class _Core:
    """A part that is too large yet, taken apart: groups that are searched, and blocks that fit around them."""

    part: Solution
    groups: list[Solution]
    easy: list[int]

    def put_together(self) -> None:
        """Improve the part by what was found for its groups."""
        placed = {name: at for group in self.groups for name, at in group.by_name().items()}
        blocks = self.part.problem.blocks
        core = [i for i, block in enumerate(blocks) if block.name in placed]
        core.sort(key=lambda i: (placed[blocks[i].name], -blocks[i].first, i))
        hardest = max(self.groups, key=lambda group: group.size, default=None)
        method = hardest.method if hardest else "greedy-by-difficulty"
        self.part.offer(first_fit(self.part.problem, core + self.easy), method)
        self.part.proven = max([self.part.proven, *(group.proven for group in self.groups)])


def _search_cores(parts: Sequence[Solution], overlaps: Sequence[Overlap], target: int, allowance: Allowance) -> None:
    """Improve the parts towards ``target`` bytes by searching the groups of their cores, the largest first."""
    cores = [_core(part, overlaps, target) for part in parts]
    groups = sorted((group for core in cores for group in core.groups), key=lambda group: -group.size)
    for index, group in enumerate(groups):
        if group.size > target:
            given = allowance.share(sum(other.size > target for other in groups[index:]))
            left = search(group, target, given)
            allowance = allowance.less(given, left)
            target = max(target, group.size)  # the others need not be smaller than this one
    for core in cores:
        core.put_together()


def _core(part: Solution, overlaps: Sequence[Overlap], target: int) -> _Core:
    """Each group begins with the better of its own cheap solution and its place in that of the part."""
    easy = easy_blocks(part.problem, target)
    without = set(easy)
    offsets = part.by_name()
    groups = []
    for problem in split([block for i, block in enumerate(part.problem.blocks) if i not in without], overlaps):
        group = cheap_solution(problem)
        order = bottom_up(problem, [offsets[block.name] for block in problem.blocks])
        group.offer(first_fit(problem, order), part.method)
        groups.append(group)
    return _Core(part, groups, easy)
