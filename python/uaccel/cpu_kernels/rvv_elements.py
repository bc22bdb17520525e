"""Addition, subtraction and average pooling for RISC-V's vector extension."""

from __future__ import annotations

from dataclasses import replace

from uaccel.cpu_kernels.dsp_add import sum_kernel
from uaccel.cpu_kernels.registry import offers
from uaccel.cpu_kernels.rvv import REQUIRES
from uaccel.ops.add import Add, AddAttrs, Sub
from uaccel.ops.base import Site
from uaccel.ops.kernel import Kernel
from uaccel.ops.pool import AveragePool2d, PoolAttrs, pool_kernel


@offers(Add, REQUIRES, rank=300)
def add(site: Site[AddAttrs]) -> Kernel | None:
    return sum_kernel(site, "rvv", REQUIRES, subtract=0)


@offers(Sub, REQUIRES, rank=300)
def subtract(site: Site[AddAttrs]) -> Kernel | None:
    return sum_kernel(site, "rvv", REQUIRES, subtract=1)


@offers(AveragePool2d, REQUIRES, rank=300)
def average_pool2d(site: Site[PoolAttrs]) -> Kernel | None:
    if site.output.dtype != "int8":
        return None
    portable = pool_kernel("uaccel_average_pool_rvv", site)
    call = replace(portable.calls[0], header="uaccel_pool_rvv.h")
    return replace(portable, family="rvv", calls=(call,), requires=REQUIRES)
