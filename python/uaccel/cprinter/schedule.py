"""Tidies blocks before they become loops.

Elementwise steps merge, which saves their intermediate tensors, and reductions split into start and update, which saves
the test for the first round. What the scheduler refuses stays as it is: the function means the same either way.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from uaccel.cprinter.reduce import nodes
from uaccel.tvm_api import tirx
from uaccel.tvm_api.tir import Call, ScheduleError, TensorLoad, schedule

_SPATIAL = tirx.IterVar.DataPar


def tidy(func: Any) -> Any:
    """The same function with fewer intermediate tensors and no test in the loops of its reductions."""
    state = schedule(func)
    try:
        blocks = state.get_child_blocks(state.get_sblock("root"))
    except ScheduleError:
        return func
    kept = [block for block in blocks if not (worth_inlining(state, block) and attempt(state.compute_inline, block))]
    for block in kept:
        merge_with_consumer(state, block)
    for block in kept:
        loop = first_reduction_loop(state, block)
        if loop is not None:
            attempt(state.decompose_reduction, block, loop)
    return state.mod["main"]


def attempt(primitive: Callable[..., object], *arguments: Any) -> bool:
    """Whether the scheduler agreed."""
    try:
        primitive(*arguments)
    except ScheduleError:
        return False
    return True


def is_elementwise(block: Any) -> bool:
    return block.init is None and all(var.iter_type == _SPATIAL for var in block.iter_vars)


def extent(block: Any) -> int:
    return math.prod(int(var.dom.extent) for var in block.iter_vars)


def worth_inlining(state: Any, reference: Any) -> bool:
    """Whether computing an element where it is read costs no more than keeping it."""
    block = state.get(reference)
    consumers = [state.get(consumer) for consumer in state.get_consumers(reference)]
    if not consumers or not is_elementwise(block):
        return False
    divides = nodes(block.body, tirx.FloorDiv) or nodes(block.body, tirx.FloorMod)
    if is_copy(block) and (not divides or all(is_elementwise(consumer) for consumer in consumers)):
        return True
    written = [region.source for region in block.writes]
    reads = [load for load in nodes(consumers[0].body, TensorLoad) if any(load.source.same_as(w) for w in written)]
    few = len(reads) <= (1 if nodes(block.body, Call) else 2)
    return len(consumers) == 1 and few and extent(consumers[0]) <= extent(block)


def is_copy(block: Any) -> bool:
    """Elements of one tensor, moved or converted."""
    value = block.body.value if isinstance(block.body, tirx.BufferStore) else None
    while isinstance(value, tirx.Cast):
        value = value.value
    return isinstance(value, TensorLoad)


def merge_with_consumer(state: Any, reference: Any) -> None:
    """Finish each element of a reduction where it is reduced, so that no tensor of sums is kept."""
    block, consumers = state.get(reference), state.get_consumers(reference)
    if first_reduction_loop(state, reference) is None or len(consumers) != 1:
        return
    consumer = state.get(consumers[0])
    shape = [int(var.dom.extent) for var in block.iter_vars if var.iter_type == _SPATIAL]
    same = shape == [int(var.dom.extent) for var in consumer.iter_vars]
    if shape and same and is_elementwise(consumer):
        attempt(state.reverse_compute_at, consumers[0], state.get_loops(reference)[len(shape) - 1])


def first_reduction_loop(state: Any, reference: Any) -> Any | None:
    """The outermost loop over a reduced axis, if the block has one loop an axis, the reduced ones innermost."""
    block, loops = state.get(reference), state.get_loops(reference)
    if block.init is None or len(loops) != len(block.iter_vars):
        return None
    kinds = [var.iter_type == _SPATIAL for var in block.iter_vars]
    spatial = sum(kinds)
    return loops[spatial] if all(kinds[:spatial]) and spatial < len(loops) else None
