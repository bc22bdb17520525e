"""Dynamic quantisation: a scale and a zero point for the numbers of one inference, which are measured at run time.

All of it computes in float, in PyTorch's own order, so that what is stored are PyTorch's integers.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from uaccel.errors import need
from uaccel.frontend.half_even import half_even
from uaccel.frontend.torch.convert import Context, Expr, arguments, converts
from uaccel.ops.base import constant
from uaccel.tvm_api import relax

LIBRARY: Final = "quantized_decomposed"


def is_measured(context: Context, node: Any) -> bool:
    """Whether a quantise or dequantise operator for whole tensors has a scale that is computed."""
    scale = arguments(node).get("scale")
    one = "per_tensor" in str(node.target)
    return one and hasattr(scale, "op") and not context.is_constant(scale)


def _real(value: float) -> Expr:
    return constant(np.asarray(value, np.float32))


@converts(f"{LIBRARY}.choose_qparams.tensor", f"{LIBRARY}.choose_qparams_symmetric.tensor")
def measure(context: Context, node: Any) -> list[Expr]:
    """The range of the numbers, and of 0, over that of the integers."""
    given, emit = arguments(node), context.emit
    low, high = int(given["quant_min"]), int(given["quant_max"])
    need(low < high, f"it keeps integers from {low} to {high}, of which there are too few")
    data = context.expr(given["input"])
    least = emit(relax.op.minimum(emit(relax.op.min(data)), _real(0)))
    most = emit(relax.op.maximum(emit(relax.op.max(data)), _real(0)))
    symmetric = "symmetric" in str(node.target)
    if symmetric:
        most = emit(relax.op.maximum(emit(relax.op.negative(least)), most))
        scale = emit(relax.op.divide(most, _real((high - low) / 2)))
    else:
        scale = emit(relax.op.divide(emit(relax.op.subtract(most, least)), _real(high - low)))
    scale = emit(relax.op.maximum(scale, _real(float(given["eps"]))))
    if symmetric:
        unsigned = "uint8" in str(given["dtype"])
        point = emit(relax.op.astype(constant(np.asarray([128 if unsigned else 0], np.int32)), "int64"))
    else:
        steps = emit(half_even(emit, relax.op.divide(least, scale)))
        point = emit(relax.op.subtract(_real(low), steps))
        point = emit(relax.op.minimum(emit(relax.op.maximum(point, _real(low))), _real(high)))
        point = emit(relax.op.astype(emit(relax.op.reshape(point, (1,))), "int64"))
    return [emit(relax.op.astype(emit(relax.op.reshape(scale, (1,))), "float64")), point]


def _parts(context: Context, node: Any) -> tuple[Expr, Expr]:
    """Scale and zero point as single numbers."""
    given, emit = arguments(node), context.emit
    single = (emit(relax.op.reshape(context.expr(given[name]), ())) for name in ("scale", "zero_point"))
    scale, point = (emit(relax.op.astype(part, "float32")) for part in single)
    return scale, point


def quantize_measured(context: Context, node: Any, dtype: str) -> Expr:
    """Times one over the scale, as PyTorch has it."""
    given, emit = arguments(node), context.emit
    scale, point = _parts(context, node)
    steps = emit(relax.op.multiply(context.expr(given["input"]), emit(relax.op.divide(_real(1), scale))))
    whole = emit(relax.op.add(emit(half_even(emit, steps)), point))
    low, high = (_real(int(given[name])) for name in ("quant_min", "quant_max"))
    return relax.op.astype(emit(relax.op.minimum(emit(relax.op.maximum(whole, low)), high)), dtype)


def dequantize_measured(context: Context, node: Any) -> Expr:
    emit = context.emit
    scale, point = _parts(context, node)
    wide = emit(relax.op.astype(context.expr(arguments(node)["input"]), "float32"))
    return relax.op.multiply(emit(relax.op.subtract(wide, point)), scale)
