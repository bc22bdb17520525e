"""All that an accelerator imports; ``docs/bring-your-accelerator.md`` shows how.

What is stated
    :class:`Accelerator` is what ``accelerator.py`` defines, :class:`Operation` what it computes, for the operators
    that :func:`pattern` describes (:data:`ANY`: whichever). :data:`ROUNDINGS` are the ways in which models round:
    :data:`TFLITE` in steps, :data:`FLOAT32` once.
What checks, costs and lowerings are given
    A :class:`Region` of :class:`OpCall`, with a :class:`Tensor` for each that comes in or goes out. An
    :class:`Operand` holds its value where it is known, a :class:`TensorInfo` is shape and type.
What lowerings give
    :func:`library_call` makes a :class:`KernelCall` of the driver's function; its arguments are :class:`Input`,
    :class:`Output`, :class:`Constant`, :class:`Scratch` and numbers. :class:`Lowered` is what a call alone does not
    say, :class:`Definition` C that comes with it.
What a device's model takes besides C
    :class:`DeviceBuild` has flags, folders of headers, and libraries.
What a core has from an accelerator
    :class:`Instruction` is R-type on CUSTOM_0, with what it means.
What the CPU does before and after
    An :class:`Expansion` writes it in :data:`relax`; :func:`constant` and :func:`permuted` are its short words, and
    :mod:`sums` has expansions that are ready. :mod:`tensor` is for matrix units that uaccel tiles layers to.
Whole accelerators
    :func:`load_accelerator` and :func:`load_accelerators` find them by name or path, :func:`module_of` is another
    one's module, :func:`planning_for` those that plan for one of the :data:`OBJECTIVES`. :class:`AcceleratorError`
    says what is wrong with one.
"""

from uaccel.accelerator import sums, tensor
from uaccel.accelerator.description import ANY, OBJECTIVES, Accelerator, Instruction, Operation, pattern
from uaccel.accelerator.discovery import load_accelerator, load_accelerators, module_of
from uaccel.accelerator.region import Lowered, OpCall, Region, Tensor, library_call
from uaccel.accelerator.sums import Expansion, permuted
from uaccel.accelerator.vendor import planning_for
from uaccel.board.accelerator_devices import DeviceBuild
from uaccel.errors import AcceleratorError
from uaccel.model import TensorInfo
from uaccel.ops.exact import FLOAT32, ROUNDINGS, TFLITE
from uaccel.ops.kernel import Constant, Definition, Input, KernelCall, Output, Scratch
from uaccel.ops.operator import Operand, constant
from uaccel.tvm_api import relax

__all__ = [
    "ANY",
    "FLOAT32",
    "OBJECTIVES",
    "ROUNDINGS",
    "TFLITE",
    "Accelerator",
    "AcceleratorError",
    "Constant",
    "Definition",
    "DeviceBuild",
    "Expansion",
    "Input",
    "Instruction",
    "KernelCall",
    "Lowered",
    "OpCall",
    "Operand",
    "Operation",
    "Output",
    "Region",
    "Scratch",
    "Tensor",
    "TensorInfo",
    "constant",
    "library_call",
    "load_accelerator",
    "load_accelerators",
    "module_of",
    "pattern",
    "permuted",
    "planning_for",
    "relax",
    "sums",
    "tensor",
]
