"""Layers of floats with Arm Helium: a vector is four output channels, so that every sum keeps its order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from uaccel.basics.favour import Favour
from uaccel.cpu_kernels.registry import offers
from uaccel.ops.base import Site
from uaccel.ops.conv2d_float import Conv2dFloat, conv2d_kernel, depthwise_kernel, is_depthwise, wide_kernel
from uaccel.ops.float_sums import SINGLE, FloatSumAttrs, is_kernels
from uaccel.ops.fully_connected_float import FullyConnectedFloat, as_pixels
from uaccel.ops.kernel import Kernel

REQUIRES: Final = ("helium", "fpu")


@offers(Conv2dFloat, REQUIRES, favour=Favour.speed, rank=100)
def conv2d_wide(site: Site[Any]) -> Kernel | None:
    return _with_helium(wide_kernel(site))


@offers(FullyConnectedFloat, REQUIRES, favour=Favour.speed, rank=100)
def fully_connected_wide(site: Site[FloatSumAttrs]) -> Kernel | None:
    return _with_helium(wide_kernel(as_pixels(site))) if is_kernels(site) else None


@offers(Conv2dFloat, REQUIRES, rank=110)
def conv2d(site: Site[Any]) -> Kernel | None:
    if not is_kernels(site):
        return None
    return _with_helium((depthwise_kernel if is_depthwise(site) else conv2d_kernel)(site))


@offers(FullyConnectedFloat, REQUIRES, rank=110)
def fully_connected(site: Site[FloatSumAttrs]) -> Kernel | None:
    return _with_helium(conv2d_kernel(as_pixels(site))) if is_kernels(site) else None


def _with_helium(kernel: Kernel | None) -> Kernel | None:
    """The same call of the function whose sums Helium adds up."""
    if kernel is None:
        return None
    (call,) = kernel.calls
    name = call.function.removesuffix(f"_{SINGLE}") + "_helium"
    return replace(
        kernel, family="arm_helium", calls=(replace(call, function=name, header=f"{name}.h"),), requires=REQUIRES
    )
