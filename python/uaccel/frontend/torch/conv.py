"""Converts convolutions and pools of PyTorch that TVM's converter lacks or gets wrong."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from uaccel.errors import need
from uaccel.frontend.torch.converter import Context, Expr, arguments, converts
from uaccel.ops.operator import constant
from uaccel.tvm_api import relax

# Convolutions of a single image or line: TVM's converter wants an axis for the batch.

CONVOLUTIONS: Final = {"aten.conv1d.default": relax.op.nn.conv1d, "aten.conv2d.default": relax.op.nn.conv2d}


def _is_single(node: Any) -> bool:
    return len(node.args[0].meta["val"].shape) < len(node.args[1].meta["val"].shape)


@converts(*CONVOLUTIONS, when=_is_single)
def convolution(context: Context, node: Any) -> Expr:
    given = arguments(node)
    batch = context.emit(relax.op.expand_dims(context.expr(given["input"]), 0))
    options: dict[str, Any] = {
        name: list(map(int, given[kind])) for name, kind in (("strides", "stride"), ("dilation", "dilation"))
    }
    padding = [int(amount) for amount in given["padding"]] * 2
    options |= {"padding": padding, "groups": int(given["groups"])}
    value = context.emit(CONVOLUTIONS[str(node.target)](batch, context.expr(given["weight"]), **options))
    if given["bias"] is not None:
        extents = [-1] + [1] * len(options["strides"])
        value = context.emit(relax.op.add(value, context.emit(relax.op.reshape(context.expr(given["bias"]), extents))))
    return relax.op.squeeze(value, [0])


# Pools that TVM's converter does not have, or not with these arguments.


@converts("aten.adaptive_max_pool2d.default")
def adaptive_max_pool(context: Context, node: Any) -> Expr:
    """The maxima without their positions: by a plain pool where extents divide evenly, else axis by axis."""
    source = node.args[0]
    before, after = source.meta["val"].shape[-2:], node.meta["val"][0].shape[-2:]
    rank = len(source.meta["val"].shape)
    value = context.expr(source)
    if rank == 4 and all(old % new == 0 for old, new in zip(before, after, strict=True)):
        window = [old // new for old, new in zip(before, after, strict=True)]
        return [context.emit(relax.op.nn.max_pool2d(value, pool_size=window, strides=window))]
    for axis, old, new in zip((rank - 2, rank - 1), before, after, strict=True):
        value = _greatest(context, value, axis, old, new)
    return [value]


MAX_POOLS: Final = {
    "aten.max_pool1d.default": relax.op.nn.max_pool1d,
    "aten.max_pool2d.default": relax.op.nn.max_pool2d,
}


def _leaves_strides_out(node: Any) -> bool:
    return len(node.args) > 2 and not node.args[2]


@converts(*MAX_POOLS, when=_leaves_strides_out)
def max_pool(context: Context, node: Any) -> Expr:
    """A pool whose strides are left out, which means those of the window. TVM's converter misreads an empty list."""
    given, made = arguments(node), MAX_POOLS[str(node.target)]
    rank = 1 if "1d" in str(node.target) else 2
    window, padding, dilation = (_extents(given[name], rank) for name in ("kernel_size", "padding", "dilation"))
    shape = list(map(int, node.args[0].meta["val"].shape))
    batch = context.emit(relax.op.reshape(context.expr(node.args[0]), [1] * (rank + 2 - len(shape)) + shape))
    value = made(batch, window, window, padding * 2, dilation, bool(given["ceil_mode"]))
    return relax.op.reshape(context.emit(value), list(map(int, node.meta["val"].shape)))


def _is_divided(node: Any) -> bool:
    return arguments(node).get("divisor_override") is not None


@converts("aten.avg_pool2d.default", when=_is_divided)
def divided_pool(context: Context, node: Any) -> Expr:
    """A pool with its own divisor: the mean of whole windows, padding included, times their size over the divisor."""
    given = arguments(node)
    need(not given["ceil_mode"], "divisor_override with ceil_mode is not supported; leave one of them out")
    window, padding = (_extents(given[name], 2) for name in ("kernel_size", "padding"))
    strides = _extents(given["stride"], 2) if given["stride"] else window
    shape = list(map(int, node.meta["val"].shape))
    value = context.emit(relax.op.reshape(context.expr(node.args[0]), _images(node.args[0])))
    mean = relax.op.nn.avg_pool2d(value, window, strides, padding * 2, count_include_pad=True)
    factor = constant(np.array(math.prod(window) / given["divisor_override"], np.float32))
    return relax.op.reshape(context.emit(relax.op.multiply(context.emit(mean), factor)), shape)


def _extents(given: Any, rank: int) -> list[int]:
    return [int(extent) for extent in (given if len(given) == rank else [given[0]] * rank)]


def _images(source: Any) -> list[int]:
    """The shape of the source with an axis for the batch."""
    shape = list(map(int, source.meta["val"].shape))
    return shape if len(shape) == 4 else [1, *shape]


def _greatest(context: Context, value: Expr, axis: int, old: int, new: int) -> Expr:
    """Maxima of windows along an axis; the i-th is from floor(i * old / new) to ceil((i + 1) * old / new)."""
    parts = []
    for number in range(new):
        begin, end = number * old // new, -(-(number + 1) * old // new)
        part = context.emit(relax.op.strided_slice(value, [axis], [begin], [end]))
        parts.append(context.emit(relax.op.max(part, [axis], True)))
    return context.emit(relax.op.concat(parts, axis))
