"""Defines two-dimensional convolutions of integers: ordinary, depthwise and transposed, and their output stage."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np

from uaccel.model import Array, TensorInfo
from uaccel.ops import exact
from uaccel.ops.exact import TFLITE, check_rounding, kernel_suffix
from uaccel.ops.kernel import Kernel, dtype_suffix, same
from uaccel.ops.operator import Attributes, Channels, IntegerOperator, Site, require
from uaccel.ops.storage import is_int4, overwrite_distance, pack_int4
from uaccel.ops.windows import (
    Grouped,
    Transposed,
    convolved,
    geometry_fields,
    infer_convolved,
    infer_places,
    padded,
    taps,
)
from uaccel.tvm_api import te, tirx

# Two-dimensional convolution, NHWC, weights OHWI, with groups, dilation and asymmetric padding.


class Requantised(Attributes):
    """``rounding`` says how sums are requantised: ``tflite``, or ``float32``."""

    input_zero_point: int
    output_zero_point: int
    clamp_min: int
    clamp_max: int
    rounding: str = TFLITE


class Conv2dAttrs(Requantised, Grouped):
    """Padded elements hold the input's zero point.

    ``weight_bits`` is 4 where four bits hold each weight; kernels then read two weights from a byte.
    """

    weight_bits: int = 8


def infer_window(data: TensorInfo, kernel: Sequence[int], attrs: Conv2dAttrs, channels: int, what: str) -> TensorInfo:
    """The output of a windowed operator with ``channels`` output channels."""
    check_rounding(attrs, what)
    return TensorInfo((data.shape[0], *infer_places(data, kernel, attrs, what), channels), data.dtype)


R = TypeVar("R", bound=Requantised)


class Requantising(IntegerOperator[R]):
    """Adds up products with weights, and requantises each sum by its channel, the last axis.

    Sums have the bias' type: 16-bit activations with 64-bit biases then round once.
    """

    arguments: ClassVar[tuple[str, ...]] = ("input", "weights", "bias", "multiplier", "shift")

    @abc.abstractmethod
    def sums(self, data: Any, weights: Any, attrs: R, dtype: str) -> Any:
        """The sums of products in this type, less the zero points."""

    def meaning(self, attrs: R, data: Any, weights: Any, bias: Any, multiplier: Any, shift: Any) -> Any:
        acc = self.sums(data, weights, attrs, str(bias.dtype))

        def element(*index: Any) -> Any:
            c = index[-1]
            scaled = exact.requantize_as(attrs.rounding, acc(*index) + bias(c), multiplier(c), shift(c))
            return exact.finish(scaled, attrs.output_zero_point, attrs.clamp_min, attrs.clamp_max, str(data.dtype))

        return te.compute(acc.shape, element, name="requantized")


class Conv2d(Requantising[Conv2dAttrs]):
    """Computes clamp(output_zero_point + requantise(bias + sum, multiplier, shift)) of NHWC images.

    ``sum`` is that of (input - input_zero_point) * weights under a window, weights OHWI, in int32; of 16-bit
    activations in int64. Each output channel has a bias, a multiplier and a shift.
    """

    name = "conv2d"
    channels: ClassVar[Channels | None] = Channels.MIXED

    def infer(self, attrs: Conv2dAttrs, *inputs: TensorInfo) -> TensorInfo:
        check_rounding(attrs, "conv2d")
        return TensorInfo(infer_convolved(inputs[0], inputs[1], attrs, "conv2d"), inputs[0].dtype)

    def sums(self, data: Any, weights: Any, attrs: Conv2dAttrs, dtype: str) -> Any:
        extents = exact.info(weights).shape
        source = padded(data, attrs.padding, attrs.input_zero_point)
        zero = exact.const(attrs.input_zero_point, dtype)
        element = convolved(
            lambda *i: source(*i).astype(dtype) - zero, lambda *i: weights(*i).astype(dtype), extents, attrs
        )
        shape = infer_convolved(exact.info(data), exact.info(weights), attrs, "conv2d")
        return te.compute(shape, element, name="accumulated")

    def kernels(self, site: Site[Conv2dAttrs]) -> Sequence[Kernel]:
        attrs, data, weights = site.attrs, site.operands[0].info, site.operands[1].value
        out_channels, kernel_h, kernel_w, depth = weights.shape
        rows, four = weights.reshape(out_channels, -1), is_int4(site)
        parameters = window_parameters(site, (kernel_h, kernel_w)) | {"groups": attrs.groups}
        pointwise = kernel_h == kernel_w == attrs.groups == 1 and not any(attrs.padding) and not four
        scratch = 0 if pointwise else kernel_h * kernel_w * depth * data.itemsize
        types = f"{'pointwise_' if pointwise else ''}{accumulator_suffix(site)}"
        behind = overwrite_distance(site, copied=not pointwise and attrs.groups == 1)
        held = folded_constants(site, rows)
        (kernel,) = self.one_call(site, parameters, types, held=held, scratch=scratch, behind=behind)
        return [pack_int4(kernel, rows) if four else kernel]


def accumulator_suffix(site: Site[Any]) -> str:
    """s8, s16 (64-bit accumulator) or s16_acc32, and _float32: the kernels' names state the arithmetic so."""
    suffix = dtype_suffix(site.output.dtype)
    narrow = site.operands[2].info.dtype == "int32"
    return (f"{suffix}_acc32" if suffix == "s16" and narrow else suffix) + kernel_suffix(site.attrs)


