"""RESIZE_NEAREST_NEIGHBOR and RESIZE_BILINEAR to a constant size."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from uaccel.errors import need
from uaccel.frontend.tflite.convert import Context, Expr, converts, need_constant, need_dtype
from uaccel.frontend.tflite.reader import Operator
from uaccel.ops.base import constant, get
from uaccel.ops.resize import ResizeBilinear, ResizeBilinearAttrs, ResizeNearest, ResizeNearestAttrs

LARGEST_EXTENT = 1 << 15  # the tables' 16 bits


def _size(operator: Operator, allowed: tuple[str, ...]) -> tuple[int, int]:
    data = operator.required_input(0)
    need_dtype(data, allowed, "input")
    need_dtype(operator.outputs[0], (data.info.dtype,), "output")
    need(len(data.info.shape) == 4, f"input has rank {len(data.info.shape)}, wanted 4 (NHWC)")
    values = [int(extent) for extent in need_constant(operator.required_input(1), "size").reshape(-1)]
    need(len(values) == 2 and min(values) > 0, f"size {values} is not a height and a width")
    need(max(values) <= LARGEST_EXTENT, f"size {values} is larger than {LARGEST_EXTENT} pixels")
    return values[0], values[1]


@converts("RESIZE_BILINEAR")
def resize_bilinear(context: Context, operator: Operator) -> Expr:
    data, size, options = operator.required_input(0), _size(operator, ("int8",)), operator.options
    corners, centers = bool(options.AlignCorners()), bool(options.HalfPixelCenters())
    need(not (corners and centers), "align_corners and half_pixel_centers exclude each other")
    attrs = ResizeBilinearAttrs(size, corners, centers)
    return get(ResizeBilinear)(context.expr(data), attrs=attrs)


@converts("RESIZE_NEAREST_NEIGHBOR")
def resize_nearest(context: Context, operator: Operator) -> Expr:
    data, size, options = operator.required_input(0), _size(operator, ("int8", "int16")), operator.options
    largest = max(data.info.shape[1:3])
    need(largest <= LARGEST_EXTENT, f"input {data.info} is larger than {LARGEST_EXTENT} pixels")
    attrs = ResizeNearestAttrs(bool(options.AlignCorners()), bool(options.HalfPixelCenters()))
    context.budget.bytes(8 * sum(size))
    tables = [nearest(extent, out, attrs) for extent, out in zip(data.info.shape[1:3], size, strict=True)]
    return get(ResizeNearest)(context.expr(data), *map(constant, tables), attrs=attrs)


def nearest(extent: int, out: int, attrs: ResizeNearestAttrs) -> NDArray[np.int16]:
    """For each output pixel of one axis the input pixel that it shows, in the reference's single precision."""
    single = np.float32
    spans = (extent - 1, out - 1) if attrs.align_corners and out > 1 else (extent, out)
    scale = single(spans[0]) / single(spans[1])
    position = (np.arange(out, dtype=single) + single(0.5 if attrs.half_pixel_centers else 0.0)) * scale
    pixel = np.floor(position.astype(np.float64) + (0.5 if attrs.align_corners else 0.0))
    return np.asarray(np.minimum(pixel, extent - 1), np.int16)
