"""Kernels for what some CPUs have and others lack: a module a family, each kernel exact or not offered.

The import order is that in which they are tried: a CPU with Helium has the DSP extension, too.
"""

from uaccel.cpu_kernels import helium, helium_add, helium_depthwise, helium_dots, helium_int16  # isort: skip
from uaccel.cpu_kernels import helium_float, helium_lookup, helium_mul  # isort: skip
from uaccel.cpu_kernels import dsp, dsp_add, dsp_add_linear, dsp_columns, dsp_depthwise, dsp_dots  # isort: skip
from uaccel.cpu_kernels import dsp_int16, dsp_lines, dsp_mul, dsp_small, dsp_winograd  # isort: skip
from uaccel.cpu_kernels import arm_pool, arm_reduce, int16_lstm, int16_matmul, lstm_dots  # isort: skip
from uaccel.cpu_kernels import wide_float  # isort: skip
from uaccel.cpu_kernels import rvv, rvv_elements  # isort: skip
from uaccel.cpu_kernels import blocked, blocked_dots, int4  # isort: skip
from uaccel.cpu_kernels.choice import Choice, Option, Selector, Turn, Work, kernel_options, pick, site_words
from uaccel.cpu_kernels.costs import Estimated
from uaccel.cpu_kernels.ranked import Ranked
from uaccel.cpu_kernels.records import Measured, Records, read_records, write_records
from uaccel.cpu_kernels.registry import candidates, offers
from uaccel.cpu_kernels.target import PORTABLE, Target

__all__ = [
    "PORTABLE",
    "Choice",
    "Estimated",
    "Measured",
    "Option",
    "Ranked",
    "Records",
    "Selector",
    "Target",
    "Turn",
    "Work",
    "arm_pool",
    "arm_reduce",
    "blocked",
    "blocked_dots",
    "candidates",
    "dsp",
    "dsp_add",
    "dsp_add_linear",
    "dsp_columns",
    "dsp_depthwise",
    "dsp_dots",
    "dsp_int16",
    "dsp_lines",
    "dsp_mul",
    "dsp_small",
    "dsp_winograd",
    "helium",
    "helium_add",
    "helium_depthwise",
    "helium_dots",
    "helium_float",
    "helium_int16",
    "helium_lookup",
    "helium_mul",
    "int4",
    "int16_lstm",
    "int16_matmul",
    "kernel_options",
    "lstm_dots",
    "offers",
    "pick",
    "read_records",
    "rvv",
    "rvv_elements",
    "site_words",
    "wide_float",
    "write_records",
]
