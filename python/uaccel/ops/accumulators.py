"""Defines layers as accelerators split them: raw sums of products, and the output stages that make results of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from uaccel.model import TensorInfo
from uaccel.ops import exact
from uaccel.ops.conv import scales_held
from uaccel.ops.exact import TFLITE, check_rounding, kernel_suffix
from uaccel.ops.kernel import Kernel, same
from uaccel.ops.operator import Attributes, IntegerOperator, Site, require
from uaccel.ops.reduce import along_axis
from uaccel.ops.windows import Grouped, convolved, infer_convolved, infer_product, multiplied, padded
from uaccel.tvm_api import te

# The raw sums of a two-dimensional convolution, as an accelerator gives them.

NCHW = "NCHW"
NHWC = "NHWC"
# Where batch (or output channel), height, width and depth lie in activations and weights of a layout.
TO_NHWC: dict[str, tuple[int, ...]] = {NCHW: (0, 2, 3, 1), NHWC: (0, 1, 2, 3)}


class Conv2dSumsAttrs(Grouped):
    """``padding`` is of zeros. Weights are OIHW for the layout NCHW, OHWI for NHWC."""

    layout: str


class Conv2dSums(IntegerOperator[Conv2dSumsAttrs]):
    """Computes sum(input * weights) in int32, which wraps; other operators take care of zero points, bias and scale."""

    name = "conv2d_sums"
    arguments = ("input", "weights")

    def infer(self, attrs: Conv2dSumsAttrs, data: TensorInfo, weights: TensorInfo) -> TensorInfo:
        require(attrs.layout in TO_NHWC, f"conv2d_sums: layout {attrs.layout!r}, wanted {' or '.join(TO_NHWC)}")
        require(len(data.shape) == 4 and len(weights.shape) == 4, "conv2d_sums: input and weights have rank 4")
        require(data.dtype == weights.dtype == "int8", f"conv2d_sums: {data} and {weights}, wanted int8")
        image, filters = (TensorInfo(_nhwc(info.shape, attrs.layout), info.dtype) for info in (data, weights))
        return TensorInfo(_from_nhwc(infer_convolved(image, filters, attrs, self.name), attrs.layout), "int32")

    def meaning(self, attrs: Conv2dSumsAttrs, *inputs: Any) -> Any:
        data, weights = inputs
        infos = [exact.info(tensor) for tensor in inputs]

        def whole(tensor: Any) -> Any:
            return lambda *index: exact.i32(tensor(*_from_nhwc(index, attrs.layout)))

        extents = _nhwc(infos[1].shape, attrs.layout)
        element = convolved(
            whole(padded(data, attrs.padding, rows=TO_NHWC[attrs.layout][1])), whole(weights), extents, attrs
        )
        shape = self.infer(attrs, *infos).shape
        return te.compute(shape, lambda *index: element(*_nhwc(index, attrs.layout)), name="sums")


def _nhwc(entries: Sequence[Any], layout: str) -> tuple[Any, ...]:
    """Extents or indices of a layout as batch, height, width, channel."""
    return tuple(entries[place] for place in TO_NHWC[layout])


def _from_nhwc(entries: Sequence[Any], layout: str) -> tuple[Any, ...]:
    return tuple(entries[TO_NHWC[layout].index(place)] for place in range(4))


# The raw sums of a fully connected layer, as an accelerator gives them.


class FullyConnectedSums(IntegerOperator[Attributes]):
    """Multiplies input [rows, depth] by weights [units, depth] transposed, summed in int32, which wraps."""

    name = "fully_connected_sums"
    arguments = ("input", "weights")

    def infer(self, attrs: Attributes, data: TensorInfo, weights: TensorInfo) -> TensorInfo:
        require(data.dtype == weights.dtype == "int8", f"fully_connected_sums: {data} and {weights}, wanted int8")
        return TensorInfo(infer_product(data, weights, self.name), "int32")

    def meaning(self, attrs: Attributes, *inputs: Any) -> Any:
        rows, units = (lambda *index, side=side: exact.i32(side(*index)) for side in inputs)
        shape = self.infer(attrs, *map(exact.info, inputs)).shape
        return te.compute(shape, multiplied(rows, units, int(inputs[0].shape[1])), name="sums")

    def kernels(self, site: Site[Attributes]) -> Sequence[Kernel]:
        rows, units = site.output.shape
        parameters = {"rows": rows, "depth": site.operands[0].info.shape[1], "units": units}
        return self.one_call(site, parameters, "")


# The integer output stage of an accelerator's sums: bias, requantisation per channel, zero point, clamp.


def _require_sums(sums: TensorInfo, axis: int, what: str) -> None:
    rank = len(sums.shape)
    require(sums.dtype == "int32" and rank >= 2, f"{what}: {sums}, wanted int32 of rank 2 or more")
    require(0 <= axis < rank, f"{what}: axis {axis} of {sums}")


def _with_bias(total: Any, bias: Any) -> Any:
    """The sum of two, which wraps to 32 bits."""
    return exact.i32(exact.wrap32(exact.i64(total) + exact.i64(bias)))


class RequantizeSumsAttrs(Attributes):
    """``axis`` is the axis of the channels."""

    axis: int
    output_zero_point: int
    clamp_min: int
    clamp_max: int
    output_dtype: str
    rounding: str = TFLITE


class RequantizeSums(IntegerOperator[RequantizeSumsAttrs]):
    """Makes results of a layer's sums: sums + bias (which wraps), times multiplier / 2**31 * 2**shift, clamped."""

    name = "requantize_sums"
    arguments = ("sums", "bias", "multiplier", "shift")
    channel_axis = "axis"

    def infer(self, attrs: RequantizeSumsAttrs, *inputs: TensorInfo) -> TensorInfo:
        sums = inputs[0]
        check_rounding(attrs, self.name)
        _require_sums(sums, attrs.axis, self.name)
        wanted = TensorInfo((sums.shape[attrs.axis],), "int32")
        for name, given in zip(self.arguments[1:], inputs[1:], strict=True):
            require(given == wanted, f"requantize_sums: {name} is {given}, wanted {wanted}")
        require(attrs.output_dtype == "int8", f"requantize_sums: output is {attrs.output_dtype}, wanted int8")
        return TensorInfo(sums.shape, attrs.output_dtype)

    def meaning(self, attrs: RequantizeSumsAttrs, sums: Any, bias: Any, multiplier: Any, shift: Any) -> Any:

        def element(*index: Any) -> Any:
            c = index[attrs.axis]
            total = _with_bias(sums(*index), bias(c))
            scaled = exact.requantize_as(attrs.rounding, total, multiplier(c), shift(c))
            return exact.finish(scaled, attrs.output_zero_point, attrs.clamp_min, attrs.clamp_max, attrs.output_dtype)

        return te.compute(sums.shape, element, name="requantize_sums")

    def kernels(self, site: Site[RequantizeSumsAttrs]) -> Sequence[Kernel]:
        attrs = site.attrs
        held = scales_held(site.operands[2].value, site.operands[3].value)
        parameters = {
            **along_axis(site.output, attrs.axis, "channels"),
            **same(attrs, "output_zero_point", "clamp_min", "clamp_max"),
            "scale_step": int(len(held["shift"]) > 1),
        }
        return self.one_call(site, parameters, f"s8{kernel_suffix(attrs)}", held=held, inplace=(0,))


