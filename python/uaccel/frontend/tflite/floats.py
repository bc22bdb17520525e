"""Converts operators on floats and plain integers, and in float what has no integer operator here.

Each computes what the reference kernels of TensorFlow Lite Micro and LiteRT do, with every option that they read. TVM's
own converters pass over options (the beta of a softmax, how corners are aligned) or read some that the runtimes pass
over (a fused tanh). A run would be verified with the same converters, so nothing would show it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from typing import Any

import numpy as np

from uaccel.errors import need
from uaccel.frontend.converters import always, otherwise
from uaccel.frontend.tflite.checks import need_dtype, need_one_scale, need_output, need_same_type, need_shape
from uaccel.frontend.tflite.converter import Context, Expr, activated, converts
from uaccel.frontend.tflite.quantized import dequantised
from uaccel.frontend.tflite.reader import Operator, Tensor
from uaccel.ops import binary, pointwise
from uaccel.ops.operator import constant, get
from uaccel.ops.quantize import Quantize, QuantizeAttrs
from uaccel.tvm_api import of_relax, relax

# Numbers of a tensor, and a tensor of numbers: quantised ones are computed in float, and the import warns of it.

STEPPED = ("int8", "uint8", "int16")
FLOATS = ("float32", "float16", "float64")
# Operators that have been computed so, though runtimes with an integer kernel may be a step away. No others may.
IN_FLOAT = (
    *("ABS", "ADD", "ATAN2", "CEIL", "CONV_2D", "COS", "DEPTHWISE_CONV_2D", "DIV", "EXP", "FLOOR", "FULLY_CONNECTED"),
    *("HARD_SWISH", "LEAKY_RELU", "LOG", "LOGISTIC", "LOG_SOFTMAX", "MAXIMUM", "MEAN", "MINIMUM", "MUL", "POW"),
    *("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL", "REDUCE_MAX", "REDUCE_MIN"),
    *("REDUCE_PROD", "RELU", "RELU6", "RELU_N1_TO_1", "ROUND", "RSQRT", "SIN", "SOFTMAX", "SQRT", "SUB", "SUM"),
    *("SQUARED_DIFFERENCE", "TANH", "TRANSPOSE_CONV", "FLOOR_DIV", "FLOOR_MOD", "NEG"),
)


def is_stepped(tensor: Tensor) -> bool:
    """Whether the tensor's integers stand for reals."""
    return tensor.quantisation is not None and tensor.info.dtype in STEPPED


def real(context: Context, tensor: Tensor) -> Expr:
    """The numbers that a tensor stands for: its own, or those that its integers stand for."""
    expr = context.expr(tensor)
    if not is_stepped(tensor):
        return expr
    context.in_float = True
    return dequantised(expr, tensor)


def need_reals(*tensors: Tensor) -> None:
    """Refuses integers without a scale."""
    for tensor in tensors:
        fits = is_stepped(tensor) or tensor.info.dtype in FLOATS
        need(fits, f'"{tensor.name}" is {tensor.info.dtype}; wanted float32, or int8, uint8 or int16 with a scale')


def stored(expr: Expr, output: Tensor) -> Expr:
    """The output of an operator that computed reals."""
    if not is_stepped(output):
        return expr
    need_one_scale(output)
    return get(Quantize)(expr, attrs=QuantizeAttrs(output.scale, output.zero_point, output.info.dtype))


def need_alike(*tensors: Tensor) -> None:
    """Refuses a tensor in steps beside one that is not, and two types."""
    first = tensors[0]
    for tensor in tensors[1:]:
        need_same_type(first, tensor)
        same = is_stepped(first) == is_stepped(tensor)
        need(same, f'of "{first.name}" and "{tensor.name}" only one has a scale; both need one, or none')


# Operators of two inputs.

Pair = Callable[[Expr, Expr], Expr]


def _rows(arity: int, takes: str = pointwise.NUMBERS) -> Iterator[pointwise.Pointwise]:
    return (row for row in pointwise.ROWS if (row.arity, row.takes) == (arity, takes) and row.tflite)


