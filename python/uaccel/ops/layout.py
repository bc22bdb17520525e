"""Chooses kernels for Relax's own operators that move elements and compute nothing, whatever the element type.

A rule for an operator states moves: boxes of elements that are copied from one order to another.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from uaccel.model import Array, Shape, TensorInfo
from uaccel.ops.kernel import VIEW, Argument, Constant, Input, Kernel, KernelCall, Output, dtype_suffix, portable
from uaccel.ops.operator import Attributes, Elementwise, Operand, Site, operand_arguments, permuted_axes

# The register of rules, by the operators' names.

LayoutRule = Callable[[Any, tuple[Operand, ...], tuple[TensorInfo, ...]], "Sequence[Kernel]"]

RULES: dict[str, LayoutRule] = {}


def layout(*names: str) -> Callable[[LayoutRule], LayoutRule]:
    """Register how the Relax operators ``relax.<name>`` are computed; an empty answer means the TIR fallback."""

    def add(rule: LayoutRule) -> LayoutRule:
        RULES.update({f"relax.{name}": rule for name in names})
        return rule

    return add


# Moves: a box of elements is reduced to the fewest loops around the longest run, then becomes a kernel call.

HEADER = "uaccel_layout.h"
LOOPS = 6  # UACCEL_MOVE_LOOPS

Source = Input | Array


@dataclass(frozen=True)
class Axis:
    """Describes one loop: ``extent`` steps, and how many elements a step is in source and target."""

    extent: int
    source: int
    target: int


@dataclass(frozen=True, eq=False)
class Move:
    """Copies a box, outermost axis first, from an input or a constant into output number ``output``.

    The starts count elements; where a stride is negative, the start is the box's last element along that axis.
    """

    source: Source
    axes: tuple[Axis, ...]
    source_start: int = 0
    target_start: int = 0
    output: int = 0


def sources(operands: Sequence[Operand]) -> list[Source]:
    """Gives for each operand the layer's run-time input, or its value where it is constant."""
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
    """The same order of elements in fewer loops: without single steps, neighbours joined where the outer one continues.

    It does where one of its steps is, on both sides, as far as all steps of the inner one.
    """
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
    """A kernel with one call for each move, after ``first``; none where a move needs more loops than ``LOOPS``."""
    calls = [move_call(move, itemsize) for move in moves]
    if any(call is None for call in calls):
        return ()
    return (Kernel("portable", (*first, *(call for call in calls if call is not None))),)


