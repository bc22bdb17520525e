"""Defines the resizing of images, to the nearest pixel and bilinear, and windows that add up or look for a maximum.

Tensors of images are NHWC, those of windows have channels first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uaccel.errors import ModelError
from uaccel.model import Quantisation, TensorInfo
from uaccel.ops import exact
from uaccel.ops.exact import RoundedOnce, const
from uaccel.ops.fixedpoint import fixed_ratios, most_that_counts, scale_fraction
from uaccel.ops.kernel import Kernel, same
from uaccel.ops.operator import Attributes, ByLoops, Infos, IntegerOperator, Site, require
from uaccel.ops.windows import SlidingWindow, sides
from uaccel.tvm_api import te, tirx
from uaccel.tvm_api.loops import count_to, local_array, te_let, where

# Resizing as TFLite's reference does it: to the nearest pixel, and bilinear in fixed point.

ONE = 1 << 10  # positions and weights have 10 bits after the point
HALF = ONE // 2
COLUMN = 4  # Bytes of a channel's sum of a column.


class ResizeNearestAttrs(Attributes):
    """The attributes say what the tables were made from; kernels need the tables alone."""

    align_corners: bool
    half_pixel_centers: bool


class ResizeNearest(IntegerOperator[ResizeNearestAttrs]):
    """Copies pixels: output row y is input row ``rows[y]``, output column x is input column ``columns[x]``.

    They are tables since the reference finds the nearest pixel in single precision, whose rounding no integer formula
    has.
    """

    name = "resize_nearest"
    arguments = ("input", "rows", "columns")

    def infer(self, attrs: ResizeNearestAttrs, data: TensorInfo, rows: TensorInfo, columns: TensorInfo) -> TensorInfo:
        require(len(data.shape) == 4, f"resize_nearest: input {data} has rank {len(data.shape)}, wanted 4 (NHWC)")
        require(len(rows.shape) == len(columns.shape) == 1, "resize_nearest: rows and columns have rank 1")
        return TensorInfo((data.shape[0], *rows.shape, *columns.shape, data.shape[3]), data.dtype)

    def meaning(self, attrs: ResizeNearestAttrs, *inputs: Any) -> Any:
        data, rows, columns = inputs
        shape = self.infer(attrs, *(exact.info(tensor) for tensor in inputs)).shape

        def element(n: Any, y: Any, x: Any, c: Any) -> Any:
            return data(n, exact.i32(rows(y)), exact.i32(columns(x)), c)

        return te.compute(shape, element, name="resized")

    def kernels(self, site: Site[ResizeNearestAttrs]) -> Sequence[Kernel]:
        data = site.operands[0].info
        parameters = {
            "batch": data.shape[0],
            **sides("in", data.shape[1:3]),
            **sides("out", site.output.shape[1:3]),
            "pixel_bytes": data.shape[3] * data.itemsize,
        }
        return self.one_call(site, parameters, "")


class ResizeBilinearAttrs(Attributes):
    """``size`` is the output's height and width."""

    size: tuple[int, ...]
    align_corners: bool
    half_pixel_centers: bool

    def step(self, axis: int, extent: int) -> int:
        """The step from one output pixel to the next in units of 1/1024 input pixel; ``axis`` 0 is the height."""
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


class ResizedRows(ResizeBilinearAttrs):
    """Describes some output rows, made of some input rows: the first lies at ``row_start``, others ``row_step`` on."""

    row_step: int
    row_start: int

    def step(self, axis: int, extent: int) -> int:
        return super().step(axis, extent) if axis else self.row_step

    def start(self, axis: int, extent: int) -> int:
        return super().start(axis, extent) if axis else self.row_start


