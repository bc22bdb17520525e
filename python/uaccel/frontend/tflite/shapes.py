"""Works out the shapes of a TFLite graph whose inputs leave extents open, as LiteRT does when they are resized.

A file holds every shape as numbers: what its author left open stands there as 1. Each rule gives the shape of an
operator's output. The converters check all shapes again, so that a wrong rule ends in a refusal.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from uaccel.errors import ModelError, need
from uaccel.frontend.checks import SHAPE_OF_DATA, Budget, fixed_shape, need_axis
from uaccel.frontend.tflite.converter import sliding_window
from uaccel.frontend.tflite.reader import NUMBER, Operator, Tensor, TfliteGraph, parse
from uaccel.model import Array, Shape


def is_open(tensor: Tensor) -> bool:
    """Whether the file leaves an extent behind the batch open."""
    return -1 in tensor.signature[1:]


@dataclass
class Shapes:
    """Holds the shapes found so far, by tensor, and small whole numbers, as other shapes are computed of these."""

    found: dict[int, Shape] = field(default_factory=dict)
    numbers: dict[int, Array] = field(default_factory=dict)

    def of(self, tensor: Tensor) -> Shape:
        return self.found.get(tensor.index, tensor.info.shape)

    def value(self, tensor: Tensor) -> Array | None:
        """The value of a small tensor; None where it is not known before the model runs."""
        return self.numbers.get(tensor.index, tensor.data)

    def known(self, operator: Operator, position: int) -> Array:
        value = self.value(operator.required_input(position))
        need(value is not None, SHAPE_OF_DATA)
        return np.asarray(value)

    def axes(self, operator: Operator, position: int, rank: int) -> list[int]:
        return [need_axis(int(axis), rank) for axis in self.known(operator, position).reshape(-1)]


def worked_out(graph: TfliteGraph, given: Mapping[str, Shape], budget: Budget) -> Shapes:
    """All shapes of the main graph, for these shapes of its inputs."""
    shapes = Shapes({tensor.index: given.get(tensor.name, tensor.info.shape) for tensor in graph.inputs})
    for operator in graph.operators:
        budget.bytes(NUMBER * sum(len(tensor.info.shape) + 1 for tensor in operator.outputs))
        try:
            _work_out(shapes, operator)
        except (ModelError, ValueError, IndexError) as error:
            raise ModelError(f"operator {operator.index} {operator.name}: {error}") from error
    return shapes


def _work_out(shapes: Shapes, operator: Operator) -> None:
    """Applies the operator's rule; one without a rule keeps its shapes if nothing before it has changed."""
    rule = RULES.get(operator.name)
    changed = any(tensor is not None and shapes.of(tensor) != tensor.info.shape for tensor in operator.inputs)
    if rule is None:
        keeps = not changed and not any(map(is_open, operator.outputs))
        need(keeps, "the shape of what it gives cannot be worked out from its inputs")
        return
    results = rule(shapes, operator)
    need(len(results) == len(operator.outputs), f"it has {len(operator.outputs)} outputs, wanted {len(results)}")
    for tensor, shape in zip(operator.outputs, results, strict=True):
        shapes.found[tensor.index] = tuple(int(extent) for extent in shape)
    if operator.name == "SHAPE":
        shapes.numbers[operator.outputs[0].index] = np.array(_first(shapes, operator), np.int32)
    number = NUMBERS.get(operator.name)
    operands = [shapes.value(tensor) for tensor in operator.inputs if tensor is not None]
    if number is None or any(value is None or value.size > MOST or value.dtype.kind != "i" for value in operands):
        return
    shapes.numbers[operator.outputs[0].index] = np.asarray(number(shapes, operator, *operands))


# The rules. A shape that does not fit its operator is a ValueError of numpy, or found by the converters.

Rule = Callable[[Shapes, Operator], Sequence[Sequence[int]]]
MOST: Final = 64  # Elements of a tensor whose value is followed: those of shapes have fewer.


def _first(shapes: Shapes, operator: Operator) -> Shape:
    return shapes.of(operator.required_input(0))


def _same(shapes: Shapes, operator: Operator) -> Sequence[Shape]:
    return [_first(shapes, operator)]


def _broadcast(shapes: Shapes, operator: Operator) -> Sequence[Shape]:
    return [np.broadcast_shapes(*(shapes.of(tensor) for tensor in operator.inputs if tensor is not None))]


