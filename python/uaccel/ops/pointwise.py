"""Lists Relax's elementwise operators: what each computes, and what the model formats call it.

The list is read by the front ends, which convert an operator by its row, by the rewriting of quantised models, which
makes tables of functions, and by passes. An operator with options of its own has a converter of its own as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[Any]
Wide = NDArray[np.float64]

NUMBERS, REALS, TRUTHS = "numbers", "reals", "truths"


@dataclass(frozen=True)
class Pointwise:
    """Describes an elementwise operator by its name in Relax, without ``relax.``.

    ``compute`` is its meaning for numpy arrays, in their precision; None if no table of a function may hold it.
    ``takes`` says of what its operands are, and ``gives_truths`` that it compares. Other formats' names are empty where
    their operator is not the same for all that it takes; ``hlo`` is StableHLO's.
    """

    relax: str
    arity: int
    compute: Callable[..., Any] | None = None
    tflite: str = ""
    onnx: str = ""
    aten: str = ""
    takes: str = NUMBERS
    hlo: str = ""
    gives_truths: bool = False
    jumps: bool = False  # The last bit of an operand may decide between results that are far apart.


def rounded_to_float32(function: Callable[[Wide], Wide]) -> Callable[[Reals], Reals]:
    """A function computed in double precision and rounded to the argument's type: as near as a library may come."""

    def rounded(x: Reals) -> Reals:
        return np.asarray(function(x.astype(np.float64)), x.dtype)

    return rounded


def _sigmoid(x: Wide) -> Wide:
    return np.asarray(1 / (1 + np.exp(-x)))


_erf = np.vectorize(math.erf, otypes=[np.float64])
_TANH_GELU = math.sqrt(2 / math.pi)


def _gelu(x: Wide) -> Wide:
    return np.asarray(0.5 * x * (1 + _erf(x * math.sqrt(0.5))))


def _gelu_by_tanh(x: Wide) -> Wide:
    return np.asarray(0.5 * x * (1 + np.tanh(_TANH_GELU * (x + 0.044715 * x**3))))


def _real(
    relax: str, function: Callable[[Wide], Wide], tflite: str = "", onnx: str = "", aten: str = "", hlo: str = ""
) -> Pointwise:
    return Pointwise(relax, 1, rounded_to_float32(function), tflite, onnx, aten, REALS, hlo)


def _compared(relax: str, function: Callable[..., Any], tflite: str, onnx: str, aten: str) -> Pointwise:
    return Pointwise(relax, 2, function, tflite, onnx, aten, gives_truths=True, jumps=True)