class ResizeBilinear(IntegerOperator[ResizeBilinearAttrs]):
    """Makes each output pixel the mean of four neighbours, weighted in fixed point, halves away from zero.

    Positions beyond the last pixel show the last pixel. (There the reference reads what lies behind its input.) A
    position is less than two pixels beyond, so the magnitudes of an axis' two weights sum to less than 3 * ``ONE``. The
    four products then sum to less than 9 * 2**27, which fits 32 bits.
    """

    name = "resize_bilinear"

    def infer(self, attrs: ResizeBilinearAttrs, data: TensorInfo) -> TensorInfo:
        require(len(data.shape) == 4, f"resize_bilinear: input {data} has rank {len(data.shape)}, wanted 4 (NHWC)")
        require(data.dtype == "int8", f"resize_bilinear: input is {data.dtype}, wanted int8")
        overshoot = max(attrs.overshoot(axis, data.shape[1 + axis]) for axis in (0, 1))
        require(overshoot < 2 * ONE, f"resize_bilinear: {data} to {attrs.size} runs {overshoot / ONE:.1f} pixels off")
        return TensorInfo((data.shape[0], *attrs.size, data.shape[3]), data.dtype)

    def meaning(self, attrs: ResizeBilinearAttrs, data: Any) -> Any:
        info = exact.info(data)

        def neighbours(position: Any, axis: int) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
            """The pixels on both sides, each with its weight.

            Beyond an end both are the same pixel. Its weights, of which one is then negative, still sum to ``ONE``.
            """
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

        return te.compute(self.infer(attrs, info).shape, element, name="resized")

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
        if attrs.step(1, width) >= ONE:
            return self.one_call(site, parameters)
        wider = f"uaccel_{self.name}_wider"  # Output pixels share the columns between which they lie.
        return self.one_call(site, parameters, function=wider, scratch=2 * COLUMN * channels)


# Bilinear resizing for models that are not TFLite: exact positions, the real result rounded once.
#
# Every position is a fraction. With all denominators of an axis brought to one, ``parts``, weights are whole numbers.

BITS = 31  # of the multiplier: a sum of 32 bits with its sign times that fits 64
LARGEST = (1 << 15) - 1  # parts of a pixel: tables of places are int16


class ResizeOnceAttrs(RoundedOnce):
    """``parts`` says into how many parts a pixel's height and width are divided. ``multiplier / 2**shift`` is input
    scale / output scale / (parts of the height * parts of the width)."""

    parts: tuple[int, ...]
    input_zero_point: int
    multiplier: int


class ResizeOnce(IntegerOperator[ResizeOnceAttrs]):
    """Makes each output pixel the mean of four neighbours, weighted by exact positions, rounded once, half to even.

    ``rows[y]`` is the input row before output row y, and how many parts of a pixel lie between them; ``columns`` alike.
    """

    name = "resize_once"
    arguments = ("input", "rows", "columns")

    def infer(self, attrs: ResizeOnceAttrs, data: TensorInfo, rows: TensorInfo, columns: TensorInfo) -> TensorInfo:
        require(len(data.shape) == 4, f"{self.name}: input {data} has rank {len(data.shape)}, wanted 4 (NHWC)")
        pairs = all(len(table.shape) == 2 and table.shape[1] == 2 for table in (rows, columns))
        require(pairs, f"{self.name}: rows are {rows} and columns {columns}, wanted pairs")
        low, high = exact.limits(data.dtype)
        require(math.prod(attrs.parts) * (high - low) < 1 << 31, f"{self.name}: {attrs.parts} parts overflow 32 bits")
        return TensorInfo((data.shape[0], rows.shape[0], columns.shape[0], data.shape[3]), data.dtype)

    def meaning(self, attrs: ResizeOnceAttrs, *inputs: Any) -> Any:
        data, rows, columns = inputs
        info = exact.info(data)
        zero_point = exact.const(attrs.input_zero_point)

        def neighbours(table: Any, place: Any, axis: int) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
            """The pixels on both sides, each with its weight."""
            before, part = exact.i32(table(place, 0)), exact.i64(table(place, 1))
            behind = exact.clamp(before + 1, 0, info.shape[1 + axis] - 1)
            return (before, exact.const(attrs.parts[axis]) - part), (behind, part)

        def element(n: Any, y: Any, x: Any, c: Any) -> Any:
            total = sum(
                (exact.i64(data(n, row, column, c)) - zero_point) * row_weight * column_weight
                for row, row_weight in neighbours(rows, y, 0)
                for column, column_weight in neighbours(columns, x, 1)
            )
            return exact.rounded_once(total * exact.const(attrs.multiplier), attrs, str(data.dtype))

        return te.compute(self.results(inputs, attrs)[0].shape, element, name="resized")

    def kernels(self, site: Site[ResizeOnceAttrs]) -> Sequence[Kernel]:
        attrs, data = site.attrs, site.operands[0].info
        parameters = {
            "batch": data.shape[0],
            **sides("in", data.shape[1:3]),
            **sides("out", site.output.shape[1:3]),
            "channels": data.shape[3],
            "parts_y": attrs.parts[0],
            "parts_x": attrs.parts[1],
            **same(attrs, "input_zero_point", "multiplier", "shift", "tolerance", "output_zero_point"),
            **same(attrs, "clamp_min", "clamp_max"),
        }
        return self.one_call(site, parameters)


