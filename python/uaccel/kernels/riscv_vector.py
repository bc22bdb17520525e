"""Offers layers with weights, addition, subtraction and average pools for the RISC-V vector extension."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import numpy as np

from uaccel.kernels.arm_dsp_elementwise import sum_kernel
from uaccel.kernels.arm_helium_elementwise import offer_sums
from uaccel.kernels.output_stage import OutputStage, geometry, output_stage_of
from uaccel.kernels.registry import DeclinedError, check_type, offers
from uaccel.model import Array
from uaccel.ops.conv import Conv2d, Conv2dAttrs, DepthwiseConv2d
from uaccel.ops.kernel import Argument, Constant, Input, Kernel, Output, ParameterValue, Scratch, calling
from uaccel.ops.matmul import FullyConnected, FullyConnectedAttrs
from uaccel.ops.operator import Site
from uaccel.ops.pool import AveragePool2d, PoolAttrs, pool_kernel
from uaccel.ops.storage import overwrite_distance, row_overwrite_distance

# Layers with weights, on registers of 128 bits or more: 32 output channels at a time, one a lane.

REQUIRES: Final = ("rvv",)
LANES: Final = 32  # Output channels at a time.
FEW: Final = 16  # A block of so many channels or fewer leaves registers for twice the pixels.
PIXELS: Final = 3  # Pixels at a time.
ADDRESS: Final = 4  # Bytes of an address.


def _kernel(
    name: str,
    parameters: Mapping[str, ParameterValue],
    rows: Array,
    stage: OutputStage,
    scratch: int = 0,
    behind: Mapping[int, int] | None = None,
) -> Kernel:
    """Makes a kernel; ``rows`` has the weights of one channel each."""
    weights, constants = blocks_of(rows).astype(np.int8), blocks_of(stage.table())
    arguments: tuple[Argument, ...] = (Input(0), Constant("weights", weights), Constant("constants", constants))
    arguments = (*arguments, Output(0), *((Scratch(),) if scratch else ()))
    called, fields = partial(calling, "rvv", REQUIRES), {**parameters, **stage.bounds()}
    return called(f"uaccel_{name}_rvv_s8", f"uaccel_{name}_rvv", fields, arguments, scratch=scratch, behind=behind)


def blocks_of(rows: Array) -> Array:
    """Lays rows out by blocks of 32, the last one maybe smaller: in each block column after column."""
    return np.concatenate([rows[first : first + LANES].T.reshape(-1) for first in range(0, len(rows), LANES)])


def _together(channels: int) -> int:
    """Returns how many pixels are computed together: twice as many where the last block of channels is a half one."""
    return 2 * PIXELS if 0 < channels % LANES <= FEW else PIXELS


@offers(Conv2d, REQUIRES, rank=300)
def conv2d(site: Site[Conv2dAttrs]) -> Kernel | None:
    attrs, data, weights = site.attrs, site.operands[0].info, site.operands[1].value
    channels, height, width, _ = weights.shape
    rows = weights.reshape(channels, -1)
    stage = output_stage_of(site, rows)
    if attrs.groups > 1:
        raise DeclinedError("it has groups", "split it into a convolution for each group")
    if height == width == 1 and attrs.strides == (1, 1) and not any(attrs.padding):
        return _rows(site, int(np.prod(data.shape[:3])), rows, stage)
    parameters, together = geometry(site, (height, width)), _together(channels)
    behind = overwrite_distance(site, together, copied=True)
    return _kernel("conv2d", parameters, rows, stage, together * rows.shape[1], behind)


def _rows(site: Site[Any], count: int, weights: Array, stage: OutputStage) -> Kernel:
    """Makes the kernel for rows, over all of which each 32 channels go before the next: only one such block may
    overwrite the input."""
    units, depth = weights.shape
    behind = {0: row_overwrite_distance(count, site.operands[0].info, site.output, _together(units), copied=True)}
    parameters = {"rows": count, "depth": depth, "units": units}
    return _kernel("fully_connected", parameters, weights, stage, behind=behind if units <= LANES else None)


@offers(FullyConnected, REQUIRES, rank=300)
def fully_connected(site: Site[FullyConnectedAttrs]) -> Kernel | None:
    weights = site.operands[1].value
    stage = output_stage_of(site, weights)
    return _rows(site, site.operands[0].info.shape[0], weights, stage)


@offers(DepthwiseConv2d, REQUIRES, rank=300)
def depthwise_conv2d(site: Site[Any]) -> Kernel | None:
    data, weights = site.operands[0].info, site.operands[1].value
    height, width, channels = weights.shape
    rows = weights.reshape(height * width, channels).T
    stage = output_stage_of(site, rows)
    if channels != data.shape[3]:
        raise DeclinedError("a channel of its input makes several results", "take an ordinary convolution")
    parameters = geometry(site, (height, width), depthwise=True)
    scratch = (1 + PIXELS) * height * width * ADDRESS + channels
    return _kernel("depthwise_conv2d", parameters, rows, stage, scratch, overwrite_distance(site, PIXELS))


# Addition, subtraction and average pooling for RISC-V's vector extension.


offer_sums(REQUIRES, partial(sum_kernel, "rvv", REQUIRES), 300, 300)


@offers(AveragePool2d, REQUIRES, rank=300)
def average_pool2d(site: Site[PoolAttrs]) -> Kernel | None:
    check_type(site, "int8")
    return pool_kernel("uaccel_average_pool_rvv", site).by("rvv", REQUIRES, header="uaccel_pool_rvv.h")
