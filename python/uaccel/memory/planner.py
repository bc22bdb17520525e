"""Searches for a plan of memory, exact and local, and plans over several pools."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final

from uaccel.memory.blocks import Block, Overlap, Plan, live_bytes, validate
from uaccel.memory.problem import Problem, Solution, arena, bottom_up, cheap_solution, easy_blocks, first_fit, split
from uaccel.util.text import round_up

# Exact search: is there a plan of at most so many bytes?
#
# In some smallest plan no block can be moved down, and such a plan can be built by placing blocks in order of their
# offsets, each directly on what already lies under it. The search tries those sequences. It gives up a branch when
#
# - a block or a section cannot hold what is still to be placed below the limit;
# - a block would start above the top of another that still has its place free below: that one has to come first;
# - the remaining blocks fall into groups that never meet: each is then solved alone.
#
# Arithmetic is in whole bytes, so a "no" is a proof. A failed search also says which limit is the next that could
# change the outcome; all limits in between are impossible too.


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


# Local search over orders of placement: look at what makes the arena large, and place that earlier.
#
# The number of trials bounds the time, never a clock, and the seed is fixed: the same blocks give the same plan on
# every
# machine. Only ``Random.random`` is used, the one generator whose sequence Python promises to keep.


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


# Search within an allowance: exact search for a moment, then local search, then exact search with more patience.
#
# All allowances are counts of operations, never time, so that every machine finds the same plan.

#: Elementary operations at effort 1: together two to three seconds on a desktop machine, if all are needed.
QUICK_EXACT_WORK = 200_000
LOCAL_WORK = 8_000_000
EXACT_WORK = 1_500_000
#: Exact search of more blocks than this would be hopeless, and it recurs twice for each block.
MOST_EXACT_BLOCKS = 200
#: A possible saving of less than one part in this many gets a tenth of the work.
WORTHWHILE = 1000


@dataclass
class Allowance:
    """Work that is still allowed."""

    quick: int
    local: int
    exact: int

    @staticmethod
    def of_effort(effort: float) -> Allowance:
        return Allowance(int(effort * QUICK_EXACT_WORK), int(effort * LOCAL_WORK), int(effort * EXACT_WORK))

    def share(self, parts: int) -> Allowance:
        """What the first of so many parts may use: more than its even share, as the first is the hardest."""
        return Allowance(*(2 * work // (parts + 1) for work in (self.quick, self.local, self.exact)))

    def less(self, given: Allowance, left: Allowance) -> Allowance:
        """What remains after a part was given a share and left some of it."""
        return Allowance(
            self.quick - given.quick + left.quick,
            self.local - given.local + left.local,
            self.exact - given.exact + left.exact,
        )


def search(solution: Solution, target: int, allowance: Allowance) -> Allowance:
    """Improve until ``target`` bytes suffice or nothing smaller exists, as far as the work goes; returns the rest."""
    quick = _exact(solution, target, allowance.quick)
    local = _local(solution, target, allowance.local)
    patience = _worthwhile(solution, target, allowance.exact)
    exact = _exact(solution, target, patience)
    return Allowance(quick, local, allowance.exact - patience + exact)


def _worthwhile(solution: Solution, target: int, work: int) -> int:
    return work if (solution.size - target) * WORTHWHILE > target else work // 10


def _local(solution: Solution, target: int, work: int) -> int:
    goal = max(target, solution.proven)
    cost = trial_cost(solution.problem)
    trials = _worthwhile(solution, target, work) // cost
    offsets, made = improve(solution.problem, solution.offsets, goal, trials)
    solution.offer(offsets, "local-search")
    return work - made * cost


def _exact(solution: Solution, target: int, work: int) -> int:
    """Ask for plans between ``target`` and the best known, the smallest first; returns the work left over.

    A limit at which the search runs out of work is taken as too low, and the next one asked for is half way up.
    """
    if len(solution.problem.blocks) > MOST_EXACT_BLOCKS:
        return work
    low = limit = max(target, solution.proven)
    while limit < solution.size and work > 0:
        attempt = Search(solution.problem, limit, work if limit == solution.size - 1 else work // 2)
        given = attempt.work
        try:
            if attempt.run():
                solution.offer(first_fit(solution.problem, bottom_up(solution.problem, attempt.offsets)), "exact")
            else:
                solution.proven = low = attempt.next_limit
        except OutOfWorkError:
            low = limit + 1
        work -= given - max(attempt.work, 0)
        limit = low if low == solution.proven else (low + solution.size - 1) // 2
    return max(work, 0)


# From blocks to a plan: cheap orders first, then search, and only in what is hard.
#
# 1. First fit in several orders. If the best reaches the bound it is optimal, and that is the usual end.
# 2. Otherwise the core of the problem (``reduce``) falls into groups that never meet. Each is searched alone until it
#    fits into the bound of the whole.
# 3. The easy blocks are placed around the core.
#
# The plan depends on the set of blocks and on ``effort`` alone: not on their order, the machine or the clock.


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


# Which of several memories holds which blocks: the most used, for their size, lie in the first that has room.
#
# A pool of a stated size is filled by leaving blocks away until the rest fits: always one that is live where the pool
# overflows, and of these the one with the fewest accesses a byte. What is left away goes on to the next pool.

Planned = Callable[[Sequence[Block]], Plan]  # A plan of some of the blocks.


ANY_SIZE: Final = 1 << 40  # More than any layer has.


@dataclass(frozen=True)
class Pool:
    """``size`` in bytes; None: as large as what is left for it. ``spare``: of memory off the chip. ``fetch``: of
    constants, which are copied into the arena ahead of their layer, so many bytes for one; None where they are not."""

    name: str
    size: int | None = None
    spare: bool = False
    fetch: int | None = None


@dataclass(frozen=True)
class Store:
    """A memory for constants. ``size``: as a pool's. ``copied``: it is RAM, which start-up fills from flash.
    ``spare``: off the chip. ``least``: it is for what is read so many times in an inference, or more often."""

    name: str
    size: int | None = None
    copied: bool = False
    spare: bool = False
    wait_states: int = 0
    least: float = 0.0


# What is free for constants in each memory of a board, in its order. It is told the bytes of the arena, of inputs and
# outputs, of each part of an arena that is divided, and the accelerators. A process has no such memories.
Rooms = Callable[[int, int, Mapping[str, int], Sequence[str]], Sequence[Store]]


def divide(
    blocks: Sequence[Block], pools: Sequence[Pool], heat: Mapping[str, float], planned: Planned
) -> tuple[list[list[Block]], list[Block]]:
    """The blocks of each pool, the pools in the order in which they are preferred; and those that fit into none.
    ``heat``: accesses a byte, by a block's name."""
    left, divided = list(blocks), []
    for pool in pools:
        inside = left if pool.size is None else _filled(left, pool.size, heat, planned)
        names = {block.name for block in inside}
        divided.append(inside)
        left = [block for block in left if block.name not in names]
    return divided, left