def positions(mode: str, given: int, wanted: int) -> list[Fraction]:
    """Where output pixels lie between the input's, in the coordinate mode that ONNX calls ``mode``."""
    last = Fraction(given - 1)
    if mode == "align_corners":
        step = last / (wanted - 1) if wanted > 1 else Fraction(0)
        return [place * step for place in range(wanted)]
    step = Fraction(given, wanted)
    if mode == "asymmetric":
        found = [place * step for place in range(wanted)]
    elif mode in ("half_pixel", "pytorch_half_pixel"):
        single = mode == "pytorch_half_pixel" and wanted == 1
        found = [Fraction(0) if single else (place + Fraction(1, 2)) * step - Fraction(1, 2) for place in range(wanted)]
    else:
        raise ModelError(f"bilinear resizing with the coordinates {mode}")
    return [min(max(place, Fraction(0)), last) for place in found]


def resize_once_operands(
    places: Sequence[Sequence[Fraction]], given: Quantisation, wanted: Quantisation, dtype: str, clamp: tuple[int, int]
) -> tuple[ResizeOnceAttrs, list[NDArray[np.int16]]]:
    """Attributes, and the tables for the places of rows and columns.

    The weights of four neighbours sum to the product of both parts. While that times the input's range is below 2**31,
    sums of 32 bits cannot overflow.
    """
    parts = tuple(math.lcm(*(place.denominator for place in axis)) for axis in places)
    low, high = exact.limits(dtype)
    if max(parts) > LARGEST or math.prod(parts) * (high - low) >= 1 << 31:
        raise ModelError(f"resizing divides a pixel into {parts[0]} x {parts[1]} parts, too many for sums of 32 bits")
    tables = []
    for axis, count in zip(places, parts, strict=True):
        tables.append(np.array([(int(place), int((place - int(place)) * count)) for place in axis], np.int16))
    ratio = scale_fraction(given.scale) / scale_fraction(wanted.scale) / math.prod(parts)
    ratios = fixed_ratios([ratio], BITS)
    most = most_that_counts(ratio, math.prod(parts) * (high - low), high - low)
    scaled = {"input_zero_point": given.zero_point, "multiplier": ratios.multipliers[0]}
    stage = RoundedOnce.stage(ratios, most, wanted.zero_point, dtype, clamp)
    return ResizeOnceAttrs(parts=parts, **scaled, **stage), tables


# Windows over any number of axes: added up where they overlap (col2im), or searched for their maximum's position.


