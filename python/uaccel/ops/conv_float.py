"""Defines layers of floats with weights, convolutions and matrix products, and chooses their portable kernels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from uaccel.model import Array, TensorInfo
from uaccel.ops import exact
from uaccel.ops.conv import accumulated, infer_transposed, transposed_macs
from uaccel.ops.kernel import Argument, Constant, Input, Kernel, KernelCall, Output, ParameterValue, Scratch
from uaccel.ops.operator import Attributes, IntegerOperator, Site, require
from uaccel.ops.storage import overwrite_distance, row_overwrite_distance
from uaccel.ops.windows import (
    Grouped,
    Transposed,
    convolved,
    geometry_fields,
    geometry_of,
    infer_convolved,
    infer_product,
    multiplied,
    padded,
)
from uaccel.tvm_api import te, tirx

# What these layers have in common: a bias, another tensor that is added, an activation.
#
# A sum begins with zero and adds products in the order of the weights, each rounded first: every kernel must keep this
# order, since another would round to other bits.

FLOAT: Final = "float32"
NONE, LOWER, BOTH = "none", "lower", "both"
ACTIVATIONS: Final = (NONE, LOWER, BOTH)
SINGLE, HALF = "f32", "f16"
BLOCK: Final = 4  # Output channels whose weights lie side by side.


class FloatSumAttrs(Attributes):
    """``activation`` says whether results have no bound, a lower one, or both."""

    activation: str
    lower: float
    upper: float


def check_sums(inputs: Sequence[TensorInfo], attrs: FloatSumAttrs, output: TensorInfo, what: str) -> TensorInfo:
    """The output's type; raises TypeError where bias or the tensor that is added do not fit it."""
    require(attrs.activation in ACTIVATIONS, f"{what}: activation {attrs.activation}, wanted one of {ACTIVATIONS}")
    require(all(info.dtype == FLOAT for info in inputs), f"{what}: {', '.join(map(str, inputs))}, wanted {FLOAT}")
    require(inputs[2].shape == output.shape[-1:], f"{what}: bias {inputs[2]} does not fit {output}")
    require(len(inputs) < 4 or inputs[3] == output, f"{what}: {inputs[-1]} cannot be added to {output}")
    return output


def finished(sums: Any, bias: Any, more: Sequence[Any], attrs: FloatSumAttrs, name: str) -> Any:
    """The output stage: sums + bias + the tensor that is added, bounded by the activation."""

    def element(*index: Any) -> Any:
        value = sums(*index) + bias(index[-1])
        for tensor in more:
            value = value + tensor(*index)
        if attrs.activation == BOTH:
            value = tirx.min(value, tirx.const(attrs.upper, FLOAT))
        return value if attrs.activation == NONE else tirx.max(value, tirx.const(attrs.lower, FLOAT))

    return te.compute(sums.shape, element, name=name)


class FloatSums(IntegerOperator[FloatSumAttrs]):
    """Takes input, weights, bias, and perhaps a tensor of the result's shape that is added before the activation."""

    arguments = ("input", "weights", "bias")
    variadic = True


def is_kernels(site: Site[Any]) -> bool:
    """Whether kernels serve: weights and bias are constants, and weights finite, since kernels skip padded zeros.

    Zero times infinity would not be zero.
    """
    weights = site.operands[1].constant
    return weights is not None and site.operands[2].constant is not None and bool(np.isfinite(weights).all())


def finish_fields(attrs: FloatSumAttrs) -> dict[str, int | float]:
    kind = ACTIVATIONS.index(attrs.activation)
    return {"finish.activation": kind, "finish.lower": attrs.lower, "finish.upper": attrs.upper}


def sum_arguments(site: Site[Any], weights: Array) -> tuple[tuple[Argument, ...], tuple[int, ...]]:
    """A kernel's arguments up to its output, and the inputs that the output may lie over."""
    adds = len(site.operands) > 3
    bias = Constant("bias", site.operands[2].value)
    if not adds:
        return (Input(0), Constant("weights", weights), bias, Output(0), Output(0)), ()
    added = site.operands[3]
    number = site.input_indices()[3]
    other = Constant("added", added.value) if number is None else Input(number)
    return (Input(0), Constant("weights", weights), bias, other, Output(0)), () if number is None else (number,)


