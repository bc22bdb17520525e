"""Boxes of a detector beside its anchors, the best of them kept: what TFLite's detection models end with."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from uaccel.model import TensorInfo
from uaccel.ops import exact
from uaccel.ops.base import Attributes, IntegerOperator, register, require
from uaccel.ops.boxes import CORNERS, Box, Greedy
from uaccel.tvm_api import tirx
from uaccel.tvm_api.loops import computed_once, count_to, local_array, written_by_loops


@dataclass(frozen=True)
class DetectionsAttrs(Attributes):
    """``most``: detections; ``classes`` are the last of those that have scores. Scores below ``least`` are none.
    Positions and sizes are divided by the four scales."""

    most: int
    classes: int
    overlap: float
    least: float
    y_scale: float
    x_scale: float
    h_scale: float
    w_scale: float


@register
class Detections(IntegerOperator[DetectionsAttrs]):
    """Corners, classes and scores of the best, whatever class they have, and how many these are. Behind them are zeros.

    ``boxes`` and ``anchors`` are y, x of the middle, height and width.
    """

    name = "detections"
    hides_differences = True
    arguments = ("boxes", "scores", "anchors")

    def infer(self, inputs: Sequence[TensorInfo], attrs: DetectionsAttrs) -> tuple[TensorInfo, ...]:
        boxes, scores, anchors = inputs
        count = anchors.shape[0]
        fit = boxes.shape == (1, count, CORNERS) and anchors.shape == (count, CORNERS) and len(scores.shape) == 3
        fit = fit and scores.shape[:2] == (1, count) and 0 < attrs.classes <= scores.shape[2]
        require(fit, f"detections: {boxes}, {scores} and {anchors} do not fit {attrs.classes} classes")
        require(attrs.most > 0, "detections: it keeps no box")
        shapes = ((1, attrs.most, CORNERS), (1, attrs.most), (1, attrs.most), (1,))
        return tuple(TensorInfo(shape, boxes.dtype) for shape in shapes)

    def meaning(self, inputs: Sequence[Any], attrs: DetectionsAttrs) -> Any:
        infos = [exact.info(tensor) for tensor in inputs]
        results = self.infer(infos, attrs)
        count, row = infos[2].shape[0], infos[1].shape[2]

        def write(boxes: Any, scores: Any, anchors: Any, *outputs: Any) -> None:
            corners, classes, given, number = outputs
            zero = tirx.const(0, "float32")
            for array, info in zip(outputs, results, strict=True):
                with count_to(info.elements) as i:
                    array[i] = zero
            best, written = local_array(count, "int32"), local_array(1, "int32")
            written[0] = 0
            with count_to(count) as n:
                _best_class(scores, best, n, row, attrs.classes)
            decoded = local_array(CORNERS * count, "float32")
            with count_to(count) as n:
                _decode(boxes, anchors, decoded, n, attrs)

            def box(at: Any) -> Box:
                first = at * CORNERS
                return decoded[first], decoded[first + 1], decoded[first + 2], decoded[first + 3]

            def score(at: Any) -> Any:
                return scores[at * row + best[at]]

            def keep(at: Any) -> None:
                for place, value in enumerate(box(at)):
                    corners[written[0] * CORNERS + place] = value
                classes[written[0]] = tirx.Cast("float32", best[at] - (row - attrs.classes))
                given[written[0]] = score(at)
                written[0] = written[0] + 1
                number[0] = tirx.Cast("float32", written[0])

            greedy = Greedy(count, min(attrs.most, count), attrs.overlap, score, box)
            greedy.write(lambda at: score(at) >= tirx.const(attrs.least, "float32"), keep)

        return written_by_loops([(info.shape, info.dtype) for info in results], list(inputs), write, self.name)


def _best_class(scores: Any, best: Any, n: Any, row: int, classes: int) -> None:
    """The first of those with the largest score; a row may begin with others."""
    best[n] = row - classes
    with count_to(classes) as c:
        other = row - classes + c
        better = scores[n * row + other] > scores[n * row + best[n]]
        best[n] = tirx.Select(better, other, best[n])


def _decode(boxes: Any, anchors: Any, decoded: Any, n: Any, attrs: DetectionsAttrs) -> None:
    """In float64, rounded to float32 for middle and half of the size, as the reference does."""
    first, number = n * CORNERS, functools.partial(tirx.const, dtype="float64")

    def rounded(value: Any) -> Any:
        return computed_once(tirx.Cast("float32", value))

    for axis, (place, size) in enumerate(((attrs.y_scale, attrs.h_scale), (attrs.x_scale, attrs.w_scale))):
        y, height = (tirx.Cast("float64", boxes[first + part]) for part in (axis, axis + 2))
        around, extent = (tirx.Cast("float64", anchors[first + part]) for part in (axis, axis + 2))
        middle = rounded(y / number(place) * extent + around)
        half = rounded(number(0.5) * tirx.exp(height / number(size)) * extent)
        decoded[first + axis] = middle - half
        decoded[first + axis + 2] = middle + half
