"""Models of one TFLite operator, drawn up from the schema: each field of its options, each type, shapes of all kinds.

A row is a form of an operator (its operands' shapes and constants) on a type, with one option changed. The forms are
those of ``reference_rows`` and ``rare_rows``, and more below: ranks, broadcasting, negative and repeated axes, windows,
strides and sizes. What the output of a row looks like is for the runtimes to say.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import tflite

from support.models.many import Row
from support.models.rare_rows import FORMS, Form, Part, row_of
from support.models.reference_rows import SHAPE, Given, conv, makers, numbers
from support.models.single_op import Activation, Constant
from support.models.tflite_options import ENUMS, OptionValue, options_table
from support.models.tflite_schema import variations

TYPES = ("float32", "int8", "uint8", "int16", "int32", "int64", "uint32", "bool", "float16")

Shape = tuple[int, ...]
Options = dict[str, OptionValue]
SHAPES: Sequence[Shape] = ((), (5,), (2, 3), (2, 3, 4), (2, 1, 3, 2, 2))
PAIRED: Sequence[tuple[Shape, Shape]] = (
    ((), (2, 3)),
    ((5,), (5,)),
    ((2, 1, 4), (3, 1)),
    ((1, 2, 1, 3, 2), (2, 2, 1, 2)),
    ((2, 3, 4), (4,)),
    ((2, 1, 2, 1, 2, 2), (2, 2, 1, 1, 2)),
)
AXES: Sequence[int | list[int]] = ([-1], 1, [], [0, 1, 2, 3], [1, -1, 1], [0, 2], [2, 3], [-5], 4)
FIVE = (2, 3, 4, 2, 3)
UNARY = (
    *("ABS", "NEG", "FLOOR", "CEIL", "ROUND", "SIN", "COS", "EXP", "SQUARE", "SQRT", "LOG", "RSQRT", "SIGN", "GELU"),
    *("RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1", "ELU", "HARD_SWISH", "LEAKY_RELU", "LOGISTIC", "TANH"),
    *("SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION", "ZEROS_LIKE", "LOGICAL_NOT"),
)
COMPARISONS = ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")
BINARY = (
    *("ADD", "SUB", "MUL", "DIV", "SQUARED_DIFFERENCE", "FLOOR_DIV", "FLOOR_MOD", "MINIMUM", "MAXIMUM", "POW"),
    *("ATAN2", "BITWISE_XOR", "RIGHT_SHIFT", "LOGICAL_AND", "LOGICAL_OR", *COMPARISONS),
)
REDUCTIONS = ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "REDUCE_ALL", "REDUCE_ANY")
POOLS = ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D")


def _more() -> Iterator[tuple[str, Form]]:
    """Further forms."""
    for first, second in PAIRED:
        shape = np.broadcast_shapes(first, second)
        for name in ("SELECT_V2", "SELECT"):
            yield name, ([Activation(second, "bool"), first, first], [shape], {})
    for axis in AXES:
        for name in ("ARG_MAX", "ARG_MIN"):
            yield name, ([SHAPE, numbers(axis)], [Activation(SHAPE[:3], "int32")], {"output_type": "int32"})
    for axis in (0, -1, 4, -2):
        yield "CUMSUM", ([SHAPE, numbers(axis)], [SHAPE], {"exclusive": True})
        yield "REVERSE_V2", ([SHAPE, numbers([axis])], [SHAPE], {})
        yield "EXPAND_DIMS", ([SHAPE, numbers(axis)], [SHAPE], {})
        yield "SPLIT", ([numbers(axis), SHAPE], [(1, 4, 6, 4)] * 2, {"num_splits": 2})
        yield "SPLIT_V", ([SHAPE, numbers([3, -1]), numbers(axis)], [(1, 4, 6, 4)] * 2, {"num_splits": 2})
        yield "REVERSE_SEQUENCE", ([(4, 3, 5), numbers([1, 2, 3, 4])], [(4, 3, 5)], {"seq_dim": axis})
        yield "ONE_HOT", ([numbers([0, 3, 1]), numbers(4), (), ()], [(3, 4)], {"axis": axis})
    yield "SPLIT_V", ([SHAPE, numbers([3, 4]), numbers(2)], [(1, 4, 3, 8), (1, 4, 4, 8)], {"num_splits": 2})
    yield "SPLIT_V", ([SHAPE, numbers([3, 2]), numbers(2)], [(1, 4, 3, 8), (1, 4, 2, 8)], {"num_splits": 2})
    for size in ([1, 1], [8, 12], [2, 3], [4, 6], [7, 1], [13, 5]):
        for name in ("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"):
            for options in ({}, {"align_corners": True}, {"half_pixel_centers": True}):
                yield name, ([SHAPE, numbers(size)], [(1, *size, 8)], options)
    for count in (1, 3, 8, 9, 0, -1):
        for shape in ((8,), (2, 8)):
            yield "TOPK_V2", ([shape, numbers(count)], [(*shape[:-1], abs(count) or 1)] * 2, {})
    yield from _windows()
    yield from _rare()
    yield from _joins()
    yield from _parts()


def _windows() -> Iterator[tuple[str, Form]]:
    shape = (2, 7, 9, 4)
    for name in POOLS:
        for padding in ("SAME", "VALID"):
            for window, stride in (((3, 2), (2, 1)), ((5, 4), (1, 3)), ((7, 9), (1, 1)), ((8, 10), (3, 3))):
                options: Options = {"padding": padding, "filter_height": window[0], "filter_width": window[1]}
                yield name, ([shape], [shape], {**options, "stride_h": stride[0], "stride_w": stride[1]})
    for radius, bias, alpha, beta in ((1, 1.0, 0.3, 0.75), (2, 2.0, 1.0, 0.5), (0, 1.0, 1.0, 1.0), (9, 1.0, 0.1, 0.2)):
        around: Options = {"radius": radius, "bias": bias, "alpha": alpha, "beta": beta}
        yield "LOCAL_RESPONSE_NORMALIZATION", ([shape], [shape], around)
    for small, large in ((-1.0, 1.0), (0.0, 6.0), (-6.0, -1.0), (1.0, 7.0), (-0.3, 5.7)):
        for bits in (2, 8, 16):
            for narrow in (False, True):
                grid: Options = {"min": small, "max": large, "num_bits": bits, "narrow_range": narrow}
                yield "FAKE_QUANT", ([SHAPE], [SHAPE], grid)


def _rare() -> Iterator[tuple[str, Form]]:
    for name in ("MAX", "MIN", "PROD", "SUM"):
        given: Sequence[Part] = [(4, 3), numbers([0, 2, 1, 2]), numbers(3)]
        yield f"UNSORTED_SEGMENT_{name}", (given, [(3, 3)], {})
    places: Sequence[tuple[list[list[int]], Shape, Shape]] = (
        ([[1], [1]], (2, 4), (5, 4)),
        ([[1, 2], [0, 0], [1, 2]], (3,), (2, 3)),
        ([[5]], (1, 4), (5, 4)),
    )
    for indices, updates, shape in places:
        yield "SCATTER_ND", ([numbers(indices), updates, numbers(list(shape))], [shape], {})
    for bounds in ((0.0, 1.0, 2.5), (-1.0,), (2.0, 1.0)):
        yield "BUCKETIZE", ([SHAPE], [Activation(SHAPE, "int32")], {"boundaries": bounds})
    yield "RANGE", ([numbers(1), numbers(7), numbers(2)], [Activation((3,), "int32")], {})
    for name, (count, *_) in HLO.items():
        for each in SHAPES[1:]:
            yield name, ([each] * count, [each], {})
    conditions: Sequence[tuple[Shape, Shape]] = (((6,), (6,)), ((1,), (2, 3)), ((), (2, 3)), ((2,), (2, 3)))
    for picks, shape in (*conditions, ((3,), (2, 3)), ((2, 3), (2, 3))):
        yield "SELECT", ([Activation(picks, "bool"), shape, shape], [shape], {})


HLO = {
    **{f"STABLEHLO_{name}": (1, name) for name in ("ABS", "FLOOR", "LOG", "LOGISTIC", "RSQRT", "TANH")},
    **{f"STABLEHLO_{name}": (2, name) for name in ("MAXIMUM", "MINIMUM")},
    "STABLEHLO_ADD": (2, "ADD"),
    "STABLEHLO_SUBTRACT": (2, "SUB"),
    "STABLEHLO_MULTIPLY": (2, "MUL"),
    "STABLEHLO_DIVIDE": (2, "DIV"),
    "STABLEHLO_POWER": (2, "POW"),
    "STABLEHLO_COSINE": (1, "COS"),
    "STABLEHLO_EXPONENTIAL": (1, "EXP"),
    "STABLEHLO_NEGATE": (1, "NEG"),
    "STABLEHLO_RESHAPE": (1, "RESHAPE"),
    "STABLEHLO_CONVERT": (1, "CAST"),
    "STABLEHLO_CBRT": (1, ""),
}
"""How many inputs StableHLO's operators have, and which of TFLite's, that the runtimes have, computes the same."""


def _joins() -> Iterator[tuple[str, Form]]:
    for axis in (-1, 0, 2, -5, 4, 5):
        yield "CONCATENATION", ([SHAPE, SHAPE, SHAPE], [SHAPE], {"axis": axis})
        yield "PACK", ([SHAPE, SHAPE], [SHAPE], {"axis": axis, "values_count": 2})
        yield "UNPACK", ([(2, 2, 2, 2)], [(2, 2, 2)] * 2, {"axis": axis, "num": 2})
    yield "PACK", ([(), (), ()], [(3,)], {"values_count": 3})
    yield "UNPACK", ([(3,)], [()] * 3, {"num": 3})
    yield "UNPACK", ([(3, 2)], [(2,)] * 2, {"num": 2})
    yield "UNPACK", ([(3, 2)], [(2,)] * 3, {"num": 2})
    yield "CONCATENATION", ([SHAPE, (1, 4, 5, 8)], [(1, 4, 11, 8)], {"axis": 2})
    yield "CONCATENATION", ([SHAPE, (1, 4, 5, 7)], [(1, 4, 11, 8)], {"axis": 2})
    yield "ADD_N", ([(2, 3)], [(2, 3)], {})
    yield "ADD_N", ([(2, 3), (2, 3), (2, 3)], [(2, 3)], {})
    yield "ADD_N", ([(2, 3), (1, 3)], [(2, 3)], {})
    for left, right in (((3, 3), (3, 3)), ((2, 1, 3, 3), (4, 3, 3)), ((5, 3, 3), (1, 3, 3)), ((2, 3, 4), (4, 5))):
        for options in ({}, {"adj_x": True}, {"adj_y": True}, {"adj_x": True, "adj_y": True}):
            yield "BATCH_MATMUL", ([left, right], [(2, 3, 5)], options)
    for shape, shown in (((2, 3, 8), (2, 3, 5)), ((2, 3, 8), (6, 5)), ((8,), (1, 5)), ((2, 4), (1, 5))):
        weights = Constant(np.linspace(-1, 1, 40).astype(np.float32).reshape(5, 8))
        for keep in (False, True):
            yield "FULLY_CONNECTED", ([shape, weights], [shown], {"keep_num_dims": keep})


def _parts() -> Iterator[tuple[str, Form]]:
    for picks in ([3, 1], 2, [[0, 1], [2, 3]], [-1], [4]):
        for axis, batch in ((1, 0), (-3, 0), (0, 0), (4, 0), (1, 1), (2, 1), (1, -1)):
            yield "GATHER", ([(2, 4, 4, 3), numbers(picks)], [(2, 2, 4, 3)], {"axis": axis, "batch_dims": batch})
    for picks in ([[1], [0]], [[0, 3, 1]], [1, 2], [[0, 4]]):
        yield "GATHER_ND", ([(2, 4, 4, 3), numbers(picks)], [(2, 3)], {})
    for order in ([3, 2, 1, 0], [0, 2, 3, 1], [0, -1, 1, 2], [0, 0, 1, 2], [1, 0], [0, 1, 2, 4]):
        yield "TRANSPOSE", ([SHAPE, numbers(order)], [SHAPE], {})
    for pads in ([[0, 0], [1, 2], [3, 0], [0, 1]], [[0, 0], [1, 1]], [[0, 0], [-1, 1], [0, 0], [0, 0]], [0, 1, 2, 3]):
        for name in ("PAD", "MIRROR_PAD"):
            yield name, ([SHAPE, numbers(pads)], [SHAPE], {"mode": "SYMMETRIC"} if name == "MIRROR_PAD" else {})
    yield from _cuts()


def _cuts() -> Iterator[tuple[str, Form]]:
    for begin, end, step in (
        ([0, 0, 1, 0], [1, 4, 6, 8], [1, 2, 1, 3]),
        ([0, -1, 5, -1], [1, 0, 0, -9], [1, -1, -2, -3]),
        ([0, 1], [1, 3], [1, 1]),
        ([0, 0, 0, 0], [1, 4, 6, 8], [1, 0, 1, 1]),
        ([0, 1, 2, 3], [1, 2, 3, 4], [1, 1, 1, 1]),
        ([0, 1, 2, 3, 0], [1, 2, 3, 4, 1], [1, 1, 1, 1, 1]),
    ):
        given: Sequence[Part] = [SHAPE, numbers(begin), numbers(end), numbers(step)]
        yield "STRIDED_SLICE", (given, [(1, 2, 2, 2)], {})
    for begin, size in (([0, 1, 2, 0], [1, -1, 3, 8]), ([0, 0, 0, 0], [1, 5, 6, 8]), ([0, 4, 0, 0], [1, 0, 6, 8])):
        yield "SLICE", ([SHAPE, numbers(begin), numbers(size)], [(1, 3, 3, 8)], {})
    for dims in ((), (0,), (0, 2), (-1,), (1,), (7,)):
        yield "SQUEEZE", ([(1, 3, 1, 4, 1)], [(3, 4)], {"squeeze_dims": dims})
    for new in ([24, 8], [-1, 8], [192], [25, 8], [2, -1, -1], [0, 192]):
        yield "RESHAPE", ([SHAPE, numbers(new)], [(24, 8)], {"new_shape": tuple(new)})
    for multiples in ([1, 2, 1, 3], [0, 1, 1, 1], [2, 2]):
        yield "TILE", ([SHAPE, numbers(multiples)], [(1, 8, 6, 24)], {})
    for extents in ([2, 4, 6, 8], [3, 1, 4, 6, 8], [4, 6, 8], [1, 4, 6, 9]):
        yield "BROADCAST_TO", ([SHAPE, numbers(extents)], [(2, 4, 6, 8)], {})


def _convolutions(dtype: str) -> Iterator[tuple[str, Row]]:
    """Weighted rows with strides, dilation, no bias, groups, and a multiplier of channels."""
    for number, (strides, dilation, padding) in enumerate(
        (((2, 1), (1, 1), "VALID"), ((1, 2), (1, 1), "SAME"), ((1, 1), (2, 1), "SAME"), ((1, 1), (1, 2), "VALID"))
    ):
        options: Options = {"stride_h": strides[0], "stride_w": strides[1], "padding": padding}
        options |= {"dilation_h_factor": dilation[0], "dilation_w_factor": dilation[1]}
        for name, channels, weights, axis in (
            ("CONV_2D", 4, (4, 3, 2, 8), 0),
            ("CONV_2D", 4, (4, 2, 3, 4), 0),
            ("DEPTHWISE_CONV_2D", 8, (1, 2, 3, 8), 3),
            ("DEPTHWISE_CONV_2D", 16, (1, 3, 2, 16), 3),
        ):
            row = conv(name, channels, weights, axis, dtype)
            changed: Options = {**row.options, **options}
            changed |= {"depth_multiplier": channels // 8} if axis else {}
            label = f"{name} {weights}, form {number}"
            yield label, replace(row, options=changed)
            yield f"{label}, no bias", replace(row, options=changed, inputs=[*row.inputs[:2]])


def forms(dtype: str) -> Iterator[tuple[str, Row]]:
    """All forms of all operators on a type, before any option is changed."""
    made = {name: make(dtype) for name, make in makers().items()}
    yield from made.items()
    for name in FORMS:
        yield f"{name}, rare", row_of(name, FORMS[name], dtype)
    for name in UNARY:
        base = made.get(name) or row_of(name, FORMS[name], dtype)
        for shape in SHAPES:
            yield f"{name} {shape}", _shaped(base, [shape], shape)
    for name in BINARY:
        base = made.get(name) or row_of(name, FORMS[name], dtype)
        for first, second in PAIRED:
            yield f"{name} {first} {second}", _shaped(base, [first, second], np.broadcast_shapes(first, second))
            yield f"{name} {second} {first}", _shaped(base, [second, first], np.broadcast_shapes(first, second))
    for name in REDUCTIONS:
        base = made.get(name) or row_of(name, FORMS[name], dtype)
        for axes in AXES:
            for shape in (SHAPE, FIVE, (5,)):
                row = _shaped(base, [shape], shape)
                yield f"{name} {shape} along {axes}", replace(row, inputs=[row.inputs[0], numbers(axes)])
    for number, (name, form) in enumerate(_more()):
        yield f"{name}, form {number}", row_of(name, form, dtype)
    yield from _convolutions(dtype)


def _shaped(row: Row, shapes: Sequence[tuple[int, ...]], output: tuple[int, ...]) -> Row:
    """The row with its first inputs and all its outputs in other shapes."""
    inputs: list[Given] = list(row.inputs)
    for number, shape in enumerate(shapes):
        given = inputs[number]
        assert isinstance(given, Activation)
        inputs[number] = replace(given, shape=shape)
    return replace(row, inputs=inputs, outputs=[replace(each, shape=output) for each in row.outputs])


def campaign(dtype: str) -> Iterator[tuple[str, Row]]:
    """Every form, and for each form every option changed in turn; options that are types change in the first alone."""
    seen = set()
    for label, row in forms(dtype):
        yield f"{label}, {dtype}", row
        if options_table(row.operator) is None:
            continue
        first = row.operator not in seen
        seen.add(row.operator)
        for options in variations(row.operator):
            ((name, value),) = options.items()
            if row.options.get(name) != value and (first or ENUMS.get(name) is not tflite.TensorType):
                yield f"{label}, {dtype}, {name}={value}", replace(row, options={**row.options, **options})


def told(row: Row, outputs: Sequence[tuple[tuple[int, ...], str]]) -> Row:
    """The row with outputs as a runtime works them out."""
    found = zip(row.outputs, outputs, strict=True)
    return replace(row, outputs=[replace(each, shape=shape, dtype=dtype) for each, (shape, dtype) in found])