def _reshape(shapes: Shapes, operator: Operator) -> Sequence[Sequence[int]]:
    """The wanted shape is an input or an option; one -1 in it takes what is left."""
    elements, options = math.prod(_first(shapes, operator)), operator.given_options
    if operator.optional_input(1) is not None:
        wanted = [int(extent) for extent in shapes.known(operator, 1).reshape(-1)]
    else:
        wanted = [int(options.NewShape(i)) for i in range(options.NewShapeLength())] if options else []
    rest = math.prod(extent for extent in wanted if extent != -1)
    need(wanted.count(-1) <= 1 and (rest > 0 or -1 not in wanted), f"its shape {wanted} is not clear")
    return [[elements // rest if extent == -1 else extent for extent in wanted]]


def _expand(shapes: Shapes, operator: Operator) -> Sequence[Sequence[int]]:
    shape = list(_first(shapes, operator))
    (place,) = shapes.axes(operator, 1, len(shape) + 1)
    return [[*shape[:place], 1, *shape[place:]]]


def _squeeze(shapes: Shapes, operator: Operator) -> Sequence[Sequence[int]]:
    shape, options = _first(shapes, operator), operator.given_options
    named = {int(options.SqueezeDims(i)) % len(shape) for i in range(options.SqueezeDimsLength())} if options else set()
    return [[n for axis, n in enumerate(shape) if (axis not in named if named else n != 1)]]


def _transpose(shapes: Shapes, operator: Operator) -> Sequence[Sequence[int]]:
    shape = _first(shapes, operator)
    return [[shape[axis] for axis in shapes.axes(operator, 1, len(shape))]]


def _concatenate(shapes: Shapes, operator: Operator) -> Sequence[Sequence[int]]:
    parts = [shapes.of(tensor) for tensor in operator.inputs if tensor is not None]
    axis = need_axis(operator.option("Axis"), len(parts[0]))
    return [[sum(part[axis] for part in parts) if place == axis else n for place, n in enumerate(parts[0])]]


def _pack(shapes: Shapes, operator: Operator) -> Sequence[Sequence[int]]:
    shape = list(_first(shapes, operator))
    place = need_axis(operator.option("Axis"), len(shape) + 1)
    return [[*shape[:place], len(operator.inputs), *shape[place:]]]


def _slice(shapes: Shapes, operator: Operator) -> Sequence[Sequence[int]]:
    begins, sizes = (shapes.known(operator, place).reshape(-1).tolist() for place in (1, 2))
    extents = zip(_first(shapes, operator), begins, sizes, strict=True)
    return [[extent - begin if size == -1 else size for extent, begin, size in extents]]


def _strides(shapes: Shapes, operator: Operator) -> tuple[Any, ...]:
    """The index that means the same for numpy, for the masks that Python's own slices need."""
    options, index = operator.options, list[Any]()
    need(not options.EllipsisMask() and not options.NewAxisMask(), "its masks of axes are not known")
    lists = [shapes.known(operator, place).reshape(-1).tolist() for place in (1, 2, 3)]
    for axis, (begin, end, step) in enumerate(zip(*lists, strict=True)):
        first = None if options.BeginMask() >> axis & 1 else begin
        last = None if options.EndMask() >> axis & 1 else end
        index.append(begin if options.ShrinkAxisMask() >> axis & 1 else slice(first, last, step))
    return tuple(index)


def _strided_slice(shapes: Shapes, operator: Operator) -> Sequence[Sequence[int]]:
    whole = np.broadcast_to(np.int8(0), _first(shapes, operator))  # of one byte, whatever its shape
    return [whole[_strides(shapes, operator)].shape]


def _pad(shapes: Shapes, operator: Operator) -> Sequence[Sequence[int]]:
    around = shapes.known(operator, 1).reshape(-1, 2).sum(axis=1).tolist()
    return [[extent + more for extent, more in zip(_first(shapes, operator), around, strict=True)]]


def _reduce(shapes: Shapes, operator: Operator) -> Sequence[Sequence[int]]:
    shape = _first(shapes, operator)
    gone, keeps = shapes.axes(operator, 1, len(shape)), operator.option("KeepDims")
    return [[1 if axis in gone else n for axis, n in enumerate(shape) if keeps or axis not in gone]]


def _window(shapes: Shapes, operator: Operator) -> Sequence[Sequence[int]]:
    """A convolution or pool: how often its window fits, in rows and columns."""
    batch, *image, channels = _first(shapes, operator)
    kernel: tuple[int, ...] = ()
    if not operator.name.endswith("POOL_2D"):
        weights = shapes.of(operator.required_input(1))
        kernel, channels = tuple(weights[1:3]), weights[3 if operator.name.startswith("DEPTHWISE") else 0]
    window = sliding_window(operator, image, kernel)
    places = window.counts(image)
    need(min(places) > 0, f"its window {list(window.kernel)} does not fit into {image}; give a larger --input-shape")
    return [[batch, *places, channels]]


def _fully_connected(shapes: Shapes, operator: Operator) -> Sequence[Sequence[int]]:
    shape, (units, inputs) = _first(shapes, operator), shapes.of(operator.required_input(1))
    return [[*shape[:-1], units] if operator.option("KeepNumDims") else [math.prod(shape) // max(inputs, 1), units]]


def _matmul(shapes: Shapes, operator: Operator) -> Sequence[Sequence[int]]:
    first, second = (shapes.of(operator.required_input(place)) for place in (0, 1))
    rows = first[-1 if operator.option("AdjX") else -2]
    columns = second[-2 if operator.option("AdjY") else -1]
    return [[*np.broadcast_shapes(first[:-2], second[:-2]), rows, columns]]


def _gather(shapes: Shapes, operator: Operator) -> Sequence[Sequence[int]]:
    shape, places = _first(shapes, operator), shapes.of(operator.required_input(1))
    axis, batch = need_axis(operator.option("Axis"), len(shape)), operator.option("BatchDims")
    return [[*shape[:axis], *places[batch:], *shape[axis + 1 :]]]


def _spectrum(shapes: Shapes, operator: Operator) -> Sequence[Sequence[int]]:
    rows, length = shapes.known(operator, 1).reshape(-1).tolist()
    return [[*_first(shapes, operator)[:-2], rows, length // 2 + 1]]


def _named(position: int) -> Rule:
    """The shape is the value of an input."""
    return lambda shapes, operator: [shapes.known(operator, position).reshape(-1).tolist()]


_UNARY: Final = (
    *("ABS", "NEG", "EXP", "LOG", "SQRT", "RSQRT", "SQUARE", "SIN", "COS", "FLOOR", "CEIL", "ROUND", "SIGN", "CAST"),
    *("RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1", "LEAKY_RELU", "PRELU", "ELU", "GELU", "HARD_SWISH", "LOGISTIC"),
    *("TANH", "SOFTMAX", "LOG_SOFTMAX", "QUANTIZE", "DEQUANTIZE", "LOGICAL_NOT", "CUMSUM", "REVERSE_V2", "ZEROS_LIKE"),
    *("L2_NORMALIZATION", "LOCAL_RESPONSE_NORMALIZATION"),
)
_BINARY: Final = (
    *("ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM", "POW", "SQUARED_DIFFERENCE", "FLOOR_DIV", "FLOOR_MOD"),
    *("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL", "LOGICAL_AND", "LOGICAL_OR", "SELECT_V2"),
)
RULES: Final[Mapping[str, Rule]] = {
    **dict.fromkeys(_UNARY, _same),
    **dict.fromkeys(_BINARY, _broadcast),
    **dict.fromkeys(("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "REDUCE_ANY"), _reduce),
    **dict.fromkeys(("CONV_2D", "DEPTHWISE_CONV_2D", "MAX_POOL_2D", "AVERAGE_POOL_2D"), _window),
    **dict.fromkeys(("PAD", "PADV2", "MIRROR_PAD"), _pad),
    "SHAPE": lambda shapes, operator: [[len(_first(shapes, operator))]],
    "RESHAPE": _reshape,
    "EXPAND_DIMS": _expand,
    "SQUEEZE": _squeeze,
    "TRANSPOSE": _transpose,
    "CONCATENATION": _concatenate,
    "PACK": _pack,
    "SLICE": _slice,
    "STRIDED_SLICE": _strided_slice,
    "FULLY_CONNECTED": _fully_connected,
    "BATCH_MATMUL": _matmul,
    "GATHER": _gather,
    "FILL": _named(0),
    "BROADCAST_TO": _named(1),
    "RFFT2D": _spectrum,
    **dict.fromkeys(("COMPLEX_ABS", "REAL", "IMAG"), _same),
}
# What becomes of small whole numbers, of which files compute shapes.
NUMBERS: Final[Mapping[str, Callable[..., Any]]] = {
    "CAST": lambda _shapes, _operator, value: value,
    "ADD": lambda _shapes, _operator, first, second: first + second,
    "SUB": lambda _shapes, _operator, first, second: first - second,
    "MUL": lambda _shapes, _operator, first, second: first * second,
    "FLOOR_DIV": lambda _shapes, _operator, first, second: first // np.where(second == 0, 1, second),
    "MAXIMUM": lambda _shapes, _operator, first, second: np.maximum(first, second),
    "MINIMUM": lambda _shapes, _operator, first, second: np.minimum(first, second),
    "REDUCE_PROD": lambda shapes, operator, value, _axes: value.prod().reshape(shapes.of(operator.outputs[0])),
    "CONCATENATION": lambda _shapes, operator, *parts: np.concatenate(parts, operator.option("Axis")),
    "PACK": lambda _shapes, operator, *parts: np.stack(parts, operator.option("Axis")),
    "GATHER": lambda _shapes, operator, value, places: np.take(value, places, operator.option("Axis")),
    "RESHAPE": lambda shapes, operator, value, *_shape: value.reshape(shapes.of(operator.outputs[0])),
    "SQUEEZE": lambda shapes, operator, value: value.reshape(shapes.of(operator.outputs[0])),
    "EXPAND_DIMS": lambda shapes, operator, value, _axis: value.reshape(shapes.of(operator.outputs[0])),
    "STRIDED_SLICE": lambda shapes, operator, value, *_lists: value[_strides(shapes, operator)],
}

# The file with other shapes.

WRITE_SHAPES_ANEW: Final = "set the shape before converting the model to TFLite"
_SHAPE: Final = 4  # Offset of a tensor's shape in its vtable: the schema's first field, after two 16-bit sizes.


def with_input_shapes(
    graph: TfliteGraph, data: bytes, path: Path, given: Mapping[str, Shape], budget: Budget
) -> tuple[TfliteGraph, bytes, Mapping[int, Array]]:
    """Gives the inputs these shapes, where the file leaves them open; returns the graph and bytes of the changed file,
    and the numbers that follow from its shapes, by tensor.

    What the file leaves open behind the batch is worked out even where its inputs are fixed. It keeps its own shapes
    where that fails: many files hold them right."""
    wanted = _wanted(graph, path, given)
    changed = {tensor.name for tensor in graph.inputs if wanted[tensor.name] != tensor.info.shape}
    if not changed and not any(map(is_open, graph.tensors)):
        return graph, data, {}
    numbers: Mapping[int, Array] = {}
    if not any(map(is_open, graph.tensors)):
        shapes = _other_batch(graph, path, {wanted[name][0] for name in changed})
    else:
        try:
            found = worked_out(graph, wanted, budget)
            shapes, numbers = found.found, found.numbers
        except ModelError as error:
            if not changed:
                return graph, data, {}
            raise ModelError(f"{path}: {error}; {WRITE_SHAPES_ANEW}") from error
    patched = _patched(data, graph, shapes)
    other = parse(patched, str(path), budget)
    same = all(shapes.get(tensor.index, tensor.info.shape) == tensor.info.shape for tensor in other.tensors)
    need(same, f"{path}: tensors of different shapes share their extents in the file; {WRITE_SHAPES_ANEW}")
    return other, patched, numbers


def _wanted(graph: TfliteGraph, path: Path, given: Mapping[str, Shape]) -> dict[str, Shape]:
    """The shape of each input. Only a batch has the file's extent where nobody says another, as in the runtimes."""
    names = [tensor.name for tensor in graph.inputs]
    for name in given:
        need(name in names, f'{path} has no input "{name}" for --input-shape; its inputs are: {", ".join(names)}')
    shapes = {}
    for tensor in graph.inputs:
        signature = tensor.signature if len(tensor.signature) == len(tensor.info.shape) else tensor.info.shape
        declared = ["?" if loose == -1 else n for n, loose in zip(tensor.info.shape, signature, strict=True)]
        unchanged = given.get(tensor.name, tensor.info.shape) == tensor.info.shape and not is_open(tensor)
        fixed = None if unchanged else fixed_shape(path, tensor.name, declared, given.get(tensor.name))
        shapes[tensor.name] = tensor.info.shape if fixed is None else fixed
    return shapes


def _other_batch(graph: TfliteGraph, path: Path, batches: set[int]) -> dict[int, Shape]:
    """Every shape whose signature leaves the batch alone open."""
    need(len(batches) == 1, f"{path}: --input-shape gives the batches {sorted(batches)}; all inputs have the same one")
    open_ones = [tensor for tensor in graph.tensors if tensor.signature[:1] == (-1,)]
    return {tensor.index: (*batches, *tensor.info.shape[1:]) for tensor in open_ones}


def _patched(data: bytes, graph: TfliteGraph, shapes: Mapping[int, Shape]) -> bytes:
    """The file with these shapes written over its own; no offset moves."""
    changed = bytearray(data)
    for tensor in graph.tensors:
        shape = shapes.get(tensor.index, tensor.info.shape)
        if shape == tensor.info.shape:
            continue
        ranks = f'"{tensor.name}" has {len(tensor.info.shape)} extents in the file, and {len(shape)} by its operator'
        need(len(shape) == len(tensor.info.shape), f"{ranks}; {WRITE_SHAPES_ANEW}")
        table = graph.subgraph.Tensors(tensor.index)._tab
        struct.pack_into(f"<{len(shape)}i", changed, table.Vector(table.Offset(_SHAPE)), *shape)
    return bytes(changed)
