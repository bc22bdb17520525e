"""Holds the kernels for CPU extensions, a module a family, and chooses among them; mirrors firmware/kernels.

A kernel is offered for a call only where it gives the operator's result to the last bit. Importing a family's module
registers its offers, each with its rank (`offers`); `choice` picks one of them for each layer.
"""

from uaccel.kernels import (
    arm_dsp_conv,
    arm_dsp_depthwise,
    arm_dsp_elementwise,
    arm_dsp_int16,
    arm_dsp_small,
    arm_dsp_winograd,
    arm_helium_conv,
    arm_helium_depthwise,
    arm_helium_elementwise,
    arm_helium_int16,
    arm_shared,
    lstm,
    portable_blocked,
    riscv_vector,
)
from uaccel.kernels.choice import (
    Choice,
    Estimated,
    Option,
    RankedSelector,
    Records,
    RecordsSelector,
    Selector,
    Turn,
    Work,
    kernel_options,
    pick,
    read_records,
    site_words,
    write_records,
)
from uaccel.kernels.registry import PORTABLE, Target, candidates, offers

__all__ = [
    "PORTABLE",
    "Choice",
    "Estimated",
    "Option",
    "RankedSelector",
    "Records",
    "RecordsSelector",
    "Selector",
    "Target",
    "Turn",
    "Work",
    "arm_dsp_conv",
    "arm_dsp_depthwise",
    "arm_dsp_elementwise",
    "arm_dsp_int16",
    "arm_dsp_small",
    "arm_dsp_winograd",
    "arm_helium_conv",
    "arm_helium_depthwise",
    "arm_helium_elementwise",
    "arm_helium_int16",
    "arm_shared",
    "candidates",
    "kernel_options",
    "lstm",
    "offers",
    "pick",
    "portable_blocked",
    "read_records",
    "riscv_vector",
    "site_words",
    "write_records",
]
