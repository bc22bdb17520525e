"""npu_tiny: npu with other numbers: a 4x4 array, the largest one that an LFE5U-85F has room for beside a core."""

from pathlib import Path

from uaccel.accelerator import module_of

ACCELERATOR = module_of("npu").describe(Path(__file__).parent)
