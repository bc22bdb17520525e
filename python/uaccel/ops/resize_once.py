"""Bilinear resizing for models that are not TFLite: exact positions, the real result rounded once; NHWC."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uaccel.errors import ModelError
from uaccel.model import Quantisation, TensorInfo
from uaccel.ops import exact
from uaccel.ops.base import IntegerOperator, Site, register, require
from uaccel.ops.kernel import Constant, Input, Kernel, Output, dtype_suffix, portable, same, sides
from uaccel.ops.ratio import fixed_ratios, most_that_counts, scale_fraction
from uaccel.ops.rounded import RoundedOnce
from uaccel.tvm_api import te

BITS = 31  # of the multiplier: the sums have 32
LARGEST = (1 << 15) - 1
"""Of what an axis divides a pixel into."""


@dataclass(frozen=True)
class ResizeOnceAttrs(RoundedOnce):
    """``parts``: what a pixel's height and width are divided into. ``multiplier / 2**shift`` is input scale / output
    scale / parts."""

    parts: tuple[int, ...]
    input_zero_point: int
    multiplier: int


@register
class ResizeOnce(IntegerOperator[ResizeOnceAttrs]):
    """Each output pixel is the mean of four neighbours, weighted by exact positions, rounded once, half to even.

    ``rows[y]`` is the input row before output row y, and how many parts of a pixel lie between them; ``columns`` alike.
    """

    name = "resize_once"
    arguments = ("input", "rows", "columns")

    def infer(self, inputs: Sequence[TensorInfo], attrs: ResizeOnceAttrs) -> TensorInfo:
        data, rows, columns = inputs
        require(len(data.shape) == 4, f"{self.name}: input {data} has rank {len(data.shape)}, wanted 4 (NHWC)")
        pairs = all(len(table.shape) == 2 and table.shape[1] == 2 for table in (rows, columns))
        require(pairs, f"{self.name}: rows are {rows} and columns {columns}, wanted pairs")
        low, high = exact.limits(data.dtype)
        require(math.prod(attrs.parts) * (high - low) < 1 << 31, f"{self.name}: {attrs.parts} parts overflow 32 bits")
        return TensorInfo((data.shape[0], rows.shape[0], columns.shape[0], data.shape[3]), data.dtype)

    def meaning(self, inputs: Sequence[Any], attrs: ResizeOnceAttrs) -> Any:
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
            return attrs.finish(total * exact.const(attrs.multiplier), str(data.dtype))

        shape = self.infer([exact.info(tensor) for tensor in inputs], attrs).shape
        return te.compute(shape, element, name="resized")

    def kernels(self, site: Site[ResizeOnceAttrs]) -> Sequence[Kernel]:
        attrs, (data, rows, columns) = site.attrs, site.operands
        batch, height, width, channels = data.info.shape
        scaled = same(attrs, "input_zero_point", "multiplier", "shift", "tolerance", "output_zero_point")
        parameters = {
            "batch": batch,
            **sides("in", (height, width)),
            **sides("out", site.output.shape[1:3]),
            "channels": channels,
            "parts_y": attrs.parts[0],
            "parts_x": attrs.parts[1],
            **scaled,
            **same(attrs, "clamp_min", "clamp_max"),
        }
        tables = (Constant("rows", rows.value), Constant("columns", columns.value))
        function = f"uaccel_resize_once_{dtype_suffix(data.info.dtype)}"
        return [portable(function, "uaccel_resize_once", parameters, (Input(0), *tables, Output(0)))]


def positions(mode: str, given: int, wanted: int) -> list[Fraction]:
    """Where output pixels lie between the input's, by the names that ONNX has for it."""
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
    """Of the rows and the columns."""
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
    attrs = ResizeOnceAttrs(
        parts=parts,
        input_zero_point=given.zero_point,
        multiplier=ratios.multipliers[0],
        shift=ratios.shift,
        tolerance=ratios.tolerance(most),
        output_zero_point=wanted.zero_point,
        clamp_min=clamp[0],
        clamp_max=clamp[1],
    )
    return attrs, tables
