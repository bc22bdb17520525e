"""Operators on tensors of truths that TVM's converter takes for numbers."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from uaccel.frontend.torch.convert import Context, Expr, converts
from uaccel.ops.base import constant
from uaccel.tvm_api import relax

COMPARISONS: Final = {"eq": relax.op.equal, "ne": relax.op.not_equal}


def _of_truths(node: Any) -> bool:
    return all(_is_truth(value) for value in node.args[:2])


def _is_truth(value: Any) -> bool:
    return value in (0, 1) if not hasattr(value, "meta") else str(value.meta["val"].dtype) == "torch.bool"


def _as_number(context: Context, value: Any) -> Expr:
    if not hasattr(value, "meta"):
        return constant(np.array(value, np.int32))
    return context.emit(relax.op.astype(context.expr(value), "int32"))


@converts("aten.mul.Tensor", when=lambda node: str(node.meta["val"].dtype) == "torch.bool")
def both(context: Context, node: Any) -> Expr:
    one, other = (_as_number(context, value) for value in node.args[:2])
    return relax.op.astype(context.emit(relax.op.multiply(one, other)), "bool")


@converts(*(f"aten.{name}.{kind}" for name in COMPARISONS for kind in ("Scalar", "Tensor")), when=_of_truths)
def compared(context: Context, node: Any) -> Expr:
    one, other = (_as_number(context, value) for value in node.args[:2])
    return COMPARISONS[str(node.target).split(".")[1]](one, other)
