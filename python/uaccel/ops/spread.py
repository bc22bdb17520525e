"""Windows over any number of axes: added up where they overlap, or searched for where their maximum lies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from uaccel.model import TensorInfo
from uaccel.ops import exact
from uaccel.ops.base import Attributes, IntegerOperator, register, require, window_count
from uaccel.tvm_api import tirx
from uaccel.tvm_api.loops import computed_once, count_to, local_array, where, written_by_loops


@dataclass(frozen=True)
class SpreadAttrs(Attributes):
    """Extents of the padded image without its padding, and of windows, an entry an axis; ``column_major``: positions
    count along the first of two axes first."""

    image: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    column_major: int = 0

    @property
    def windows(self) -> tuple[int, ...]:
        """How many there are along each axis."""
        axes = zip(self.image, self.kernel, self.stride, self.dilation, self.before, self.after, strict=True)
        return tuple(window_count(*axis) for axis in axes)

    def point(self, window: Any, element: Any) -> tuple[Any, list[Any]]:
        """Where an element of a window lies, both by number: whether inside the image, and on each axis."""
        places: list[Any] = []
        for axis in reversed(range(len(self.image))):
            at = window % self.windows[axis] * self.stride[axis] + element % self.kernel[axis] * self.dilation[axis]
            places.insert(0, computed_once(at - self.before[axis]))
            window, element = window // self.windows[axis], element // self.kernel[axis]
        inside = [tirx.all(at >= 0, at < extent) for at, extent in zip(places, self.image, strict=True)]
        return tirx.all(*inside), places

    def number(self, places: Sequence[Any]) -> Any:
        """Of a place in the image, rows before columns."""
        total: Any = 0
        for at, extent in zip(places, self.image, strict=True):
            total = total * extent + at
        return total


@register
class Fold(IntegerOperator[SpreadAttrs]):
    """[batch, channels * elements of a window, windows] becomes images: what windows share is added up."""

    name = "fold"
    arguments = ("input",)

    def infer(self, inputs: Sequence[TensorInfo], attrs: SpreadAttrs) -> TensorInfo:
        (data,), count, size = inputs, math.prod(attrs.windows), math.prod(attrs.kernel)
        fit = len(data.shape) == 3 and min(attrs.windows) > 0 and data.shape[2] == count and not data.shape[1] % size
        require(fit, f"fold: {data}, wanted [batch,channels * {size},{count}]")
        return TensorInfo((data.shape[0], data.shape[1] // size, *attrs.image), data.dtype)

    def meaning(self, inputs: Sequence[Any], attrs: SpreadAttrs) -> Any:
        info = exact.info(inputs[0])
        result = self.infer([info], attrs)
        size, count, image = math.prod(attrs.kernel), math.prod(attrs.windows), math.prod(attrs.image)

        def write(data: Any, images: Any) -> None:
            with count_to(result.elements) as i:
                images[i] = tirx.const(0, info.dtype)
            with count_to(result.elements // image) as n, count_to(size) as element, count_to(count) as window:
                inside, places = attrs.point(window, element)
                with where(inside):
                    at = computed_once(n * image + attrs.number(places))
                    images[at] = images[at] + data[(n * size + element) * count + window]

        return written_by_loops([(result.shape, result.dtype)], list(inputs), write, self.name)[0]


@register
class MaxPositions(IntegerOperator[SpreadAttrs]):
    """The maximum of each window, and where in the whole tensor it lies; the first of equal ones.

    A window with nothing in it gives 0 and -1.
    """

    name = "max_positions"
    hides_differences = True
    arguments = ("input",)

    def infer(self, inputs: Sequence[TensorInfo], attrs: SpreadAttrs) -> tuple[TensorInfo, ...]:
        (data,) = inputs
        fit = data.shape[2:] == attrs.image and min(attrs.windows) > 0
        require(fit, f"max_positions: {data}, wanted [batch,channels] and {attrs.image}, with room for a window")
        shape = (*data.shape[:2], *attrs.windows)
        return TensorInfo(shape, data.dtype), TensorInfo(shape, "int64")

    def meaning(self, inputs: Sequence[Any], attrs: SpreadAttrs) -> Any:
        info = exact.info(inputs[0])
        results = self.infer([info], attrs)
        size, count, image = math.prod(attrs.kernel), math.prod(attrs.windows), math.prod(attrs.image)
        told = SpreadAttrs(*(getattr(attrs, name)[::-1] for name in _FIELDS)) if attrs.column_major else attrs

        def write(data: Any, values: Any, positions: Any) -> None:
            best = local_array(1, "int32")
            with count_to(info.elements // image) as n, count_to(count) as window:
                best[0] = tirx.const(-1, "int32")
                values[n * count + window] = tirx.const(0, info.dtype)
                positions[n * count + window] = tirx.const(-1, "int64")
                with count_to(size) as element:
                    inside, places = attrs.point(window, element)
                    with where(inside):
                        at = computed_once(n * image + attrs.number(places))
                        with where(tirx.any(best[0] < 0, data[at] > data[tirx.max(best[0], 0)])):
                            best[0] = at
                            values[n * count + window] = data[at]
                            number = told.number(places[::-1] if attrs.column_major else places)
                            positions[n * count + window] = tirx.Cast("int64", n * image + number)

        return written_by_loops([(r.shape, r.dtype) for r in results], list(inputs), write, self.name)


_FIELDS = ("image", "kernel", "stride", "dilation", "before", "after")
