"""JSON documents that are wrong by structure: a value replaced, moved, doubled or gone."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator, Sequence
from typing import Any

Place = tuple[Any, Any]
"""What holds a value, and the value's key in it."""
ANY_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 7, 255, 1 << 16, 1 << 31, (1 << 31) - 1, 1 << 40, (1 << 63) - 1, -(1 << 63)),
    *(1 << 70, 0.5, -1e30, 1e308, "", "x_0", "a" * 300, "a\nb", "NaN", "Infinity", [], {}, [[]], [0], [1, 1]),
)


def places(document: Any, *, beside: str = "") -> Iterator[Place]:
    """All of them, but for those at or in a key ``beside``."""
    keys = document if isinstance(document, dict) else range(len(document)) if isinstance(document, list) else ()
    for key in keys:
        if key != beside:
            yield document, key
            yield from places(document[key], beside=beside)


def change(
    holder: Any, key: Any, others: Sequence[Place], rng: random.Random, values: Sequence[Any] = ANY_VALUES
) -> None:
    """One value; ``others`` lend theirs."""
    if rng.random() < 0.15:
        del holder[key]
    elif isinstance(holder, list) and rng.random() < 0.3:
        holder.insert(rng.randrange(len(holder) + 1), copy.deepcopy(holder[key]))
    else:
        lender, name = rng.choice(others)
        kinds = (rng.choice(values), copy.deepcopy(lender[name]), _near(holder[key], rng, values))
        holder[key] = rng.choice((*kinds, kinds[-1]))


def _near(value: Any, rng: random.Random, values: Sequence[Any]) -> Any:
    if type(value) is int:
        return rng.choice((value + 1, value - 1, value * 2, -value, value * 1000, value // 2))
    if isinstance(value, list):
        return rng.sample(value, len(value))
    return rng.choice(values) if not isinstance(value, str) else value + rng.choice(("", "_1", ".out", "\0"))
