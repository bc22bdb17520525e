"""Boxes of a detector beside its anchors, the best of them kept: what TFLite's detection models end with."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from uaccel.model import TensorInfo
from uaccel.ops import exact
from uaccel.ops.base import Attributes, IntegerOperator, register, require
from uaccel.ops.boxes import CORNERS, Box, Greedy
from uaccel.tvm_api import tirx
from uaccel.tvm_api.loops import computed_once, count_to, local_array, where, while_holds, written_by_loops


@dataclass(frozen=True)
class DetectionsAttrs(Attributes):
    """``most``: detections; ``classes`` are the last of those that have scores. Scores below ``least`` are none.
    Positions and sizes are divided by the four scales. ``each``: how many boxes a class may have, which then looks at
    no other class; or 0, where each box has its best class alone."""

    most: int
    classes: int
    overlap: float
    least: float
    y_scale: float
    x_scale: float
    h_scale: float
    w_scale: float
    each: int = 0


@register
class Detections(IntegerOperator[DetectionsAttrs]):
    """Corners, classes and scores of the best of all classes, and how many these are. Behind them are zeros.

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
            written = local_array(1, "int32")
            written[0] = 0
            decoded = local_array(CORNERS * count, "float32")
            with count_to(count) as n:
                _decode(boxes, anchors, decoded, n, attrs)

            def box(at: Any) -> Box:
                first = at * CORNERS
                return decoded[first], decoded[first + 1], decoded[first + 2], decoded[first + 3]

            if attrs.each:
                _ClassByClass(attrs, scores, row, count, box).write(corners, classes, given, written)
                number[0] = tirx.Cast("float32", written[0])
                return
            _best_of_all(attrs, scores, row, count, box, outputs, written)

        return written_by_loops([(info.shape, info.dtype) for info in results], list(inputs), write, self.name)


def _write_box(corners: Any, at: Any, box: Box) -> None:
    for place, value in enumerate(box):
        corners[at * CORNERS + place] = value


def _best_of_all(
    attrs: DetectionsAttrs, scores: Any, row: int, count: int, box: Callable[[Any], Box], outputs: Any, written: Any
) -> None:
    """Each box with the class that it has most of."""
    corners, classes, given, number = outputs
    best = local_array(count, "int32")
    with count_to(count) as n:
        _best_class(scores, best, n, row, attrs.classes)

    def score(at: Any) -> Any:
        return scores[at * row + best[at]]

    def keep(at: Any) -> None:
        _write_box(corners, written[0], box(at))
        classes[written[0]] = tirx.Cast("float32", best[at] - (row - attrs.classes))
        given[written[0]] = score(at)
        written[0] = written[0] + 1
        number[0] = tirx.Cast("float32", written[0])

    greedy = Greedy(count, min(attrs.most, count), attrs.overlap, score, box)
    greedy.write(lambda at: score(at) >= tirx.const(attrs.least, "float32"), keep)


@dataclass(frozen=True)
class _ClassByClass:
    """The boxes that each class keeps take their places among the best so far, behind those as good."""

    attrs: DetectionsAttrs
    scores: Any
    row: int
    count: int
    box: Callable[[Any], Box]

    def write(self, corners: Any, classes: Any, given: Any, written: Any) -> None:
        attrs, place = self.attrs, local_array(1, "int32")
        picked = local_array(attrs.most, "int32")
        with count_to(attrs.classes) as kind:

            def score(at: Any) -> Any:
                return self.scores[at * self.row + (self.row - attrs.classes) + kind]

            def keep(at: Any) -> None:
                value = computed_once(score(at))
                last = given[tirx.max(written[0], 1) - 1]
                with where(tirx.any(written[0] < attrs.most, value > last)):
                    written[0] = tirx.min(written[0] + 1, attrs.most)
                    place[0] = written[0] - 1
                    before = tirx.max(place[0], 1) - 1
                    with while_holds(tirx.all(place[0] > 0, value > given[before])):
                        for array in (given, classes, picked):
                            array[place[0]] = array[before]
                        place[0] = place[0] - 1
                    given[place[0]] = value
                    classes[place[0]] = tirx.Cast("float32", kind)
                    picked[place[0]] = at

            greedy = Greedy(self.count, min(attrs.each, self.count), attrs.overlap, score, self.box)
            greedy.write(lambda at: score(at) >= tirx.const(attrs.least, "float32"), keep)
        with count_to(attrs.most) as n, where(n < written[0]):
            _write_box(corners, n, self.box(picked[n]))


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
