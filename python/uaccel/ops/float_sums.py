"""What layers of floats with weights have in common: a bias, another tensor that is added, an activation.

A sum begins with zero and takes its products in the order of the weights, each rounded before it is added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from uaccel.model import Array, TensorInfo
from uaccel.ops.base import Attributes, IntegerOperator, Site, require
from uaccel.ops.kernel import Argument, Constant, Input, Output
from uaccel.tvm_api import te, tirx

FLOAT: Final = "float32"
NONE, LOWER, BOTH = "none", "lower", "both"
ACTIVATIONS: Final = (NONE, LOWER, BOTH)
SINGLE, HALF = "f32", "f16"
BLOCK: Final = 4
"""Output channels whose weights lie side by side."""


@dataclass(frozen=True)
class FloatSumAttrs(Attributes):
    """``activation``: whether results have no bound, a lower one, or both."""

    activation: str
    lower: float
    upper: float


def check_sums(inputs: Sequence[TensorInfo], attrs: FloatSumAttrs, output: TensorInfo, what: str) -> TensorInfo:
    """The output, if bias and the tensor that is added fit."""
    require(attrs.activation in ACTIVATIONS, f"{what}: activation {attrs.activation}, wanted one of {ACTIVATIONS}")
    require(all(info.dtype == FLOAT for info in inputs), f"{what}: {', '.join(map(str, inputs))}, wanted {FLOAT}")
    require(inputs[2].shape == output.shape[-1:], f"{what}: bias {inputs[2]} does not fit {output}")
    require(len(inputs) < 4 or inputs[3] == output, f"{what}: {inputs[-1]} cannot be added to {output}")
    return output


def finished(sums: Any, bias: Any, more: Sequence[Any], attrs: FloatSumAttrs, name: str) -> Any:
    """What becomes of the sums."""

    def element(*index: Any) -> Any:
        value = sums(*index) + bias(index[-1])
        for tensor in more:
            value = value + tensor(*index)
        if attrs.activation == BOTH:
            value = tirx.min(value, tirx.const(attrs.upper, FLOAT))
        return value if attrs.activation == NONE else tirx.max(value, tirx.const(attrs.lower, FLOAT))

    return te.compute(sums.shape, element, name=name)


class FloatSums(IntegerOperator[FloatSumAttrs]):
    """Input, weights, bias, and perhaps a tensor of the result's shape that is added before the activation."""

    arguments = ("input", "weights", "bias")
    variadic = True


def is_kernels(site: Site[Any]) -> bool:
    """Whether kernels can leave out what is padded: zero times infinity is no zero."""
    weights = site.operands[1].constant
    return weights is not None and site.operands[2].constant is not None and bool(np.isfinite(weights).all())


def finish_fields(attrs: FloatSumAttrs) -> dict[str, int | float]:
    kind = ACTIVATIONS.index(attrs.activation)
    return {"finish.activation": kind, "finish.lower": attrs.lower, "finish.upper": attrs.upper}


def sum_arguments(site: Site[Any], weights: Array) -> tuple[tuple[Argument, ...], tuple[int, ...]]:
    """Those of a kernel, up to its output; and the input in whose place that may be."""
    adds = len(site.operands) > 3
    bias = Constant("bias", site.operands[2].value)
    if not adds:
        return (Input(0), Constant("weights", weights), bias, Output(0), Output(0)), ()
    added = site.operands[3]
    number = site.input_indices()[3]
    other = Constant("added", added.value) if number is None else Input(number)
    return (Input(0), Constant("weights", weights), bias, other, Output(0)), () if number is None else (number,)


def in_blocks(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Of each output channel a row; those of ``BLOCK`` channels side by side, element by element."""
    missing = -len(rows) % BLOCK
    filled = np.concatenate([rows, np.zeros((missing, rows.shape[1]), rows.dtype)])
    blocks = filled.reshape(-1, BLOCK, rows.shape[1])
    return np.ascontiguousarray(blocks.transpose(0, 2, 1))


def are_halves(weights: NDArray[np.float32]) -> bool:
    """Whether all of them are numbers of half precision."""
    with np.errstate(over="ignore"):
        return np.array_equal(weights.astype(np.float16).astype(np.float32), weights)


def stored(weights: NDArray[np.float32], *, wide: bool = False) -> tuple[str, Array]:
    """How they lie in flash, in half precision where they can and should: their kernels widen them."""
    narrow = not wide and are_halves(weights)
    return (HALF, weights.astype(np.float16).view(np.uint16)) if narrow else (SINGLE, weights)
