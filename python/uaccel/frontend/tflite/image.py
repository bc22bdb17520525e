"""Converts TFLite's resizing, TOPK_V2 and the detection operator at the end of detectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uaccel.errors import need
from uaccel.frontend.converters import always
from uaccel.frontend.tflite.checks import need_constant, need_dtype, need_same_type
from uaccel.frontend.tflite.converter import INTEGERS, Context, Expr, Several, converts, need_numbers
from uaccel.frontend.tflite.quantized import dequantised
from uaccel.frontend.tflite.reader import Operator, Tensor, custom_options, whole_number
from uaccel.ops.detection import Detections, DetectionsAttrs
from uaccel.ops.operator import constant, get
from uaccel.ops.reduce import TopK, TopKAttrs
from uaccel.ops.resize import ResizeBilinear, ResizeBilinearAttrs, ResizeNearest, ResizeNearestAttrs
from uaccel.tvm_api import relax

# RESIZE_NEAREST_NEIGHBOR and RESIZE_BILINEAR to a constant size.

LARGEST_EXTENT = 1 << 15  # Pixels that the tables' int16 can number.


def _size(operator: Operator) -> tuple[int, int]:
    data = operator.required_input(0)
    need_same_type(data, operator.outputs[0])
    need(len(data.info.shape) == 4, f"input has rank {len(data.info.shape)}, wanted 4 (NHWC)")
    values = [int(extent) for extent in need_constant(operator.required_input(1), "size").reshape(-1)]
    need(len(values) == 2 and min(values) > 0, f"size {values} is not a height and a width")
    need(max(values) <= LARGEST_EXTENT, f"size {values} is larger than {LARGEST_EXTENT} pixels")
    return values[0], values[1]


@converts("RESIZE_BILINEAR", when=always)
def resize_bilinear(context: Context, operator: Operator) -> Expr:
    data, size, options = operator.required_input(0), _size(operator), operator.options
    corners, centers = bool(options.AlignCorners()), bool(options.HalfPixelCenters())
    need(not (corners and centers), "align_corners and half_pixel_centers exclude each other")
    if data.info.dtype in INTEGERS:
        need_dtype(data, ("int8",), "input")
        return get(ResizeBilinear)(context.expr(data), attrs=ResizeBilinearAttrs(size, corners, centers))
    if data.info.dtype == "uint8":
        return _bilinear_bytes(context, data, size, ResizeNearestAttrs(corners, centers))
    way = "align_corners" if corners else "half_pixel" if centers else "asymmetric"
    # One pixel with aligned corners is the first of two: TVM would divide by the distance between them.
    asked = tuple(max(2, extent) for extent in size) if corners else size
    result = relax.op.image.resize2d(context.expr(data), relax.ShapeExpr(asked), None, "NHWC", "linear", way)
    return result if asked == size else relax.op.strided_slice(result, [1, 2], [0, 0], size)


def _bilinear_bytes(context: Context, data: Tensor, size: tuple[int, int], attrs: ResizeNearestAttrs) -> Expr:
    """Adds up four pixels times their weights in the reference's order, as rounding shows each last bit."""
    x, taps = relax.op.astype(context.expr(data), "float32"), []
    context.budget.bytes(24 * sum(size))
    for axis, extent, out in zip((1, 2), data.info.shape[1:3], size, strict=True):
        place = positions(extent, out, attrs)
        low = np.maximum(np.floor(place), 0)
        far = (place - low).reshape([-1 if number == axis else 1 for number in range(4)])
        high = np.minimum(np.ceil(place), extent - 1)
        taps.append([(low.astype(np.int32), np.float32(1) - far), (high.astype(np.int32), far)])
    total: Any = None
    for column, weight_x in taps[1]:
        for row, weight_y in taps[0]:
            pixels = relax.op.take(relax.op.take(x, constant(row), 1, mode="clip"), constant(column), 2, mode="clip")
            part = relax.op.multiply(relax.op.multiply(pixels, constant(weight_y)), constant(weight_x))
            total = part if total is None else relax.op.add(total, part)
    return relax.op.astype(relax.op.add(total, constant(np.array(0.5, np.float32))), "uint8")