def in_blocks(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Interleaves the rows of ``BLOCK`` output channels element by element; rows of zeros fill the last block."""
    missing = -len(rows) % BLOCK
    filled = np.concatenate([rows, np.zeros((missing, rows.shape[1]), rows.dtype)])
    blocks = filled.reshape(-1, BLOCK, rows.shape[1])
    return np.ascontiguousarray(blocks.transpose(0, 2, 1))


def are_halves(weights: NDArray[np.float32]) -> bool:
    """Whether half precision holds all weights exactly."""
    with np.errstate(over="ignore"):
        return np.array_equal(weights.astype(np.float16).astype(np.float32), weights)


def stored(weights: NDArray[np.float32], *, wide: bool = False) -> tuple[str, Array]:
    """Weights as they lie in flash: in half precision where that loses nothing, unless ``wide``. Kernels widen them."""
    narrow = not wide and are_halves(weights)
    return (HALF, weights.astype(np.float16).view(np.uint16)) if narrow else (SINGLE, weights)


# Convolution of floats, NHWC, weights OHWI, with groups, dilation, padding, bias, another tensor and activation.

TOGETHER = 4  # Pixels that a kernel computes at a time; a depthwise kernel computes two.


class Conv2dFloatAttrs(Grouped, FloatSumAttrs):
    """Has windows and an activation."""


class Conv2dFloat(FloatSums):
    """Convolves; it adds up products by rows of the window, its columns, and channels."""

    name = "conv2d_float"
    attributes = Conv2dFloatAttrs

    def infer(self, attrs: Any, *inputs: TensorInfo) -> TensorInfo:
        data, weights = inputs[:2]
        output = TensorInfo(infer_convolved(data, weights, attrs, self.name), data.dtype)
        return check_sums(inputs, attrs, output, self.name)

    def meaning(self, attrs: Any, *inputs: Any) -> Any:
        data, weights, bias, *more = inputs
        sums = convolved(padded(data, attrs.padding), weights, exact.info(weights).shape, attrs)
        computed = te.compute(self.infer(attrs, *map(exact.info, inputs)).shape, sums, name="sums")
        return finished(computed, bias, more, attrs, self.name)

    def kernels(self, site: Site[Any]) -> Sequence[Kernel]:
        if not is_kernels(site):
            return ()
        return [float_kernel(site)]


def float_kernel(site: Site[Any]) -> Kernel:
    return depthwise_kernel(site) if is_depthwise(site) else conv2d_kernel(site)


def is_depthwise(site: Site[Any]) -> bool:
    return bool(site.operands[1].info.shape[3] == 1 and site.attrs.groups > 1)


def conv2d_kernel(site: Site[Any], *, wide: bool = False) -> Kernel:
    """The kernel that computes four pixels at a time. Their windows are copied side by side unless they lie so in the
    input. With ``wide`` weights are stored as floats even where half precision holds them."""
    attrs, data, output = site.attrs, site.operands[0].info, site.output
    channels, height, width, channels_in = site.operands[1].info.shape
    depth = height * width * channels_in
    pointwise = (height, width, attrs.groups) == (1, 1, 1) and attrs.strides == (1, 1) and not any(attrs.padding)
    rows = math.prod(data.shape[:3])
    image, result = ((1, 1, rows, channels_in), (1, 1, rows, channels)) if pointwise else (data.shape, output.shape)
    groups = site.operands[1].value.reshape(attrs.groups, -1, depth)
    weights = np.concatenate([in_blocks(group) for group in groups])
    copied = not pointwise and attrs.groups == 1
    behind = overwrite_distance(site, TOGETHER, copied=copied, alone=True)
    if pointwise:
        behind = {0: row_overwrite_distance(rows, data, output, TOGETHER)}
    form, weights = stored(weights, wide=wide)
    return _kernel(
        "conv2d_float",
        site,
        weights,
        {
            **geometry_of(image, result, (height, width), attrs),
            "groups": attrs.groups,
            "depth": depth,
            "copies": int(not pointwise),
        },
        behind,
        scratch=0 if pointwise else TOGETHER * depth * data.itemsize,
        effort=len(weights) * BLOCK / channels,
        form=form,
    )


def wide_kernel(site: Site[Any]) -> Kernel | None:
    """The kernel with floats for weights that half precision holds; None for other weights, and depthwise."""
    narrow = is_kernels(site) and not is_depthwise(site) and are_halves(site.operands[1].value)
    return conv2d_kernel(site, wide=True) if narrow else None


def _kernel(
    name: str,
    site: Site[Any],
    weights: Any,
    fields: dict[str, ParameterValue],
    behind: dict[int, int],
    *,
    scratch: int = -1,
    effort: float = 1.0,
    form: str = SINGLE,
) -> Kernel:
    """The kernel; ``form`` says how weights are stored, and a negative ``scratch`` that there is no such argument."""
    given, inplace = sum_arguments(site, weights)
    parameters = {**fields, "adds": int(len(site.operands) > 3), **finish_fields(site.attrs)}
    arguments = given if scratch < 0 else (*given, Scratch() if scratch else given[-1])
    header = "uaccel_float.h" if form == SINGLE else f"uaccel_float_{form}.h"
    call = KernelCall(f"uaccel_{name}_{form}", header, f"uaccel_{name}", parameters, arguments)
    return Kernel("portable", (call,), scratch=max(0, scratch), inplace=inplace, behind=behind, effort=effort)


def depthwise_kernel(site: Site[Any]) -> Kernel:
    """The kernel that computes two pixels at a time, four channels of each."""
    channels, height, width, _ = site.operands[1].info.shape
    rows, multiplier = site.operands[1].value.reshape(channels, -1), channels // site.operands[0].info.shape[3]
    fours = channels // BLOCK * BLOCK if multiplier == 1 else 0
    weights = np.concatenate([in_blocks(rows[:fours]).reshape(-1), rows[fours:].reshape(-1)])
    fields: dict[str, ParameterValue] = {
        **geometry_fields(site, (height, width)),
        "multiplier": multiplier,
    }
    return _kernel("depthwise_conv2d_float", site, weights, fields, overwrite_distance(site, 2))


# Matrix product of floats with constant weights, bias, another tensor and activation.


class FullyConnectedFloat(FloatSums):
    """Multiplies rows by the rows of the weights."""

    name = "fully_connected_float"

    def infer(self, attrs: FloatSumAttrs, *inputs: TensorInfo) -> TensorInfo:
        output = TensorInfo(infer_product(inputs[0], inputs[1], self.name), inputs[0].dtype)
        return check_sums(inputs, attrs, output, self.name)

    def meaning(self, attrs: FloatSumAttrs, data: Any, weights: Any, bias: Any, *more: Any) -> Any:
        element = multiplied(data, weights, int(weights.shape[1]))
        sums = te.compute((data.shape[0], weights.shape[0]), lambda n, c: element(n, c), name="sums")
        return finished(sums, bias, more, attrs, self.name)

    def kernels(self, site: Site[FloatSumAttrs]) -> Sequence[Kernel]:
        return [conv2d_kernel(as_pixels(site))] if is_kernels(site) else ()


def as_pixels(site: Site[FloatSumAttrs]) -> Site[Any]:
    """The same layer as a pointwise convolution, with a pixel for each row."""

    def image(info: TensorInfo) -> TensorInfo:
        return replace(info, shape=(1, 1, *info.shape))

    data, weights, bias, *more = site.operands
    kernel = weights.value.reshape(weights.info.shape[0], 1, 1, -1)
    attrs = site.attrs
    plain = Conv2dFloatAttrs(attrs.activation, attrs.lower, attrs.upper, (1, 1), (0, 0, 0, 0), (1, 1), 1)
    operands = (
        replace(data, info=image(data.info)),
        replace(weights, info=replace(weights.info, shape=kernel.shape), constant=kernel),
        bias,
        *(replace(operand, info=image(operand.info)) for operand in more),
    )
    return Site(plain, operands, (image(site.output),))


# Transposed convolution in float, NHWC, weights OHWI: its C is printed from its meaning.


class TransposeConv2dFloatAttrs(Transposed):
    """The attributes mean what they mean for the quantised one."""


class TransposeConv2dFloat(IntegerOperator[TransposeConv2dFloatAttrs]):
    """Each input pixel adds a weighted window to the output."""

    name = "transpose_conv2d_float"
    arguments = ("input", "weights")

    def infer(self, attrs: TransposeConv2dFloatAttrs, *inputs: TensorInfo) -> TensorInfo:
        return infer_transposed(inputs, attrs, self.name)

    def meaning(self, attrs: TransposeConv2dFloatAttrs, data: Any, weights: Any) -> Any:
        sums = accumulated(data, weights, attrs, str(data.dtype))
        return te.compute(sums.shape, lambda *index: sums(*index), name=self.name)

    def macs(self, site: Site[TransposeConv2dFloatAttrs]) -> int:
        return transposed_macs(site)
