"""Search within an allowance: exact search for a moment, then local search, then exact search with more patience.

All allowances are counts of operations, never time, so that every machine finds the same plan.
"""

from __future__ import annotations

from dataclasses import dataclass

from uaccel.memory.exact import OutOfWorkError, Search
from uaccel.memory.firstfit import first_fit
from uaccel.memory.localsearch import improve, trial_cost
from uaccel.memory.solution import Solution, bottom_up

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
