"""Operators that only look at the same bytes under another shape."""

from __future__ import annotations

from typing import Any

from uaccel.frontend.tflite.convert import Context, Expr, converts, need
from uaccel.frontend.tflite.reader import Operator
from uaccel.model import Shape
from uaccel.tvm_api import relax


def reshaped(expr: Any, old: Shape, new: Shape) -> Expr:
    return expr if old == new else relax.op.reshape(expr, new)


def _always(_operator: Operator) -> bool:
    return True


@converts("RESHAPE", "SQUEEZE", "EXPAND_DIMS", when=_always)
def reshape(context: Context, operator: Operator) -> Expr:
    data, output = operator.required_input(0), operator.outputs[0]
    need(data.info.elements == output.info.elements, f"cannot reshape {data.info} to {output.info}")
    return relax.op.reshape(context.expr(data), output.info.shape)
