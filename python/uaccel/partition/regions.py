"""Claims become regions: adjacent ones of an accelerator that takes whole regions merge, as far as no cycle arises."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from uaccel.accelerator import Accelerator, Operation
from uaccel.partition.claims import Claim
from uaccel.partition.graph import RESULT, Graph


@dataclass(frozen=True, eq=False)
class Group:
    """Bindings that run together: an accelerator's, or a single one of the CPU's, without ``claims``."""

    members: frozenset[int]
    claims: tuple[Claim, ...] = ()
    part: int = 0
    """How many cuts lie before it: none reaches across a cut."""

    @property
    def accelerator(self) -> Accelerator | None:
        return self.claims[0].accelerator if self.claims else None

    @property
    def operation(self) -> Operation | None:
        """Of a region that is one claim; None of a merged one, and of the CPU's."""
        return self.claims[0].operation if len(self.claims) == 1 else None

    def merges_with(self, other: Group) -> bool:
        """Whether one command stream may hold both."""
        return (
            self.accelerator is not None
            and self.accelerator is other.accelerator
            and self.part == other.part
            and all(claim.operation.lower is None for claim in (*self.claims, *other.claims))
        )


def groups_of(graph: Graph, claims: Sequence[Claim], cuts: Sequence[str] = ()) -> list[Group]:
    """Every binding in one group, in an order in which they can run; no group goes on after a layer of ``cuts``."""
    claimed = {index for claim in claims for index in claim.members}
    ends = [index for index in range(len(graph.bindings)) if graph.name(index) in cuts]
    groups = [Group(claim.members, (claim,), sum(end < claim.root for end in ends)) for claim in claims]
    groups += [Group(frozenset({i})) for i in range(len(graph.bindings)) if i not in claimed]
    return _Contraction(graph, groups).merged()


class _Contraction:
    """The graph with its groups as nodes; ``successors`` by number of a group."""

    def __init__(self, graph: Graph, groups: list[Group]) -> None:
        self.graph = graph
        self.groups: dict[int, Group] = dict(enumerate(groups))
        owner = {index: number for number, group in self.groups.items() for index in group.members}
        self.successors: dict[int, set[int]] = {number: set() for number in self.groups}
        for index, users in enumerate(graph.users):
            self.successors[owner[index]] |= {owner[user] for user in users if user != RESULT}
        for number, after in self.successors.items():
            after.discard(number)

    def merged(self) -> list[Group]:
        """Merge along every edge that stays the only way between its ends, until none is left."""
        changed = True
        while changed:
            changed = False
            for number in self._order():
                changed |= number in self.groups and self._merge_successors(number)
        return [self.groups[number] for number in self._order()]

    def _merge_successors(self, number: int) -> bool:
        for other in sorted(self.successors[number], key=self._first):
            if self.groups[number].merges_with(self.groups[other]) and not self._other_way(number, other):
                self._merge(number, other)
                return True
        return False

    def _other_way(self, start: int, end: int) -> bool:
        """Whether a way leads from one to the other through a third: merged they would wait for each other."""
        seen: set[int] = set()
        waiting = [number for number in self.successors[start] if number != end]
        while waiting:
            number = waiting.pop()
            if number == end:
                return True
            if number not in seen:
                seen.add(number)
                waiting += self.successors[number]
        return False

    def _merge(self, one: int, other: int) -> None:
        first, second = self.groups[one], self.groups.pop(other)
        claims = tuple(sorted((*first.claims, *second.claims), key=lambda claim: claim.root))
        self.groups[one] = Group(first.members | second.members, claims, first.part)
        self.successors[one] = (self.successors[one] | self.successors.pop(other)) - {one, other}
        for after in self.successors.values():
            if other in after:
                after.discard(other)
                after.add(one)
        self.successors[one].discard(one)

    def _first(self, number: int) -> int:
        return min(self.groups[number].members)

    def _order(self) -> list[int]:
        """A topological order, as near to the model's own as it can be."""
        waiting = dict.fromkeys(self.groups, 0)
        for after in self.successors.values():
            for number in after:
                waiting[number] += 1
        ready = sorted((number for number, count in waiting.items() if not count), key=self._first)
        order: list[int] = []
        while ready:
            number = ready.pop(0)
            order.append(number)
            for other in self.successors[number]:
                waiting[other] -= 1
                if not waiting[other]:
                    ready.append(other)
            ready.sort(key=self._first)
        return order
