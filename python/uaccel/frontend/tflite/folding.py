"""What is known at compile time: constants of the file, and what operators compute from nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from uaccel.errors import need
from uaccel.frontend.checks import at_run_time, shape_text
from uaccel.frontend.tflite.convert import Context, Expr
from uaccel.frontend.tflite.reader import Tensor
from uaccel.model import Array
from uaccel.ops.base import constant
from uaccel.tvm_api import is_constant


def known(context: Context, tensor: Tensor) -> Array | None:
    """The tensor's value, None where it is computed or given at run time."""
    expr = context.exprs.get(tensor.index)
    if expr is None:
        return tensor.data
    return np.asarray(expr.value.numpy()) if is_constant(expr) else None


def need_known(context: Context, tensor: Tensor, role: str) -> Array:
    value = known(context, tensor)
    if value is None:
        raise at_run_time(role, tensor.name)
    need(value.dtype.kind == "i", f'{role} "{tensor.name}" is {value.dtype}, wanted integers')
    return value


def need_numbers(context: Context, tensor: Tensor, role: str, count: int) -> list[int]:
    """A constant list of ``count`` integers."""
    numbers = [int(value) for value in need_known(context, tensor, role).reshape(-1)]
    need(len(numbers) == count, f'{role} "{tensor.name}" has {len(numbers)} entries, wanted {count}')
    return numbers


def need_shape(output: Tensor, shape: Sequence[int]) -> None:
    """The file must say of the output what follows from the inputs."""
    need(
        output.info.shape == tuple(shape),
        f'output "{output.name}" has shape {shape_text(output.info.shape)}, the inputs give {shape_text(shape)}',
    )


def need_same_dtype(data: Tensor, output: Tensor) -> None:
    need(
        data.info.dtype == output.info.dtype,
        f'input "{data.name}" is {data.info.dtype} and output "{output.name}" is {output.info.dtype}; '
        "this operator cannot convert",
    )


def apply(
    context: Context,
    tensors: Sequence[Tensor],
    symbolic: Callable[..., Expr],
    folded: Callable[..., Array],
) -> Expr:
    """``symbolic`` over the tensors' expressions, or at once the value where all of them are known."""
    values = [known(context, tensor) for tensor in tensors]
    if all(value is not None for value in values):
        return constant(folded(*values))
    return symbolic(*[context.expr(tensor) for tensor in tensors])
