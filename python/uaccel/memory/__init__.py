"""The static memory plan: byte offsets of all activations and scratch in one arena (see ``docs/memory.md``)."""

from __future__ import annotations

from uaccel.memory.blocks import (
    Block,
    Overlap,
    Plan,
    Share,
    check,
    choose_inplace,
    live_at,
    live_bytes,
    lower_bound,
    merge_shared,
    overlaps_of,
)
from uaccel.memory.planner import ANY_SIZE, Pool, Rooms, Store, divide, plan
from uaccel.memory.problem import lowest_free

__all__ = [
    "ANY_SIZE",
    "Block",
    "Overlap",
    "Plan",
    "Pool",
    "Rooms",
    "Share",
    "Store",
    "check",
    "choose_inplace",
    "divide",
    "live_at",
    "live_bytes",
    "lower_bound",
    "lowest_free",
    "merge_shared",
    "overlaps_of",
    "plan",
]
