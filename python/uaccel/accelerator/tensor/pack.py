"""Weights and output parameters in the order and the units in which the machine reads them: made ahead of time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from uaccel.accelerator.region import Region
from uaccel.accelerator.tensor.layer import filters
from uaccel.accelerator.tensor.tiling import Tiled
from uaccel.model import Array


def packed_weights(tiled: Tiled, region: Region) -> NDArray[np.int8]:
    """Pieces in the order of the loops, of each its blocks, of each the runs of the kernel, of each the array's steps.

    A step holds ``columns`` x ``depth`` values; channels and lanes beyond the layer's weigh nothing.
    """
    layer = tiled.layer
    kernel = layer.window.kernel
    weights = filters(region).reshape(layer.groups, layer.out_channels, *kernel, layer.in_channels)
    packed = [
        _blocks(tiled, group[channel : channel + tiled.channels, :, :, depth : depth + tiled.depth])
        for group in weights
        for channel in range(0, layer.out_channels, tiled.channels)
        for depth in range(0, layer.in_channels, tiled.depth)
    ]
    return np.concatenate(packed).astype(np.int8)


def _blocks(tiled: Tiled, weights: Array) -> Array:
    """A piece [channels, kernel rows, kernel columns, depth], flat."""
    columns, lanes = tiled.machine.columns, tiled.machine.depth
    runs = weights.reshape(weights.shape[0], weights.shape[1], tiled.kernel_columns, -1)
    channels, kernel_rows, kernel_columns, run = runs.shape
    steps = -(-run // lanes)
    padded = np.pad(runs, ((0, -channels % columns), (0, 0), (0, 0), (0, steps * lanes - run)))
    split = padded.reshape(-1, columns, kernel_rows, kernel_columns, steps, lanes)
    return split.transpose(0, 2, 3, 4, 1, 5).ravel()


def packed_parameters(tiled: Tiled, region: Region) -> NDArray[np.int32]:
    """Per block of channels: biases, multipliers, shifts. Biases hold what the input's zero point adds."""
    layer, columns = tiled.layer, tiled.machine.columns
    bias, multiplier, shift = (operand.value.astype(np.int64) for operand in region.operands[2:5])
    weights = filters(region).astype(np.int64)
    sums = weights.reshape(len(weights), -1).sum(axis=1)
    folded = bias - layer.input_zero_point * sums
    rows = np.stack([np.broadcast_to(row, folded.shape) for row in (folded, multiplier, shift)])
    grouped = rows.reshape(3, layer.groups, layer.out_channels)
    padded = np.pad(grouped, ((0, 0), (0, 0), (0, -layer.out_channels % columns)))
    blocks = padded.reshape(3, layer.groups, -1, columns)
    return blocks.transpose(1, 2, 0, 3).ravel().astype(np.int32)