ARITHMETIC: Mapping[str, Pair] = {row.tflite: of_relax(row.relax) for row in _rows(2) if not row.gives_truths}
COMPARISONS: Mapping[str, Pair] = {row.tflite: of_relax(row.relax) for row in _rows(2) if row.gives_truths}
FUSING = ("ADD", "SUB", "MUL", "DIV")
OF_REALS_ALONE = ("POW", "ATAN2")  # C has neither of integers.
# These take stored integers as they are, whatever their scales, as LiteRT does where it has the type.
AS_STORED = ("FLOOR_DIV", "FLOOR_MOD", "NEG", "BITWISE_XOR")
BYTE = "uint8"


def _is_as_stored(operator: Operator, data: Tensor) -> bool:
    known = data.info.dtype != "uint8" or operator.name == "BITWISE_XOR"
    return operator.name in AS_STORED and is_stepped(data) and known


def _pair(operator: Operator) -> tuple[Tensor, Tensor, Tensor]:
    first, second, output = operator.required_input(0), operator.required_input(1), operator.outputs[0]
    need_alike(first, second)
    need_shape(output, binary.broadcast_shape(first.info.shape, second.info.shape))
    return first, second, output


def as_bytes(context: Context, tensor: Tensor) -> Expr:
    """Truths as the bytes 0 and 1: TVM's vectors of bools cannot be computed with."""
    expr = real(context, tensor)
    return relax.op.astype(expr, BYTE) if tensor.info.dtype == "bool" else expr


@converts(*ARITHMETIC, when=otherwise)
def arithmetic(context: Context, operator: Operator) -> Expr:
    first, second, output = _pair(operator)
    need_alike(first, output)
    if operator.name in OF_REALS_ALONE:
        need_reals(first)
    has_bits = operator.name != "BITWISE_XOR" or first.info.dtype not in FLOATS
    need(has_bits, f'"{first.name}" is {first.info.dtype}; wanted integers or bool')
    if _is_as_stored(operator, first):
        return ARITHMETIC[operator.name](context.expr(first), context.expr(second))
    result = ARITHMETIC[operator.name](as_bytes(context, first), as_bytes(context, second))
    if output.info.dtype == "bool":
        return relax.op.astype(result, "bool")
    return stored(activated(operator, result) if operator.name in FUSING else result, output)


@converts("RIGHT_SHIFT", when=always)
def right_shift(context: Context, operator: Operator) -> Expr:
    """Shifts by 0 bits up to all but one of the type, as LiteRT does; C leaves other shifts undefined."""
    first, second, output = _pair(operator)
    kind = first.info.dtype
    need(np.dtype(kind).kind in "iu", f'"{first.name}" is {kind}; wanted integers')
    need_same_type(first, second)
    need_same_type(first, output)
    low, high = (constant(np.array(bound, kind)) for bound in (0, 8 * np.dtype(kind).itemsize - 1))
    bits = relax.op.minimum(relax.op.maximum(context.expr(second), low), high)
    return relax.op.right_shift(context.expr(first), bits)


@converts(*COMPARISONS, when=otherwise)
def comparison(context: Context, operator: Operator) -> Expr:
    first, second, output = _pair(operator)
    need_dtype(output, ("bool",), "output")
    return COMPARISONS[operator.name](as_bytes(context, first), as_bytes(context, second))


@converts("SQUARED_DIFFERENCE", when=otherwise)
def squared_difference(context: Context, operator: Operator) -> Expr:
    first, second, output = _pair(operator)
    need_alike(first, output)
    need(first.info.dtype != "bool", f'"{first.name}" is bool; wanted numbers')
    difference = relax.op.subtract(real(context, first), real(context, second))
    return stored(relax.op.multiply(difference, difference), output)


# Operators of one input without options.

One = Callable[[Expr], Expr]


def _elu(x: Expr, kind: str) -> Expr:
    """Computes exp(x) - 1 where x is negative."""
    below = relax.op.nn.relu(relax.op.subtract(_number(1.0, kind), relax.op.exp(x)))
    return relax.op.add(relax.op.multiply(_number(-1.0, kind), below), relax.op.nn.relu(x))