ROWS: Final = (
    Pointwise("abs", 1, np.abs, "ABS", "Abs", hlo="ABS"),
    Pointwise("ceil", 1, np.ceil, "CEIL", "Ceil", jumps=True),
    Pointwise("floor", 1, np.floor, "FLOOR", "Floor", jumps=True, hlo="FLOOR"),
    Pointwise("negative", 1, np.negative, "NEG", "Neg", hlo="NEGATE"),
    Pointwise("nn.relu", 1, lambda x: np.maximum(x, np.float32(0)), "RELU", "Relu"),
    Pointwise("round", 1, np.rint, "ROUND", jumps=True),
    Pointwise("sign", 1, np.sign, "SIGN", jumps=True),
    Pointwise("square", 1, np.square, "SQUARE"),
    Pointwise("trunc", 1, np.trunc, jumps=True),
    Pointwise("zeros_like", 1, np.zeros_like),
    Pointwise("sqrt", 1, np.sqrt, "SQRT", "Sqrt", "sqrt", REALS),
    _real("acos", np.arccos, onnx="Acos", aten="acos"),
    _real("acosh", np.arccosh, onnx="Acosh", aten="acosh"),
    _real("asin", np.arcsin, onnx="Asin", aten="asin"),
    _real("asinh", np.arcsinh, onnx="Asinh", aten="asinh"),
    _real("atan", np.arctan, onnx="Atan", aten="atan"),
    _real("atanh", np.arctanh, onnx="Atanh", aten="atanh"),
    _real("cos", np.cos, "COS", "Cos", "cos", hlo="COSINE"),
    _real("cosh", np.cosh, onnx="Cosh", aten="cosh"),
    _real("erf", _erf, onnx="Erf", aten="erf"),
    _real("exp", np.exp, "EXP", "Exp", "exp", hlo="EXPONENTIAL"),
    _real("log", np.log, "LOG", "Log", "log", hlo="LOG"),
    _real("nn.gelu", _gelu),
    _real("nn.gelu_tanh", _gelu_by_tanh),
    _real("nn.silu", lambda x: x * _sigmoid(x), aten="silu"),
    _real("nn.softplus", lambda x: np.logaddexp(0, x)),
    _real("rsqrt", lambda x: np.asarray(1 / np.sqrt(x)), "RSQRT", aten="rsqrt", hlo="RSQRT"),
    _real("sigmoid", _sigmoid, "LOGISTIC", "Sigmoid", "sigmoid", hlo="LOGISTIC"),
    _real("sin", np.sin, "SIN", "Sin", "sin"),
    _real("sinh", np.sinh, onnx="Sinh", aten="sinh"),
    _real("tan", np.tan, onnx="Tan", aten="tan"),
    _real("tanh", np.tanh, "TANH", "Tanh", "tanh", hlo="TANH"),
    Pointwise("isfinite", 1, np.isfinite, gives_truths=True),
    Pointwise("isinf", 1, np.isinf, gives_truths=True),
    Pointwise("isnan", 1, np.isnan, onnx="IsNaN", gives_truths=True),
    Pointwise("astype", 1),
    Pointwise("bitwise_not", 1, onnx="BitwiseNot"),
    Pointwise("clip", 1),
    Pointwise("nn.leakyrelu", 1),
    Pointwise("nn.selu", 1),
    Pointwise("add", 2, np.add, "ADD", hlo="ADD"),
    Pointwise("divide", 2, np.divide, "DIV", hlo="DIVIDE"),
    Pointwise("maximum", 2, np.maximum, "MAXIMUM", hlo="MAXIMUM"),
    Pointwise("minimum", 2, np.minimum, "MINIMUM", hlo="MINIMUM"),
    Pointwise("multiply", 2, np.multiply, "MUL", hlo="MULTIPLY"),
    Pointwise("power", 2, np.power, "POW", hlo="POWER"),
    Pointwise("subtract", 2, np.subtract, "SUB", hlo="SUBTRACT"),
    Pointwise("atan2", 2, None, "ATAN2"),
    Pointwise("bitwise_and", 2, onnx="BitwiseAnd"),
    Pointwise("bitwise_or", 2, onnx="BitwiseOr"),
    Pointwise("bitwise_xor", 2, None, "BITWISE_XOR", "BitwiseXor"),
    Pointwise("floor_divide", 2, None, "FLOOR_DIV"),
    Pointwise("floor_mod", 2, None, "FLOOR_MOD"),
    Pointwise("left_shift", 2),
    Pointwise("log_add_exp", 2),
    Pointwise("mod", 2),
    Pointwise("right_shift", 2),
    _compared("equal", np.equal, "EQUAL", "", "eq"),
    _compared("greater", np.greater, "GREATER", "Greater", "gt"),
    _compared("greater_equal", np.greater_equal, "GREATER_EQUAL", "GreaterOrEqual", "ge"),
    _compared("less", np.less, "LESS", "Less", "lt"),
    _compared("less_equal", np.less_equal, "LESS_EQUAL", "LessOrEqual", "le"),
    _compared("not_equal", np.not_equal, "NOT_EQUAL", "", "ne"),
    Pointwise("logical_and", 2, np.logical_and, "LOGICAL_AND", "And", "logical_and", TRUTHS, gives_truths=True),
    Pointwise("logical_not", 1, np.logical_not, "LOGICAL_NOT", "Not", "logical_not", TRUTHS, gives_truths=True),
    Pointwise("logical_or", 2, np.logical_or, "LOGICAL_OR", "Or", "logical_or", TRUTHS, gives_truths=True),
    Pointwise("logical_xor", 2, np.logical_xor, "", "Xor", "logical_xor", TRUTHS, gives_truths=True),
    Pointwise("where", 3, lambda chosen, one, other: np.where(chosen != 0, one, other)),
)
BY_RELAX: Final = {f"relax.{row.relax}": row for row in ROWS}