def folded_constants(site: Site[Any], weights: Any, packed: Any = None) -> dict[str, Array]:
    """Weights, bias, multiplier and shift; the bias already holds -zero_point * sum(weights of the channel).

    As the sum of (x - zero_point) * w is the sum of x * w less zero_point times the sum of w, kernels need not subtract
    the zero point; padded elements count as the zero point. ``weights`` has one row a channel; ``packed`` is what the
    kernel reads, where that is another layout.
    """
    bias, multiplier, shift = (operand.value for operand in site.operands[2:5])
    folded = folded_bias(bias, weights, site.attrs.input_zero_point)
    return {"weights": weights if packed is None else packed, "bias": folded, **scales_held(multiplier, shift)}


def folded_bias(bias: Array, weights: Array, zero_point: int) -> Array:
    """The bias less zero_point * sum(weights of the row), so that kernels skip the zero point; it wraps as sums do."""
    wide = bias.astype(np.int64) - zero_point * weights.astype(np.int64).sum(axis=-1)
    return np.asarray(wide.astype(bias.dtype))


def scales_held(multiplier: Array, shift: Array) -> dict[str, Array]:
    """Multipliers and shifts: one of each where that serves all output channels."""
    used = slice(None) if differ(multiplier, shift) else slice(1)
    return {"multiplier": multiplier[used], "shift": shift[used].astype(np.int8)}


def output_fields(site: Site[Any]) -> dict[str, int]:
    """The fields of ``struct uaccel_output``. ``scale_step``: 0 where one multiplier and shift serve all channels."""
    step, attrs = int(differ(*(operand.value for operand in site.operands[3:5]))), site.attrs
    bounds = {f"output.{name}": value for name, value in same(attrs, "clamp_min", "clamp_max").items()}
    return {"output.zero_point": attrs.output_zero_point, **bounds, "output.scale_step": step}


def differ(multiplier: Array, shift: Array) -> bool:
    """Whether output channels differ in their scale."""
    return bool((multiplier != multiplier[0]).any() or (shift != shift[0]).any())


def window_parameters(site: Site[Conv2dAttrs], kernel: tuple[int, int]) -> dict[str, int]:
    """The fields that convolution, depthwise convolution and their C structures share."""
    attrs = site.attrs
    return {
        **geometry_fields(site, kernel),
        "input_zero_point": attrs.input_zero_point,
        **output_fields(site),
    }


# Depthwise convolution, NHWC, weights HWC with any channel multiplier.


class DepthwiseConv2d(Requantising[Conv2dAttrs]):
    """Does as ``conv2d``, channel by channel: output channel o reads input channel o // (output channels / ``groups``).

    Weights are HWC; ``groups`` counts the input's channels.
    """

    name = "depthwise_conv2d"
    channels: ClassVar[Channels | None] = Channels.APART

    def infer(self, attrs: Conv2dAttrs, *inputs: TensorInfo) -> TensorInfo:
        data, weights = inputs[0], inputs[1]
        require(len(data.shape) == 4 and len(weights.shape) == 3, "depthwise_conv2d: input rank 4, weights rank 3")
        height, width, channels = weights.shape
        require(channels % data.shape[3] == 0, f"depthwise_conv2d: {channels} channels from {data}")
        return infer_window(data, (height, width), attrs, channels, "depthwise_conv2d")

    def sums(self, data: Any, weights: Any, attrs: Conv2dAttrs, dtype: str) -> Any:
        kernel_h, kernel_w, channels = exact.info(weights).shape
        times = channels // int(data.shape[3])
        source = padded(data, attrs.padding, attrs.input_zero_point)
        ky, kx = taps(ky=kernel_h, kx=kernel_w)
        zero = exact.const(attrs.input_zero_point, dtype)

        def element(n: Any, y: Any, x: Any, c: Any) -> Any:
            row = y * attrs.strides[0] + ky * attrs.dilation[0]
            column = x * attrs.strides[1] + kx * attrs.dilation[1]
            value = source(n, row, column, tirx.floordiv(c, times)).astype(dtype) - zero
            return te.sum(value * weights(ky, kx, c).astype(dtype), axis=[ky, kx])

        shape = infer_window(exact.info(data), (kernel_h, kernel_w), attrs, channels, "depthwise_conv2d").shape
        return te.compute(shape, element, name="accumulated")

    def kernels(self, site: Site[Conv2dAttrs]) -> Sequence[Kernel]:
        weights = site.operands[1].value
        kernel_h, kernel_w, channels = weights.shape
        rows, behind = weights.reshape(-1, channels), overwrite_distance(site)
        parameters, held = window_parameters(site, (kernel_h, kernel_w)), folded_constants(site, rows.T, packed=weights)
        (kernel,) = self.one_call(site, parameters, accumulator_suffix(site), held=held, behind=behind)
        return [pack_int4(kernel, rows) if is_int4(site) else kernel]

    def macs(self, site: Site[Conv2dAttrs]) -> int:
        return site.output.elements * int(np.prod(site.operands[1].info.shape[:2]))


