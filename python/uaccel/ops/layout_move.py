"""How a box of elements is moved: reduced to the fewest loops around the longest run, then said as a kernel call."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from uaccel.model import Array, Shape
from uaccel.ops.base import Operand
from uaccel.ops.kernel import VIEW, Argument, Constant, Input, Kernel, KernelCall, Output, ParameterValue

HEADER = "uaccel_layout.h"
LOOPS = 6  # UACCEL_MOVE_LOOPS

Source = Input | Array


@dataclass(frozen=True)
class Axis:
    """One loop: ``extent`` steps, and how many elements a step is on each side."""

    extent: int
    source: int
    target: int


@dataclass(frozen=True, eq=False)
class Move:
    """Copy a box, outermost axis first, from an input or a constant into output number ``output``.

    The starts count elements; where a stride is negative, the start is the box's last element along that axis.
    """

    source: Source
    axes: tuple[Axis, ...]
    source_start: int = 0
    target_start: int = 0
    output: int = 0


def sources(operands: Sequence[Operand]) -> list[Source]:
    """For each operand the layer's run-time input, or its value where it is constant."""
    found: list[Source] = []
    inputs = 0
    for operand in operands:
        if operand.constant is not None:
            found.append(operand.constant)
        else:
            found.append(Input(inputs))
            inputs += 1
    return found


def row_major(shape: Shape) -> list[int]:
    """Elements from one index to the next along each axis of a contiguous tensor."""
    strides = [1] * len(shape)
    for i in reversed(range(len(shape) - 1)):
        strides[i] = strides[i + 1] * shape[i + 1]
    return strides


def axes(extents: Sequence[int], source: Sequence[int], target: Sequence[int]) -> tuple[Axis, ...]:
    return tuple(Axis(*entry) for entry in zip(extents, source, target, strict=True))


def collapsed(loops: Sequence[Axis]) -> list[Axis]:
    """The same order of elements in fewer loops: without single steps, neighbours joined where they continue."""
    result: list[Axis] = []
    for axis in loops:
        if axis.extent == 1:
            continue
        if result and _continues(result[-1], axis):
            result[-1] = Axis(result[-1].extent * axis.extent, axis.source, axis.target)
        else:
            result.append(axis)
    return result


def _continues(outer: Axis, inner: Axis) -> bool:
    return outer.source == inner.source * inner.extent and outer.target == inner.target * inner.extent


def move_kernels(moves: Sequence[Move], itemsize: int, *, first: Sequence[KernelCall] = ()) -> Sequence[Kernel]:
    """One call a move, after ``first``; nothing where a move needs more loops than the kernel has."""
    calls = [move_call(move, itemsize) for move in moves]
    if any(call is None for call in calls):
        return ()
    return (Kernel("portable", (*first, *(call for call in calls if call is not None))),)


def rearranged(move: Move, elements: int, itemsize: int) -> Sequence[Kernel]:
    """A move that is the whole layer: no work where all ``elements`` of an input stay in order."""
    in_order = all(axis.source == axis.target for axis in collapsed(move.axes))
    moved = math.prod(axis.extent for axis in move.axes)
    if in_order and moved == elements and isinstance(move.source, Input):
        return (VIEW,)
    return move_kernels([move], itemsize)


def move_call(move: Move, itemsize: int) -> KernelCall | None:
    if not isinstance(move.source, Input):
        move = _with_picked_constant(move, move.source)
    loops = collapsed(move.axes)
    run = 1
    if loops and loops[-1].source == loops[-1].target == 1:
        run = loops.pop().extent
    arguments = (_source_argument(move, itemsize), Output(move.output, move.target_start * itemsize))
    if not loops:
        return KernelCall("uaccel_copy", HEADER, "uaccel_copy", {"bytes": run * itemsize}, arguments)
    if len(loops) > LOOPS:
        return None
    loops = [Axis(1, 0, 0)] * (LOOPS - len(loops)) + loops
    parameters: dict[str, ParameterValue] = {
        "extents": tuple(axis.extent for axis in loops),
        "from": tuple(axis.source * itemsize for axis in loops),
        "to": tuple(axis.target * itemsize for axis in loops),
        "run": run * itemsize,
    }
    return KernelCall("uaccel_move", HEADER, "uaccel_move", parameters, arguments)


def _source_argument(move: Move, itemsize: int) -> Argument:
    if isinstance(move.source, Input):
        return Input(move.source.index, move.source_start * itemsize)
    return Constant("data", move.source)


def _with_picked_constant(move: Move, value: Array) -> Move:
    """Only what is moved of a constant lies in flash, in the order of the move; repeated elements lie there once."""
    extents = tuple(axis.extent if axis.source else 1 for axis in move.axes)
    places = np.full(extents, move.source_start, np.int64)
    for i, axis in enumerate(move.axes):
        if axis.source:
            shape = [1] * len(extents)
            shape[i] = axis.extent
            places = places + np.arange(axis.extent).reshape(shape) * axis.source
    picked = np.asarray(value).reshape(-1)[places.reshape(-1)]
    steps = [stride if axis.source else 0 for stride, axis in zip(row_major(extents), move.axes, strict=True)]
    loops = axes([axis.extent for axis in move.axes], steps, [axis.target for axis in move.axes])
    return Move(picked, loops, 0, move.target_start, move.output)


def fill_call(value: Array, count: int) -> KernelCall:
    """Write one element, given as an array of no dimensions, over the whole of output 0."""
    raw = value.tobytes()
    if len(set(raw)) == 1:
        parameters = {"bytes": count * len(raw), "value": raw[0]}
        return KernelCall("uaccel_set", HEADER, "uaccel_set", parameters, (Output(),))
    pattern = Constant("value", np.frombuffer(raw, f"int{8 * len(raw)}"))
    return KernelCall("uaccel_fill", HEADER, "uaccel_fill", {"count": count, "width": len(raw)}, (pattern, Output()))
