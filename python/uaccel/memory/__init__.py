"""The static memory plan: byte offsets of all activations and scratch in one arena (see ``docs/memory.md``)."""

from __future__ import annotations

from uaccel.memory.block import Block, Overlap, Plan, live_at, live_bytes, lower_bound
from uaccel.memory.check import check
from uaccel.memory.firstfit import lowest_free
from uaccel.memory.planner import plan
from uaccel.memory.pools import ANY_SIZE, Pool, Rooms, Store, divide
from uaccel.memory.sharing import Share, choose_inplace, merge_shared, overlaps_of

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