def _hard_swish(x: Expr, kind: str) -> Expr:
    ramp = relax.op.clip(relax.op.add(x, _number(3.0, kind)), 0.0, 6.0)
    return relax.op.divide(relax.op.multiply(x, ramp), _number(6.0, kind))


def _number(value: float, dtype: str) -> Expr:
    return constant(np.asarray(value, dtype))


ELEMENTWISE: Mapping[str, One] = {
    **{row.tflite: of_relax(row.relax) for row in _rows(1)},
    "SQUARE": lambda x: relax.op.multiply(x, x),
    "RELU6": lambda x: relax.op.clip(x, 0, 6),
    "RELU_N1_TO_1": lambda x: relax.op.clip(x, -1, 1),
    "RELU_0_TO_1": lambda x: relax.op.clip(x, 0, 1),
}
OF_REALS: Mapping[str, One] = {row.tflite: of_relax(row.relax) for row in _rows(1, pointwise.REALS)}


@converts(*ELEMENTWISE, when=otherwise)
def elementwise(context: Context, operator: Operator) -> Expr:
    data, output = operator.required_input(0), operator.outputs[0]
    need_alike(data, output)
    need_shape(output, data.info.shape)
    signed = is_stepped(data) or data.info.dtype not in ("bool", "uint32")
    need(operator.name != "NEG" or signed, f'"{data.name}" is {data.info.dtype}, which has no negative number')
    if _is_as_stored(operator, data):
        return ELEMENTWISE[operator.name](context.expr(data))
    unsigned = not is_stepped(data) and np.dtype(data.info.dtype).kind in "bu"  # which have no -1
    name = "RELU_0_TO_1" if operator.name in ("RELU_N1_TO_1", "SIGN") and unsigned else operator.name
    result = ELEMENTWISE[name](as_bytes(context, data))
    return relax.op.astype(result, "bool") if data.info.dtype == "bool" else stored(result, output)


def _is_int16(operator: Operator) -> bool:
    return operator.required_input(0).info.dtype == "int16"


@converts("SQRT", when=_is_int16)
def sqrt16(context: Context, operator: Operator) -> Expr:
    """The reference divides a root in single precision by the output's scale and cuts the quotient off."""
    data, output = _one(operator)
    if not is_stepped(output):
        return stored(relax.op.sqrt(real(context, data)), output)
    need_one_scale(output)
    steps = relax.op.trunc(relax.op.divide(relax.op.sqrt(real(context, data)), _number(output.scale, "float32")))
    return get(Quantize)(steps, attrs=QuantizeAttrs(1.0, output.zero_point, "int16"))


BENT: Mapping[str, Callable[[Expr, str], Expr]] = {"ELU": _elu, "HARD_SWISH": _hard_swish}


@converts(*BENT, when=otherwise)
def bent(context: Context, operator: Operator) -> Expr:
    data, output = _one(operator)
    return stored(BENT[operator.name](real(context, data), _kind(data)), output)


@converts(*OF_REALS, when=otherwise)
def of_reals(context: Context, operator: Operator) -> Expr:
    data, output = _one(operator)
    return stored(OF_REALS[operator.name](real(context, data)), output)


LOGIC: Mapping[str, Callable[..., Expr]] = {
    row.tflite: of_relax(row.relax) for arity in (1, 2) for row in _rows(arity, pointwise.TRUTHS)
}


@converts(*LOGIC, when=always)
def logic(context: Context, operator: Operator) -> Expr:
    """Converts logic on bools; of other types the reference would read the first bytes as bools."""
    given, output = [operator.required_input(number) for number in range(len(operator.inputs))], operator.outputs[0]
    for tensor in (*given, output):
        need_dtype(tensor, ("bool",), "operand")
    count = 1 if operator.name == "LOGICAL_NOT" else 2
    need(len(given) == count, f"it has {len(given)} inputs, wanted {count}")
    shapes = [tensor.info.shape for tensor in given]
    need_shape(output, binary.broadcast_shape(shapes[0], shapes[-1]))
    return LOGIC[operator.name](*map(context.expr, given))


