"""PAD, PADV2 and MIRROR_PAD: the value around the tensor is the zero point, a given constant, or the tensor itself."""

from __future__ import annotations

import numpy as np
import tflite

from uaccel.errors import need
from uaccel.frontend.checks import shape_text
from uaccel.frontend.converters import always
from uaccel.frontend.tflite.convert import Context, Expr, converts, need_constant, need_dtype
from uaccel.frontend.tflite.folding import apply, need_known, need_same_dtype, need_shape
from uaccel.frontend.tflite.reader import Operator, Tensor
from uaccel.model import Array
from uaccel.ops.base import constant
from uaccel.tvm_api import relax

Widths = list[tuple[int, int]]

MODES = {value: name for name, value in vars(tflite.MirrorPadMode).items() if isinstance(value, int)}


@converts("PAD", "PADV2", when=always)
def pad(context: Context, operator: Operator) -> Expr:
    data, output = operator.required_input(0), operator.outputs[0]
    widths = _widths(context, operator)
    value = _value(operator, output)
    flat = [width for pair in widths for width in pair]
    return apply(
        context,
        [data],
        lambda expr: relax.op.nn.pad(expr, flat, "constant", float(value)),
        lambda array: np.pad(array, widths, constant_values=value),
    )


def _widths(context: Context, operator: Operator) -> Widths:
    data, output = operator.required_input(0), operator.outputs[0]
    need_same_dtype(data, output)
    paddings = need_known(context, operator.required_input(1), "paddings")
    rank = len(data.info.shape)
    need(paddings.shape == (rank, 2), f"paddings have shape {shape_text(paddings.shape)}, wanted [{rank},2]")
    need(int(paddings.min(initial=0)) >= 0, f"padding {int(paddings.min(initial=0))} is negative; use SLICE to cut")
    widths = [(int(before), int(after)) for before, after in paddings]
    need_shape(output, [sum(pair) + extent for pair, extent in zip(widths, data.info.shape, strict=True)])
    return widths


def _value(operator: Operator, output: Tensor) -> Array:
    """The element that stands for zero, or the one that is given."""
    given = operator.optional_input(2)
    if given is None:
        stored = output.quantisation.zero_point if output.quantisation and output.info.dtype in ("int8", "uint8") else 0
        return _stored(stored, output)
    need_dtype(given, (output.info.dtype,), "padding value")
    value = need_constant(given, "padding value")
    need(value.size == 1, f'padding value "{given.name}" has {value.size} elements, wanted 1')
    need(
        output.info.dtype != "int8" or given.quantisation == output.quantisation,
        f'padding value "{given.name}" ({given.quantisation or "not quantised"}) and output '
        f"({output.quantisation or 'not quantised'}) must be quantised alike",
    )
    exact = value.dtype.kind != "i" or abs(int(value.reshape(()))) <= 2**53
    need(exact and not np.isnan(value).any(), f"padding value {value.reshape(())} has no exact form here")
    return value.reshape(())


def _stored(value: int, output: Tensor) -> Array:
    kind = np.dtype(output.info.dtype)
    if kind.kind in "iu":
        limits = np.iinfo(kind)
        need(limits.min <= value <= limits.max, f"zero point {value} does not fit {kind}")
    return np.array(value, kind)


@converts("MIRROR_PAD", when=always)
def mirror_pad(context: Context, operator: Operator) -> Expr:
    """Along each axis the mirrored indices are picked."""
    data = operator.required_input(0)
    widths = _widths(context, operator)
    mode = MODES.get(operator.option("Mode"), "unknown")
    need(mode in ("REFLECT", "SYMMETRIC"), f"mode {mode} is not known")
    edge = 1 if mode == "REFLECT" else 0
    for axis, (pair, extent) in enumerate(zip(widths, data.info.shape, strict=True)):
        most = extent - edge
        need(max(pair) <= most, f"padding {max(pair)} of axis {axis} is more than the {most} elements to mirror")
    return apply(
        context,
        [data],
        lambda expr: _mirrored(expr, data, widths, edge),
        lambda array: np.pad(array, widths, mode.lower()),
    )


def _mirrored(expr: Expr, data: Tensor, widths: Widths, edge: int) -> Expr:
    for axis, ((before, after), extent) in enumerate(zip(widths, data.info.shape, strict=True)):
        if before or after:
            left = range(before - 1 + edge, edge - 1, -1)
            right = range(extent - 1 - edge, extent - 1 - edge - after, -1)
            indices = np.array([*left, *range(extent), *right], np.int32)
            expr = relax.op.take(expr, constant(indices), axis=axis, mode="clip")
    return expr
