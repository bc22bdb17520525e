"""One-operator models: every builtin operator of the tflite-micro wheel, on every type of element.

Whether the wheel has an operator for a type is for the wheel to say: rows are drawn for all types alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from support.models.many import Row
from support.models.single_op import Activation, Constant
from support.models.tflite_writer import OptionValue

TYPES = ("float32", "int8", "int16", "int32", "int64", "uint8", "uint32", "bool")
SHAPE = (1, 4, 6, 8)
Make = Callable[[str], Row]
Given = Activation | Constant | None


def tensor(dtype: str, shape: tuple[int, ...] = SHAPE, scale: float = 0.05, zero_point: int = -3) -> Activation:
    """Quantised where the type is small."""
    if dtype in ("int8", "int16", "uint8"):
        return Activation(shape, dtype, scale, {"int8": zero_point, "int16": 0, "uint8": zero_point + 128}[dtype])
    return Activation(shape, dtype)


def numbers(*values: Any) -> Constant:
    return Constant(np.array(values[0] if len(values) == 1 else values, np.int32))


def _drawn(dtype: str, shape: tuple[int, ...], scales: tuple[float, ...] = (0.02,)) -> Constant:
    """Weights beside an activation of this type."""
    generator = np.random.RandomState(sum(shape))
    if dtype == "float32":
        return Constant(generator.uniform(-1, 1, shape).astype(np.float32))
    stored = "uint8" if dtype == "uint8" else "int8"
    return Constant(generator.randint(0 if stored == "uint8" else -127, 128, shape).astype(stored), scales)


def _bias(dtype: str, count: int) -> Constant:
    kind = {"float32": "float32", "int16": "int64"}.get(dtype, "int32")
    return Constant((np.arange(count) * 7 - 3).astype(kind), () if kind == "float32" else (0.001,))


def _unary(name: str, output: Mapping[str, Any], options: Mapping[str, OptionValue], dtype: str) -> Row:
    return Row(name, [tensor(dtype)], [tensor(dtype, **output)], options)


def _binary(name: str, result: str, options: Mapping[str, OptionValue], dtype: str) -> Row:
    second = tensor(dtype, (1, 1, 6, 1), scale=0.03, zero_point=5)
    return Row(name, [tensor(dtype), second], [tensor(result or dtype, scale=0.07)], options)


def _same_scales(name: str, dtype: str) -> Row:
    return Row(name, [tensor(dtype), tensor(dtype)], [tensor(dtype)])


def _reduced(name: str, dtype: str) -> Row:
    scale = 0.05 if name in ("REDUCE_MAX", "REDUCE_MIN") else 0.06
    return Row(name, [tensor(dtype), numbers([1, 2])], [tensor(dtype, (1, 8), scale=scale)])


def _arg(name: str, dtype: str) -> Row:
    return Row(name, [tensor(dtype), numbers(3)], [Activation((1, 4, 6), "int32")], {"output_type": "int32"})


def _pooled(name: str, dtype: str) -> Row:
    sides: dict[str, OptionValue] = {"stride_h": 2, "stride_w": 2, "filter_height": 2, "filter_width": 2}
    return Row(name, [tensor(dtype)], [tensor(dtype, (1, 2, 3, 8))], {**sides, "padding": "SAME"})


def _moved(
    name: str, shape: tuple[int, ...], more: Sequence[Given], options: Mapping[str, OptionValue], dtype: str
) -> Row:
    return Row(name, [tensor(dtype), *more], [tensor(dtype, shape)], options)


def conv(name: str, channels: int, weights: tuple[int, ...], axis: int, dtype: str) -> Row:
    scales = tuple(0.01 + 0.001 * i for i in range(channels))
    drawn = _drawn(dtype, weights, scales if dtype != "uint8" else (0.01,))
    options: dict[str, OptionValue] = {"stride_h": 1, "stride_w": 1, "padding": "SAME"}
    options |= {"dilation_h_factor": 1, "dilation_w_factor": 1}
    if name == "DEPTHWISE_CONV_2D":
        options |= {"depth_multiplier": 1}
    given = Constant(drawn.values, drawn.scales, axis=axis)
    inputs: list[Given] = [tensor(dtype), given, _bias(dtype, channels)]
    return Row(name, inputs, [tensor(dtype, (1, 4, 6, channels), 0.5)], options)


def transposed(dtype: str) -> Row:
    scales = tuple(0.01 + 0.001 * i for i in range(4))
    options: dict[str, OptionValue] = {"stride_h": 2, "stride_w": 2, "padding": "SAME"}
    inputs: list[Given] = [numbers([1, 8, 12, 4]), _drawn(dtype, (4, 3, 3, 8), scales), tensor(dtype), _bias(dtype, 4)]
    return Row("TRANSPOSE_CONV", inputs, [tensor(dtype, (1, 8, 12, 4), 0.5)], options)


def _connected(constant: bool, dtype: str) -> Row:
    kind = "int8" if dtype == "int16" else dtype
    weights = _drawn(dtype, (5, 8)) if constant else tensor(kind, (5, 8), 0.02, 4 if dtype == "int8" else 0)
    return Row("FULLY_CONNECTED", [tensor(dtype, (6, 8)), weights, _bias(dtype, 5)], [tensor(dtype, (6, 5), 0.5)])


def _product(dtype: str) -> Row:
    sides = [tensor(dtype, (2, 3, 8)), tensor(dtype, (2, 8, 5), 0.02, 4)]
    return Row("BATCH_MATMUL", sides, [tensor(dtype, (2, 3, 5), 0.3)])


def _into(name: str, target: str, dtype: str) -> Row:
    """An int32 has a scale too where it is quantised again."""
    codes: dict[str, OptionValue] = {"in_data_type": dtype, "out_data_type": target} if name == "CAST" else {}
    wide = name == "QUANTIZE" and dtype == "int32"
    given = Activation(SHAPE, dtype, 0.002) if wide else tensor(dtype)
    return Row(name, [given], [tensor(target, scale=0.11, zero_point=9)], codes)


def _square_rooted(dtype: str) -> Row:
    return Row("RSQRT", [tensor(dtype, zero_point=-128)], [tensor(dtype, scale=0.02, zero_point=-128)])


_UNARY: dict[str, Mapping[str, Any]] = {
    **{name: {} for name in ("ABS", "NEG", "FLOOR", "CEIL", "ROUND", "SIN", "COS", "EXP", "SQUARE", "SQRT", "LOG")},
    **{name: {} for name in ("LOGICAL_NOT", "ZEROS_LIKE", "RELU", "RELU6", "ELU", "HARD_SWISH", "LEAKY_RELU")},
    "LOGISTIC": {"scale": 1 / 256, "zero_point": -128},
    "SOFTMAX": {"scale": 1 / 256, "zero_point": -128},
    "LOG_SOFTMAX": {"scale": 1 / 16, "zero_point": 127},
    "TANH": {"scale": 1 / 128, "zero_point": 0},
    "L2_NORMALIZATION": {"scale": 1 / 128, "zero_point": 0},
}
_WIDE = {"LOGISTIC": 2.0**-15, "TANH": 2.0**-15, "SOFTMAX": 2.0**-15}
"""Output scales of int16."""
_OPTIONS: dict[str, Mapping[str, OptionValue]] = {"LEAKY_RELU": {"alpha": 0.2}, "SOFTMAX": {"beta": 1.0}}
_COMPARISONS = ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")


def _one(name: str, dtype: str) -> Row:
    output = dict(_UNARY[name])
    if dtype == "int16" and name in _WIDE:
        output["scale"] = _WIDE[name]
    return _unary(name, output, _OPTIONS.get(name, {}), dtype)


def _moves() -> dict[str, Make]:
    move = partial
    pads, block = numbers([[0, 0], [1, 1], [1, 0], [0, 0]]), numbers([2, 2])
    none = numbers([[0, 0], [0, 0]])
    table: dict[str, Make] = {
        "RESHAPE": move(_moved, "RESHAPE", (24, 8), [numbers([24, 8])], {"new_shape": (24, 8)}),
        "SQUEEZE": move(_moved, "SQUEEZE", SHAPE[1:], [], {"squeeze_dims": (0,)}),
        "EXPAND_DIMS": move(_moved, "EXPAND_DIMS", (1, *SHAPE), [numbers(0)], {}),
        "TRANSPOSE": move(_moved, "TRANSPOSE", (1, 6, 4, 8), [numbers([0, 2, 1, 3])], {}),
        "REVERSE_V2": move(_moved, "REVERSE_V2", SHAPE, [numbers([1])], {}),
        "PAD": move(_moved, "PAD", (1, 6, 7, 8), [pads], {}),
        "MIRROR_PAD": move(_moved, "MIRROR_PAD", (1, 6, 7, 8), [pads], {"mode": "REFLECT"}),
        "GATHER": move(_moved, "GATHER", (1, 2, 6, 8), [numbers([3, 1])], {"axis": 1}),
        "GATHER_ND": move(_moved, "GATHER_ND", (2, 6, 8), [numbers([[0, 3], [0, 1]])], {}),
        "SLICE": move(_moved, "SLICE", (1, 2, 3, 8), [numbers([0, 1, 2, 0]), numbers([1, 2, 3, 8])], {}),
        "BROADCAST_TO": move(_moved, "BROADCAST_TO", (3, 4, 6, 8), [numbers([3, 4, 6, 8])], {}),
        "SPACE_TO_DEPTH": move(_moved, "SPACE_TO_DEPTH", (1, 2, 3, 32), [], {"block_size": 2}),
        "DEPTH_TO_SPACE": move(_moved, "DEPTH_TO_SPACE", (1, 8, 12, 2), [], {"block_size": 2}),
        "SPACE_TO_BATCH_ND": move(_moved, "SPACE_TO_BATCH_ND", (4, 2, 3, 8), [block, none], {}),
        "RESIZE_BILINEAR": move(_moved, "RESIZE_BILINEAR", (1, 7, 9, 8), [numbers([7, 9])], {}),
        "RESIZE_NEAREST_NEIGHBOR": move(_moved, "RESIZE_NEAREST_NEIGHBOR", (1, 7, 9, 8), [numbers([7, 9])], {}),
    }
    masks: dict[str, OptionValue] = dict.fromkeys(("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask"), 0)
    cut = [numbers([0, 0, 1, 0]), numbers([1, 4, 6, 8]), numbers([1, 2, 1, 3])]
    table["STRIDED_SLICE"] = move(_moved, "STRIDED_SLICE", (1, 2, 5, 3), cut, {**masks, "shrink_axis_mask": 0})
    return table


def _joined(dtype: str) -> Row:
    return Row("CONCATENATION", [tensor(dtype), tensor(dtype)], [tensor(dtype, (1, 4, 12, 8))], {"axis": 2})


def _packed(dtype: str) -> Row:
    options: dict[str, OptionValue] = {"axis": 1, "values_count": 2}
    return Row("PACK", [tensor(dtype), tensor(dtype)], [tensor(dtype, (1, 2, *SHAPE[1:]))], options)


def _split(name: str, dtype: str) -> Row:
    halves = [tensor(dtype, (1, 4, 3, 8))] * 2
    if name == "SPLIT":
        return Row(name, [numbers(2), tensor(dtype)], halves, {"num_splits": 2})
    if name == "SPLIT_V":
        return Row(name, [tensor(dtype), numbers([3, 3]), numbers(2)], halves, {"num_splits": 2})
    return Row("UNPACK", [tensor(dtype)], [tensor(dtype, (1, 6, 8))] * 4, {"axis": 1, "num": 4})


def _batches(dtype: str) -> Row:
    inputs: list[Given] = [tensor(dtype, (4, 2, 3, 8)), numbers([2, 2]), numbers([[0, 0], [0, 0]])]
    return Row("BATCH_TO_SPACE_ND", inputs, [tensor(dtype, (1, 4, 6, 8))])


def _padded(dtype: str) -> Row:
    kind = "float32" if dtype == "float32" else dtype
    point = tensor(dtype)
    scales = () if point.scale is None else (point.scale,)
    value = Constant(np.array(1, kind), scales, (point.zero_point,) if scales else None)
    pads = numbers([[0, 0], [1, 1], [1, 0], [0, 0]])
    return Row("PADV2", [tensor(dtype), pads, value], [tensor(dtype, (1, 6, 7, 8))])


def _filled(dtype: str) -> Row:
    return Row("FILL", [numbers([2, 3]), tensor(dtype, ())], [tensor(dtype, (2, 3))])


def _selected(dtype: str) -> Row:
    return Row("SELECT_V2", [Activation(SHAPE, "bool"), tensor(dtype), tensor(dtype)], [tensor(dtype)])


def _updated(dtype: str) -> Row:
    return Row(
        "DYNAMIC_UPDATE_SLICE", [tensor(dtype), tensor(dtype, (1, 2, 3, 8)), numbers([0, 1, 2, 0])], [tensor(dtype)]
    )


def _looked_up(dtype: str) -> Row:
    table = np.arange(-20, 20).astype("int8" if dtype in ("int8", "int16") else dtype).reshape(10, 4)
    given = Constant(table, () if dtype in ("float32", "int32", "int64", "bool", "uint32") else (0.05,))
    return Row("EMBEDDING_LOOKUP", [numbers([3, 0, 9]), given], [tensor(dtype, (3, 4), zero_point=0)])


def _summed(dtype: str) -> Row:
    return Row("CUMSUM", [tensor(dtype), numbers(1)], [tensor(dtype)], {"exclusive": False, "reverse": True})


def _sloped(dtype: str) -> Row:
    return Row("PRELU", [tensor(dtype), tensor(dtype, (1, 1, 8), 0.01, 4)], [tensor(dtype, scale=0.06)])


def _shaped(dtype: str) -> Row:
    return Row("SHAPE", [tensor(dtype)], [Activation((4,), "int32")], {"out_type": "int32"})


def makers() -> dict[str, Make]:
    """By the row's name; operators with several forms have a row for each."""
    table: dict[str, Make] = {name: partial(_one, name) for name in _UNARY}
    table |= {name: partial(_binary, name, "", {}) for name in ("ADD", "SUB", "MUL", "DIV", "SQUARED_DIFFERENCE")}
    table |= {name: partial(_binary, name, "", {}) for name in ("FLOOR_DIV", "FLOOR_MOD")}
    table |= {
        name: partial(_same_scales, name) for name in ("MINIMUM", "MAXIMUM", "ADD_N", "LOGICAL_AND", "LOGICAL_OR")
    }
    table |= {name: partial(_binary, name, "bool", {}) for name in _COMPARISONS}
    table |= {name: partial(_reduced, name) for name in ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_ALL")}
    table |= {name: partial(_arg, name) for name in ("ARG_MAX", "ARG_MIN")}
    table |= {name: partial(_pooled, name) for name in ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D")}
    table |= {name: partial(_split, name) for name in ("SPLIT", "SPLIT_V", "UNPACK")}
    table |= {f"{name} to {to}": partial(_into, name, to) for name in ("CAST",) for to in TYPES}
    table |= {f"QUANTIZE to {to}": partial(_into, "QUANTIZE", to) for to in TYPES}
    table |= {"DEQUANTIZE": partial(_into, "DEQUANTIZE", "float32"), "RSQRT": _square_rooted}
    table |= {"CONV_2D": partial(conv, "CONV_2D", 5, (5, 3, 3, 8), 0)}
    table |= {"DEPTHWISE_CONV_2D": partial(conv, "DEPTHWISE_CONV_2D", 8, (1, 3, 3, 8), 3)}
    table |= {
        "FULLY_CONNECTED": partial(_connected, True),
        "FULLY_CONNECTED, weights given": partial(_connected, False),
    }
    table |= {"TRANSPOSE_CONV": transposed, "BATCH_MATMUL": _product, "CONCATENATION": _joined, "PACK": _packed}
    table |= {"BATCH_TO_SPACE_ND": _batches, "PADV2": _padded, "FILL": _filled, "SELECT_V2": _selected}
    table |= {"DYNAMIC_UPDATE_SLICE": _updated, "EMBEDDING_LOOKUP": _looked_up, "CUMSUM": _summed, "PRELU": _sloped}
    table |= {"SHAPE": _shaped}
    return table | _moves()


def rows() -> Iterator[tuple[str, Row]]:
    for name, make in makers().items():
        for dtype in TYPES:
            yield f"{name}, {dtype}", make(dtype)
