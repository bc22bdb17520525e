"""What the designers of an accelerator import to describe it; ``docs/bring-your-accelerator.md`` shows how."""

from uaccel.accelerator import sums
from uaccel.accelerator.description import OBJECTIVES, Accelerator, Operation
from uaccel.accelerator.expansion import Expansion, permuted
from uaccel.accelerator.find import load_accelerator, load_accelerators, module_of
from uaccel.accelerator.lowered import Lowered, library_call
from uaccel.accelerator.objective import planning_for
from uaccel.accelerator.patterns import ANY, pattern
from uaccel.accelerator.region import OpCall, Region, Tensor
from uaccel.ops.kernel import Constant, Definition, Input, KernelCall, Output, Scratch
from uaccel.ops.rounding import FLOAT32, ROUNDINGS, TFLITE

__all__ = [
    "ANY",
    "FLOAT32",
    "OBJECTIVES",
    "ROUNDINGS",
    "TFLITE",
    "Accelerator",
    "Constant",
    "Definition",
    "Expansion",
    "Input",
    "KernelCall",
    "Lowered",
    "OpCall",
    "Operation",
    "Output",
    "Region",
    "Scratch",
    "Tensor",
    "library_call",
    "load_accelerator",
    "load_accelerators",
    "module_of",
    "pattern",
    "permuted",
    "planning_for",
    "sums",
]
