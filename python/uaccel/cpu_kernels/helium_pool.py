"""Average pooling with Arm Helium."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from uaccel.cpu_kernels.helium_call import REQUIRES
from uaccel.cpu_kernels.registry import offers
from uaccel.ops.base import Site
from uaccel.ops.kernel import Kernel
from uaccel.ops.pool import AveragePool2d, PoolAttrs, pool_kernel

LARGEST_COUNT: Final = 255
"""Pixels whose sum fits 16 bits."""


@offers(AveragePool2d, REQUIRES)
def average_pool2d(site: Site[PoolAttrs]) -> Kernel | None:
    """Eight channels at a time."""
    window = site.attrs.window
    if site.output.dtype != "int8" or window[0] * window[1] > LARGEST_COUNT:
        return None
    portable = pool_kernel("uaccel_average_pool_helium", site)
    call = replace(portable.calls[0], header="uaccel_pool_helium.h")
    return replace(portable, family="arm_helium", calls=(call,), requires=REQUIRES)
