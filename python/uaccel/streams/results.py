"""When a computation writes its results: what a load brings for the same memory has to wait in these cycles."""

from __future__ import annotations

from typing import NamedTuple


class Results(NamedTuple):
    """``groups`` of ``members`` in a ``memory``: so many cycles from group to group (``period``), and from one to the
    next in it (``step``). The last one is written ``behind`` cycles before the command ends."""

    memory: int
    groups: int
    period: int = 1
    members: int = 1
    step: int = 1
    behind: int = 0

    def free(self, now: int, end: int) -> int:
        """The next cycle from now on in which nothing is written by the command that ends then."""
        last = end - self.behind
        if self.period == 1:
            return last + 1 if last - self.groups < now <= last else now
        first = last - (self.groups - 1) * self.period - (self.members - 1) * self.step
        while first <= now <= last and self._writes(now - first):
            now += 1
        return now

    def _writes(self, since: int) -> bool:
        in_group = since % self.period
        return in_group % self.step == 0 and in_group < self.members * self.step
