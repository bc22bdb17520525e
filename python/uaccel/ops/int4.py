"""Weights of four bits, as the portable kernels read them: ``firmware/kernels/uaccel_int4.h``.

In a module they are int8 like any others. The attribute ``weight_bits`` of the operators with weights says that four
bits hold each of them, as the model file does.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from uaccel.model import Array
from uaccel.ops.base import Site
from uaccel.ops.kernel import Constant, Kernel

HEADER: Final = "uaccel_int4.h"


def is_int4(site: Site[Any]) -> bool:
    """Whether its weights are worth packing: four bits hold each, and there are kernels for its type."""
    return getattr(site.attrs, "weight_bits", 8) == 4 and site.output.dtype == "int8"


def nibbles(rows: Array) -> NDArray[np.uint8]:
    """Each row from a byte of its own on, the first weight of two in the low half."""
    low = np.pad(rows, [(0, 0), (0, rows.shape[1] % 2)]).astype(np.uint8) & 15
    return np.ascontiguousarray(low[:, 0::2] | low[:, 1::2] << 4)


def packed(kernel: Kernel, rows: Array) -> Kernel:
    """A portable kernel, with weights in half the bytes: ``rows`` are what it reads one after the other."""
    (call,) = kernel.calls
    weights, function = Constant("weights", nibbles(rows)), call.function.replace("_s8", "_int4_s8")
    arguments = tuple(
        weights if isinstance(given, Constant) and given.role == "weights" else given for given in call.arguments
    )
    return replace(kernel, calls=(replace(call, function=function, header=HEADER, arguments=arguments),))
