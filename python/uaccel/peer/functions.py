"""Calls CMSIS-NN's products of matrices, elementwise functions and softmax."""

from __future__ import annotations

import math

import numpy as np

from uaccel.accelerator import Lowered, Region
from uaccel.ops.exact import limits
from uaccel.ops.softmax import input_radius
from uaccel.peer.text import Caller, suffix
from uaccel.peer.windows import clamp, no_window, offsets, scaled


def no_quantised(region: Region) -> str | None:
    """Says why the types are none of CMSIS-NN's; None where they are."""
    other = [one.info.dtype for one in region.operands if one.info.dtype not in ("int8", "int16")]
    return f"{other[0]}, and it computes int8 and int16" if other else None


# Fully connected layers and products of two tensors.


def no_dense(region: Region) -> str | None:
    if reason := no_window(region):
        return reason
    if region.output.dtype == "int8":
        return None
    if region.operands[2].info.dtype != "int64":
        return "int16 with a bias of int32, wanted int64"
    one = all(len(set(operand.value.tolist())) == 1 for operand in region.operands[3:5])
    return None if one else "int16 with a scale for each unit, wanted one for all"


def dense(region: Region) -> Lowered:
    """The call of a wrapper; sums of weights stand ready for Helium, as an application prepares them once."""
    attrs, (rows, depth) = region.attrs, region.operands[0].info.shape
    weights, bias, multiplier, shift = (operand.value for operand in region.operands[1:5])
    caller = Caller(region)
    caller.operand(0, "input")
    scaled(caller)
    units = len(weights)
    for name, extents in (
        ("input", (rows, 1, 1, depth)),
        ("filter", (depth, 1, 1, units)),
        ("output", (rows, 1, 1, units)),
    ):
        caller.static("cmsis_nn_dims", f"{name}_dims", *extents)
    added, out = offsets(attrs)
    caller.static("cmsis_nn_fc_params", "params", added, 0, out, clamp(attrs))
    given = "&input_dims, input, &filter_dims, weights, &output_dims, bias, &output_dims, output"
    if region.output.dtype == "int16":
        caller.static("cmsis_nn_per_tensor_quant_params", "scale", multiplier[0], shift[0])
        caller.local("cmsis_nn_context", "context", "{scratch, 0}")
        caller.body.append("(void)quant;")
        return caller.made(f"arm_fully_connected_s16(&context, &params, &scale, {given})")
    sums = bias.astype(np.int64) + added * weights.astype(np.int64).sum(axis=1)
    caller.constant("sums", sums.astype(np.int32))
    differ = int(len({*zip(multiplier.tolist(), shift.tolist(), strict=True)}) > 1)
    caller.local("cmsis_nn_quant_params", "scale", f"{{quant.multiplier, quant.shift, {differ}}}")
    caller.local("cmsis_nn_context", "context", f"{{(void *)sums, {4 * units}}}")
    return caller.made(f"arm_fully_connected_wrapper_s8(&context, &params, &scale, {given})")


def no_product(region: Region) -> str | None:
    attrs, (left, right) = region.attrs, region.operands
    if attrs.adj_x or not (attrs.adj_y or right.constant is not None):
        return "sides that lie otherwise; it wants the right one transposed, which TFLite Micro does at run time"
    if max(len(left.info.shape), len(right.info.shape)) > 4:
        return "more than two axes of batches"
    return no_quantised(region)


def product(region: Region) -> Lowered:
    attrs, (left, right) = region.attrs, region.operands
    caller = Caller(region)
    caller.operand(0, "input")
    other = right.info.shape
    if attrs.adj_y:
        caller.operand(1, "weights")
    else:
        turned = right.value.swapaxes(-1, -2)
        other = turned.shape
        caller.constant("weights", turned)
    for name, shape in (("input", left.info.shape), ("weights", other), ("output", region.output.shape)):
        caller.static("cmsis_nn_dims", f"{name}_dims", *(1,) * (4 - len(shape)), *shape)
    points = (-attrs.lhs_zero_point, -attrs.rhs_zero_point, attrs.output_zero_point)
    caller.static("cmsis_nn_bmm_params", "params", 0, 1, (*points, limits(region.output.dtype)))
    caller.static("cmsis_nn_per_tensor_quant_params", "scale", attrs.multiplier, attrs.shift)
    caller.scratch = 4 * other[-2]
    caller.local("cmsis_nn_context", "context", f"{{scratch, {caller.scratch}}}")
    given = "&input_dims, input, &weights_dims, weights, &output_dims, output"
    return caller.made(f"arm_batch_matmul_{suffix(region.output.dtype)}(&context, &params, &scale, {given})")


# Elementwise functions of two tensors.


def no_elementwise(region: Region) -> str | None:
    first, second = (operand.info for operand in region.operands)
    if first.elements != second.elements:
        return f"{first} and {second}, and it does not broadcast"
    return no_quantised(region)


def add(region: Region) -> Lowered:
    attrs, caller = region.attrs, Caller(region)
    caller.operand(0, "first")
    caller.operand(1, "second")
    sides = [
        (-getattr(attrs, f"zero_point{n}"), *(getattr(attrs, f"{what}{n}") for what in ("multiplier", "shift")))
        for n in (1, 2)
    ]
    result = (attrs.output_zero_point, attrs.output_multiplier, attrs.output_shift, *clamp(attrs))
    numbers = [*sides[0], *sides[1], attrs.left_shift]
    ends = ", ".join(str(int(number)) for number in (*result, region.output.elements))
    given = f"first, second, {', '.join(map(str, numbers))}, output, {ends}"
    return caller.made(f"arm_elementwise_add_{suffix(region.output.dtype)}({given})")


def mul(region: Region) -> Lowered:
    attrs, caller = region.attrs, Caller(region)
    caller.operand(0, "first")
    caller.operand(1, "second")
    result = (attrs.output_zero_point, attrs.multiplier, attrs.shift, *clamp(attrs), region.output.elements)
    points = f"{-attrs.zero_point1}, {-attrs.zero_point2}"
    given = f"first, second, {points}, output, {', '.join(map(str, result))}"
    return caller.made(f"arm_elementwise_mul_{suffix(region.output.dtype)}({given})")


# Softmax along the last axis.


def no_softmax(region: Region) -> str | None:
    dtype = region.operands[0].info.dtype
    return None if dtype in ("int8", "int16") else f"{dtype}, and it computes int8 and int16"


def _rows(region: Region) -> tuple[int, int]:
    shape = region.operands[0].info.shape
    return math.prod(shape[:-1]), shape[-1]


def softmax(region: Region) -> Lowered:
    attrs, caller = region.attrs, Caller(region)
    caller.operand(0, "input")
    numbers = (*_rows(region), attrs.multiplier, attrs.shift, -input_radius(attrs.shift))
    function = "arm_softmax_s8" if attrs.output_dtype == "int8" else "arm_softmax_s8_s16"
    return caller.made(f"{function}(input, {', '.join(map(str, numbers))}, output)", returns=False)


def softmax16(region: Region) -> Lowered:
    attrs, caller = region.attrs, Caller(region)
    for index, name in enumerate(("input", "exponential", "reciprocal")):
        caller.operand(index, name)
    caller.local("cmsis_nn_softmax_lut_s16", "tables", "{exponential, reciprocal}")
    numbers = (*_rows(region), attrs.multiplier, attrs.shift)
    return caller.made(f"arm_softmax_s16(input, {', '.join(map(str, numbers))}, &tables, output)")
