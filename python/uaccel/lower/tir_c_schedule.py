"""Tidy up blocks before they become loops: no intermediate tensors between elementwise steps, no tests for the first
round of a reduction."""

from __future__ import annotations

import math
from typing import Any

from uaccel.lower.tir_c_reduce import nodes
from uaccel.tvm_api import Call, Schedule, TensorLoad, TvmError, prim_module, tirx

_SPATIAL, _REDUCTION = tirx.IterVar.DataPar, tirx.IterVar.CommReduce


def tidy(func: Any) -> Any:
    """The same function with inlined elementwise blocks and reductions split into start and update."""
    if not func.attrs or not is_scheduled_form(func):
        return func
    schedule = Schedule(prim_module(func, "main"))
    try:
        root = schedule.get_sblock("root")
    except TvmError:
        return func
    for block in schedule.get_child_blocks(root):
        if worth_inlining(schedule, block):
            attempt(schedule.compute_inline, block)
    for block in schedule.get_child_blocks(root):
        split_reduction(schedule, block)
    return schedule.mod["main"]


def attempt(primitive: Any, *arguments: Any) -> None:
    """Apply a schedule primitive; what it refuses stays as it is."""
    try:
        primitive(*arguments)
    except TvmError:
        return
