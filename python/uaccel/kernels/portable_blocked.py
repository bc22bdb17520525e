"""Offers register-blocked kernels for any CPU of a board: several sums at once, also with weights of four bits."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from uaccel.kernels.conv_forms import by_groups, is_depthwise, is_pointwise, offer_rewritten, wide_stage_of, windows_of
from uaccel.kernels.dot_products import ROWS, Dots, offer_dots
from uaccel.kernels.lstm import Ints, LstmFamily, check_sums, ends, lstm16, lstm_dots
from uaccel.kernels.output_stage import geometry, interleave_channels, output_stage_of, pad_axis
from uaccel.kernels.registry import EMBEDDED, DeclinedError, Maker, offers
from uaccel.model import Array
from uaccel.ops.conv import Conv2d, Conv2dAttrs, DepthwiseConv2d
from uaccel.ops.kernel import Argument, Constant, Input, Kernel, KernelCall, Output, ParameterValue, Scratch, calling
from uaccel.ops.matmul import FullyConnected, FullyConnectedAttrs
from uaccel.ops.operator import IntegerOperator, Site
from uaccel.ops.recurrent import Lstm, LstmAttrs
from uaccel.ops.storage import overwrite_distance, row_overwrite_distance

# Layers with weights of eight bits. Each load serves several products: weights of a block of channels lie side by side.

LARGEST_ADDRESS: Final = 8  # Bytes of an address on the host, where it runs the firmware of a board.


@dataclass(frozen=True, eq=False)
class Stage:
    """Holds an output stage: ``table`` has a row of bias, multiplier and shift for each channel, ``rows`` its weights.

    ``kind``: the suffix of the functions that round so.
    """

    kind: str
    rows: Array
    table: NDArray[np.int32]
    fields: Mapping[str, int]


def _stage(kind: str, rows: Array, bounds: Mapping[str, int], zero_point: int, *columns: Array) -> Stage:
    table = np.stack(columns, axis=1).astype(np.int32)
    return Stage(kind, rows, table, {**bounds, "finish.zero_point": zero_point})


def stage_of(site: Site[Any], rows: Array) -> Stage | None:
    """Computes the stage of an operator with weights, one row a channel; None where it would not be exact. int16 has
    TFLite's stage for biases of 64 bits (`wide_stage_of`), else that of int8 (32-bit biases or single precision)."""
    with suppress(DeclinedError):
        wide = wide_stage_of(site, rows)
        bounds = {"finish.sign": 0, "finish.clamp_min": site.attrs.clamp_min, "finish.clamp_max": site.attrs.clamp_max}
        return _stage("s16", rows, bounds, 1, wide.bias, wide.multiplier, wide.shift - 1)
    dtype, narrow = site.output.dtype, site.operands[2].info.dtype == "int32"
    if dtype != "int8" and site.attrs.input_zero_point:
        return None
    stage = output_stage_of(site, rows, rests=True, dtype=dtype)
    if not (stage.single or narrow):
        return None
    prefix, zero_point = "s16" if dtype == "int16" else "s8", stage.zero_point
    if stage.single:
        columns = (stage.bias, stage.multiplier, stage.shift)
        return _stage(f"{prefix}_float32", rows, stage.bounds(), zero_point, *columns)
    rows, stage = stage.computed(rows)
    if not stage.shift.all():  # a last bit goes when the zero point has been added
        return None
    columns = (stage.bias, stage.multiplier, stage.shift - 1)
    return _stage(prefix + "_acc32" * (dtype == "int16"), rows, stage.bounds(), 2 * zero_point + 1, *columns)


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
    """Makes a kernel; ``more`` are fields beside a structure ``windows``, which then holds the others."""
    block, channels = weights.shape[2], len(stage.table)
    filled = pad_axis(stage.table, 0, 1 if name.startswith("depthwise") else block)
    constants = (Constant("weights", weights), Constant("constants", filled))
    arguments: tuple[Argument, ...] = (Input(0), *constants, Output(0), *((Scratch(),) if scratch else ()))
    fields = {**parameters, **stage.fields}
    header = "int16" if stage.kind.startswith("s16") else header or name
    fields = {f"windows.{field}": value for field, value in fields.items()} | {**more} if more else fields
    struct, effort = f"uaccel_{name}_blocked", len(weights) * block / channels
    own = partial(calling, "blocked", (), header=f"uaccel_{header}_blocked.h", scratch=scratch, effort=effort)
    return own(f"{struct}_{stage.kind}", struct, fields, arguments, behind=behind)


@offers(Conv2d, EMBEDDED, float32=(), rank=400)
def blocked_conv2d(site: Site[Conv2dAttrs]) -> Kernel | None:
    """Computes two pixels at a time, four channels over them. A call for each group."""
    if site.attrs.groups > 1:
        return by_groups(site, blocked_conv2d)
    data, weights = site.operands[0].info, site.operands[1].value
    channels = len(weights)
    rows = weights.reshape(channels, -1)
    stage = stage_of(site, rows)
    if stage is None:
        return None
    packed = interleave_channels(stage.rows, 4)
    if is_pointwise(site):
        pixels = int(np.prod(data.shape[:3]))
        parameters = {"rows": pixels, "depth": data.shape[3], "out_channels": channels}
        behind = {0: row_overwrite_distance(pixels, data, site.output, 2)}
        return _kernel("rows", parameters, packed, stage, header="conv2d", behind=behind)
    behind, scratch = overwrite_distance(site, 2, copied=True), 2 * rows.shape[1] * data.itemsize
    return _kernel("conv2d", windows_of(site), packed, stage, scratch=scratch, behind=behind)


