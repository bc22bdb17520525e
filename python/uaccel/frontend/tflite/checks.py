"""Conditions that several operators share."""

from __future__ import annotations

import numpy as np

from uaccel.frontend.tflite.convert import need
from uaccel.frontend.tflite.reader import Tensor


def need_sum_in_32_bits(data: Tensor, count: int) -> None:
    """The reference sums in 32 bits and adds half the count to round; beyond that its result means nothing."""
    limit = (2**31 - 1) // (1 - int(np.iinfo(data.info.dtype).min))
    need(
        count <= limit,
        f"the sum of {count} {data.info.dtype} elements overflows 32 bits; at most {limit} are possible",
    )


def need_equal_quantisation(data: Tensor, output: Tensor, tolerance: float = 0.0) -> None:
    """For operators that pass elements on as they are stored."""
    equal = abs(data.scale - output.scale) <= tolerance and data.zero_point == output.zero_point
    given, wanted = output.required_quantisation, data.required_quantisation
    need(
        equal,
        f"the output's quantisation ({given}) differs from the input's ({wanted}); this operator cannot rescale",
    )
