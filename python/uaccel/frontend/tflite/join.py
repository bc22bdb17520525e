"""CONCATENATION and PACK: several tensors in one."""

from __future__ import annotations

import numpy as np

from uaccel.errors import need
from uaccel.frontend.checks import need_axis
from uaccel.frontend.converters import always
from uaccel.frontend.tflite.convert import Context, Expr, converts
from uaccel.frontend.tflite.folding import apply, need_same_dtype, need_shape
from uaccel.frontend.tflite.reader import ACTIVATIONS, Operator, Tensor
from uaccel.tvm_api import relax


@converts("CONCATENATION", when=always)
def concatenation(context: Context, operator: Operator) -> Expr:
    parts, output = _parts(operator)
    activation = ACTIVATIONS[operator.option("FusedActivationFunction")]
    need(activation == "NONE", f"fused activation {activation} is not supported; use none")
    rank = len(output.info.shape)
    axis = need_axis(operator.option("Axis"), rank)
    shape = list(output.info.shape)
    for part in parts:
        _need_alike(part, output)
        others = [extent for i, extent in enumerate(part.info.shape) if i != axis]
        fits = len(part.info.shape) == rank and others == shape[:axis] + shape[axis + 1 :]
        need(fits, f'input "{part.name}" ({part.info}) does not fit output {output.info} along axis {axis}')
    shape[axis] = sum(part.info.shape[axis] for part in parts)
    need_shape(output, shape)
    return apply(
        context,
        parts,
        lambda *exprs: relax.op.concat(list(exprs), axis),
        lambda *arrays: np.concatenate(arrays, axis),
    )


def _parts(operator: Operator) -> tuple[list[Tensor], Tensor]:
    parts, output = [operator.required_input(i) for i in range(len(operator.inputs))], operator.outputs[0]
    need(bool(parts), "there are no inputs")
    for part in parts:
        need_same_dtype(part, output)
    return parts, output


def _need_alike(part: Tensor, output: Tensor) -> None:
    """The reference checks int8 alone, and copies the stored integers whatever the type."""
    need(
        output.info.dtype != "int8" or part.quantisation == output.quantisation,
        f'input "{part.name}" ({part.quantisation or "not quantised"}) and output '
        f"({output.quantisation or 'not quantised'}) must be quantised alike: this operator cannot rescale",
    )


@converts("PACK", when=always)
def pack(context: Context, operator: Operator) -> Expr:
    parts, output = _parts(operator)
    shape = list(parts[0].info.shape)
    axis = need_axis(operator.option("Axis"), len(shape) + 1)
    for part in parts:
        need(list(part.info.shape) == shape, f'input "{part.name}" ({part.info}) differs from {parts[0].info}')
    need_shape(output, [*shape[:axis], len(parts), *shape[axis:]])
    return apply(
        context,
        parts,
        lambda *exprs: relax.op.stack(list(exprs), axis),
        lambda *arrays: np.stack(arrays, axis),
    )
