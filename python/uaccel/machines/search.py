"""Search by cost: an estimate for everything that could be done, and the promising ones that fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

Option = TypeVar("Option")
Placed = TypeVar("Placed")


def promising(
    options: Iterable[Option], estimate: Callable[[Option], Any], place: Callable[[Option], Placed | None]
) -> Iterator[tuple[Any, Placed]]:
    """What can be placed, with its estimate, the least first: whether something fits may take longer to find out than
    what it would cost."""
    costs = [(estimate(option), option) for option in options]
    for cost, option in sorted(costs, key=lambda pair: pair[0]):
        placed = place(option)
        if placed is not None:
            yield cost, placed