def rearranged(move: Move, elements: int, itemsize: int) -> Sequence[Kernel]:
    """The kernel of a move that is the whole layer: a view where all ``elements`` of an input stay in order."""
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
    parameters: dict[str, Any] = {
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
    """The move from a constant that holds only what is moved, in the order of the move; repeated elements once."""
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
    """Writes one element, given as an array of no dimensions, over the whole of output 0."""
    raw = value.tobytes()
    if len(set(raw)) == 1:
        parameters = {"bytes": count * len(raw), "value": raw[0]}
        return KernelCall("uaccel_set", HEADER, "uaccel_set", parameters, (Output(),))
    pattern = Constant("value", np.frombuffer(raw, f"int{8 * len(raw)}"))
    return KernelCall("uaccel_fill", HEADER, "uaccel_fill", {"count": count, "width": len(raw)}, (pattern, Output()))


# Gathering slices by index: a few moves where the indices are known and regular, else a table or run-time indices.

INDEX_TYPES = ("int32", "int64")
MOST_RUNS = 4  # more moves than this are more code than a table of indices
MOST_AXES = 5  # UACCEL_GATHER_AXES

Run = tuple[int, int, int]


@layout("take")
def take(call: Any, operands: tuple[Operand, ...], outputs: tuple[TensorInfo, ...]) -> Sequence[Kernel]:
    """An index outside the axis takes the nearest entry: what mode "clip" says and what "fast" allows."""
    data, indices = operands
    if str(call.attrs.mode) not in ("clip", "fast") or indices.info.dtype not in INDEX_TYPES:
        return ()
    shape = data.info.shape
    axis = int(call.attrs.axis or 0) % len(shape)
    if indices.constant is not None:
        runs = regular_runs(np.clip(indices.constant.reshape(-1), 0, shape[axis] - 1))
        if len(runs) <= MOST_RUNS:
            return _moves(operands, shape, axis, runs, outputs[0])
    parameters = {
        "outer": math.prod(shape[:axis]),
        "entries": shape[axis],
        "count": indices.info.elements,
        "bytes": math.prod(shape[axis + 1 :]) * data.info.itemsize,
    }
    function = f"uaccel_gather_{dtype_suffix(indices.info.dtype)}"
    return (portable(function, "uaccel_gather", parameters, _arguments(operands)),)


def _arguments(operands: tuple[Operand, ...]) -> tuple[Argument, ...]:
    return (*operand_arguments(operands, ("data", "indices")), Output())


def regular_runs(indices: Array) -> list[Run]:
    """The indices as runs of (first, step, count), each as long as its step stays the same."""
    runs: list[Run] = []
    for value in (int(index) for index in indices):
        if runs:
            first, step, count = runs[-1]
            if count == 1 or value == first + step * count:
                runs[-1] = (first, value - first if count == 1 else step, count + 1)
                continue
        runs.append((value, 1, 1))
    return runs


def _moves(
    operands: tuple[Operand, ...], shape: tuple[int, ...], axis: int, runs: list[Run], output: TensorInfo
) -> Sequence[Kernel]:
    outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    count = sum(run[2] for run in runs)
    moves, done = [], 0
    for first, step, length in runs:
        loops = (Axis(outer, shape[axis] * inner, count * inner), Axis(length, step * inner, inner), Axis(inner, 1, 1))
        moves.append(Move(sources(operands)[0], loops, first * inner, done * inner))
        done += length
    if len(moves) == 1:
        return rearranged(moves[0], math.prod(shape), output.itemsize)
    return move_kernels(moves, output.itemsize)


@layout("gather_nd")
def gather_nd(call: Any, operands: tuple[Operand, ...], _outputs: tuple[TensorInfo, ...]) -> Sequence[Kernel]:
    data, indices = operands
    vector = indices.info.shape[-1]
    if int(call.attrs.batch_dims) or indices.info.dtype != "int64" or vector > MOST_AXES:
        return ()
    picked = data.info.shape[:vector]
    parameters: dict[str, Any] = {
        "count": indices.info.elements // vector,
        "axes": vector,
        "last": math.prod(picked) - 1,
        "bytes": math.prod(data.info.shape[vector:]) * data.info.itemsize,
        "strides": tuple(row_major(picked)) + (0,) * (MOST_AXES - vector),
    }
    return (portable("uaccel_gather_nd", "uaccel_gather_nd", parameters, _arguments(operands)),)


# The operators that can be computed some rows at a time: a frame around an image, channels side by side.

IMAGE: Final = 4  # Axes of batch, rows, columns, channels.


class FrameAttrs(Attributes):
    """``padding`` is top, left, bottom, right; ``channels`` has those added before and after."""

    padding: tuple[int, ...]
    channels: tuple[int, ...]
    value: float


class ByRows:
    """Moves elements, and computes nothing."""

    name: str
    full_name: str
    elementwise: Elementwise | None = None

    def macs(self, site: Site[Any]) -> int:
        return 0


class Frame(ByRows):
    """Puts elements of one value around an image."""

    name = "pad"
    full_name = "relax.nn.pad"

    def kernels(self, site: Site[Any]) -> Sequence[Kernel]:
        info, output, attrs = site.operands[0].info, site.output, site.attrs
        strides = row_major(output.shape)
        before = (0, *attrs.padding[:2], attrs.channels[0])
        start = sum(width * stride for width, stride in zip(before, strides, strict=True))
        move = Move(sources(site.operands)[0], axes(info.shape, row_major(info.shape), strides), 0, start)
        value = np.array(attrs.value, output.dtype)
        first = [fill_call(value, output.elements)] if output.elements != info.elements else []
        return move_kernels([move], output.itemsize, first=first)


class Beside(ByRows):
    """Joins several images, the channels of one behind those of another."""

    name = "concat"
    full_name = "relax.concat"

    def kernels(self, site: Site[Any]) -> Sequence[Kernel]:
        return joined(site.operands, site.output, IMAGE - 1)


FRAME: Final = Frame()
BESIDE: Final = Beside()


def by_rows(call: Any, operands: tuple[Operand, ...], output: TensorInfo) -> tuple[Frame | Beside, Site[Any]] | None:
    """The operator that computes a call by rows, with its site; None for a call that cannot be."""
    infos = [*(operand.info for operand in operands), output]
    if any(len(info.shape) != IMAGE for info in infos) or any(one.constant is not None for one in operands):
        return None
    if call.op.name == FRAME.full_name and call.attrs.pad_mode == "constant":
        widths = [int(width) for width in call.attrs.pad_width]
        if widths[0] or widths[1] or min(widths) < 0:
            return None
        padding = (widths[2], widths[4], widths[3], widths[5])
        attrs = FrameAttrs(padding, (widths[6], widths[7]), float(call.attrs.pad_value))
        return FRAME, Site(attrs, operands, (output,))
    if call.op.name == BESIDE.full_name and int(call.attrs.axis or 0) % IMAGE == IMAGE - 1:
        return BESIDE, Site(Attributes(), operands, (output,))
    return None


# The rules: a tensor in another shape or order, a part of it, several in one, one repeated, one in a frame.


def layout_kernels(call: Any, operands: tuple[Operand, ...], outputs: tuple[TensorInfo, ...]) -> Sequence[Kernel]:
    """The kernels for a call of one of Relax's own operators, none where there is no rule or it does not fit."""
    rule = RULES.get(getattr(call.op, "name", ""))
    return rule(call, operands, outputs) if rule else ()


@layout("reshape", "expand_dims", "squeeze", "flatten")
def same_order(_call: Any, operands: tuple[Operand, ...], outputs: tuple[TensorInfo, ...]) -> Sequence[Kernel]:
    info = operands[0].info
    move = Move(sources(operands)[0], axes([info.elements], [1], [1]))
    return rearranged(move, info.elements, outputs[0].itemsize)


@layout("permute_dims")
def permute_dims(call: Any, operands: tuple[Operand, ...], outputs: tuple[TensorInfo, ...]) -> Sequence[Kernel]:
    info, output = operands[0].info, outputs[0]
    strides = row_major(info.shape)
    loops = axes(output.shape, [strides[axis] for axis in permuted_axes(call)], row_major(output.shape))
    return rearranged(Move(sources(operands)[0], loops), info.elements, output.itemsize)


@layout("flip")
def flip(call: Any, operands: tuple[Operand, ...], outputs: tuple[TensorInfo, ...]) -> Sequence[Kernel]:
    info = operands[0].info
    axis = int(call.attrs.axis) % len(info.shape)
    strides = row_major(info.shape)
    start = (info.shape[axis] - 1) * strides[axis]
    target = row_major(info.shape)
    strides[axis] = -strides[axis]
    move = Move(sources(operands)[0], axes(info.shape, strides, target), start)
    return rearranged(move, info.elements, outputs[0].itemsize)


@layout("strided_slice")
def strided_slice(call: Any, operands: tuple[Operand, ...], outputs: tuple[TensorInfo, ...]) -> Sequence[Kernel]:
    info, output = operands[0].info, outputs[0]
    chosen = [int(axis) % len(info.shape) for axis in call.args[1]]
    begins = [int(begin) for begin in call.args[2]]
    steps = [int(step) for step in call.args[4]] if len(call.args) > 4 else [1] * len(chosen)
    strides = row_major(info.shape)
    start = 0
    for axis, begin, step in zip(chosen, begins, steps, strict=True):
        start += first_index(begin, step, info.shape[axis]) * strides[axis]
        strides[axis] *= step
    move = Move(sources(operands)[0], axes(output.shape, strides, row_major(output.shape)), start)
    return rearranged(move, info.elements, output.itemsize)


def first_index(begin: int, step: int, extent: int) -> int:
    """Relax counts a negative begin from the end and clamps what lies outside."""
    begin = begin + extent if begin < 0 else begin
    return min(max(begin, 0), extent) if step > 0 else min(max(begin, -1), extent - 1)


@layout("split")
def split(call: Any, operands: tuple[Operand, ...], outputs: tuple[TensorInfo, ...]) -> Sequence[Kernel]:
    info = operands[0].info
    axis = int(call.attrs.axis) % len(info.shape)
    source, strides = sources(operands)[0], row_major(info.shape)
    moves, start = [], 0
    for number, output in enumerate(outputs):
        loops = axes(output.shape, strides, row_major(output.shape))
        moves.append(Move(source, loops, start * strides[axis], output=number))
        start += output.shape[axis]
    return move_kernels(moves, info.itemsize)


@layout("concat")
def concat(call: Any, operands: tuple[Operand, ...], outputs: tuple[TensorInfo, ...]) -> Sequence[Kernel]:
    return joined(operands, outputs[0], int(call.attrs.axis or 0) % len(outputs[0].shape))


def joined(operands: Sequence[Operand], output: TensorInfo, axis: int) -> Sequence[Kernel]:
    """The kernel that lays tensors one behind the other along an axis."""
    target = row_major(output.shape)
    moves, start = [], 0
    for source, operand in zip(sources(operands), operands, strict=True):
        shape = operand.info.shape
        moves.append(Move(source, axes(shape, row_major(shape), target), 0, start * target[axis]))
        start += shape[axis]
    return move_kernels(moves, output.itemsize)


@layout("stack")
def stack(call: Any, operands: tuple[Operand, ...], outputs: tuple[TensorInfo, ...]) -> Sequence[Kernel]:
    output = outputs[0]
    axis = int(call.attrs.axis or 0) % len(output.shape)
    target = row_major(output.shape)
    step = target.pop(axis)
    moves = [
        Move(source, axes(operand.info.shape, row_major(operand.info.shape), target), 0, number * step)
        for number, (source, operand) in enumerate(zip(sources(operands), operands, strict=True))
    ]
    return move_kernels(moves, output.itemsize)


@layout("broadcast_to")
def broadcast_to(_call: Any, operands: tuple[Operand, ...], outputs: tuple[TensorInfo, ...]) -> Sequence[Kernel]:
    info, output = operands[0].info, outputs[0]
    shape = (1,) * (len(output.shape) - len(info.shape)) + info.shape
    strides = [0 if extent == 1 else stride for extent, stride in zip(shape, row_major(shape), strict=True)]
    move = Move(sources(operands)[0], axes(output.shape, strides, row_major(output.shape)))
    return rearranged(move, info.elements, output.itemsize)


@layout("tile")
def tile(call: Any, operands: tuple[Operand, ...], outputs: tuple[TensorInfo, ...]) -> Sequence[Kernel]:
    info, output = operands[0].info, outputs[0]
    rank = len(output.shape)
    shape = (1,) * (rank - len(info.shape)) + info.shape
    loops: list[Axis] = []
    for extent, total, source, target in zip(
        shape, output.shape, row_major(shape), row_major(output.shape), strict=True
    ):
        loops += [Axis(total // extent, 0, extent * target), Axis(extent, source, target)]
    return rearranged(Move(sources(operands)[0], tuple(loops)), info.elements, output.itemsize)


@layout("nn.pad")
def pad(call: Any, operands: tuple[Operand, ...], outputs: tuple[TensorInfo, ...]) -> Sequence[Kernel]:
    """Other modes than "constant", and widths that cut, are left to the fallback."""
    info, output = operands[0].info, outputs[0]
    before = [int(width) for width in call.attrs.pad_width[::2]]
    if call.attrs.pad_mode != "constant" or min((int(w) for w in call.attrs.pad_width), default=0) < 0:
        return ()
    strides = row_major(output.shape)
    start = sum(width * stride for width, stride in zip(before, strides, strict=True))
    move = Move(sources(operands)[0], axes(info.shape, row_major(info.shape), strides), 0, start)
    if output.elements == info.elements:
        return rearranged(move, info.elements, output.itemsize)
    value = np.array(float(call.attrs.pad_value), output.dtype)
    return move_kernels([move], output.itemsize, first=[fill_call(value, output.elements)])
