"""Plans static memory: gives every activation and all scratch a byte offset in one arena (see ``docs/memory.md``).

``blocks`` has the data, the lower bound, sharing and an independent check of plans. ``problem`` has the planner's
working form, its bounds and first fit; ``planner`` the searches, and the division among several pools.
"""

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
