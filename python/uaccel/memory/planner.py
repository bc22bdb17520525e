"""Plans an arena: cheap orders of placement first, then exact and local search where these leave a gap to the bound.

``plan`` gives the offsets of blocks in one arena, ``divide`` assigns blocks to several memory pools. All work is
limited by counts of operations and the seed is fixed: the same blocks give the same plan on every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from random import Random
from typing import Final

from uaccel.memory.blocks import Block, Overlap, Plan, live_bytes, validate
from uaccel.memory.problem import Problem, Solution, arena, bottom_up, cheap_solution, easy_blocks, first_fit, split
from uaccel.util.text import round_up

# Exact search: is there a plan of at most so many bytes?
#
# In some smallest plan no block can be moved down, and such a plan can be built by placing blocks in order of their
# offsets, each directly on what already lies under it. The search tries those sequences, depth first. Its state is the
# skyline: for each section, the end of what is placed there, below which only an overlapping block may still be placed.
# A branch is cut where
#
# - a block that is still to be placed would end above the limit, or a section would, with all that it still has to
#   hold: the skyline only rises, so that no continuation can mend this;
# - a block would begin at or above the end that another one would have if it came next: that other one would come later
#   and higher, though its place below stays free, and could be moved down. So it has to come first;
# - two blocks begin at the same byte: exchanged in the sequence they give the same offsets, so one order is tried.
#
# Remaining blocks often fall into groups that have no section in common: each is then solved alone, and a failure of
# one needs no other solution of another.
#
# Arithmetic is in whole bytes, so a "no" is a proof. ``next_limit`` is the smallest limit at which any of the tests
# that failed would have passed. At all limits below it the search would take the same course, so these are impossible
# too.


class OutOfWorkError(Exception):
    """Is raised when the allowance of a search is spent; nothing is proven then."""


@dataclass
class Search:
    """Searches for a plan of at most ``limit`` bytes, with at most ``work`` elementary operations.

    ``_top`` is the skyline: the end of what is placed, by section. ``_padded`` has, for each alignment that occurs, the
    sizes of the blocks of at least that alignment rounded up to it, and 0 for all others.
    """

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
        """Whether all that is left can be placed; the smallest group first, since it fails at the least expense.

        ``lowest`` is the offset of the block ``previous``, which was placed last. A failure leaves the skyline as it
        was. ``left`` stays sorted by first use, as ``_groups`` needs it.
        """
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
        """The blocks, which are sorted by first use, in groups that have no section in common: a group ends where a
        block begins at or behind the end of all before."""
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
        """Try each candidate as the next block, and the rest behind it; the skyline is restored after a failure."""
        begin, end, sizes, top = self.problem.begin, self.problem.end, self.problem.sizes, self._top
        for at, _, i in self._candidates(left, lowest):
            if at == lowest and i < previous and (previous, i) not in self.problem.overlaps:
                continue  # the same offsets in another sequence; where the two overlap the order is fixed
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
        """The lowest beginnings of waiting blocks whose overlapping block ``low`` is placed already.

        The skyline would put them above all of ``low``. Instead, in the section that the two share, which is the last
        one of ``high``, the clearance to each placed block counts; in all other sections the skyline does.
        """
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
        """Whether the blocks of at least this alignment, each rounded up to it, overfill some section.

        In a section they stack from the lowest of their candidate offsets (``floor``) on, and each takes whole cells of
        ``grain`` bytes. The topmost may leave a part of its last cell empty, which the limit, rounded up, allows for.
        Both sides are multiples of ``grain``: the first limit that passes is ``needed - grain + 1``.
        """
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
# every machine. Only ``Random.random`` is used, the one generator whose sequence Python promises to keep.


def trial_cost(problem: Problem) -> int:
    """The elementary operations of one trial, roughly: first fit looks at each neighbour of each block once."""
    return len(problem.blocks) + sum(map(len, problem.neighbours))


def improve(problem: Problem, offsets: list[int], target: int, trials: int) -> tuple[list[int], int]:
    """Offsets at least as good as those given, and the trials made; at most ``target`` bytes are good enough.

    The search begins with the order of the given offsets, for which first fit is no worse than they are. A trial that
    is just as good is accepted too: that is how the search crosses plateaus.
    """
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
    """The arena, and the number of sections in which some block reaches its end; the smaller pair is better.

    The second number tells plans of one size apart: it falls as the peak shrinks to fewer sections. Counting blocks
    would be wrong, since one long block at the end would look better than many short ones that hold fewer sections.
    """
    size = arena(problem, offsets)
    ends = zip(offsets, problem.sizes, problem.begin, problem.end, strict=True)
    return size, sum(end - begin for offset, own, begin, end in ends if offset + own == size)


def _promote_something_on_top(
    problem: Problem, offsets: Sequence[int], order: Sequence[int], size: int, random: Callable[[], float]
) -> list[int]:
    """The order with a block that reaches the arena's end, or a neighbour of one, placed earlier: either before one of
    its own neighbours that came earlier, or in exchange with it. Only a neighbour can be what keeps it high up."""
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


# Search within an allowance: a short exact search, then local search, then a longer exact search.
#
# Small cores are decided by the first at once. The second makes the gap between bound and best plan small, which the
# third then has to close. All allowances are counts of operations, never time: every machine finds the same plan.

#: Elementary operations at effort 1: together two to three seconds on a desktop machine, if all are needed.
QUICK_EXACT_WORK = 200_000
LOCAL_WORK = 8_000_000
EXACT_WORK = 1_500_000
#: Exact search of more blocks than this would be hopeless. It also has two calls on the stack for each block
#: (``_place_all`` and ``_place_group``), and Python allows 1000 in all.
MOST_EXACT_BLOCKS = 200
#: A possible saving of less than one part in this many gets a tenth of the work.
WORTHWHILE = 1000


@dataclass
class Allowance:
    """Counts the work that is still allowed, for each kind of search."""

    quick: int
    local: int
    exact: int

    @staticmethod
    def of_effort(effort: float) -> Allowance:
        return Allowance(int(effort * QUICK_EXACT_WORK), int(effort * LOCAL_WORK), int(effort * EXACT_WORK))

    def share(self, parts: int) -> Allowance:
        """What the first of so many parts may use: nearly twice its even share, as the first is the hardest."""
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
    """The work to spend: a tenth of it where no more than a thousandth of the arena could be saved."""
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

    As long as every "no" is proven, the next limit is the next possible one, and so the first "yes" is the least. A
    limit at which the search runs out of work counts as too low, unproven, and the next one asked for is half way up.
    So each search may take half of what is left, and all of it if no limit remains above the one that it is asked for.
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
# 2. Otherwise the core of the problem (without ``problem.easy_blocks``) falls into groups that never meet. Each is
#    searched alone until it fits into the bound of the whole.
# 3. The easy blocks are placed around the core.
#
# Parts and groups share one arena, so its size is that of the largest: no other one need be smaller than that. The plan
# depends on the set of blocks and on ``effort`` alone: not on their order, the machine or the clock.


def plan(blocks: Sequence[Block], overlaps: Sequence[Overlap] = (), *, effort: float = 1.0) -> Plan:
    """Give all blocks offsets in as small an arena as can be found; ``overlaps`` says which may overlap.

    ``effort`` multiplies the work that search may take; 0 leaves it at the cheap orders of placement.
    """
    return _known_plan(tuple(blocks), tuple(overlaps), effort)


@lru_cache(maxsize=64)  # Stages of one compilation ask for the same plan several times.
def _known_plan(blocks: tuple[Block, ...], overlaps: tuple[Overlap, ...], effort: float) -> Plan:
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
    """Takes a part that is still too large apart: into groups to search, and easy blocks that fit around them."""

    part: Solution
    groups: list[Solution]
    easy: list[int]

    def put_together(self) -> None:
        """Improve the part by what was found for its groups: first fit in order of their offsets keeps these or lowers
        them (see ``bottom_up``), and the easy blocks follow. A group's bound is one of the part, too."""
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