# The float output stage of sums, for models that do not quantise them again.


class DequantizeSumsAttrs(Attributes):
    """``axis`` is the axis of the channels."""

    axis: int


class DequantizeSums(IntegerOperator[DequantizeSumsAttrs]):
    """Computes (sums + bias, which wraps) * scale + rest, in single precision."""

    name = "dequantize_sums"
    arguments = ("sums", "bias", "scale", "rest")
    channel_axis = "axis"

    def infer(self, attrs: DequantizeSumsAttrs, sums: TensorInfo, *others: TensorInfo) -> TensorInfo:
        _require_sums(sums, attrs.axis, self.name)
        channels = (sums.shape[attrs.axis],)
        wanted = tuple(TensorInfo(channels, dtype) for dtype in ("int32", "float32", "float32"))
        given, known = (", ".join(map(str, infos)) for infos in (others, wanted))
        require(others == wanted, f"dequantize_sums: {given}, wanted {known}")
        return TensorInfo(sums.shape, "float32")

    def meaning(self, attrs: DequantizeSumsAttrs, sums: Any, bias: Any, scale: Any, rest: Any) -> Any:

        def element(*index: Any) -> Any:
            c = index[attrs.axis]
            total = _with_bias(sums(*index), bias(c))
            return total.astype("float32") * scale(c) + rest(c)

        return te.compute(sums.shape, element, name=self.name)

    def kernels(self, site: Site[DequantizeSumsAttrs]) -> Sequence[Kernel]:
        return self.one_call(site, along_axis(site.output, site.attrs.axis, "channels"), "", inplace=(0,))