def _filled(blocks: list[Block], size: int, heat: Mapping[str, float], planned: Planned) -> list[Block]:
    """As much as fits: first by sums of bytes, then by plans, at last once more what a gap is left for."""
    inside, outside = [block for block in blocks if block.size <= size], []
    while (overflow := _overflow(inside, size)) is not None:
        outside.append(_coldest([block for block in inside if block.live(overflow)], heat))
        inside.remove(outside[-1])
    while inside and (plan := planned(inside)).size > size:
        outside.append(_coldest([b for b in inside if plan.offsets[b.name] + b.size > size], heat))
        inside.remove(outside[-1])
    for block in sorted(outside, key=lambda block: (-heat[block.name], -block.size, block.name)):
        if _overflow([*inside, block], size) is None and planned([*inside, block]).size <= size:
            inside.append(block)
    chosen = {block.name for block in inside}
    return [block for block in blocks if block.name in chosen]


def _overflow(blocks: Sequence[Block], size: int) -> int | None:
    """The step at which most bytes are live, if these are too many."""
    sums = live_bytes(blocks)
    step = max(sums, key=lambda step: sums[step], default=None)
    return None if step is None or sums[step] <= size else step


def _coldest(blocks: Sequence[Block], heat: Mapping[str, float]) -> Block:
    return min(blocks, key=lambda block: (heat[block.name], -block.size, block.name))
