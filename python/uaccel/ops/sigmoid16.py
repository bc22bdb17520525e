"""Logistic and tanh of 16-bit activations: a table of the logistic function with straight lines between its points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from uaccel.model import Array, TensorInfo
from uaccel.ops import exact
from uaccel.ops.base import Attributes, Elementwise, IntegerOperator, Site, register, require
from uaccel.ops.kernel import Constant, Input, Kernel, Output, portable
from uaccel.tvm_api import te, tirx

POINTS = 256
STEPS_PER_UNIT = 24
SATURATED = 65535


def sigmoid_points() -> NDArray[np.uint16]:
    """1 / (1 + exp(-i / 24)) in units of 2**-16, raised so that the chord between two points errs as little in the
    middle as at its ends; the last point is where the function saturates."""
    index = np.arange(POINTS - 1)
    chord = (_sigmoid(index) + _sigmoid(index + 1)) / 2
    points = np.floor(_sigmoid(index) + (_sigmoid(index + 0.5) - chord) / 2 + 0.5)
    return np.append(points, SATURATED).astype(np.uint16)


def _sigmoid(index: Array) -> NDArray[np.float64]:
    return np.asarray((SATURATED + 1) / (1 + np.exp(-index / STEPS_PER_UNIT)), np.float64)


@dataclass(frozen=True)
class Curve:
    """How a function follows from the table of the logistic one.

    The magnitude of the scaled input has ``fraction_bits`` between two points; the interpolated value r has them
    too. The output is (r - origin) / 2**shift for inputs from zero, (mirror - r) / 2**shift below.
    """

    fraction_bits: int
    saturated: int  # r beyond the last point
    origin: int
    mirror: int
    shift: int

    def interpolate(self, point: Callable[[Any], Any], magnitude: Any) -> Any:
        """From the table, whose entries ``point`` gives."""
        segment = magnitude >> _i32(self.fraction_bits)
        first = tirx.min(segment, _i32(POINTS - 2))
        rest = magnitude & _i32((1 << self.fraction_bits) - 1)
        low, high = exact.i32(point(first)), exact.i32(point(first + 1))
        value = (low << _i32(self.fraction_bits)) + rest * (high - low)
        return tirx.Select(segment >= _i32(POINTS - 1), _i32(self.saturated), value)

    def output(self, scaled: Any, interpolated: Any) -> Any:
        """In units of 2**-15, of a scaled input and what the table gives for its magnitude."""
        half = _i32(1 << self.shift >> 1)
        above, below = interpolated - _i32(self.origin), _i32(self.mirror - 1) - interpolated
        result = (tirx.Select(scaled >= _i32(0), above, below) + half) >> _i32(self.shift)
        return result.astype("int16")


@dataclass(frozen=True)
class Sigmoid16Attrs(Attributes):
    """``multiplier / 2**right_shift`` brings the input to units of 1 / (3 * 4096)."""

    multiplier: int
    right_shift: int


def table_argument(value: Any, multiplier: int, right_shift: int) -> Any:
    """An input in the table's units."""
    return (exact.i32(value) * _i32(multiplier) + _i32(1 << right_shift >> 1)) >> _i32(right_shift)


class _Sigmoid16(IntegerOperator[Sigmoid16Attrs]):
    arguments = ("input", "points")
    elementwise = Elementwise.FIRST
    curve: ClassVar[Curve]

    def infer(self, inputs: Sequence[TensorInfo], attrs: Sigmoid16Attrs) -> TensorInfo:
        data, points = inputs
        require(data.dtype == "int16", f"{self.name}: input is {data.dtype}, wanted int16")
        require(points == TensorInfo((POINTS,), "uint16"), f"{self.name}: the table is {points}")
        return data

    def meaning(self, inputs: Sequence[Any], attrs: Sigmoid16Attrs) -> Any:
        data, points = inputs
        curve = self.curve

        def scale(*index: Any) -> Any:
            return table_argument(data(*index), attrs.multiplier, attrs.right_shift)

        scaled = te.compute(data.shape, scale, name="scaled")
        magnitude = te.compute(data.shape, lambda *index: tirx.abs(scaled(*index)), name="magnitude")

        def interpolate(*index: Any) -> Any:
            return curve.interpolate(points, magnitude(*index))

        interpolated = te.compute(data.shape, interpolate, name="interpolated")

        def output(*index: Any) -> Any:
            return curve.output(scaled(*index), interpolated(*index))

        return te.compute(data.shape, output, name=self.name)

    def kernels(self, site: Site[Sigmoid16Attrs]) -> Sequence[Kernel]:
        parameters = {"elements": site.output.elements} | asdict(site.attrs) | asdict(self.curve)
        arguments = (Input(0), Constant("points", site.operands[1].value), Output(0))
        return [portable("uaccel_sigmoid16", "uaccel_sigmoid16", parameters, arguments, inplace=(0,))]


def _i32(value: int) -> Any:
    return exact.const(value, "int32")


@register
class Logistic16(_Sigmoid16):
    """1 / (1 + exp(-x)) in units of 2**-15."""

    name = "logistic16"
    hides_differences = True
    curve = Curve(fraction_bits=9, saturated=0x7FFF << 10, origin=0, mirror=1 << 25, shift=10)


@register
class Tanh16(_Sigmoid16):
    """tanh(x) = 2 / (1 + exp(-2x)) - 1 in units of 2**-15."""

    name = "tanh16"
    hides_differences = True
    curve = Curve(fraction_bits=8, saturated=0xFFFF << 8, origin=1 << 23, mirror=1 << 23, shift=8)
