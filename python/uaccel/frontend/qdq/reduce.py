"""Holds the rules for sums and means, over windows and along axes."""

from __future__ import annotations

from typing import Any

from uaccel.errors import ModelError, need
from uaccel.frontend.qdq.emitter import Emitter, image_of, in_place, integers_of, of_image, pool_windows, without
from uaccel.frontend.qdq.graph import CHANNELS_LAST, Integers, QuantGrid, attributes, shape_of
from uaccel.frontend.qdq.rules import Emit, Island, rule
from uaccel.model import TensorInfo
from uaccel.ops.operator import constant, get, name_of
from uaccel.ops.pool import WindowAttrs, WindowMean, window_mean_operands
from uaccel.ops.reduce import ScaledSum, scaled_sum_attrs

POOLS = ("relax.nn.avg_pool1d", "relax.nn.avg_pool2d")
MEAN = "relax.mean"


@rule(*POOLS)
def pool(island: Island) -> Emit | None:
    call = island.call
    given = attributes(call)
    window = pool_windows(call)
    widths = tuple(map(int, given.padding)) if given.count_include_pad else (0, 0, 0, 0)
    counted = widths if len(widths) == 4 else (0, widths[0], 0, widths[1])
    lies = (window.kernel, window.strides, window.padding, window.dilation)
    windows = WindowAttrs(*lies, island.low, island.high)
    return _window_mean(island, given.layout, windows, counted)


@rule("relax.nn.adaptive_avg_pool2d")
def adaptive(island: Island) -> Emit | None:
    """Plans windows side by side, where the output's extents divide the input's."""
    given, wanted = (shape_of(value)[2:] for value in (island.call.args[0], island.call))
    even = not any(extent % count for extent, count in zip(given, wanted, strict=True))
    need(even, f"windows of several sizes: {list(given)} elements for {list(wanted)}")
    window = tuple(extent // count for extent, count in zip(given, wanted, strict=True))
    windows = WindowAttrs(window, window, (0, 0, 0, 0), (1, 1), island.low, island.high)
    return _window_mean(island, attributes(island.call).layout, windows, (0, 0, 0, 0))


def _window_mean(island: Island, layout: str, windows: WindowAttrs, counted: tuple[int, ...]) -> Emit:
    call, grid = island.call, island.need_grid(island.call.args[0])
    need(layout in ("NCHW", "NCW"), f"its layout is {layout}")
    need(grid.dtype == island.output.dtype, "its input and output differ in type")
    batch, channels, *extents = shape_of(call.args[0])
    height, width = extents if len(extents) == 2 else (1, *extents)
    image, scales = TensorInfo((batch, height, width, channels), grid.dtype), island.output.quantisation
    try:
        attrs, multipliers = window_mean_operands(image, grid.quantisation, scales, windows, counted)
    except TypeError as error:  # of the operator's type rule
        raise ModelError(str(error)) from error

    def emit(emitter: Emitter) -> Integers:
        data, shape = image_of(emitter, integers_of(emitter, call.args[0], grid)), shape_of(call)
        expr = get(WindowMean)(data, constant(multipliers), attrs=attrs)
        return emitter.held(of_image(emitter, expr, shape), shape, island.output, CHANNELS_LAST[len(shape)])

    return emit


@rule(MEAN, "relax.sum")
def along_axes(island: Island) -> Emit | None:
    call = island.call
    given, grid = attributes(call), island.need_grid(call.args[0])
    need(grid.dtype == island.output.dtype, "its input and output differ in type")
    rank = len(shape_of(call.args[0]))
    axes = sorted({int(axis) % rank for axis in given.axis}) if given.axis is not None else list(range(rank))
    return lambda emitter: _emit(emitter, island, call, grid, axes, bool(given.keepdims))


def _emit(emitter: Emitter, island: Island, call: Any, grid: QuantGrid, axes: list[int], keep: bool) -> Integers:
    held = in_place(emitter, integers_of(emitter, call.args[0], grid))
    attrs = scaled_sum_attrs(
        TensorInfo(held.stored_shape, grid.dtype),
        grid.quantisation,
        island.output.quantisation,
        [held.layout.index(axis) for axis in axes],
        keep_dims=keep,
        mean=name_of(call) == MEAN,
        clamp=(island.low, island.high),
    )
    layout = held.layout if keep else without(held.layout, axes)
    return emitter.held(get(ScaledSum)(held.stored, attrs=attrs), shape_of(call), island.output, layout)
