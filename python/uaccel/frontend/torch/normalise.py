"""Batch normalisation with fixed statistics is a factor and a summand; behind a convolution its weights take both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from uaccel.errors import need
from uaccel.frontend.torch.convert import Context, Expr, arguments, converts
from uaccel.model import Array
from uaccel.ops.base import constant
from uaccel.tvm_api import relax

_NORM = "_native_batch_norm_legit_no_training.default"
_BEFORE = ("conv1d.default", "conv2d.default", "linear.default")


@dataclass(frozen=True)
class Affine:
    """For each channel."""

    factor: Array
    summand: Array


@converts(f"aten.{_NORM}")
def batch_norm(context: Context, node: Any) -> Expr:
    """The first of three results, which is the only one that programs use."""
    source = node.args[0]
    value = context.expr(source)
    if following(context, source) is not None:
        return [value]  # its weights hold it already
    meaning = _affine(context, node)
    spread = (1, -1) + (1,) * (len(node.meta["val"][0].shape) - 2)
    scaled = context.emit(relax.op.multiply(value, constant(meaning.factor.reshape(spread))))
    return [context.emit(relax.op.add(scaled, constant(meaning.summand.reshape(spread))))]


def following(context: Context, node: Any) -> Affine | None:
    """What normalises the result of a convolution with constant weights, and nothing else reads it."""
    target = str(getattr(node.target, "__name__", ""))
    if target not in _BEFORE or len(node.users) != 1:
        return None
    (reader,) = node.users
    if str(getattr(reader.target, "__name__", "")) != _NORM or reader.args[0] is not node:
        return None
    if target == "linear.default" and len(node.meta["val"].shape) != 2:
        return None
    given = arguments(node)
    operands = [entry for entry in (given["weight"], given["bias"]) if entry is not None]
    return _affine(context, reader) if all(context.is_constant(entry) for entry in operands) else None


def fold(context: Context, node: Any, meaning: Affine) -> tuple[Any, Any]:
    """New weights and bias of the convolution, as PyTorch tensors."""
    given = arguments(node)
    weight = context.array(given["weight"]).astype(np.float64)
    bias = np.zeros(len(weight)) if given["bias"] is None else context.array(given["bias"]).astype(np.float64)
    factor = meaning.factor.astype(np.float64)
    scaled = weight * factor.reshape((-1,) + (1,) * (weight.ndim - 1))
    return (
        context.torch.from_numpy(scaled.astype(np.float32)),
        context.torch.from_numpy((bias * factor + meaning.summand).astype(np.float32)),
    )


def _affine(context: Context, node: Any) -> Affine:
    given = arguments(node)
    need(given["running_mean"] is not None and given["running_var"] is not None, "it has no running statistics")
    mean, variance = (context.array(given[name]).astype(np.float64) for name in ("running_mean", "running_var"))
    weight = np.ones_like(mean) if given["weight"] is None else context.array(given["weight"]).astype(np.float64)
    bias = np.zeros_like(mean) if given["bias"] is None else context.array(given["bias"]).astype(np.float64)
    factor = weight / np.sqrt(variance + float(given["eps"]))
    return Affine(factor.astype(np.float32), (bias - mean * factor).astype(np.float32))
