"""Functions of one 8-bit variable as tables, for models that mean float32: dequantised, computed, quantised again."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from uaccel.model import Quantisation
from uaccel.ops import exact
from uaccel.ops.lookup import stored_values

Reals = NDArray[np.float32]
Wide = NDArray[np.float64]
Function = Callable[[Reals], Reals]


def table_float32(
    function: Function,
    given: Quantisation,
    wanted: Quantisation,
    *,
    input_dtype: str = "int8",
    output_dtype: str = "int8",
) -> NDArray[np.int8] | NDArray[np.uint8]:
    """The table for ``uaccel.lookup``, indexed by the input's bits, as ONNX defines each step.

    The quotient is rounded half to even and saturated; what is no number becomes the lowest value, as in ONNX Runtime.
    """
    low, high = exact.limits(output_dtype)
    with np.errstate(all="ignore"):
        real = (stored_values(input_dtype) - given.zero_point).astype(np.float32) * np.float32(given.scale)
        steps = np.asarray(function(real), np.float32) / np.float32(wanted.scale)
    steps = np.where(np.isnan(steps), -np.inf, steps).astype(np.float64)
    stored = np.rint(np.clip(steps, low - wanted.zero_point, high - wanted.zero_point)) + wanted.zero_point
    return np.asarray(stored, output_dtype)


def rounded_to_float32(function: Callable[[Wide], Wide]) -> Function:
    """A function computed in double precision. Of single precision it is rounded: as near as a library may come."""

    def rounded(x: Reals) -> Reals:
        return np.asarray(function(x.astype(np.float64)), x.dtype)

    return rounded


def leaky_relu(alpha: float) -> Function:
    return lambda x: np.where(x < 0, x * np.float32(alpha), x)


def elu(alpha: float = 1.0) -> Function:
    return rounded_to_float32(lambda x: np.where(x < 0, np.float32(alpha) * np.expm1(np.minimum(x, 0)), x))


def selu(alpha: float = 1.67326319217681884765625, gamma: float = 1.05070102214813232421875) -> Function:
    return rounded_to_float32(lambda x: gamma * np.where(x < 0, alpha * np.expm1(np.minimum(x, 0)), x))


def hard_sigmoid(alpha: float = 0.2, beta: float = 0.5) -> Function:
    slope, middle = np.float32(alpha), np.float32(beta)
    return lambda x: np.clip(slope * x + middle, np.float32(0), np.float32(1))


def clip(low: float, high: float) -> Function:
    return lambda x: np.asarray(np.clip(x, np.float32(low), np.float32(high)))


def _sigmoid(x: Wide) -> Wide:
    return np.asarray(1 / (1 + np.exp(-x)))


_erf = np.vectorize(math.erf, otypes=[np.float64])
_TANH_GELU = math.sqrt(2 / math.pi)

FUNCTIONS: dict[str, Function] = {
    "abs": np.abs,
    "ceil": np.ceil,
    "cos": rounded_to_float32(np.cos),
    "erf": rounded_to_float32(_erf),
    "exp": rounded_to_float32(np.exp),
    "floor": np.floor,
    "gelu": rounded_to_float32(lambda x: 0.5 * x * (1 + _erf(x * math.sqrt(0.5)))),
    "gelu_tanh": rounded_to_float32(lambda x: 0.5 * x * (1 + np.tanh(_TANH_GELU * (x + 0.044715 * x**3)))),
    "hard_swish": rounded_to_float32(lambda x: x * np.clip(x / 6 + 0.5, 0, 1)),
    "identity": lambda x: x,
    "log": rounded_to_float32(np.log),
    "mish": rounded_to_float32(lambda x: x * np.tanh(np.logaddexp(0, x))),
    "negative": np.negative,
    "reciprocal": lambda x: np.float32(1) / x,
    "relu": lambda x: np.maximum(x, np.float32(0)),
    "round": np.rint,
    "rsqrt": rounded_to_float32(lambda x: np.asarray(1 / np.sqrt(x))),
    "sigmoid": rounded_to_float32(_sigmoid),
    "sign": np.sign,
    "silu": rounded_to_float32(lambda x: x * _sigmoid(x)),
    "sin": rounded_to_float32(np.sin),
    "softplus": rounded_to_float32(lambda x: np.logaddexp(0, x)),
    "softsign": lambda x: np.asarray(x / (np.float32(1) + np.abs(x))),
    "sqrt": np.sqrt,
    "square": np.square,
    "tan": rounded_to_float32(np.tan),
    "tanh": rounded_to_float32(np.tanh),
}
"""Those without parameters. ``identity`` changes the quantisation alone."""
