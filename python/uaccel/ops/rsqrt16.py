"""1 / sqrt(x) of 16-bit activations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from uaccel.model import TensorInfo
from uaccel.ops import exact
from uaccel.ops.base import Attributes, Elementwise, IntegerOperator, Site, register, require
from uaccel.ops.exact import const
from uaccel.ops.kernel import Input, Kernel, Output, portable, same
from uaccel.ops.l2_normalize import inverse_root
from uaccel.tvm_api import te, tirx

FINE: Final = 20
"""Bits of a root after the point."""


@dataclass(frozen=True)
class Rsqrt16Attrs(Attributes):
    multiplier: int
    shift: int


@register
class Rsqrt16(IntegerOperator[Rsqrt16Attrs]):
    """The largest value for x <= 0, where the reference stops with an error for x < 0."""

    name = "rsqrt16"
    arguments = ("input",)
    elementwise = Elementwise.FIRST

    def infer(self, inputs: Sequence[TensorInfo], attrs: Rsqrt16Attrs) -> TensorInfo:
        require(inputs[0].dtype == "int16", f"rsqrt16: input is {inputs[0].dtype}, wanted int16")
        return inputs[0]

    def meaning(self, inputs: Sequence[Any], attrs: Rsqrt16Attrs) -> Any:
        (data,) = inputs
        value = te.compute(data.shape, lambda *i: tirx.max(exact.i64(data(*i)), const(1)), name="value")
        multiplier, shift = inverse_root(value)
        fine = te.compute(
            data.shape,
            lambda *i: exact.requantize(const(1), multiplier(*i), shift(*i) + const(FINE)),
            name="fine",
        )

        def element(*index: Any) -> Any:
            scaled = exact.requantize_const(fine(*index), attrs.multiplier, attrs.shift - FINE)
            result = tirx.Select(data(*index) > const(0, "int16"), scaled, const(32767))
            return exact.finish(result, 0, -32768, 32767, "int16")

        return te.compute(data.shape, element, name="rsqrt16")

    def kernels(self, site: Site[Rsqrt16Attrs]) -> Sequence[Kernel]:
        parameters = {"elements": site.output.elements, **same(site.attrs, "multiplier", "shift")}
        return [portable("uaccel_rsqrt_s16", "uaccel_rsqrt", parameters, (Input(0), Output(0)), inplace=(0,))]
