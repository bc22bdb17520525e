"""A function of one 16-bit variable: for each of its 65,536 values the real result, rounded once.

Its values are cut into segments of one length. In most of them a polynomial of the third degree gives every result; the
others have their results in a table. ``ops/segments.py`` finds both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from uaccel.model import TensorInfo
from uaccel.ops import exact
from uaccel.ops.base import Attributes, Elementwise, IntegerOperator, Site, operand_arguments, register, require
from uaccel.ops.exact import const
from uaccel.ops.kernel import Kernel, Output, portable, same
from uaccel.tvm_api import te, tirx

VALUES: Final = 1 << 16
COLUMNS: Final = 5
STORED: Final = -(1 << 31)
"""In the place of the cube's factor: the results lie in the table, from the first column's number on."""


@dataclass(frozen=True)
class Lookup16Attrs(Attributes):
    """``function`` names it, for reports. A segment has ``2**bits`` values, the factors ``fraction`` bits after the
    point."""

    function: str
    bits: int
    fraction: int
    clamp_min: int
    clamp_max: int


@register
class Lookup16(IntegerOperator[Lookup16Attrs]):
    """``segments`` has a row of whole part, fraction and the three factors; ``stored`` the results of some of them."""

    name = "lookup16"
    hides_differences = True
    arguments = ("input", "segments", "stored")
    elementwise = Elementwise.FIRST

    def infer(self, inputs: Sequence[TensorInfo], attrs: Lookup16Attrs) -> TensorInfo:
        data, segments, stored = inputs
        require(data.dtype == "int16", f"lookup16: input is {data.dtype}, wanted int16")
        wanted = TensorInfo((VALUES >> attrs.bits, COLUMNS), "int32")
        require(segments == wanted, f"lookup16: the segments are {segments}, wanted {wanted}")
        fits = stored.dtype == "int16" and len(stored.shape) == 1
        require(fits, f"lookup16: the table is {stored}, wanted int16 with one axis")
        return data

    def meaning(self, inputs: Sequence[Any], attrs: Lookup16Attrs) -> Any:
        data, segments, stored = inputs
        bits, last = const(attrs.bits), const(int(stored.shape[0]) - 1)

        def element(*index: Any) -> Any:
            place = exact.i64(data(*index)) + const(VALUES // 2)
            segment, t = place >> bits, place & const((1 << attrs.bits) - 1)
            whole, rest, line, square, cube = (exact.i64(segments(segment, column)) for column in range(COLUMNS))
            total = ((((((cube * t) >> bits) + square) * t >> bits) + line) * t >> bits) + rest
            value = whole + ((total + const(1 << (attrs.fraction - 1))) >> const(attrs.fraction))
            clamped = tirx.max(tirx.min(value, const(attrs.clamp_max)), const(attrs.clamp_min))
            there = exact.i64(stored(tirx.max(tirx.min(whole + t, last), const(0))))
            return tirx.Select(cube == const(STORED), there, clamped).astype("int16")

        return te.compute(data.shape, element, name=self.name)

    def kernels(self, site: Site[Lookup16Attrs]) -> Sequence[Kernel]:
        parameters = {
            "elements": site.output.elements,
            **same(site.attrs, "bits", "fraction", "clamp_min", "clamp_max"),
        }
        arguments = (*operand_arguments(site.operands, self.arguments), Output(0))
        return [portable("uaccel_lookup16", "uaccel_lookup16", parameters, arguments, inplace=(0,))]
