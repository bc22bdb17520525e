"""An accelerator's own Verilog as its device: described, verilated, and a library that stands in for the model."""

from uaccel.rtl.build import Variant, device_library
from uaccel.rtl.description import FILE, Rtl, read_rtl

__all__ = ["FILE", "Rtl", "Variant", "device_library", "read_rtl"]
