"""Kernels for any CPU that compute several sums at once, so that each load serves more than one product."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from uaccel.cpu_kernels.as_convolution import as_convolution
from uaccel.cpu_kernels.groups import by_groups
from uaccel.cpu_kernels.int16_stage import is_depthwise, wide_stage_of
from uaccel.cpu_kernels.output_stage import geometry, interleaved, output_stage_of, padded_to
from uaccel.cpu_kernels.phases import by_phases, is_pointwise, windows_of
from uaccel.cpu_kernels.registry import offers
from uaccel.cpu_kernels.target import EMBEDDED
from uaccel.model import Array
from uaccel.ops.base import Site
from uaccel.ops.behind import rows_behind, site_behind
from uaccel.ops.conv2d import Conv2d, Conv2dAttrs
from uaccel.ops.depthwise_conv2d import DepthwiseConv2d
from uaccel.ops.fully_connected import FullyConnected, FullyConnectedAttrs
from uaccel.ops.kernel import Argument, Constant, Input, Kernel, KernelCall, Output, ParameterValue, Scratch
from uaccel.ops.transpose_conv2d import TransposeConv2d, TransposeConv2dAttrs

LARGEST_ADDRESS: Final = 8
"""Bytes, on the computer that emulates a board."""


@dataclass(frozen=True, eq=False)
class Stage:
    """``table``: of each channel its sum at the start, multiplier, offset and shift.

    ``kind``: how functions end that leave sums so.
    """

    kind: str
    table: NDArray[np.int32]
    bounds: Mapping[str, int]


def stage_of(site: Site[Any], rows: Array) -> Stage | None:
    """Of an operator with weights, one row a channel; None where these kernels would not be exact."""
    dtype, narrow = site.output.dtype, site.operands[2].info.dtype == "int32"
    wide = wide_stage_of(site, rows)
    if wide is not None:
        columns = (wide.bias, wide.multiplier, np.left_shift(1, wide.shift - 1), wide.shift)
        bounds = {"finish.sign": 0, "finish.clamp_min": site.attrs.clamp_min, "finish.clamp_max": site.attrs.clamp_max}
        return Stage("s16", np.stack(columns, axis=1).astype(np.int32), bounds)
    if dtype != "int8" and site.attrs.input_zero_point:
        return None
    stage = output_stage_of(site, rows, rests=True, dtype=dtype)
    if stage is None or not (stage.single or narrow):
        return None
    kind = ("s16" if stage.single else "s16_acc32") if dtype == "int16" else "s8"
    return Stage(kind + "_float32" * stage.single, stage.table(), stage.bounds())


def _kernel(
    name: str,
    parameters: Mapping[str, ParameterValue],
    weights: NDArray[np.int8],
    stage: Stage,
    *,
    header: str = "",
    scratch: int = 0,
    behind: Mapping[int, int] | None = None,
    more: Mapping[str, int] | None = None,
) -> Kernel:
    """``more``: fields beside a structure ``windows``, which then holds the others."""
    block, channels = weights.shape[2], len(stage.table)
    filled = padded_to(stage.table, 0, 1 if name.startswith("depthwise") else block)
    constants = (Constant("weights", weights), Constant("constants", filled))
    arguments: tuple[Argument, ...] = (Input(0), *constants, Output(0), *((Scratch(),) if scratch else ()))
    fields = {**parameters, **stage.bounds}
    header = "int16" if stage.kind.startswith("s16") else header or name
    call = KernelCall(
        f"uaccel_{name}_blocked_{stage.kind}",
        f"uaccel_{header}_blocked.h",
        f"uaccel_{name}_blocked",
        {f"windows.{field}": value for field, value in fields.items()} | {**more} if more else fields,
        arguments,
    )
    effort = len(weights) * block / channels
    return Kernel("blocked", (call,), scratch=scratch, behind=behind or {}, effort=effort)


@offers(Conv2d, EMBEDDED, float32=(), rank=400)
def conv2d(site: Site[Conv2dAttrs]) -> Kernel | None:
    """Two pixels at a time; four channels over them. A call for each group."""
    if site.attrs.groups > 1:
        return by_groups(site, conv2d)
    data, weights = site.operands[0].info, site.operands[1].value
    channels = len(weights)
    rows = weights.reshape(channels, -1)
    stage = stage_of(site, rows)
    if stage is None:
        return None
    packed = interleaved(rows, 4)
    if is_pointwise(site):
        pixels = int(np.prod(data.shape[:3]))
        parameters = {"rows": pixels, "depth": data.shape[3], "out_channels": channels}
        behind = {0: rows_behind(pixels, data, site.output, 2)}
        return _kernel("rows", parameters, packed, stage, header="conv2d", behind=behind)
    behind, scratch = site_behind(site, 2, copied=True), 2 * rows.shape[1] * data.itemsize
    return _kernel("conv2d", windows_of(site), packed, stage, scratch=scratch, behind=behind)


@offers(TransposeConv2d, EMBEDDED, float32=(), rank=400)
def transpose_conv2d(site: Site[TransposeConv2dAttrs]) -> Kernel | None:
    return by_phases(site, conv2d)


@offers(FullyConnected, EMBEDDED, float32=(), rank=400)
def fully_connected(site: Site[FullyConnectedAttrs]) -> Kernel | None:
    """One row; several are the pixels of a pointwise convolution."""
    (count, depth), weights = site.operands[0].info.shape, site.operands[1].value
    stage = stage_of(site, weights)
    if stage is None:
        return None
    packed = interleaved(weights, 8 if count == 1 else 4)
    if count == 1:
        return _kernel("fully_connected", {"depth": depth, "units": len(weights)}, packed, stage)
    parameters = {"rows": count, "depth": depth, "out_channels": len(weights)}
    return _kernel("rows", parameters, packed, stage, header="conv2d", behind=site_behind(site, 2))


@offers(DepthwiseConv2d, EMBEDDED, float32=(), rank=400)
def depthwise_conv2d(site: Site[Conv2dAttrs]) -> Kernel | None:
    """Four channels at a time, the last four over again where they are no multiple of four."""
    data, weights = site.operands[0].info, site.operands[1].value
    height, width, channels = weights.shape
    rows = weights.reshape(height * width, channels).T
    stage = stage_of(site, rows)
    if stage is None or not is_depthwise(site) or channels < 4:
        return None
    starts = np.minimum(np.arange(0, channels, 4), channels - 4)
    packed = interleaved(rows[(starts[:, np.newaxis] + np.arange(4)).ravel()], 4)
    scratch, behind = height * width * LARGEST_ADDRESS + data.shape[3] * data.itemsize, site_behind(site)
    windows, name = geometry(site, (height, width), depthwise=True), "depthwise_conv2d"
    if channels == data.shape[3]:
        return _kernel(name, windows, packed, stage, scratch=scratch, behind=behind)
    more = {"out_channels": channels, "multiplier": channels // data.shape[3]}
    return _kernel("depthwise_times", windows, packed, stage, header=name, scratch=scratch, behind=behind, more=more)


@offers(DepthwiseConv2d, EMBEDDED, float32=(), rank=410)
def one_channel(site: Site[Conv2dAttrs]) -> Kernel | None:
    converted = as_convolution(site)
    return None if converted is None else conv2d(converted)
