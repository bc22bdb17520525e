"""Converts quantise and dequantise operators of PT2E and torchao, with scales that are fixed or found at run time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from uaccel.errors import need
from uaccel.frontend.converters import half_even
from uaccel.frontend.torch import blocks
from uaccel.frontend.torch.converter import Context, Expr, arguments, converts
from uaccel.model import Array, Quantisation
from uaccel.ops.operator import constant
from uaccel.tvm_api import relax

# Dynamic quantisation: scale and zero point of a whole tensor, found at run time from the range of its numbers.
#
# All of it is float arithmetic in PyTorch's own order of operations, so that the integers are PyTorch's bit for bit.

LIBRARY: Final = "quantized_decomposed"


def is_measured(context: Context, node: Any) -> bool:
    """Whether the operator quantises or dequantises a whole tensor by a scale that is computed at run time."""
    scale = arguments(node).get("scale")
    one = "per_tensor" in str(node.target)
    return one and hasattr(scale, "op") and not context.is_constant(scale)


def _real(value: float) -> Expr:
    return constant(np.asarray(value, np.float32))


@converts(f"{LIBRARY}.choose_qparams.tensor", f"{LIBRARY}.choose_qparams_symmetric.tensor")
def measure(context: Context, node: Any) -> list[Expr]:
    """Scale and zero point: the range of the numbers, widened to hold 0, divided by the range of the integers.

    The symmetric scheme takes the largest magnitude, and half the range of the integers. The zero point of the other
    is rounded half to even and clamped, so that 0 has an integer of its own.
    """
    given, emit = arguments(node), context.emit
    low, high = int(given["quant_min"]), int(given["quant_max"])
    need(low < high, f"it keeps integers from {low} to {high}, of which there are too few")
    data = context.expr(given["input"])
    least = emit(relax.op.minimum(emit(relax.op.min(data)), _real(0)))
    most = emit(relax.op.maximum(emit(relax.op.max(data)), _real(0)))
    symmetric = "symmetric" in str(node.target)
    if symmetric:
        most = emit(relax.op.maximum(emit(relax.op.negative(least)), most))
        scale = emit(relax.op.divide(most, _real((high - low) / 2)))
    else:
        scale = emit(relax.op.divide(emit(relax.op.subtract(most, least)), _real(high - low)))
    scale = emit(relax.op.maximum(scale, _real(float(given["eps"]))))
    if symmetric:
        unsigned = "uint8" in str(given["dtype"])
        point = emit(relax.op.astype(constant(np.asarray([128 if unsigned else 0], np.int32)), "int64"))
    else:
        steps = emit(half_even(emit, relax.op.divide(least, scale)))
        point = emit(relax.op.subtract(_real(low), steps))
        point = emit(relax.op.minimum(emit(relax.op.maximum(point, _real(low))), _real(high)))
        point = emit(relax.op.astype(emit(relax.op.reshape(point, (1,))), "int64"))
    return [emit(relax.op.astype(emit(relax.op.reshape(scale, (1,))), "float64")), point]


def _parts(context: Context, node: Any) -> tuple[Expr, Expr]:
    """Scale and zero point as single numbers."""
    given, emit = arguments(node), context.emit
    single = (emit(relax.op.reshape(context.expr(given[name]), ())) for name in ("scale", "zero_point"))
    scale, point = (emit(relax.op.astype(part, "float32")) for part in single)
    return scale, point


def quantize_measured(context: Context, node: Any, dtype: str) -> Expr:
    """Multiply by one over the scale, as PyTorch does; a division would round differently."""
    given, emit = arguments(node), context.emit
    scale, point = _parts(context, node)
    steps = emit(relax.op.multiply(context.expr(given["input"]), emit(relax.op.divide(_real(1), scale))))
    whole = emit(relax.op.add(emit(half_even(emit, steps)), point))
    low, high = (_real(int(given[name])) for name in ("quant_min", "quant_max"))
    return relax.op.astype(emit(relax.op.minimum(emit(relax.op.maximum(whole, low)), high)), dtype)


def dequantize_measured(context: Context, node: Any) -> Expr:
    emit = context.emit
    scale, point = _parts(context, node)
    wide = emit(relax.op.astype(context.expr(arguments(node)["input"]), "float32"))
    return relax.op.multiply(emit(relax.op.subtract(wide, point)), scale)


# Static quantisation, as PT2E and torchao write it: it becomes ``relax.quantize`` and ``relax.dequantize``.

_STORED = ("int8", "uint8", "int16", "int32")
_KINDS = ("tensor.default", "tensor.tensor", "tensor.tensor2", "channel.default")


@converts(*(f"{LIBRARY}.quantize_per_{kind}" for kind in _KINDS), "torchao.quantize_affine.default")
def quantize(context: Context, node: Any) -> Expr:
    given = arguments(node)
    dtype = _dtype(given["output_dtype"] if "output_dtype" in given else given["dtype"])
    if is_measured(context, node):
        return quantize_measured(context, node, dtype)
    meaning = _meaning(context, node, given, dtype)
    context.quantised[node] = meaning
    data = context.expr(given["input"])
    scale, zero_point = _constants(meaning)
    stored = context.emit(relax.op.quantize(data, scale, zero_point, axis=meaning.axis, out_dtype=dtype))
    return _clamped(context, stored, given, dtype)


def _clamped(context: Context, stored: Expr, given: Mapping[str, Any], dtype: str) -> Expr:
    """Clamp to quant_min and quant_max, where these are narrower than the type."""
    low, high = (_number(context, given.get(name)) for name in ("quant_min", "quant_max"))
    widest = np.iinfo(dtype)
    low, high = (widest.min if low is None else low), (widest.max if high is None else high)
    need(low <= high, f"it keeps integers from {low} to {high}, of which there are none")
    if low > widest.min:
        stored = context.emit(relax.op.maximum(stored, constant(np.array(low, dtype))))
    if high < widest.max:
        stored = context.emit(relax.op.minimum(stored, constant(np.array(high, dtype))))
    return stored


@converts(
    *(f"{LIBRARY}.dequantize_per_{kind}" for kind in (*_KINDS, "channel_group.default")),
    "torchao.dequantize_affine.default",
)
def dequantize(context: Context, node: Any) -> Expr:
    given = arguments(node)
    source = given["input"]
    dtype = _dtype(given["input_dtype"] if "input_dtype" in given else given["dtype"])
    wanted = given.get("out_dtype", given.get("output_dtype"))
    need(str(wanted) in ("None", "torch.float32", "6"), f"it gives {wanted}; only float32 can be compiled")
    if is_measured(context, node):
        return dequantize_measured(context, node)
    size = blocks.size_of(node)
    if size and context.is_constant(source):
        return blocks.dequantized(context, node, size)
    meaning = _meaning(context, node, given, dtype)
    context.quantised.setdefault(source, meaning)
    scale, zero_point = _constants(meaning)
    return relax.op.dequantize(context.expr(source), scale, zero_point, axis=meaning.axis, out_dtype="float32")


def _dtype(torch_dtype: Any) -> str:
    name = str(torch_dtype).removeprefix("torch.")
    need(name in _STORED, f"it quantises to {name}; supported are {', '.join(_STORED)}")
    return name


def _constants(meaning: Quantisation) -> tuple[Expr, Expr]:
    """Scale and zero point as scalars, or as lists of one number for each slice along the axis."""
    scales, zero_points = np.array(meaning.scales, np.float32), np.array(meaning.zero_points, np.int32)
    if meaning.per_channel:
        return constant(scales), constant(zero_points)
    return constant(scales[0]), constant(zero_points[0])


def _meaning(context: Context, node: Any, given: Mapping[str, Any], dtype: str) -> Quantisation:
    """The checked quantisation: scales, zero points and the axis whose slices each have one of both."""
    shape = tuple(node.meta["val"].shape)
    axis = _axis(given, shape)
    scales = _numbers(context, given["scale"] if "scale" in given else given["scales"]).astype(np.float32)
    offsets = given["zero_point"] if "zero_point" in given else given["zero_points"]
    zero_points = np.zeros(len(scales), np.int64) if offsets is None else _numbers(context, offsets)
    slices = 1 if axis is None else shape[axis]
    counts = f"it has {len(scales)} scales and {len(zero_points)} zero points for {slices} slices"
    need(len(scales) == len(zero_points) == slices, counts)
    need(np.all(np.isfinite(scales)) and np.all(scales > 0), "a scale is not a positive number")
    whole = np.asarray(zero_points, np.float64)
    need(np.array_equal(whole, np.rint(whole)), "a zero point is no integer")
    widest = np.iinfo(dtype)
    need(np.all((whole >= widest.min) & (whole <= widest.max)), f"a zero point lies outside {dtype}")
    return Quantisation(tuple(map(float, scales)), tuple(map(int, whole)), axis or 0)


def _axis(given: Mapping[str, Any], shape: tuple[int, ...]) -> int | None:
    """The axis along which scales differ; None where there is one scale.

    torchao gives the block that shares a scale. It must span all axes but one, of which it has a single slice.
    """
    if "axis" in given:
        return int(given["axis"]) % len(shape)
    if "block_size" not in given and "group_size" not in given:
        return None
    block = tuple(int(extent) for extent in given.get("block_size") or (1, given["group_size"]))
    need(len(block) == len(shape), f"its blocks have {len(block)} dimensions, the tensor has {len(shape)}")
    cut = [axis for axis, (part, extent) in enumerate(zip(block, shape, strict=True)) if part not in (extent, -1)]
    need(
        len(cut) <= 1 and all(block[axis] == 1 for axis in cut),
        f"it has a scale for every block of {list(block)}; supported is one for all, one for each slice of one axis, "
        "or one for each block of the rows of a constant matrix",
    )
    return cut[0] if cut and math.prod(shape) > 1 else None


def _number(context: Context, value: Any) -> int | None:
    return None if value is None else int(_numbers(context, value)[0])


def _numbers(context: Context, value: Any) -> Array:
    """The numbers of an argument, which is one number or a constant tensor."""
    if hasattr(value, "op"):
        need(
            context.is_constant(value),
            f'"{value.name}" is computed at run time, and is not one number for a whole tensor; quantise with a static '
            "scheme",
        )
        return context.array(value).reshape(-1)
    return np.asarray([value]).reshape(-1)
