"""QuantizeLinear and DequantizeLinear: where integers become real numbers and the other way round."""

from __future__ import annotations

import numpy as np

from uaccel.errors import need
from uaccel.frontend.checks import need_axis
from uaccel.frontend.onnx.convert import Context, Expr, StoredReal, converts
from uaccel.frontend.onnx.folding import evaluated
from uaccel.frontend.onnx.graph import FOUR_BITS, MICROSOFT, Node
from uaccel.frontend.onnx.operators import MOVING
from uaccel.frontend.onnx.package import onnx_package
from uaccel.frontend.onnx.structure import dtype_name
from uaccel.model import Array, Quantisation
from uaccel.ops.base import constant
from uaccel.tvm_api import relax

STORED = ("int8", "uint8", "int16", "uint16")
ACCUMULATED = "int32"  # biases


def parameters(context: Context, scale_name: str, point_name: str, dtype: str) -> tuple[Array, Array]:
    """Scale and zero point; a zero point that is left out is 0 of the stored type."""
    scale = context.need_known(scale_name, "scale")
    need(scale.dtype in (np.float32, np.float16), f'scale "{scale_name}" is {scale.dtype}, wanted float32')
    need(bool(np.all(np.isfinite(scale) & (scale > 0))), f'scale "{scale_name}" is not a positive number')
    point = np.zeros(scale.shape, dtype) if not point_name else context.need_known(point_name, "zero point")
    need(
        point.size == scale.size,
        f'scale "{scale_name}" has {scale.size} entries and zero point "{point_name}" has {point.size}',
    )
    return _flat(scale), _flat(point)


def _flat(values: Array) -> Array:
    """A scalar, or a list: nodes may give one number as a list of one."""
    return values.reshape(()) if values.size == 1 else values.reshape(-1)


def checked_axis(node: Node, shape: tuple[int, ...], scale: Array) -> int:
    """The axis that a list of scales runs along."""
    need(not node.attributes.get("block_size"), "blocked quantisation is not supported; quantise per tensor or axis")
    if scale.ndim == 0:
        return 0
    axis = need_axis(node.attributes.get("axis", 1), len(shape))
    need(scale.size == shape[axis], f"{scale.size} scales for the {shape[axis]} slices along axis {axis}")
    return axis


def quantisation(scale: Array, point: Array, axis: int) -> Quantisation:
    scales, points = scale.reshape(-1), point.reshape(-1)
    return Quantisation(tuple(map(float, scales)), tuple(map(int, points)), axis)


def dequantised(data: Expr, scale: Array, point: Array, axis: int) -> Expr:
    return relax.op.dequantize(data, constant(scale), constant(point), axis, str(scale.dtype))


def quantised(data: Expr, scale: Array, point: Array, axis: int, dtype: str) -> Expr:
    return relax.op.quantize(data, constant(scale), constant(point), axis, dtype)


def _target(context: Context, node: Node) -> str:
    """The stored type: the zero point's, or the attribute's, or uint8."""
    name = node.optional_input(2)
    given = str(context.need_known(name, "zero point").dtype) if name else _named_type(node)
    need(given in STORED, f"quantising to {given} is not supported, only to {', '.join(STORED)}")
    return given


def _named_type(node: Node) -> str:
    kind = node.attributes.get("output_dtype", 0)
    return dtype_name(onnx_package(), kind) if kind else "uint8"


@converts("QuantizeLinear", f"{MICROSOFT}.QuantizeLinear")
def quantize_linear(context: Context, node: Node) -> Expr:
    name = node.required_input(0)
    dtype, info = _target(context, node), context.info(name)
    need(info.dtype in ("float32", "float16"), f'"{name}" is {info.dtype}, only float can be quantised')
    scale, point = parameters(context, node.required_input(1), node.optional_input(2), dtype)
    axis = checked_axis(node, info.shape, scale)
    context.quantisation[node.outputs[0]] = quantisation(scale, point, axis)
    known = context.known(name)
    if known is not None:
        return constant(_stored(known, scale, point, axis))
    return quantised(context.expr(name), scale, point, axis, dtype)


