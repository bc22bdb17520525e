"""Kernels for what some CPUs have and others lack: a module a family, each kernel exact or not offered.

The import order is that in which they are tried: a CPU with Helium has the DSP extension, too.
"""

from uaccel.variants import helium, helium_add, helium_depthwise, helium_pool  # isort: skip
from uaccel.variants import dsp
from uaccel.variants.registry import candidates, offers
from uaccel.variants.target import PORTABLE, Target

__all__ = [
    "PORTABLE",
    "Target",
    "candidates",
    "dsp",
    "helium",
    "helium_add",
    "helium_depthwise",
    "helium_pool",
    "offers",
]
