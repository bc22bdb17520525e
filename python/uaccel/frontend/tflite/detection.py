"""TOPK_V2, and TFLite_Detection_PostProcess, with which detectors end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from uaccel.errors import need
from uaccel.frontend.converters import always
from uaccel.frontend.tflite.convert import Context, Expr, Several, converts, need_dtype
from uaccel.frontend.tflite.custom import custom_options, whole_number
from uaccel.frontend.tflite.elementwise import need_one_scale
from uaccel.frontend.tflite.folding import need_numbers
from uaccel.frontend.tflite.reader import Operator, Tensor
from uaccel.ops.base import get
from uaccel.ops.detections import Detections, DetectionsAttrs
from uaccel.ops.quantize import Dequantize, DequantizeAttrs
from uaccel.ops.top_k import TopK, TopKAttrs

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
    """The fast form keeps the best class of each box, the regular one goes from class to class."""
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
    need_one_scale(tensor)
    attrs = DequantizeAttrs(float(np.float32(tensor.scale)), tensor.zero_point)
    return get(Dequantize)(context.expr(tensor), attrs=attrs)


def _number(options: Mapping[str, Any], name: str) -> float:
    value = options.get(name)
    need(isinstance(value, int | float), f"its option {name} is {value!r}, wanted a number")
    return float(np.float32(value or 0))