# Transposed convolution, NHWC, weights OHWI: each input pixel adds a weighted window to the output.


class TransposeConv2dAttrs(Requantised, Transposed):
    """Has windows, zero points and a clamp."""


def infer_transposed(inputs: Sequence[TensorInfo], attrs: Transposed, what: str) -> TensorInfo:
    data, weights = inputs[:2]
    require(len(data.shape) == 4 and len(weights.shape) == 4, f"{what}: input and weights have rank 4")
    require(data.shape[3] == weights.shape[3], f"{what}: input {data} does not fit weights {weights}")
    return TensorInfo((data.shape[0], *attrs.size, weights.shape[0]), data.dtype)


def accumulated(data: Any, weights: Any, attrs: Transposed, dtype: str, zero_point: int = 0) -> Any:
    """The sum of the windows, gathered: each output element looks up the input pixels whose windows reach it."""
    info = exact.info(data)
    channels, kernel_h, kernel_w, depth = exact.info(weights).shape
    ky, kx, ci = taps(ky=kernel_h, kx=kernel_w, ci=depth)
    zero, nothing = tirx.const(zero_point, dtype), tirx.const(0, dtype)

    def source(position: Any, tap: Any, axis: int) -> tuple[Any, Any]:
        """The input row or column that this tap reaches the output position from, and whether there is one."""
        scaled = position + attrs.padding[axis] - tap
        stride, extent = attrs.strides[axis], info.shape[1 + axis]
        index = tirx.floordiv(scaled, stride)
        return index, tirx.all(tirx.floormod(scaled, stride) == 0, index >= 0, index < extent)

    def element(n: Any, y: Any, x: Any, o: Any) -> Any:
        (row, has_row), (column, has_column) = source(y, ky, 0), source(x, kx, 1)
        value = data(n, row, column, ci).astype(dtype)
        product = (value - zero if zero_point else value) * weights(o, ky, kx, ci).astype(dtype)
        return te.sum(tirx.if_then_else(tirx.all(has_row, has_column), product, nothing), axis=[ky, kx, ci])

    return te.compute((info.shape[0], *attrs.size, channels), element, name="accumulated")


class TransposeConv2d(Requantising[TransposeConv2dAttrs]):
    """Convolves transposed, with int32 accumulation (int64 for 16 bits) and per-channel requantisation."""

    name = "transpose_conv2d"

    def infer(self, attrs: TransposeConv2dAttrs, *inputs: TensorInfo) -> TensorInfo:
        check_rounding(attrs, self.name)
        return infer_transposed(inputs, attrs, self.name)

    def sums(self, data: Any, weights: Any, attrs: TransposeConv2dAttrs, dtype: str) -> Any:
        return accumulated(data, weights, attrs, dtype, attrs.input_zero_point)

    def kernels(self, site: Site[TransposeConv2dAttrs]) -> Sequence[Kernel]:
        attrs = site.attrs
        parameters = {
            **geometry_fields(site, site.operands[1].info.shape[1:3]),
            "input_zero_point": attrs.input_zero_point,
            **output_fields(site),
        }
        # The zero point stays out of the bias: output pixels differ in how many taps reach them.
        held = scales_held(*(operand.value for operand in site.operands[3:5]))
        return self.one_call(site, parameters, accumulator_suffix(site), held=held)

    def macs(self, site: Site[TransposeConv2dAttrs]) -> int:
        return transposed_macs(site)


def transposed_macs(site: Site[Any]) -> int:
    """The multiply-accumulates, counted as if no window were cut off at the border."""
    channels, height, width, _ = site.operands[1].info.shape
    return site.operands[0].info.elements * channels * height * width
