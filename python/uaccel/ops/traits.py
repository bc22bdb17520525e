"""What is known of any operator call: ours say it where they are declared, of Relax's own it stands here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from uaccel.ops.base import Elementwise, Operand, Site, info_of, infos_of, operator_of
from uaccel.tvm_api import is_constant, is_tuple, relax

FLOATS: Final = ("float16", "float32", "float64")

QUANTIZE: Final = "relax.quantize"
DEQUANTIZE: Final = "relax.dequantize"
PERMUTE: Final = "relax.permute_dims"
RESHAPE: Final = "relax.reshape"
PAD: Final = "relax.nn.pad"

RESHAPING: Final = frozenset({RESHAPE, "relax.expand_dims", "relax.squeeze", "relax.flatten"})
"""The same elements in the same order, under another shape."""

ELEMENTWISE: Final = frozenset(
    f"relax.{name}"
    for name in (
        *("abs", "acos", "acosh", "asin", "asinh", "astype", "atan", "atanh", "bitwise_not", "ceil", "clip", "cos"),
        *("cosh", "erf", "exp", "floor", "isfinite", "isinf", "isnan", "log", "logical_not", "negative", "round"),
        *("rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc"),
        *("nn.gelu", "nn.gelu_tanh", "nn.leakyrelu", "nn.relu", "nn.selu", "nn.silu", "nn.softplus"),
        *("add", "atan2", "divide", "floor_divide", "floor_mod", "log_add_exp", "maximum", "minimum", "mod"),
        *("multiply", "power", "subtract", "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"),
        *("equal", "greater", "greater_equal", "less", "less_equal", "not_equal"),
        *("logical_and", "logical_or", "logical_xor", "where"),
    )
)
"""Every element of the result depends on one of each argument, which broadcast."""

_CONVOLUTIONS: Final = frozenset({"relax.nn.conv1d", "relax.nn.conv2d", "relax.nn.conv3d"})
_TRANSPOSED: Final = frozenset({"relax.nn.conv1d_transpose", "relax.nn.conv2d_transpose"})


def name_of(call: Any) -> str:
    """The operator's full name; empty for the call of a function."""
    return str(getattr(call.op, "name", ""))


def elementwise_of(call: Any) -> Elementwise | None:
    operator = operator_of(call)
    if operator is not None:
        return operator.elementwise
    return Elementwise.EACH if name_of(call) in ELEMENTWISE else None


def permuted_axes(call: Any) -> tuple[int, ...]:
    """The axes of the argument in the result's order."""
    rank = len(call.ty.shape.values)
    if call.attrs.axes is None:
        return tuple(reversed(range(rank)))
    return tuple(int(axis) % rank for axis in call.attrs.axes)


def moved_widths(call: Any, layout: tuple[int, ...]) -> list[int]:
    """What a pad adds before and behind each axis, for axes that lie in another order."""
    widths = [int(width) for width in call.attrs.pad_width]
    return [width for axis in layout for width in widths[2 * axis : 2 * axis + 2]]


def pads_with_number(call: Any) -> bool:
    return name_of(call) == PAD and bool(call.attrs.pad_mode == "constant")


def macs_of(call: Any, site: Site[Any] | None = None) -> int:
    """Multiply-accumulates of a call; ``site`` where it is known already."""
    operator, site = operator_of(call), site or site_of(call, values=False)
    if operator is not None:
        return operator.macs(site)
    if call.op.name == "relax.matmul":
        return site.output.elements * site.operands[0].info.shape[-1]
    if call.op.name not in _CONVOLUTIONS | _TRANSPOSED:
        return 0
    data, weights = (operand.info for operand in site.operands[:2])
    moved, channels = (data, "I") if call.op.name in _TRANSPOSED else (site.output, "O")
    return moved.elements * weights.elements // weights.shape[str(call.attrs.kernel_layout).index(channels)]


def site_of(call: Any, *, values: bool = True) -> Site[Any]:
    """A call as its kernels see it; without ``values`` of constants, which may be large, for what asks for shapes."""
    operands = tuple(
        Operand(info_of(argument), argument.value.numpy() if values and is_constant(argument) else None)
        for argument in tensor_arguments(call.args)
    )
    operator = operator_of(call)
    return Site(operator.attrs_of(call) if operator else None, operands, infos_of(call))


def tensor_arguments(arguments: Any) -> Iterator[Any]:
    """The arguments that are data, tuples flattened; shapes and numbers are compile-time matters."""
    for argument in arguments:
        if is_tuple(argument):
            yield from tensor_arguments(argument.fields)
        elif isinstance(getattr(argument, "ty", None), relax.TensorType):
            yield argument