@converts("ADD_N", when=otherwise)
def add_n(context: Context, operator: Operator) -> Expr:
    given, output = [operator.required_input(number) for number in range(len(operator.inputs))], operator.outputs[0]
    for tensor in given:
        need_alike(output, tensor)
        need_shape(output, tensor.info.shape)
    total = reduce(relax.op.add, [as_bytes(context, tensor) for tensor in given])
    return relax.op.astype(total, "bool") if output.info.dtype == "bool" else stored(total, output)


@converts("PRELU", when=otherwise)
def prelu(context: Context, operator: Operator) -> Expr:
    """Multiplies negative elements by their slope, which may be broadcast. Slopes that differ by channel alone stay as
    many; others are laid out over the whole tensor."""
    data, alpha, output = operator.required_input(0), operator.required_input(1), operator.outputs[0]
    need_reals(data, alpha)
    need_alike(data, output)
    shape = binary.broadcast_shape(data.info.shape, alpha.info.shape)
    need_shape(output, shape)
    x, slopes = real(context, data), real(context, alpha)
    x = x if data.info.shape == shape else relax.op.broadcast_to(x, shape)
    if shape and math.prod(alpha.info.shape[:-1]) == 1:
        slopes = relax.op.broadcast_to(relax.op.reshape(slopes, alpha.info.shape[-1:] or (1,)), shape[-1:])
        return stored(relax.op.nn.prelu(x, slopes, axis=len(shape) - 1), output)
    flat = [relax.op.reshape(each, (math.prod(shape),)) for each in (x, relax.op.broadcast_to(slopes, shape))]
    return stored(relax.op.reshape(relax.op.nn.prelu(*flat, axis=0), shape), output)


# Activations with options, and sums along the last axis.


def _one(operator: Operator, *, of_rows: bool = False) -> tuple[Tensor, Tensor]:
    data, output = operator.required_input(0), operator.outputs[0]
    need(len(data.info.shape) > 0 or not of_rows, "the input is a scalar")
    need_reals(data)
    need_alike(data, output)
    need_shape(output, data.info.shape)
    return data, output


def _kind(data: Tensor) -> str:
    return "float32" if is_stepped(data) else data.info.dtype


@converts("SOFTMAX", when=otherwise)
def softmax(context: Context, operator: Operator) -> Expr:
    """Converts the softmax of ``beta`` times the input."""
    data, output = _one(operator, of_rows=True)
    beta, expr = float(operator.options.Beta()), real(context, data)
    need(math.isfinite(beta), f"beta is {beta}, wanted a number")
    scaled = expr if beta == 1.0 else relax.op.multiply(expr, _number(beta, _kind(data)))
    return stored(relax.op.nn.softmax(scaled, axis=-1), output)


@converts("LOG_SOFTMAX", when=otherwise)
def log_softmax(context: Context, operator: Operator) -> Expr:
    data, output = _one(operator, of_rows=True)
    return stored(relax.op.nn.log_softmax(real(context, data)), output)


@converts("LEAKY_RELU", when=otherwise)
def leaky_relu(context: Context, operator: Operator) -> Expr:
    data, output = _one(operator)
    alpha, expr = float(operator.options.Alpha()), real(context, data)
    need(math.isfinite(alpha), f"alpha is {alpha}, wanted a number")
    return stored(relax.op.nn.leakyrelu(expr, alpha), output)


ROOT = math.sqrt(2.0 / math.pi)
CUBIC = 0.044715


@converts("GELU", when=otherwise)
def gelu(context: Context, operator: Operator) -> Expr:
    """Converts half of x times 1 + erf(x / sqrt(2)); ``approximate`` takes a tanh of a cubic in place of erf."""
    data, output = _one(operator)
    kind, x = _kind(data), real(context, data)
    if operator.option("Approximate"):
        cube = relax.op.multiply(relax.op.multiply(x, x), x)
        inner = relax.op.add(x, relax.op.multiply(cube, _number(CUBIC, kind)))
        bend = relax.op.tanh(relax.op.multiply(inner, _number(ROOT, kind)))
        part = relax.op.multiply(relax.op.add(bend, _number(1.0, kind)), _number(0.5, kind))
    else:
        bend = relax.op.erf(relax.op.multiply(x, _number(math.sqrt(0.5), kind)))
        part = relax.op.add(relax.op.multiply(bend, _number(0.5, kind)), _number(0.5, kind))
    return stored(relax.op.multiply(x, part), output)


