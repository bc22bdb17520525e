"""Exact search: is there a plan of at most so many bytes?

In some smallest plan no block can be moved down, and such a plan can be built by placing blocks in order of their
offsets, each directly on what already lies under it. The search tries those sequences. It gives up a branch when

- a block or a section cannot hold what is still to be placed below the limit;
- a block would start above the top of another that still has its place free below: that one has to come first;
- the remaining blocks fall into groups that never meet: each is then solved alone.

Arithmetic is in whole bytes, so a "no" is a proof. A failed search also says which limit is the next that could
change the outcome; all limits in between are impossible too.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from uaccel.basics.numbers import round_up
from uaccel.memory.problem import Problem


class OutOfWorkError(Exception):
    """The allowance of a search is spent; nothing is proven."""


@dataclass
class Search:
    """One search for a plan of at most ``limit`` bytes, with at most ``work`` elementary operations."""

    problem: Problem
    limit: int
    work: int
    offsets: list[int] = field(init=False)
    next_limit: int = field(init=False, default=1 << 62)

    def __post_init__(self) -> None:
        problem = self.problem
        self.offsets = [0] * len(problem.blocks)
        self._top = [0] * problem.sections
        self._grains = sorted(set(problem.alignments))
        self._padded = {
            grain: [
                round_up(size, grain) if alignment >= grain else 0
                for size, alignment in zip(problem.sizes, problem.alignments, strict=True)
            ]
            for grain in self._grains
        }

    def run(self) -> bool:
        """True: ``offsets`` holds a plan. False: there is none below ``next_limit``. Or raise OutOfWorkError."""
        begin, end = self.problem.begin, self.problem.end
        return self._place_all(sorted(range(len(begin)), key=lambda i: (begin[i], end[i])), 0, -1)

    def _place_all(self, left: list[int], lowest: int, previous: int) -> bool:
        groups = self._groups(left)
        if len(groups) == 1:
            return self._place_group(groups[0], lowest, previous)
        saved = list(self._top)
        for group in sorted(groups, key=len):
            if not self._place_group(group, lowest, previous):
                self._top[:] = saved
                return False
        return True

    def _groups(self, left: list[int]) -> list[list[int]]:
        """The blocks, which are sorted by first use, in groups that have no section in common."""
        begin, end = self.problem.begin, self.problem.end
        groups: list[list[int]] = []
        reach = -1
        for i in left:
            if begin[i] >= reach:
                groups.append([])
                reach = end[i]
            elif end[i] > reach:
                reach = end[i]
            groups[-1].append(i)
        return groups

    def _place_group(self, left: list[int], lowest: int, previous: int) -> bool:
        begin, end, sizes, top = self.problem.begin, self.problem.end, self.problem.sizes, self._top
        for at, _, i in self._candidates(left, lowest):
            if at == lowest and i < previous and (previous, i) not in self.problem.overlaps:
                continue  # the same offsets in another sequence
            self.offsets[i] = at
            here = slice(begin[i], end[i])
            saved = top[here]
            end_of_block = at + sizes[i]
            top[here] = [end_of_block if end_of_block > own else own for own in saved]
            if self._place_all([j for j in left if j != i], at, i):
                return True
            top[here] = saved
        return False

    def _candidates(self, left: list[int], lowest: int) -> list[tuple[int, int, int]]:
        """(offset, order, block) of what could come next, most promising first; empty if this branch is dead."""
        begin, end, sizes = self.problem.begin, self.problem.end, self.problem.sizes
        alignments = self.problem.alignments
        if self.work < 0:
            raise OutOfWorkError
        self.work -= len(left)
        found = []
        ceiling = 1 << 62
        over = self._over(left) if self.problem.overlaps else {}
        for i in left:
            at = over[i] if i in over else max(self._top[begin[i] : end[i]])
            if at < lowest:
                at = lowest
            at = (at + alignments[i] - 1) & -alignments[i]
            top = at + sizes[i]
            if top > self.limit:
                self.next_limit = min(self.next_limit, top)
                return []
            if top < ceiling:
                ceiling = top
            found.append((at, -sizes[i], i))
        if any(self._too_full(found, grain) for grain in self._grains):
            return []
        return sorted(candidate for candidate in found if candidate[0] < ceiling)

    def _over(self, left: list[int]) -> dict[int, int]:
        """Where blocks may begin at the earliest that overlap one which is placed."""
        problem, waiting, found = self.problem, set(left), {}
        for low, high in problem.overlaps:
            if high in waiting and low not in waiting:
                last = problem.end[high] - 1
                self.work -= len(problem.live[last])
                placed = [j for j in problem.live[last] if j not in waiting]
                ends = [self.offsets[j] + problem.clearance(j, high) for j in placed]
                found[high] = max([*ends, *self._top[problem.begin[high] : last]])
        return found

    def _too_full(self, found: list[tuple[int, int, int]], grain: int) -> bool:
        """Whether the blocks of at least this alignment, each rounded up to it, overfill some section."""
        begin, end, padded = self.problem.begin, self.problem.end, self._padded[grain]
        floor: dict[int, int] = {}
        load: dict[int, int] = {}
        for at, _, i in found:
            size = padded[i]
            if not size:
                continue
            self.work -= end[i] - begin[i]
            for section in range(begin[i], end[i]):
                if section in load:
                    load[section] += size
                    if at < floor[section]:
                        floor[section] = at
                else:
                    load[section] = size
                    floor[section] = at
        waiting = {i for _, _, i in found} if self.problem.overlaps else set()
        for section, (low, highs) in self.problem.written.items():
            if section in load and low in waiting and waiting.intersection(highs):
                load[section] -= self.problem.saved(low, waiting.intersection(highs), padded, grain)
        needed = max((floor[section] + load[section] for section in load), default=0)
        if needed > round_up(self.limit, grain):
            self.next_limit = min(self.next_limit, needed - grain + 1)
            return True
        return False
