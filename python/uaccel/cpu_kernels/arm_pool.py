"""Pools for Arm Helium and for Arm's DSP extension."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from uaccel.cpu_kernels.registry import offers
from uaccel.ops.base import Site
from uaccel.ops.kernel import Kernel
from uaccel.ops.pool import AveragePool2d, MaxPool2d, PoolAttrs, pool_kernel

HELIUM: Final = ("helium",)
DSP: Final = ("dsp",)
LARGEST_ROW: Final = 255
"""Bytes whose sum fits 16 bits."""
LEAST_CHANNELS: Final = 4
"""Of the DSP extension's kernels, which take four at a time, the last ones over again."""


@offers(AveragePool2d, HELIUM, rank=100)
def average_helium(site: Site[PoolAttrs]) -> Kernel | None:
    return _kernel("average", HELIUM, site) if _sums_fit(site) else None


@offers(MaxPool2d, HELIUM, rank=100)
def max_helium(site: Site[PoolAttrs]) -> Kernel | None:
    return _kernel("max", HELIUM, site)


@offers(AveragePool2d, DSP, rank=200)
def average_dsp(site: Site[PoolAttrs]) -> Kernel | None:
    return _kernel("average", DSP, site) if _sums_fit(site) and _wide_enough(site) else None


@offers(MaxPool2d, DSP, rank=200)
def max_dsp(site: Site[PoolAttrs]) -> Kernel | None:
    return _kernel("max", DSP, site) if _wide_enough(site) else None


def _sums_fit(site: Site[PoolAttrs]) -> bool:
    return site.output.dtype == "int16" or min(site.attrs.window[1], site.operands[0].info.shape[2]) <= LARGEST_ROW


def _wide_enough(site: Site[PoolAttrs]) -> bool:
    return site.output.shape[3] >= LEAST_CHANNELS


def _kernel(what: str, requires: tuple[str, ...], site: Site[PoolAttrs]) -> Kernel | None:
    if site.output.dtype not in ("int8", "int16"):
        return None
    (feature,) = requires
    portable = pool_kernel(f"uaccel_{what}_pool_{feature}", site)
    call = replace(portable.calls[0], header=f"uaccel_pool_{feature}.h")
    return replace(portable, family=f"arm_{feature}", calls=(call,), requires=requires)
