"""Kernels for any CPU whose weights have four bits: several sums at once, for whose weights one load serves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np

from uaccel.cpu_kernels import blocked
from uaccel.cpu_kernels.registry import offers
from uaccel.cpu_kernels.target import EMBEDDED
from uaccel.model import Array
from uaccel.ops.base import Site
from uaccel.ops.conv2d import Conv2d, Conv2dAttrs
from uaccel.ops.depthwise_conv2d import DepthwiseConv2d
from uaccel.ops.fully_connected import FullyConnected, FullyConnectedAttrs
from uaccel.ops.kernel import Constant, Kernel, KernelCall

HEADER: Final = "uaccel_int4_blocked.h"


def words(given: Array, channels: int) -> Array:
    """One word for each ``channels`` bytes that lie side by side, of whose low halves it consists."""
    low = given.reshape(-1, channels).astype(np.int64) & 15
    summed: Array = (low << np.arange(0, 4 * channels, 4)).sum(axis=1)
    word = np.uint16 if channels == 4 else np.uint32
    return np.asarray(summed, word)


def packed(kernel: Kernel | None) -> Kernel | None:
    """A blocked kernel, with the weights of the channels that it computes at once in one word."""
    if kernel is None or not kernel.calls[0].function.endswith(("_s8", "_s8_float32")):
        return None
    return replace(kernel, calls=tuple(_packed(call) for call in kernel.calls))


def _packed(call: KernelCall) -> KernelCall:
    function = f"{call.function}_int4"
    channels = 8 if call.function.startswith("uaccel_fully_connected_blocked") else 4
    arguments = tuple(
        Constant("weights", words(given.data, channels))
        if isinstance(given, Constant) and given.role == "weights"
        else given
        for given in call.arguments
    )
    return replace(call, function=function, header=HEADER, arguments=arguments)


@offers(Conv2d, EMBEDDED, float32=(), weight_bits=4, rank=410)
def conv2d(site: Site[Conv2dAttrs]) -> Kernel | None:
    return packed(blocked.conv2d(site))


@offers(FullyConnected, EMBEDDED, float32=(), weight_bits=4, rank=420)
def fully_connected(site: Site[FullyConnectedAttrs]) -> Kernel | None:
    return packed(blocked.fully_connected(site))


@offers(DepthwiseConv2d, EMBEDDED, float32=(), weight_bits=4, rank=420)
def depthwise_conv2d(site: Site[Any]) -> Kernel | None:
    return packed(blocked.depthwise_conv2d(site))
