"""Weights of half precision that are stored as floats, where speed is favoured: no kernel widens them."""

from __future__ import annotations

from typing import Any

from uaccel.basics.favour import Favour
from uaccel.cpu_kernels.registry import offers
from uaccel.ops.base import Site
from uaccel.ops.conv2d_float import Conv2dFloat, wide_kernel
from uaccel.ops.float_sums import FloatSumAttrs, is_kernels
from uaccel.ops.fully_connected_float import FullyConnectedFloat, as_pixels
from uaccel.ops.kernel import Kernel


@offers(Conv2dFloat, (), favour=Favour.speed, rank=400)
def conv2d(site: Site[Any]) -> Kernel | None:
    return wide_kernel(site)


@offers(FullyConnectedFloat, (), favour=Favour.speed, rank=400)
def fully_connected(site: Site[FloatSumAttrs]) -> Kernel | None:
    return wide_kernel(as_pixels(site)) if is_kernels(site) else None
