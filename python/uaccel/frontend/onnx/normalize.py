"""Converts norms, and reductions that TVM's converters misread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from uaccel.errors import need
from uaccel.frontend.checks import need_axis
from uaccel.frontend.onnx import functions
from uaccel.frontend.onnx.converter import Context, Expr, converts, real
from uaccel.frontend.onnx.graph import Node
from uaccel.ops.operator import constant
from uaccel.tvm_api import relax

WIDE = "float64"


@converts("InstanceNormalization", "GroupNormalization")
def of_each_image(context: Context, node: Node) -> Expr:
    """Norms of each image. Scale and shift are by channel; those of group norms before opset 21 are by group."""
    names = [node.required_input(index) for index in range(3)]
    shape, factors = context.info(names[0]).shape, [context.expr(name) for name in names[1:]]
    epsilon, axes = float(node.attributes.get("epsilon", 1e-5)), list(range(2, len(shape)))
    need(axes != [], f"its input {list(shape)} has channels alone, wanted an image of each")
    wide = context.info(names[0]).dtype == WIDE
    if node.op == "InstanceNormalization" and wide:
        normal = _standardised(context, context.expr(names[0]), axes, epsilon)[0]
        return _by_channel(normal, factors, len(shape))
    if node.op == "InstanceNormalization":
        return relax.op.nn.instance_norm(context.expr(names[0]), *factors, 1, axes, epsilon)
    groups = int(node.attributes.get("num_groups", 1))
    need(groups > 0 and shape[1] % groups == 0, f"{groups} groups of {shape[1]} channels")
    if context.graph.opset < 21:
        factors = [context.normal(relax.op.repeat(factor, shape[1] // groups, 0)) for factor in factors]
    if wide:
        apart = relax.op.reshape(context.expr(names[0]), (shape[0], groups, -1))
        normal = _standardised(context, context.normal(apart), [2], epsilon)[0]
        return _by_channel(relax.op.reshape(normal, shape), factors, len(shape))
    return relax.op.nn.group_norm(context.expr(names[0]), *factors, groups, 1, axes, epsilon)


def _by_channel(data: Expr, factors: list[Expr], rank: int) -> Expr:
    scale, shift = (relax.op.reshape(factor, (-1,) + (1,) * (rank - 2)) for factor in factors)
    return relax.op.add(relax.op.multiply(data, scale), shift)


def _standardised(context: Context, data: Expr, axes: list[int], epsilon: float) -> tuple[Expr, Expr, Expr]:
    """The data less its mean, over its deviation; the mean, and the inverse of the deviation. Relax's own norms, which
    are faster, have no float64."""
    emit = context.block.builder.emit
    mean = emit(relax.op.mean(data, axes, True))
    apart = emit(relax.op.subtract(data, mean))
    variance = emit(relax.op.mean(relax.op.multiply(apart, apart), axes, True))
    inverse = emit(relax.op.rsqrt(relax.op.add(variance, real(epsilon, context, data))))
    return emit(relax.op.multiply(apart, inverse)), mean, inverse


@converts("LayerNormalization")
def layer_normalization(context: Context, node: Node) -> Expr | list[Expr]:
    """A norm over the axes from ``axis`` on. Factors may have fewer axes, which TVM's converter takes for those of the
    norm; its further outputs, the mean and the inverse deviation, are zeros."""
    name, scale = node.required_input(0), context.expr(node.required_input(1))
    info, factor = context.info(name), context.info(node.inputs[1])
    axes = list(range(need_axis(node.attributes.get("axis", -1), len(info.shape)), len(info.shape)))
    epsilon, data = float(node.attributes.get("epsilon", 1e-5)), context.expr(name)
    shift, shift_name = context.optional(node.optional_input(2)), node.optional_input(2)
    whole = (info.shape[axes[0] :], info.dtype)
    known = [factor, context.info(shift_name)] if shift_name else [factor]
    if len(node.outputs) == 1 and info.dtype != WIDE and all((one.shape, one.dtype) == whole for one in known):
        summand = constant(np.zeros(factor.shape, factor.dtype)) if shift is None else shift
        return relax.op.nn.layer_norm(data, scale, summand, axes, epsilon)
    normal, mean, inverse = _standardised(context, data, axes, epsilon)
    result = relax.op.multiply(normal, scale)
    result = result if shift is None else relax.op.add(result, shift)
    return [result, *(relax.op.astype(value, "float32") for value in (mean, inverse))][: len(node.outputs)]


@converts("BatchNormalization")
def batch_normalization(context: Context, node: Node) -> list[Expr]:
    """Constant statistics give a factor and a summand for each channel, computed in float64."""
    fits = not node.attributes.get("training_mode", 0)
    need(fits, "training_mode takes mean and variance from the data; export the model for inference")
    names = [node.required_input(index) for index in range(5)]
    scale, summand, mean, variance = (context.known(name) for name in names[1:])
    if scale is None or summand is None or mean is None or variance is None:
        return functions.convert(context, node)
    data = context.expr(names[0])
    factor = scale.astype(np.float64) / np.sqrt(
        variance.astype(np.float64) + float(node.attributes.get("epsilon", 1e-5))
    )
    rest = summand - mean * factor
    dtype, spread = context.info(names[0]).dtype, (1, -1) + (1,) * (len(context.info(names[0]).shape) - 2)
    scaled = relax.op.multiply(data, constant(factor.astype(dtype).reshape(spread)))
    return [relax.op.add(context.block.builder.emit(scaled), constant(rest.astype(dtype).reshape(spread)))]


@converts("LpNormalization")
def lp_normalization(context: Context, node: Node) -> Expr:
    """Divide by the norm, or by 1 where it is 0."""
    data, info = context.operand(node)
    axis = need_axis(node.attributes.get("axis", -1), len(info.shape))
    power = node.attributes.get("p", 2)
    need(power in (1, 2), f"p = {power} is not supported, only 1 and 2")
    size = relax.op.abs(data) if power == 1 else relax.op.multiply(data, data)
    total = context.block.builder.emit(relax.op.sum(size, axis, True))
    norm = total if power == 1 else context.block.builder.emit(relax.op.sqrt(total))
    zero = real(0.0, context, data)
    nothing = relax.op.equal(norm, zero)
    return relax.op.divide(data, relax.op.where(nothing, real(1.0, context, data), norm))


@converts("ReduceMax", "ReduceMin")
def extreme(context: Context, node: Node) -> list[Expr]:
    """Extremes of truth values are computed in uint8."""
    name, axes = node.required_input(0), node.optional_input(1)
    if context.info(name).dtype != "bool":
        return functions.convert(context, node)
    widened = relax.op.astype(context.expr(name), "uint8")
    made = context.compute(node.op, [widened, context.expr(axes) if axes else None], **node.attributes)
    return [relax.op.astype(made[0], "bool")]


EACH: Final[dict[str, Callable[[Expr], Expr]]] = {
    "ReduceL1": relax.op.abs,
    "ReduceL2": relax.op.abs,
    "ReduceLogSum": relax.op.log,
    "ReduceSumSquare": lambda data: relax.op.multiply(data, data),
}


@converts(*EACH)
def reduction(context: Context, node: Node) -> Expr | list[Expr]:
    """Where nothing is reduced (``noop_with_empty_axes``), each element is still one that is reduced by itself. TVM's
    converter gives the input then."""
    axes = _axes(context, node)
    if axes is None or axes:
        return functions.convert(context, node)
    return EACH[node.op](context.expr(node.required_input(0)))


def _axes(context: Context, node: Node) -> list[int] | None:
    """The axes to reduce, None for all of them."""
    axes = node.attributes.get("axes", ())
    if node.optional_input(1):
        axes = context.need_known(node.inputs[1], "axes").reshape(-1)
    if not len(axes) and not node.attributes.get("noop_with_empty_axes", 0):
        return None
    rank = len(context.info(node.required_input(0)).shape)
    return [need_axis(int(axis), rank) for axis in axes]


@converts("ReduceLogSumExp")
def sum_of_exponentials(context: Context, node: Node) -> Expr:
    """The logarithm of a sum of exponentials, less their maximum, which must be finite: infinity less itself is no
    number. Integers count the maxima, as ONNX Runtime does."""
    name, axes = node.required_input(0), _axes(context, node)
    data, keep, emit = context.expr(name), bool(node.attributes.get("keepdims", 1)), context.block.builder.emit
    if axes == []:
        return data
    dtype = context.info(name).dtype
    most = emit(relax.op.max(data, axes, True))
    if not dtype.startswith("float"):
        same = relax.op.astype(relax.op.equal(data, most), "float64")
        count = relax.op.log(relax.op.sum(same, axes, keep))
        return relax.op.add(relax.op.astype(count, dtype), relax.op.max(data, axes, keep))
    most = emit(relax.op.where(relax.op.isfinite(most), most, real(0.0, context, data)))
    total = relax.op.log(relax.op.sum(relax.op.exp(relax.op.subtract(data, most)), axes, True))
    whole = relax.op.add(total, most)
    return whole if keep else relax.op.squeeze(context.normal(whole), axes)


@converts("RoiAlign")
def roi_align(context: Context, node: Node) -> Expr:
    """Means in regions. Regions in half pixels move by half a pixel of the scaled image; TVM's converter moves them by
    half a pixel of the image before."""
    given = node.attributes
    need(given.get("mode", "avg") == "avg", "mode max is not supported; export the model with mode avg")
    scale = float(given.get("spatial_scale", 1.0))
    usual = "half_pixel" if context.graph.opset >= 16 else "output_half_pixel"
    inside = given.get("coordinate_transformation_mode", usual) == "half_pixel"
    regions, batches = context.expr(node.required_input(1)), context.expr(node.required_input(2))
    if inside:
        regions = relax.op.subtract(regions, real(0.5 / scale, context, regions))
    dtype = context.info(node.inputs[1]).dtype
    numbers = relax.op.astype(relax.op.expand_dims(batches, 1), dtype)
    return relax.op.vision.roi_align(
        context.expr(node.required_input(0)),
        relax.op.concat([context.normal(numbers), context.normal(regions)], 1),
        pooled_size=(int(given.get("output_height", 1)), int(given.get("output_width", 1))),
        spatial_scale=scale,
        sample_ratio=int(given.get("sampling_ratio", 0)),
        aligned=inside,
        layout="NCHW",
        mode="avg",
    )