class SpreadAttrs(Attributes):
    """Describes windows with an entry for each axis. ``image`` is without the padding ``before`` and ``after``;
    ``column_major``: positions count along the first of two axes first."""

    image: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    column_major: int = 0

    @property
    def sliding(self) -> SlidingWindow:
        return SlidingWindow(self.kernel, self.stride, self.dilation, self.before + self.after)

    @property
    def windows(self) -> tuple[int, ...]:
        """How many there are along each axis."""
        return tuple(self.sliding.counts(self.image))

    def point(self, window: Any, element: Any) -> tuple[Any, list[Any]]:
        """Whether an element of a window, both given by number, lies inside the image, and where on each axis."""
        places: list[Any] = []
        for axis in reversed(range(len(self.image))):
            at = self.sliding.place(axis, window % self.windows[axis], element % self.kernel[axis])
            places.insert(0, te_let(at))
            window, element = window // self.windows[axis], element // self.kernel[axis]
        inside = [tirx.all(at >= 0, at < extent) for at, extent in zip(places, self.image, strict=True)]
        return tirx.all(*inside), places

    def number(self, places: Sequence[Any]) -> Any:
        """The number of a place in the image, counted along the last axis first."""
        total: Any = 0
        for at, extent in zip(places, self.image, strict=True):
            total = total * extent + at
        return total


class Fold(ByLoops[SpreadAttrs]):
    """Adds windows up to images where they overlap; its input is [batch, channels * elements of a window, windows]."""

    name = "fold"

    def infer(self, attrs: SpreadAttrs, *inputs: TensorInfo) -> TensorInfo:
        (data,), count, size = inputs, math.prod(attrs.windows), math.prod(attrs.kernel)
        fit = len(data.shape) == 3 and min(attrs.windows) > 0 and data.shape[2] == count and not data.shape[1] % size
        require(fit, f"fold: {data}, wanted [batch,channels * {size},{count}]")
        return TensorInfo((data.shape[0], data.shape[1] // size, *attrs.image), data.dtype)

    def write(self, infos: Infos, attrs: SpreadAttrs, data: Any, images: Any) -> None:
        info = infos[0]
        result = self.infer(attrs, *infos)
        size, count, image = math.prod(attrs.kernel), math.prod(attrs.windows), math.prod(attrs.image)
        with count_to(result.elements) as i:
            images[i] = tirx.const(0, info.dtype)
        with count_to(result.elements // image) as n, count_to(size) as element, count_to(count) as window:
            inside, places = attrs.point(window, element)
            with where(inside):
                at = te_let(n * image + attrs.number(places))
                images[at] = images[at] + data[(n * size + element) * count + window]


class MaxPositions(ByLoops[SpreadAttrs]):
    """Finds the maximum of each window and where in the whole tensor it lies, the first of equal ones.

    A window wholly outside the image gives 0 and -1.
    """

    name = "max_positions"
    hides_differences = True

    def infer(self, attrs: SpreadAttrs, data: TensorInfo) -> tuple[TensorInfo, ...]:
        fit = data.shape[2:] == attrs.image and min(attrs.windows) > 0
        require(fit, f"max_positions: {data}, wanted [batch,channels] and {attrs.image}, with room for a window")
        shape = (*data.shape[:2], *attrs.windows)
        return TensorInfo(shape, data.dtype), TensorInfo(shape, "int64")

    def write(self, infos: Infos, attrs: SpreadAttrs, data: Any, values: Any, positions: Any) -> None:
        info = infos[0]
        size, count, image = math.prod(attrs.kernel), math.prod(attrs.windows), math.prod(attrs.image)
        told = SpreadAttrs(*(getattr(attrs, name)[::-1] for name in _FIELDS)) if attrs.column_major else attrs
        best = local_array(1, "int32")
        with count_to(info.elements // image) as n, count_to(count) as window:
            best[0] = tirx.const(-1, "int32")
            values[n * count + window] = tirx.const(0, info.dtype)
            positions[n * count + window] = tirx.const(-1, "int64")
            with count_to(size) as element:
                inside, places = attrs.point(window, element)
                with where(inside):
                    at = te_let(n * image + attrs.number(places))
                    with where(tirx.any(best[0] < 0, data[at] > data[tirx.max(best[0], 0)])):
                        best[0] = at
                        values[n * count + window] = data[at]
                        number = told.number(places[::-1] if attrs.column_major else places)
                        positions[n * count + window] = tirx.Cast("int64", n * image + number)


_FIELDS = ("image", "kernel", "stride", "dilation", "before", "after")