LEAST_NORM = 1e-6  # The reference divides by no smaller one.


@converts("L2_NORMALIZATION", when=otherwise)
def l2_normalization(context: Context, operator: Operator) -> Expr:
    data, output = _one(operator, of_rows=True)
    x = real(context, data)
    norm = relax.op.sqrt(relax.op.sum(relax.op.multiply(x, x), axis=-1, keepdims=True))
    divided = relax.op.divide(x, relax.op.maximum(norm, _number(LEAST_NORM, _kind(data))))
    return stored(activated(operator, divided), output)


@converts("LOCAL_RESPONSE_NORMALIZATION", when=otherwise)
def local_response_normalization(context: Context, operator: Operator) -> Expr:
    """Divides by a power of the squares of the channels around each one; channels outside count as zero."""
    data, output = _one(operator)
    options, kind, rank = operator.options, _kind(data), len(data.info.shape)
    need(rank == 4, f"input has rank {rank}, wanted 4 (NHWC)")
    channels = data.info.shape[3]
    radius = min(int(options.Radius()), channels - 1)
    need(radius >= 0, f"radius {options.Radius()} is negative")
    x = real(context, data)
    padded = relax.op.nn.pad(relax.op.multiply(x, x), [0] * 6 + [radius] * 2, "constant", 0.0)
    total = None
    for start in range(2 * radius + 1):
        part = relax.op.strided_slice(padded, axes=[3], begin=[start], end=[start + channels])
        total = part if total is None else relax.op.add(total, part)
    base = relax.op.add(relax.op.multiply(total, _number(options.Alpha(), kind)), _number(options.Bias(), kind))
    return stored(relax.op.multiply(x, relax.op.power(base, _number(-float(options.Beta()), kind))), output)


# FAKE_QUANT: floats rounded to the steps of a quantisation.

FEWEST_BITS, MOST_BITS = 1, 16


@converts("FAKE_QUANT", when=otherwise)
def fake_quant(context: Context, operator: Operator) -> Expr:
    """Converts in single precision, as the reference: whether a value is nearer to this step or that depends on it."""
    data, output = operator.required_input(0), operator.outputs[0]
    need_dtype(data, ("float32",), "input")
    need_output(data, output, data.info.shape)
    low, high, step = _nudged(operator)
    shifted = relax.op.subtract(relax.op.clip(context.expr(data), float(low), float(high)), constant(low))
    steps = relax.op.multiply(shifted, constant(np.float32(1) / step))
    below = relax.op.floor(steps)
    up = relax.op.greater_equal(relax.op.subtract(steps, below), _number(0.5, "float32"))
    rounded = relax.op.add(below, relax.op.astype(up, "float32"))
    return relax.op.add(relax.op.multiply(rounded, constant(step)), constant(low))


def _nudged(operator: Operator) -> tuple[Any, Any, Any]:
    """Smallest and largest number and the step, moved so that zero is a step."""
    options, single = operator.options, np.float32
    bits, narrow = int(options.NumBits()), bool(options.NarrowRange())
    low, high = single(options.Min()), single(options.Max())
    need(FEWEST_BITS + narrow <= bits <= MOST_BITS, f"num_bits {bits} is not between {FEWEST_BITS} and {MOST_BITS}")
    need(bool(low < high) and np.isfinite(high - low), f"min {low} is not below max {high}")
    first, last = single(int(narrow)), single((1 << bits) - 1)
    step = (high - low) / (last - first)
    zero = first - low / step
    nudged = min(max(zero, first), last) if not first <= zero <= last else single(math.floor(float(zero) + 0.5))
    return (first - nudged) * step, (last - nudged) * step, step
