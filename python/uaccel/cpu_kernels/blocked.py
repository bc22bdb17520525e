"""Kernels for any CPU that compute several sums at once, so that each load serves more than one product."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from uaccel.cpu_kernels.output_stage import OutputStage, geometry, output_stage_of, padded_to
from uaccel.cpu_kernels.phases import by_phases, is_pointwise, output_steps
from uaccel.cpu_kernels.registry import offers
from uaccel.model import Array
from uaccel.ops.base import Site
from uaccel.ops.behind import rows_behind, site_behind
from uaccel.ops.conv2d import Conv2d, Conv2dAttrs
from uaccel.ops.depthwise_conv2d import DepthwiseConv2d
from uaccel.ops.fully_connected import FullyConnected, FullyConnectedAttrs
from uaccel.ops.kernel import Argument, Constant, Input, Kernel, KernelCall, Output, ParameterValue, Scratch
from uaccel.ops.transpose_conv2d import TransposeConv2d, TransposeConv2dAttrs

EMBEDDED: Final = ("embedded",)
"""Any CPU of a board. On the computer itself the portable kernels serve, which take no scratch memory."""
LARGEST_ADDRESS: Final = 8
"""Bytes, on the computer that emulates a board."""


def _kernel(
    name: str,
    parameters: Mapping[str, ParameterValue],
    weights: NDArray[np.int8],
    stage: OutputStage,
    *,
    header: str = "",
    scratch: int = 0,
    behind: Mapping[int, int] | None = None,
) -> Kernel:
    constants = (Constant("weights", weights), Constant("constants", stage.table()))
    arguments: tuple[Argument, ...] = (Input(0), *constants, Output(0), *((Scratch(),) if scratch else ()))
    function, struct = f"uaccel_{name}_blocked_s8{'_float32' * stage.single}", f"uaccel_{name}_blocked"
    call = KernelCall(
        function, f"uaccel_{header or name}_blocked.h", struct, {**parameters, **stage.bounds()}, arguments
    )
    return Kernel("blocked", (call,), scratch=scratch, behind=behind or {})


def interleaved(rows: Array, block: int) -> NDArray[np.int8]:
    """Of each ``block`` channels and each input the weights of the channels; ``rows`` has one row a channel."""
    filled = padded_to(rows, 0, block)
    return np.ascontiguousarray(filled.reshape(-1, block, rows.shape[1]).transpose(0, 2, 1), dtype=np.int8)


@offers(Conv2d, EMBEDDED, float32=())
def conv2d(site: Site[Conv2dAttrs]) -> Kernel | None:
    attrs, data, weights = site.attrs, site.operands[0].info, site.operands[1].value
    channels, height, width, _ = weights.shape
    rows = weights.reshape(channels, -1)
    stage = output_stage_of(site, rows, rests=True)
    if stage is None or attrs.groups > 1:
        return None
    packed, stage = interleaved(rows, 4), stage.filled(-(-channels // 4) * 4)
    if is_pointwise(site):
        pixels = int(np.prod(data.shape[:3]))
        parameters = {"rows": pixels, "depth": data.shape[3], "out_channels": channels}
        behind = {0: rows_behind(pixels, data, site.output, 2)}
        return _kernel("rows", parameters, packed, stage, header="conv2d", behind=behind)
    out_pixel, out_row = output_steps(site)
    kept = geometry(site, (height, width)) | {"out_pixel": out_pixel, "out_row": out_row}
    behind = site_behind(site, 2, copied=True)
    return _kernel("conv2d", kept, packed, stage, scratch=2 * rows.shape[1], behind=behind)


@offers(TransposeConv2d, EMBEDDED, float32=())
def transpose_conv2d(site: Site[TransposeConv2dAttrs]) -> Kernel | None:
    return by_phases(site, conv2d)


@offers(FullyConnected, EMBEDDED, float32=())
def fully_connected(site: Site[FullyConnectedAttrs]) -> Kernel | None:
    """One row; several are the pixels of a pointwise convolution."""
    (count, depth), weights = site.operands[0].info.shape, site.operands[1].value
    stage = output_stage_of(site, weights, rests=True)
    if stage is None:
        return None
    block = 8 if count == 1 else 4
    packed, filled = interleaved(weights, block), stage.filled(-(-len(weights) // block) * block)
    if count == 1:
        return _kernel("fully_connected", {"depth": depth, "units": len(weights)}, packed, filled)
    parameters = {"rows": count, "depth": depth, "out_channels": len(weights)}
    return _kernel("rows", parameters, packed, filled, header="conv2d", behind=site_behind(site, 2))


@offers(DepthwiseConv2d, EMBEDDED, float32=())
def depthwise_conv2d(site: Site[Any]) -> Kernel | None:
    data, weights = site.operands[0].info, site.operands[1].value
    height, width, channels = weights.shape
    rows = weights.reshape(height * width, channels).T
    stage = output_stage_of(site, rows, rests=True)
    if stage is None or channels != data.shape[3] or channels % 4:
        return None
    parameters = geometry(site, (height, width), depthwise=True)
    scratch = height * width * LARGEST_ADDRESS + channels
    packed = interleaved(rows, 4)
    return _kernel("depthwise_conv2d", parameters, packed, stage, scratch=scratch, behind=site_behind(site))
