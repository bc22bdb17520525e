"""ARG_MAX and ARG_MIN of int8 and int16 activations along a constant axis."""

from __future__ import annotations

from uaccel.errors import need
from uaccel.frontend.tflite.checks import axis_numbers
from uaccel.frontend.tflite.convert import Context, Expr, converts, need_dtype
from uaccel.frontend.tflite.reader import Operator
from uaccel.ops.arg_extreme import ArgExtremeAttrs, ArgMax, ArgMin
from uaccel.ops.base import get


@converts("ARG_MAX", "ARG_MIN")
def arg_extreme(context: Context, operator: Operator) -> Expr:
    data, output = operator.required_input(0), operator.outputs[0]
    need_dtype(output, ("int32", "int64"), "output")
    axes = axis_numbers(operator.required_input(1), data)
    need(len(axes) == 1, f"{len(axes)} axes given, wanted 1")
    attrs = ArgExtremeAttrs(axes[0], output.info.dtype)
    return get(ArgMax if operator.name == "ARG_MAX" else ArgMin)(context.expr(data), attrs=attrs)
