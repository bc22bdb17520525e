"""The static memory plan: byte offsets of all activations and scratch in one arena (see ``docs/memory.md``)."""

from __future__ import annotations

from uaccel.memory.block import Block, Plan, live_at, lower_bound
from uaccel.memory.check import check
from uaccel.memory.firstfit import lowest_free
from uaccel.memory.planner import plan
from uaccel.memory.sharing import Share, choose_inplace, merge_shared

__all__ = [
    "Block",
    "Plan",
    "Share",
    "check",
    "choose_inplace",
    "live_at",
    "lower_bound",
    "lowest_free",
    "merge_shared",
    "plan",
]
