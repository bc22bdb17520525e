"""Converts norms, and reductions that TVM's converters misread."""

from __future__ import annotations

import numpy as np

from uaccel.errors import need
from uaccel.frontend.checks import need_axis
from uaccel.frontend.onnx import functions
from uaccel.frontend.onnx.converter import Context, Expr, converts, real
from uaccel.frontend.onnx.graph import Node
from uaccel.ops.operator import constant
from uaccel.tvm_api import relax


@converts("InstanceNormalization", "GroupNormalization")
def of_each_image(context: Context, node: Node) -> Expr:
    """Norms of each image. Scale and shift are by channel; those of group norms before opset 21 are by group."""
    names = [node.required_input(index) for index in range(3)]
    shape, factors = context.info(names[0]).shape, [context.expr(name) for name in names[1:]]
    epsilon, axes = float(node.attributes.get("epsilon", 1e-5)), list(range(2, len(shape)))
    need(axes != [], f"its input {list(shape)} has channels alone, wanted an image of each")
    if node.op == "InstanceNormalization":
        return relax.op.nn.instance_norm(context.expr(names[0]), *factors, 1, axes, epsilon)
    groups = int(node.attributes.get("num_groups", 1))
    need(groups > 0 and shape[1] % groups == 0, f"{groups} groups of {shape[1]} channels")
    if context.graph.opset < 21:
        factors = [context.normal(relax.op.repeat(factor, shape[1] // groups, 0)) for factor in factors]
    return relax.op.nn.group_norm(context.expr(names[0]), *factors, groups, 1, axes, epsilon)


@converts("BatchNormalization")
def batch_normalization(context: Context, node: Node) -> list[Expr]:
    """Constant statistics give a factor and a summand for each channel, computed in float64."""
    need(
        not node.attributes.get("training_mode", 0),
        "training_mode takes mean and variance from the data; export the model for inference",
    )
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
    name = node.required_input(0)
    data = context.expr(name)
    axis = need_axis(node.attributes.get("axis", -1), len(context.info(name).shape))
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


@converts("RoiAlign")
def roi_align(context: Context, node: Node) -> list[Expr]:
    need(node.attributes.get("mode", "avg") == "avg", "mode max is not supported, only avg")
    return functions.convert(context, node)