def _stored(reals: Array, scale: Array, point: Array, axis: int) -> Array:
    """What a constant is quantised to. Nodes of ONNX's own domain are computed before they come here."""
    shape = [-1 if place == axis and scale.ndim else 1 for place in range(reals.ndim)]
    scales, points = (part.reshape(shape) for part in (scale, point))
    limits = np.iinfo(point.dtype)
    steps = np.rint(reals / scales) + points
    return np.asarray(np.clip(steps, limits.min, limits.max).astype(point.dtype))


@converts("DequantizeLinear", f"{MICROSOFT}.DequantizeLinear")
def dequantize_linear(context: Context, node: Node) -> Expr:
    name = node.required_input(0)
    info, stored = context.info(name), context.known(name)
    allowed = (*STORED, ACCUMULATED, *FOUR_BITS)
    need(info.dtype in allowed, f'"{name}" is {info.dtype}; dequantising is supported from {", ".join(allowed)}')
    if node.attributes.get("block_size"):
        return _of_blocks(context, node, stored)
    scale, point = parameters(context, node.required_input(1), node.optional_input(2), info.dtype)
    need(str(point.dtype) == info.dtype, f'the zero point is {point.dtype} and "{name}" is {info.dtype}')
    axis = checked_axis(node, info.shape, scale)
    if info.dtype in FOUR_BITS and stored is not None:
        stored, point = (part.astype(FOUR_BITS[info.dtype]) for part in (stored, point))
    if stored is not None:
        context.stored[node.outputs[0]] = StoredReal(stored, scale, point, axis)
    context.quantisation.setdefault(name, quantisation(scale, point, axis))
    return dequantised(context.expr(name) if stored is None else constant(stored), scale, point, axis)


def _of_blocks(context: Context, node: Node, stored: Array | None) -> Expr:
    """Weights with a scale for some rows of each column are numbers like any: no sum of integers has one scale."""
    need(stored is not None, "blocked quantisation is supported of constants alone; quantise per tensor or axis")
    assert stored is not None
    axis, size = need_axis(node.attributes.get("axis", 1), stored.ndim), node.attributes["block_size"]
    names = [name for name in node.inputs[1:3] if name]
    scale, *points = (context.need_known(name, "scale or zero point") for name in names)
    blocks = (*stored.shape[:axis], -(-stored.shape[axis] // size), *stored.shape[axis + 1 :])
    need(size > 0 and all(part.shape == blocks for part in (scale, *points)), f"its scales are not {list(blocks)}")
    scale, *points = (np.repeat(part, size, axis).take(range(stored.shape[axis]), axis) for part in (scale, *points))
    centred = stored.astype(np.int64) - (points[0].astype(np.int64) if points else 0)
    return constant(centred.astype(scale.dtype) * scale)


def moved(context: Context, node: Node) -> Expr | None:
    """What only moves the elements of a stored constant is done to its integers; None for other nodes."""
    source = context.stored.get(node.inputs[0]) if node.inputs else None
    if source is None or node.op not in MOVING or node.domain:
        return None
    if not all(name in context.constants for name in node.inputs[1:] if name):
        return None
    axis = 0
    if source.scale.ndim:
        if node.op not in ("Identity", "Transpose"):
            return None
        rank = source.stored.ndim
        order = node.attributes.get("perm", tuple(reversed(range(rank)))) if node.op == "Transpose" else range(rank)
        axis = list(order).index(source.axis)
    values = {node.inputs[0]: source.stored} | {name: context.constants[name] for name in node.inputs[1:] if name}
    (stored,) = evaluated(context, node, values)
    context.stored[node.outputs[0]] = StoredReal(stored, source.scale, source.zero_point, axis)
    return dequantised(constant(stored), source.scale, source.zero_point, axis)
