"""Sums and means for Arm Helium and for Arm's DSP extension."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from uaccel.cpu_kernels.registry import offers
from uaccel.ops.base import Site, get
from uaccel.ops.kernel import Kernel, dtype_suffix
from uaccel.ops.reduce import ReduceMean, ReduceSum, ReduceSumAttrs, loop_parameters, reduced_elements
from uaccel.ops.rounding import TFLITE

LEAST_NEIGHBOURS: Final = {"helium": 1, "dsp": 4}
"""The DSP extension's kernel takes four at a time, the last ones over again."""


def _sum(site: Site[ReduceSumAttrs], operator: type[ReduceMean] | type[ReduceSum], feature: str) -> Kernel | None:
    """Where what is added up lies row by row, as pixels do."""
    shape, attrs = site.operands[0].info.shape, site.attrs
    loops = loop_parameters(shape, attrs.axes)
    rows = loops["reduced_inner"] == loops["inner"] == 1 and loops["middle"] >= LEAST_NEIGHBOURS[feature]
    multiplier, shift = operator().factor(attrs, reduced_elements(shape, attrs.axes))
    exact = attrs.rounding == TFLITE and multiplier >= 0 and shift <= 0
    if not rows or not exact or site.output.dtype not in ("int8", "int16"):
        return None
    portable = get(operator).kernels(site)[0]
    function = f"uaccel_reduce_sum_{feature}_{dtype_suffix(site.output.dtype)}"
    own = replace(portable.calls[0], function=function, header=f"uaccel_reduce_{feature}.h")
    return replace(portable, family=f"arm_{feature}", calls=(own,), requires=(feature,))


@offers(ReduceMean, ("helium",), rank=100)
def mean_helium(site: Site[ReduceSumAttrs]) -> Kernel | None:
    return _sum(site, ReduceMean, "helium")


@offers(ReduceSum, ("helium",), rank=100)
def sum_helium(site: Site[ReduceSumAttrs]) -> Kernel | None:
    return _sum(site, ReduceSum, "helium")


@offers(ReduceMean, ("dsp",), rank=200)
def mean_dsp(site: Site[ReduceSumAttrs]) -> Kernel | None:
    return _sum(site, ReduceMean, "dsp")


@offers(ReduceSum, ("dsp",), rank=200)
def sum_dsp(site: Site[ReduceSumAttrs]) -> Kernel | None:
    return _sum(site, ReduceSum, "dsp")