@converts("RESIZE_NEAREST_NEIGHBOR", when=always)
def resize_nearest(context: Context, operator: Operator) -> Expr:
    """Copies the nearest pixels, whatever the type."""
    data, size, options = operator.required_input(0), _size(operator), operator.options
    largest = max(data.info.shape[1:3])
    need(largest <= LARGEST_EXTENT, f"input {data.info} is larger than {LARGEST_EXTENT} pixels")
    attrs = ResizeNearestAttrs(bool(options.AlignCorners()), bool(options.HalfPixelCenters()))
    context.budget.bytes(8 * sum(size))
    tables = [nearest(extent, out, attrs) for extent, out in zip(data.info.shape[1:3], size, strict=True)]
    if data.info.dtype in INTEGERS:
        return get(ResizeNearest)(context.expr(data), *map(constant, tables), attrs=attrs)
    rows = relax.op.take(context.expr(data), constant(tables[0].astype(np.int32)), axis=1, mode="clip")
    return relax.op.take(rows, constant(tables[1].astype(np.int32)), axis=2, mode="clip")


def nearest(extent: int, out: int, attrs: ResizeNearestAttrs) -> NDArray[np.int16]:
    """Gives for each output pixel of one axis the input pixel that it shows, in the reference's single precision."""
    half = np.float32(0.5 if attrs.half_pixel_centers else 0)
    position = (np.arange(out, dtype=np.float32) + half) * _scale(extent, out, attrs)
    pixel = np.floor(position.astype(np.float64) + (0.5 if attrs.align_corners else 0.0))
    return np.asarray(np.minimum(pixel, extent - 1), np.int16)


def positions(extent: int, out: int, attrs: ResizeNearestAttrs) -> NDArray[np.float32]:
    """Gives for each output pixel of one axis its place among the input's, in the reference's single precision."""
    half = np.float32(0.5 if attrs.half_pixel_centers else 0)
    return np.asarray((np.arange(out, dtype=np.float32) + half) * _scale(extent, out, attrs) - half, np.float32)


def _scale(extent: int, out: int, attrs: ResizeNearestAttrs) -> np.float32:
    spans = (extent - 1, out - 1) if attrs.align_corners and out > 1 else (extent, out)
    return np.float32(np.float32(spans[0]) / np.float32(spans[1]))


# TOPK_V2, and TFLite_Detection_PostProcess, with which detectors end.

SCALES = ("y_scale", "x_scale", "h_scale", "w_scale")


@converts("TOPK_V2", when=always)
def top_k(context: Context, operator: Operator) -> Several:
    data, positions = operator.required_input(0), operator.outputs[-1]
    (count,) = need_numbers(context, operator.required_input(1), "k", 1)
    need_dtype(positions, ("int32",), "positions")
    attrs = TopKAttrs(len(data.info.shape) - 1, count, 1, "int32")
    return Several(get(TopK)(context.expr(data), attrs=attrs))


@converts("CUSTOM:TFLite_Detection_PostProcess", when=always)
def detections(context: Context, operator: Operator) -> Several:
    """Converts non-maximum suppression: over the best class of each box (fast), or class by class (regular)."""
    options = custom_options(operator)
    regular = bool(options.get("use_regular_nms", False))
    each = whole_number(options, "detections_per_class", 100) if regular else 0
    need(each > 0 or not regular, f"detections_per_class is {each}, wanted a positive number")
    kinds = whole_number(options, "max_classes_per_detection", 1)
    need(kinds == 1 or regular, f"max_classes_per_detection is {kinds}; only 1 can be compiled")
    attrs = DetectionsAttrs(
        most=whole_number(options, "max_detections"),
        classes=whole_number(options, "num_classes"),
        overlap=_number(options, "nms_iou_threshold"),
        least=_number(options, "nms_score_threshold"),
        **{name: _number(options, name) for name in SCALES},
        each=each,
    )
    need(all(getattr(attrs, name) > 0 for name in SCALES), f"its {', '.join(SCALES)} must be above 0")
    given = [_real(context, operator.required_input(place)) for place in range(3)]
    return Several(get(Detections)(*given, attrs=attrs))


def _real(context: Context, tensor: Tensor) -> Expr:
    need_dtype(tensor, ("float32", "int8", "uint8"), "input")
    if tensor.info.dtype == "float32":
        return context.expr(tensor)
    return dequantised(context.expr(tensor), tensor)


def _number(options: Mapping[str, Any], name: str) -> float:
    value = options.get(name)
    need(isinstance(value, int | float), f"its option {name} is {value!r}, wanted a number")
    return float(np.float32(value or 0))
