"""npu_small: npu with other numbers: an 8x8 array, 16 KiB, slow DMA, and no double buffering."""

from pathlib import Path

from uaccel.accelerator import module_of

ACCELERATOR = module_of("npu").describe(Path(__file__).parent)
