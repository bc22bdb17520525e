"""Resizing images, NHWC: to the nearest pixel, and bilinear in fixed point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from uaccel.model import TensorInfo
from uaccel.ops import exact
from uaccel.ops.base import Attributes, IntegerOperator, Site, register, require
from uaccel.ops.exact import const
from uaccel.ops.kernel import Constant, Input, Kernel, Output, dtype_suffix, portable, sides
from uaccel.tvm_api import te, tirx

ONE = 1 << 10  # positions and weights have 10 bits after the point
HALF = ONE // 2


@dataclass(frozen=True)
class ResizeNearestAttrs(Attributes):
    """What the tables were made from."""

    align_corners: bool
    half_pixel_centers: bool


@register
class ResizeNearest(IntegerOperator[ResizeNearestAttrs]):
    """Output row y is input row ``rows[y]``, output column x is input column ``columns[x]``.

    Tables, since the reference finds the nearest pixel in single precision, whose rounding no integer formula has.
    """

    name = "resize_nearest"
    arguments = ("input", "rows", "columns")

    def infer(self, inputs: Sequence[TensorInfo], attrs: ResizeNearestAttrs) -> TensorInfo:
        data, rows, columns = inputs
        require(len(data.shape) == 4, f"resize_nearest: input {data} has rank {len(data.shape)}, wanted 4 (NHWC)")
        require(len(rows.shape) == len(columns.shape) == 1, "resize_nearest: rows and columns have rank 1")
        return TensorInfo((data.shape[0], *rows.shape, *columns.shape, data.shape[3]), data.dtype)

    def meaning(self, inputs: Sequence[Any], attrs: ResizeNearestAttrs) -> Any:
        data, rows, columns = inputs
        shape = self.infer([exact.info(tensor) for tensor in inputs], attrs).shape

        def element(n: Any, y: Any, x: Any, c: Any) -> Any:
            return data(n, exact.i32(rows(y)), exact.i32(columns(x)), c)

        return te.compute(shape, element, name="resized")

    def kernels(self, site: Site[ResizeNearestAttrs]) -> Sequence[Kernel]:
        data, rows, columns = site.operands
        batch, height, width, channels = data.info.shape
        parameters = {
            "batch": batch,
            **sides("in", (height, width)),
            **sides("out", site.output.shape[1:3]),
            "pixel_bytes": channels * data.info.itemsize,
        }
        tables = (Constant("rows", rows.value), Constant("columns", columns.value))
        name = "uaccel_resize_nearest"
        return [portable(name, name, parameters, (Input(0), *tables, Output(0)))]


@dataclass(frozen=True)
class ResizeBilinearAttrs(Attributes):
    """``size`` is the output's height and width."""

    size: tuple[int, ...]
    align_corners: bool
    half_pixel_centers: bool

    def step(self, axis: int, extent: int) -> int:
        """From one output pixel to the next, in the input's pixels; ``axis`` 0 is the height."""
        out = self.size[axis]
        if self.align_corners and out > 1:
            return (ONE * (extent - 1) + (out - 1) // 2) // (out - 1)
        return (ONE * extent + out // 2) // out

    def start(self, axis: int, extent: int) -> int:
        """Where output pixel 0 lies."""
        return self.step(axis, extent) // 2 - HALF if self.half_pixel_centers else 0

    def overshoot(self, axis: int, extent: int) -> int:
        """How far the last output pixel lies beyond the last input pixel: the step is rounded."""
        return self.start(axis, extent) + self.step(axis, extent) * (self.size[axis] - 1) - ONE * (extent - 1)


@dataclass(frozen=True)
class ResizedRows(ResizeBilinearAttrs):
    """Some of the rows, from some of the input's: the height begins at ``row_start`` and goes on by ``row_step``."""

    row_step: int
    row_start: int

    def step(self, axis: int, extent: int) -> int:
        return super().step(axis, extent) if axis else self.row_step

    def start(self, axis: int, extent: int) -> int:
        return super().start(axis, extent) if axis else self.row_start


@register
class ResizeBilinear(IntegerOperator[ResizeBilinearAttrs]):
    """Each output pixel is the mean of four neighbours, weighted in fixed point, halves away from zero.

    Positions beyond the last pixel show the last pixel. (There the reference reads what lies behind its input.)
    """

    name = "resize_bilinear"
    arguments = ("input",)

    def infer(self, inputs: Sequence[TensorInfo], attrs: ResizeBilinearAttrs) -> TensorInfo:
        (data,) = inputs
        require(len(data.shape) == 4, f"resize_bilinear: input {data} has rank {len(data.shape)}, wanted 4 (NHWC)")
        require(data.dtype == "int8", f"resize_bilinear: input is {data.dtype}, wanted int8")
        overshoot = max(attrs.overshoot(axis, data.shape[1 + axis]) for axis in (0, 1))
        require(overshoot < 2 * ONE, f"resize_bilinear: {data} to {attrs.size} runs {overshoot / ONE:.1f} pixels off")
        return TensorInfo((data.shape[0], *attrs.size, data.shape[3]), data.dtype)

    def meaning(self, inputs: Sequence[Any], attrs: ResizeBilinearAttrs) -> Any:
        (data,) = inputs
        info = exact.info(data)

        def neighbours(position: Any, axis: int) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
            """The pixels on both sides, each with its weight."""
            extent = info.shape[1 + axis]
            scaled = exact.i32(position) * attrs.step(axis, extent) + attrs.start(axis, extent)
            lower = exact.clamp(tirx.truncdiv(scaled, const(ONE, "int32")), 0, extent - 1)
            upper = exact.clamp(tirx.truncdiv(scaled + (ONE - 1), const(ONE, "int32")), 0, extent - 1)
            fraction = scaled - lower * ONE
            return (lower, ONE - fraction), (upper, fraction)

        def element(n: Any, y: Any, x: Any, c: Any) -> Any:
            total = sum(
                exact.i32(data(n, row, column, c)) * row_weight * column_weight
                for row, row_weight in neighbours(y, 0)
                for column, column_weight in neighbours(x, 1)
            )
            half = tirx.Select(total > 0, const(ONE * HALF, "int32"), const(-ONE * HALF, "int32"))
            return tirx.truncdiv(total + half, const(ONE * ONE, "int32")).astype("int8")

        return te.compute(self.infer([info], attrs).shape, element, name="resized")

    def kernels(self, site: Site[ResizeBilinearAttrs]) -> Sequence[Kernel]:
        attrs, data = site.attrs, site.operands[0].info
        batch, height, width, channels = data.shape
        parameters = {
            "batch": batch,
            **sides("in", (height, width)),
            **sides("out", attrs.size),
            "channels": channels,
            "step_y": attrs.step(0, height),
            "step_x": attrs.step(1, width),
            "start_y": attrs.start(0, height),
            "start_x": attrs.start(1, width),
        }
        function = f"uaccel_resize_bilinear_{dtype_suffix(data.dtype)}"
        return [portable(function, "uaccel_resize_bilinear", parameters, (Input(0), Output(0)))]