# Division among several memories: the blocks that are used most, for their size, lie in the first that has room.
#
# A pool of a stated size is filled by leaving blocks out until the rest fits: always one that is live where the pool
# overflows, and of these the one with the fewest accesses a byte. What is left out goes on to the next pool.

Planned = Callable[[Sequence[Block]], Plan]  # Plans some of the blocks.


ANY_SIZE: Final = 1 << 40  # Bytes; more than any layer has.


@dataclass(frozen=True)
class Pool:
    """Names a part of memory that blocks or constants are divided among.

    ``size`` is in bytes; None means as large as what is left for it. ``spare`` marks memory off the chip. ``fetch``
    belongs to pools of constants that are copied into the arena ahead of their layer: the most bytes for one layer;
    None where they are read in place.
    """

    name: str
    size: int | None = None
    spare: bool = False
    fetch: int | None = None


@dataclass(frozen=True)
class Store:
    """Describes a memory for constants. ``size`` and ``spare`` are as in :class:`Pool`.

    ``copied`` marks RAM, which start-up code fills from flash. ``least``: the memory is for constants that one
    inference reads at least so many times. ``wait_states``: of a word, where one read brings several words.
    """

    name: str
    size: int | None = None
    copied: bool = False
    spare: bool = False
    wait_states: float = 0
    least: float = 0.0


# Gives what is free for constants in each memory of a board, in the board's order; nothing for a native process. Its
# arguments: bytes of the arena, bytes of inputs and outputs, bytes of each part of a divided arena, the accelerators.
Rooms = Callable[[int, int, Mapping[str, int], Sequence[str]], Sequence[Store]]


def divide(
    blocks: Sequence[Block], pools: Sequence[Pool], heat: Mapping[str, float], planned: Planned
) -> tuple[list[list[Block]], list[Block]]:
    """The blocks of each pool, preferred pools first, and those that fit into none. ``heat``: accesses a byte, by
    name."""
    left, divided = list(blocks), []
    for pool in pools:
        inside = left if pool.size is None else _filled(left, pool.size, heat, planned)
        names = {block.name for block in inside}
        divided.append(inside)
        left = [block for block in left if block.name not in names]
    return divided, left


def _filled(blocks: list[Block], size: int, heat: Mapping[str, float], planned: Planned) -> list[Block]:
    """The blocks that fit into ``size`` bytes, the hottest of them, as far as a greedy choice finds them.

    Sums of live bytes come first, since a plan takes long. Then plans: padding and gaps may make them larger than the
    sums, so that a block which sticks out leaves. At last the blocks left out are tried again, the hottest first: what
    left after them may have made room.
    """
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
    """The step at which the most bytes are live, if these are too many; else None."""
    sums = live_bytes(blocks)
    step = max(sums, key=lambda step: sums[step], default=None)
    return None if step is None or sums[step] <= size else step


def _coldest(blocks: Sequence[Block], heat: Mapping[str, float]) -> Block:
    return min(blocks, key=lambda block: (heat[block.name], -block.size, block.name))
