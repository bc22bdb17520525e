"""Kernels for RISC-V cores with a custom instruction: the sum of the products of four signed bytes each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from uaccel.cpu_kernels.output_stage import OutputStage, output_stage_of, padded_to
from uaccel.cpu_kernels.phases import is_pointwise, windows_of
from uaccel.cpu_kernels.registry import offers
from uaccel.model import Array
from uaccel.ops.base import Site
from uaccel.ops.behind import rows_behind, site_behind
from uaccel.ops.conv2d import Conv2d, Conv2dAttrs
from uaccel.ops.fully_connected import FullyConnected, FullyConnectedAttrs
from uaccel.ops.kernel import Argument, Constant, Input, Kernel, KernelCall, Output, ParameterValue, Scratch

REQUIRES: Final = ("dot4",)
WORD: Final = 4
"""Bytes, and the channels that are computed at a time."""


def words_of(rows: Array) -> NDArray[np.int32]:
    """Of each four channels and each four inputs a word for each of the channels; ``rows`` has one row a channel."""
    filled = padded_to(padded_to(rows, 0, WORD), 1, WORD)
    blocks = filled.reshape(-1, WORD, filled.shape[1] // WORD, WORD).transpose(0, 2, 1, 3)
    return np.ascontiguousarray(blocks, dtype=np.int8).reshape(-1).view("<i4").astype(np.int32)


def _kernel(
    name: str,
    parameters: Mapping[str, ParameterValue],
    rows: Array,
    stage: OutputStage,
    *,
    scratch: int = 0,
    behind: Mapping[int, int] | None = None,
) -> Kernel:
    table = stage.filled(-(-len(rows) // WORD) * WORD).table()
    constants = (Constant("weights", words_of(rows)), Constant("constants", table))
    arguments: tuple[Argument, ...] = (Input(0), *constants, Output(0), *((Scratch(),) if scratch else ()))
    call = KernelCall(f"uaccel_{name}_dot4_s8", "uaccel_conv2d_dot4.h", f"uaccel_{name}_dot4", parameters, arguments)
    return Kernel("dot4", (call,), scratch=scratch, requires=REQUIRES, behind=behind or {})


@offers(Conv2d, REQUIRES)
def conv2d(site: Site[Conv2dAttrs]) -> Kernel | None:
    attrs, data, weights = site.attrs, site.operands[0].info, site.operands[1].value
    channels = len(weights)
    rows = weights.reshape(channels, -1)
    stage = output_stage_of(site, rows)
    if stage is None or attrs.groups > 1:
        return None
    if is_pointwise(site) and rows.shape[1] % WORD == 0:
        pixels = int(np.prod(data.shape[:3]))
        parameters = {"rows": pixels, "depth": data.shape[3], "out_channels": channels, **stage.bounds()}
        return _kernel("rows", parameters, rows, stage, behind={0: rows_behind(pixels, data, site.output, 2)})
    windows = {f"windows.{name}": value for name, value in (windows_of(site) | stage.bounds()).items()}
    scratch = 2 * WORD * -(-rows.shape[1] // WORD)
    return _kernel("conv2d", windows, rows, stage, scratch=scratch, behind=site_behind(site, 2, copied=True))


@offers(FullyConnected, REQUIRES)
def fully_connected(site: Site[FullyConnectedAttrs]) -> Kernel | None:
    (count, depth), weights = site.operands[0].info.shape, site.operands[1].value
    stage = output_stage_of(site, weights)
    if stage is None or depth % WORD:
        return None
    parameters = {"rows": count, "depth": depth, "out_channels": len(weights), **stage.bounds()}
    return _kernel("rows", parameters, weights, stage, behind=site_behind(site, 2) if count > 1 else None)