offer_rewritten(blocked_conv2d, EMBEDDED, (), transposed=400, depthwise=410)


@offers(FullyConnected, EMBEDDED, float32=(), rank=400)
def fully_connected(site: Site[FullyConnectedAttrs]) -> Kernel | None:
    """Computes eight units of one row at a time; several rows are the pixels of a pointwise convolution."""
    (count, depth), weights = site.operands[0].info.shape, site.operands[1].value
    stage = stage_of(site, weights)
    if stage is None:
        return None
    packed = interleave_channels(stage.rows, 8 if count == 1 else 4)
    if count == 1:
        return _kernel("fully_connected", {"depth": depth, "units": len(weights)}, packed, stage)
    parameters = {"rows": count, "depth": depth, "out_channels": len(weights)}
    return _kernel("rows", parameters, packed, stage, header="conv2d", behind=overwrite_distance(site, 2))


@offers(DepthwiseConv2d, EMBEDDED, float32=(), rank=400)
def blocked_depthwise_conv2d(site: Site[Conv2dAttrs]) -> Kernel | None:
    """Computes four channels at a time; the last four overlap those before where they are no multiple of four."""
    data, weights = site.operands[0].info, site.operands[1].value
    height, width, channels = weights.shape
    rows = weights.reshape(height * width, channels).T
    stage = stage_of(site, rows)
    if stage is None or not is_depthwise(site) or channels < 4:
        return None
    starts = np.minimum(np.arange(0, channels, 4), channels - 4)
    packed = interleave_channels(stage.rows[(starts[:, np.newaxis] + np.arange(4)).ravel()], 4)
    scratch, behind = height * width * LARGEST_ADDRESS + data.shape[3] * data.itemsize, overwrite_distance(site)
    windows, name = geometry(site, (height, width), depthwise=True), "depthwise_conv2d"
    if channels == data.shape[3]:
        return _kernel(name, windows, packed, stage, scratch=scratch, behind=behind)
    more = {"out_channels": channels, "multiplier": channels // data.shape[3]}
    return _kernel("depthwise_times", windows, packed, stage, header=name, scratch=scratch, behind=behind, more=more)


# Dot products, eight at a time, and the layers that begin with them.


def _pack(rows: NDArray[np.int8]) -> NDArray[np.int32]:
    """Packs two rows or more as eight, one by itself."""
    packed = interleave_channels(rows, ROWS) if len(rows) > 1 else pad_axis(np.ascontiguousarray(rows[0]), 0, 4)
    return packed.reshape(-1).view(np.int32)


def _gates(weights: NDArray[np.int8], bias: Ints, multiplier: int, shift: int) -> Ints:
    """Packs eights of gates: biases, for each input the weights of all eight, and the constants of `ends`."""
    check_sums(weights, bias, shift)
    words = interleave_channels(weights, ROWS).reshape(len(weights) // ROWS, -1).view("<i4").astype(np.int64)
    return np.concatenate([bias.reshape(-1, ROWS), words, ends(len(words), multiplier, shift)], axis=1)


offer_dots(Dots("blocked", "blocked", (), 1, _pack, element=2, rank=410, better=fully_connected))
BLOCKED: Final = LstmFamily("blocked", "blocked", (), 1, _gates)


@offers(Lstm, EMBEDDED, rank=400)
def lstm(site: Site[LstmAttrs]) -> Kernel | None:
    return lstm_dots(site, BLOCKED) if site.output.dtype == "int8" else lstm16(site, BLOCKED, fully_connected)


# Layers with weights of four bits: the blocked kernels, with the weights of a block for one input in one word.

HEADER: Final = "uaccel_int4_blocked.h"


def words(given: Array, channels: int) -> Array:
    """Packs each ``channels`` bytes that lie side by side in one word, four bits each, the first in the lowest."""
    low = given.reshape(-1, channels).astype(np.int64) & 15
    summed: Array = (low << np.arange(0, 4 * channels, 4)).sum(axis=1)
    word = np.uint16 if channels == 4 else np.uint32
    return np.asarray(summed, word)


def packed(kernel: Kernel | None) -> Kernel | None:
    """Returns a blocked kernel with its weights packed to four bits; None where there is no such function."""
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


def _offer_packed(operator: type[IntegerOperator[Any]], make: Maker, rank: int) -> None:
    offers(operator, EMBEDDED, (), weight_bits=4, rank=rank)(lambda site: packed(make(site)))


_offer_packed(Conv2d, blocked_conv2d, 410)
_offer_packed(FullyConnected, fully_connected, 420)
_offer_packed(DepthwiseConv2d, blocked_depthwise_conv2d, 420)
