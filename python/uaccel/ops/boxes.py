"""Boxes of detections: which of those that overlap are kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from uaccel.model import TensorInfo
from uaccel.ops import exact
from uaccel.ops.base import Attributes, IntegerOperator, register, require
from uaccel.tvm_api import tirx
from uaccel.tvm_api.loops import computed_once, count_to, local_array, where, written_by_loops

Box = tuple[Any, Any, Any, Any]
"""Top, left, bottom, right."""
CORNERS: Final = 4


@dataclass(frozen=True)
class Greedy:
    """The best box that is left is kept, and all leave that overlap it by more than ``overlap``; and so on, ``most``
    times at most. ``box`` and ``score`` give what lies at a number of ``count``."""

    count: int
    most: int
    overlap: float
    score: Callable[[Any], Any]
    box: Callable[[Any], Box]

    def write(self, admitted: Callable[[Any], Any], keep: Callable[[Any], None]) -> None:
        """``admitted``: whether the box of a number may be kept; ``keep`` writes what is to be done with its number."""
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
    """Whatever corners it was given by."""
    top, left, bottom, right = map(computed_once, box)
    return tirx.min(top, bottom), tirx.min(left, right), tirx.max(top, bottom), tirx.max(left, right)


def _overlap(one: Box, other: Box, most: float) -> Any:
    """Whether what they share is more than this part of what they cover together."""
    none = tirx.const(0, "float32")
    height = tirx.min(one[2], other[2]) - tirx.max(one[0], other[0])
    width = tirx.min(one[3], other[3]) - tirx.max(one[1], other[1])
    shared = computed_once(tirx.max(height, none) * tirx.max(width, none))
    areas = [computed_once((box[2] - box[0]) * (box[3] - box[1])) for box in (one, other)]
    together = computed_once(areas[0] + areas[1] - shared)
    real = tirx.all(shared > none, areas[0] > none, areas[1] > none, together > none)
    return tirx.all(real, shared / together > tirx.const(most, "float32"))


@dataclass(frozen=True)
class NonMaxSuppressionAttrs(Attributes):
    """``most``: boxes of a class; ``centred``: boxes are x, y of the middle, width, height, or else two corners, each
    y before x. Boxes with at most ``least`` are none, where ``bounded`` says so. ``rows``: of the result."""

    rows: int
    most: int
    overlap: float
    bounded: int
    least: float
    centred: int


@register
class NonMaxSuppression(IntegerOperator[NonMaxSuppressionAttrs]):
    """Rows of batch, class and box; behind the last that is kept all are -1."""

    name = "non_max_suppression"
    hides_differences = True
    arguments = ("boxes", "scores")

    def infer(self, inputs: Sequence[TensorInfo], attrs: NonMaxSuppressionAttrs) -> TensorInfo:
        boxes, scores = inputs
        fit = len(boxes.shape) == len(scores.shape) == 3 and boxes.shape[2] == CORNERS
        require(fit, f"non_max_suppression: {boxes} and {scores}, wanted [batch, boxes, 4] and [batch, classes, boxes]")
        batch, classes, count = scores.shape
        require(boxes.shape[:2] == (batch, count), f"non_max_suppression: {boxes} does not fit {scores}")
        fits = 0 < attrs.rows <= batch * classes * min(attrs.most, count)
        require(fits, f"non_max_suppression: {attrs.rows} rows for {attrs.most} boxes of a class of {scores}")
        return TensorInfo((attrs.rows, 3), "int64")

    def meaning(self, inputs: Sequence[Any], attrs: NonMaxSuppressionAttrs) -> Any:
        infos = [exact.info(tensor) for tensor in inputs]
        result = self.infer(infos, attrs)
        batch, classes, count = infos[1].shape

        def write(boxes: Any, scores: Any, rows: Any) -> None:
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

        return written_by_loops([(result.shape, result.dtype)], list(inputs), write, self.name)[0]


def _around(values: Sequence[Any]) -> Box:
    x, y, width, height = values
    half = tirx.const(2, "float32")
    return y - height / half, x - width / half, y + height / half, x + width / half
