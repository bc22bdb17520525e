"""Kernels for what some CPUs have and others lack: a module a family, each kernel exact or not offered."""

from uaccel.variants import dsp, dsp_add, blocked  # isort: skip - the order in which they are tried
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
    "kernel_options",
    "offers",
    "pick",
    "read_records",
    "site_words",
    "write_records",
]
