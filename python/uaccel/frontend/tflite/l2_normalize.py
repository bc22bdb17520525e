"""L2_NORMALIZATION on int8 activations."""

from __future__ import annotations

from uaccel.errors import need
from uaccel.frontend.tflite.checks import need_quantisation
from uaccel.frontend.tflite.convert import Context, Expr, converts, need_dtype
from uaccel.frontend.tflite.reader import ACTIVATIONS, Operator
from uaccel.ops.base import get
from uaccel.ops.l2_normalize import L2Normalize, L2NormalizeAttrs

LONGEST_ROW = (2**31 - 1) // 255**2  # of squares of 9-bit differences that a 32-bit sum holds


@converts("L2_NORMALIZATION")
def l2_normalization(context: Context, operator: Operator) -> Expr:
    data, output = operator.required_input(0), operator.outputs[0]
    need_dtype(data, ("int8",), "input")
    need_dtype(output, ("int8",), "output")
    need_quantisation(output, 1 / 128, 0)
    name = ACTIVATIONS[operator.option("FusedActivationFunction")]
    need(name == "NONE", f"fused activation {name} is not supported here; make it an operator of its own")
    need(len(data.info.shape) > 0, "the input is a scalar")
    depth = data.info.shape[-1]
    need(depth <= LONGEST_ROW, f"rows of {depth} elements: at most {LONGEST_ROW} squares can be summed in 32 bits")
    return get(L2Normalize)(context.expr(data), attrs=L2NormalizeAttrs(data.zero_point))
