"""Defines operators on boxes of detected objects: non-maximum suppression, and the end of TFLite's detectors."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from uaccel.model import TensorInfo
from uaccel.ops.operator import Attributes, ByLoops, Infos, require
from uaccel.tvm_api import tirx
from uaccel.tvm_api.loops import count_to, local_array, te_let, where, while_holds

# Non-maximum suppression: which of the boxes that overlap are kept.

Box = tuple[Any, Any, Any, Any]  # Top, left, bottom, right.
CORNERS: Final = 4


@dataclass(frozen=True)
class Greedy:
    """Keeps the best box that is left, removes all that overlap it by more than ``overlap``, and so on, ``most`` times
    at most. ``box`` and ``score`` give the box and the score of a number below ``count``. The first of equal scores is
    the best."""

    count: int
    most: int
    overlap: float
    score: Callable[[Any], Any]
    box: Callable[[Any], Box]

    def write(self, admitted: Callable[[Any], Any], keep: Callable[[Any], None]) -> None:
        """``admitted`` says whether the box of a number may be kept; ``keep`` writes what happens to one that is."""
        left, best = local_array(self.count, "int8"), local_array(1, "int32")
        here, away = tirx.const(1, "int8"), tirx.const(0, "int8")
        with count_to(self.count) as n:
            left[n] = tirx.Select(admitted(n), here, away)
        with count_to(self.most):
            best[0] = tirx.const(-1, "int32")
            with count_to(self.count) as n, where(left[n] != away):
                better = self.score(n) > self.score(tirx.max(best[0], 0))
                with where(tirx.any(best[0] < 0, better)):
                    best[0] = n
            with where(best[0] >= 0):
                left[best[0]] = away
                keep(best[0])
                chosen = _ordered(self.box(best[0]))
                with count_to(self.count) as n, where(left[n] != away):
                    apart = tirx.Not(_overlap(chosen, _ordered(self.box(n)), self.overlap))
                    left[n] = tirx.Select(apart, here, away)


def _ordered(box: Box) -> Box:
    """The box by its upper left and lower right corner, whichever two opposite corners it was given by."""
    top, left, bottom, right = map(te_let, box)
    return tirx.min(top, bottom), tirx.min(left, right), tirx.max(top, bottom), tirx.max(left, right)


def _overlap(one: Box, other: Box, most: float) -> Any:
    """Whether intersection over union exceeds ``most``; boxes without an area overlap nothing."""
    none = tirx.const(0, "float32")
    height = tirx.min(one[2], other[2]) - tirx.max(one[0], other[0])
    width = tirx.min(one[3], other[3]) - tirx.max(one[1], other[1])
    shared = te_let(tirx.max(height, none) * tirx.max(width, none))
    areas = [te_let((box[2] - box[0]) * (box[3] - box[1])) for box in (one, other)]
    together = te_let(areas[0] + areas[1] - shared)
    real = tirx.all(shared > none, areas[0] > none, areas[1] > none, together > none)
    return tirx.all(real, shared / together > tirx.const(most, "float32"))


class NonMaxSuppressionAttrs(Attributes):
    """``most`` boxes of a class are kept. ``centred`` boxes are x, y of the middle, width, height, others two corners,
    each y before x. Where ``bounded``, scores up to ``least`` do not count. The result has ``rows`` rows."""

    rows: int
    most: int
    overlap: float
    bounded: int
    least: float
    centred: int


class NonMaxSuppression(ByLoops[NonMaxSuppressionAttrs]):
    """Gives rows of batch, class and box; behind the last box that is kept all are -1."""

    name = "non_max_suppression"
    hides_differences = True
    arguments = ("boxes", "scores")

    def infer(self, attrs: NonMaxSuppressionAttrs, boxes: TensorInfo, scores: TensorInfo) -> TensorInfo:
        fit = len(boxes.shape) == len(scores.shape) == 3 and boxes.shape[2] == CORNERS
        require(fit, f"non_max_suppression: {boxes} and {scores}, wanted [batch, boxes, 4] and [batch, classes, boxes]")
        batch, classes, count = scores.shape
        require(boxes.shape[:2] == (batch, count), f"non_max_suppression: {boxes} does not fit {scores}")
        fits = 0 < attrs.rows <= batch * classes * min(attrs.most, count)
        require(fits, f"non_max_suppression: {attrs.rows} rows for {attrs.most} boxes of a class of {scores}")
        return TensorInfo((attrs.rows, 3), "int64")

    def write(self, infos: Infos, attrs: NonMaxSuppressionAttrs, boxes: Any, scores: Any, rows: Any) -> None:
        result, (batch, classes, count) = self.infer(attrs, *infos), infos[1].shape
        written = local_array(1, "int32")
        written[0] = 0
        with count_to(result.elements) as i:
            rows[i] = tirx.const(-1, "int64")
        with count_to(batch) as b, count_to(classes) as c:
            first = (b * classes + c) * count

            def box(number: Any) -> Box:
                values = [boxes[(b * count + number) * CORNERS + i] for i in range(CORNERS)]
                return _around(values) if attrs.centred else (values[0], values[1], values[2], values[3])

            def admitted(number: Any) -> Any:
                always = tirx.const(True, "bool")
                return scores[first + number] > tirx.const(attrs.least, "float32") if attrs.bounded else always

            def keep(number: Any) -> None:
                with where(written[0] < attrs.rows):
                    for place, value in enumerate((b, c, number)):
                        rows[written[0] * 3 + place] = tirx.Cast("int64", value)
                    written[0] = written[0] + 1

            most = min(attrs.most, count)
            Greedy(count, most, attrs.overlap, lambda number: scores[first + number], box).write(admitted, keep)


def _around(values: Sequence[Any]) -> Box:
    x, y, width, height = values
    half = tirx.const(2, "float32")
    return y - height / half, x - width / half, y + height / half, x + width / half


# The post-processing that TFLite's detection models end with: boxes are decoded by anchors, and the best are kept.


class DetectionsAttrs(Attributes):
    """``most`` detections are kept. The last ``classes`` of the scores of a box count; scores below ``least`` do not.
    Positions and sizes are divided by the four scales. With ``each`` classes are suppressed one by one and keep so many
    boxes at most; with 0 each box has its best class alone, and all are suppressed at once."""

    most: int
    classes: int
    overlap: float
    least: float
    y_scale: float
    x_scale: float
    h_scale: float
    w_scale: float
    each: int = 0


class Detections(ByLoops[DetectionsAttrs]):
    """Gives corners, classes and scores of the best of all classes, and how many these are. Behind them are zeros.

    ``boxes`` and ``anchors`` are y, x of the middle, height and width.
    """

    name = "detections"
    hides_differences = True
    arguments = ("boxes", "scores", "anchors")

    def infer(self, attrs: DetectionsAttrs, *inputs: TensorInfo) -> tuple[TensorInfo, ...]:
        boxes, scores, anchors = inputs
        count = anchors.shape[0]
        fit = boxes.shape == (1, count, CORNERS) and anchors.shape == (count, CORNERS) and len(scores.shape) == 3
        fit = fit and scores.shape[:2] == (1, count) and 0 < attrs.classes <= scores.shape[2]
        require(fit, f"detections: {boxes}, {scores} and {anchors} do not fit {attrs.classes} classes")
        require(attrs.most > 0, "detections: it keeps no box")
        shapes = ((1, attrs.most, CORNERS), (1, attrs.most), (1, attrs.most), (1,))
        return tuple(TensorInfo(shape, boxes.dtype) for shape in shapes)

    def write(self, infos: Infos, attrs: DetectionsAttrs, boxes: Any, scores: Any, anchors: Any, *outputs: Any) -> None:
        results, count, row = (
            self.infer(attrs, *infos),
            infos[2].shape[0],
            infos[1].shape[2],
        )
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


def _write_box(corners: Any, at: Any, box: Box) -> None:
    for place, value in enumerate(box):
        corners[at * CORNERS + place] = value


def _best_of_all(
    attrs: DetectionsAttrs, scores: Any, row: int, count: int, box: Callable[[Any], Box], outputs: Any, written: Any
) -> None:
    """Writes detections where each box has the class of its highest score alone."""
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
    """Suppresses class by class; boxes that are kept take their places among the best so far, behind equal ones.

    When all ``most`` places are taken, a better box pushes the last one out.
    """

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
                value = te_let(score(at))
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
    """The first class with the largest score; a row may begin with scores that do not count."""
    best[n] = row - classes
    with count_to(classes) as c:
        other = row - classes + c
        better = scores[n * row + other] > scores[n * row + best[n]]
        best[n] = tirx.Select(better, other, best[n])


def _decode(boxes: Any, anchors: Any, decoded: Any, n: Any, attrs: DetectionsAttrs) -> None:
    """Computes in float64 and rounds to float32 the middle and half of the size, as the reference does."""
    first, number = n * CORNERS, functools.partial(tirx.const, dtype="float64")

    def rounded(value: Any) -> Any:
        return te_let(tirx.Cast("float32", value))

    for axis, (place, size) in enumerate(((attrs.y_scale, attrs.h_scale), (attrs.x_scale, attrs.w_scale))):
        y, height = (tirx.Cast("float64", boxes[first + part]) for part in (axis, axis + 2))
        around, extent = (tirx.Cast("float64", anchors[first + part]) for part in (axis, axis + 2))
        middle = rounded(y / number(place) * extent + around)
        half = rounded(number(0.5) * tirx.exp(height / number(size)) * extent)
        decoded[first + axis] = middle - half
        decoded[first + axis + 2] = middle + half
