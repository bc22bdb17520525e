"""npu_flash: npu where constants and commands lie in a quad SPI flash, 1 byte a cycle behind the bus."""

from pathlib import Path

from uaccel.accelerator import module_of

ACCELERATOR = module_of("npu").describe(Path(__file__).parent)
