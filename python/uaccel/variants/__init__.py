"""Kernels for what some CPUs have and others lack: a module a family, each kernel exact or not offered.

The import order is that in which they are tried: a CPU with Helium has the DSP extension, too.
"""

from uaccel.variants import helium, helium_add, helium_depthwise, helium_pool  # isort: skip
from uaccel.variants import dsp, dsp_add  # isort: skip
from uaccel.variants import rvv, rvv_elements  # isort: skip
from uaccel.variants import blocked  # isort: skip
from uaccel.variants.choice import Choice, Option, Selector, Turn, Work, kernel_options, pick, site_words
from uaccel.variants.costs import Estimated
from uaccel.variants.records import Measured, Records, read_records, write_records
from uaccel.variants.registry import candidates, offers
from uaccel.variants.target import PORTABLE, Target

__all__ = [
    "PORTABLE",
    "Choice",
    "Estimated",
    "Measured",
    "Option",
    "Records",
    "Selector",
    "Target",
    "Turn",
    "Work",
    "blocked",
    "candidates",
    "dsp",
    "dsp_add",
    "helium",
    "helium_add",
    "helium_depthwise",
    "helium_pool",
    "kernel_options",
    "offers",
    "pick",
    "read_records",
    "rvv",
    "rvv_elements",
    "site_words",
    "write_records",
]
