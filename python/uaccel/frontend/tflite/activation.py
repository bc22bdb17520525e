"""Converts TFLite's activations, softmax and L2 normalisation, bit for bit as its reference kernels compute them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uaccel.errors import need
from uaccel.frontend.tflite.checks import is_int8, need_dtype, need_one_scale, need_quantisation
from uaccel.frontend.tflite.converter import INTEGERS, Context, Expr, bounded_range, converts, factor, quantize_value
from uaccel.frontend.tflite.importer import was_unsigned
from uaccel.frontend.tflite.quantized import rescaled
from uaccel.frontend.tflite.reader import ACTIVATIONS, Operator, Tensor
from uaccel.model import Quantisation
from uaccel.ops import activation as activations
from uaccel.ops import exact, lookup, pointwise
from uaccel.ops import softmax as softmaxes
from uaccel.ops.binary import broadcast_shape
from uaccel.ops.fixedpoint import quantize_multiplier
from uaccel.ops.lookup import HardSwishFactors, Lookup, LookupAttrs, by_bits
from uaccel.ops.normalize import L2Normalize, L2NormalizeAttrs
from uaccel.ops.operator import constant, get
from uaccel.ops.quantize import UNITY, Requantize, RequantizeAttrs

# Elementwise operators of one input, on int8 and int16.

BOUNDS = {"RELU": (0.0, None), "RELU_N1_TO_1": (-1.0, 1.0), "RELU_0_TO_1": (0.0, 1.0)}
SCALE_TOLERANCE = 1e-3
REAL_FUNCTIONS = ("EXP", "LOG", "SQUARE", "SIN", "COS", "FLOOR", "CEIL", "ROUND")


def _tensors(operator: Operator, dtypes: tuple[str, ...] = INTEGERS) -> tuple[Tensor, Tensor]:
    data, output = operator.required_input(0), operator.outputs[0]
    need_dtype(data, dtypes, "input")
    need_dtype(output, (data.info.dtype,), "output")
    need(data.info.shape == output.info.shape, f"the shapes of {data.info} and {output.info} differ")
    need_one_scale(data, output)
    return data, output


def _need_symmetric(*tensors: Tensor) -> None:
    for tensor in tensors:
        fits = tensor.info.dtype != "int16" or tensor.zero_point == 0
        need(fits, f'int16 "{tensor.name}" has zero point {tensor.zero_point}, wanted 0')


@converts("RELU", "RELU_N1_TO_1", "RELU_0_TO_1")
def relu(context: Context, operator: Operator) -> Expr:
    data, output = _tensors(operator)
    _need_symmetric(data, output)
    return rescaled(context, data, output, *bounded_range(output, *BOUNDS[operator.name]))


@converts("RELU6")
def relu6(context: Context, operator: Operator) -> Expr:
    """TensorFlow Lite Micro clamps the stored values by the input's quantisation and ignores the output's. LiteRT
    rescales; it is the reference for tensors that were uint8."""
    data, output = _tensors(operator)
    if was_unsigned(data):
        return rescaled(context, data, output, *bounded_range(output, 0.0, 6.0))
    _, highest = exact.limits(data.info.dtype)
    clamp = (data.zero_point, min(highest, quantize_value(data, 6.0)))
    attrs = RequantizeAttrs(0, 0, *UNITY, *clamp, output.info.dtype)
    return get(Requantize)(context.expr(data), attrs=attrs)


@converts("LEAKY_RELU")
def leaky_relu(context: Context, operator: Operator) -> Expr:
    data, output = _tensors(operator)
    alpha = float(np.float32(operator.options.Alpha()))
    return _two_slopes(context, data, output, data.scale / output.scale, data.scale * alpha / output.scale)


@converts("ABS")
def absolute(context: Context, operator: Operator) -> Expr:
    data, output = _tensors(operator)
    _need_symmetric(data, output)
    factor = data.scale / output.scale
    return _two_slopes(context, data, output, factor, -factor)


def _two_slopes(context: Context, data: Tensor, output: Tensor, positive: float, negative: float) -> Expr:
    attrs = activations.TwoSlopesAttrs(
        input_zero_point=data.zero_point,
        output_zero_point=output.zero_point,
        **factor("positive", positive),
        **factor("negative", negative),
    )
    return get(activations.TwoSlopes)(context.expr(data), attrs=attrs)


@converts("PRELU")
def prelu(context: Context, operator: Operator) -> Expr:
    data, alpha, output = operator.required_input(0), operator.required_input(1), operator.outputs[0]
    need_dtype(data, INTEGERS, "input")
    need_dtype(alpha, ("int8",), "alpha")
    need_dtype(output, (data.info.dtype,), "output")
    need_one_scale(data, alpha, output)
    shape = broadcast_shape(data.info.shape, alpha.info.shape)
    fits = shape == output.info.shape
    need(fits, f"{data.info} and alpha {alpha.info} broadcast to {list(shape)}, not {output.info}")
    low, high = exact.limits(output.info.dtype)
    attrs = activations.PreluAttrs(
        input_zero_point=data.zero_point,
        alpha_zero_point=alpha.zero_point,
        output_zero_point=output.zero_point,
        **factor("positive", data.scale / output.scale),
        **factor("negative", data.scale * alpha.scale / output.scale),
        clamp_min=low,
        clamp_max=high,
    )
    return get(activations.Prelu)(context.expr(data), context.expr(alpha), attrs=attrs)


def _lookup(context: Context, operator: Operator, data: Tensor, values: NDArray[np.int8]) -> Expr:
    attrs = LookupAttrs(operator.name.lower())
    return get(Lookup)(context.expr(data), constant(by_bits(values)), attrs=attrs)


# For 16 bits the operator and its exact shifts; for 8 bits the scale and zero point of the output, and the table.
SIGMOIDS: Mapping[str, tuple[Any, tuple[int, ...], tuple[float, int], Callable[[Quantisation], NDArray[np.int8]]]] = {
    "LOGISTIC": (activations.Logistic16, (0,), (1 / 256, -128), lookup.logistic),
    "TANH": (activations.Tanh16, (0, 1), (1 / 128, 0), lookup.tanh),
}


@converts(*SIGMOIDS)
def sigmoid(context: Context, operator: Operator) -> Expr:
    data, output = _tensors(operator)
    wide, exact_shifts, stored, table = SIGMOIDS[operator.name]
    if data.info.dtype == "int16":
        return _sigmoid16(context, data, output, wide, exact_shifts)
    need_quantisation(output, *stored, SCALE_TOLERANCE)
    return _lookup(context, operator, data, table(data.required_quantisation))


def _sigmoid16(
    context: Context,
    data: Tensor,
    output: Tensor,
    op: type[activations.Logistic16] | type[activations.Tanh16],
    exact_shifts: tuple[int, ...],
) -> Expr:
    _need_symmetric(data)
    need_quantisation(output, 1 / 32768, 0, SCALE_TOLERANCE)
    power, is_power = _log2(data.scale)
    left_shift = power + 12  # the table's argument is three times the input in units of 2**-12
    if is_power and left_shift in exact_shifts:
        attrs = activations.Sigmoid16Attrs(multiplier=3 << left_shift, right_shift=0)
    else:
        attrs = _scaled_argument(data.scale)
    return get(op)(context.expr(data), constant(activations.sigmoid_points()), attrs=attrs)


def _scaled_argument(scale: float) -> activations.Sigmoid16Attrs:
    """Doubles the factor while it fits 15 bits, so that it keeps as many bits as the reference's."""
    factor, right_shift = scale * 4096.0 * 3.0, 0
    while factor <= 32767.0 / 2.0 and right_shift <= 30:
        factor, right_shift = factor * 2.0, right_shift + 1
    need(factor < 32768, f"the input's scale {scale:.6g} is too large for the reference's 16-bit factor")
    return activations.Sigmoid16Attrs(multiplier=int(factor), right_shift=right_shift)


def _log2(value: float) -> tuple[int, bool]:
    """The nearest power of two, and whether the reference, in single precision, takes the value for it."""
    log2 = np.log(np.float32(value)) * (np.float32(1) / np.log(np.float32(2)))
    nearest = math.floor(float(log2) + 0.5)
    return nearest, bool(abs(log2 - np.float32(nearest)) < np.float32(1e-3))


@converts("HARD_SWISH")
def hard_swish(context: Context, operator: Operator) -> Expr:
    data, output = _tensors(operator, ("int8",))
    fine = data.scale / 128.0
    output_multiplier, output_shift = _factor16(fine / output.scale)
    ramp_multiplier, ramp_shift = _factor16(fine / (3.0 / 32768.0))
    need(
        -15 <= output_shift <= 0,
        f"the input's scale {data.scale:.6g} is not between 1/512 and 128 times the output's {output.scale:.6g}, "
        "as the reference's 16-bit arithmetic needs",
    )
    need(-15 <= ramp_shift <= 31, f"the input's scale {data.scale:.6g} is beyond the reference's 16-bit arithmetic")
    factors = HardSwishFactors(output_multiplier, output_shift, ramp_multiplier, ramp_shift)
    values = lookup.hard_swish(data.required_quantisation, output.required_quantisation, factors)
    return _lookup(context, operator, data, values)


def _factor16(real: float) -> tuple[int, int]:
    """Rounds a multiplier to 15 bits, saturated; the shift stays."""
    multiplier, shift = quantize_multiplier(real)
    return min((multiplier + (1 << 15)) >> 16, (1 << 15) - 1), shift


@converts("ELU")
def elu(context: Context, operator: Operator) -> Expr:
    data, output = _tensors(operator, ("int8",))
    values = lookup.of_reals(data.required_quantisation, output.required_quantisation, lookup.elu_table)
    return _lookup(context, operator, data, values)


@converts("RSQRT")
def rsqrt(context: Context, operator: Operator) -> Expr:
    data, output = _tensors(operator)
    if data.info.dtype == "int16":
        _need_symmetric(data, output)
        factors = quantize_multiplier(1.0 / (math.sqrt(data.scale) * output.scale))
        return get(activations.Rsqrt16)(context.expr(data), attrs=activations.Rsqrt16Attrs(*factors))
    values = lookup.rsqrt(data.required_quantisation, output.required_quantisation)
    return _lookup(context, operator, data, values)


def _of_reals(data: Tensor, output: Tensor, row: pointwise.Pointwise) -> NDArray[np.int8]:
    assert row.compute is not None
    return lookup.of_reals(data.required_quantisation, output.required_quantisation, row.compute)


@converts(*REAL_FUNCTIONS, when=is_int8)
def real_function(context: Context, operator: Operator) -> Expr:
    """The reference has no integer kernel; a table does what float kernels between two conversions would do."""
    data, output = _tensors(operator)
    row = next(row for row in pointwise.ROWS if row.tflite == operator.name)
    return _lookup(context, operator, data, _of_reals(data, output, row))


@converts("SQRT", when=is_int8)
def sqrt(context: Context, operator: Operator) -> Expr:
    data, output = _tensors(operator)
    return _lookup(context, operator, data, lookup.sqrt(data.required_quantisation, output.required_quantisation))


@converts("GELU", when=is_int8)
def gelu(context: Context, operator: Operator) -> Expr:
    data, output = _tensors(operator)
    row = pointwise.BY_RELAX["relax.nn.gelu_tanh" if operator.option("Approximate") else "relax.nn.gelu"]
    return _lookup(context, operator, data, _of_reals(data, output, row))


# SOFTMAX on int8 and int16 activations, LOG_SOFTMAX on int8.

LONGEST_ROW = 4095  # Exponentials of at most 1 whose sum fits the reference's 12 integer bits.
LARGEST_MULTIPLIER = 2.0**31 - 1  # Beyond it only the largest element of a row counts.
LOOKUP_RANGE = 10.0 / 65535.0  # A step where [-10, 0] spans all 65,536 differences of 16 bits, as the table does.


def _rows(operator: Operator, dtypes: tuple[str, ...] = INTEGERS) -> tuple[Tensor, Tensor]:
    data, output = operator.required_input(0), operator.outputs[0]
    need_dtype(data, dtypes, "input")
    need_dtype(output, dtypes, "output")
    need(len(data.info.shape) > 0, "the input is a scalar")
    return data, output


def _beta(operator: Operator) -> float:
    return float(operator.options.Beta())


def scaled_difference(product: float, what: str) -> tuple[int, int]:
    """Multiplier and shift that bring differences, in steps of ``product``, to 26 fraction bits."""
    real = min(product * (1 << softmaxes.DIFF_BITS), LARGEST_MULTIPLIER)
    need(real > 1.0, f"{what} is {product:.3g}, too small for the reference's fixed-point format")
    mantissa, shift = math.frexp(real)
    multiplier, carry = quantize_multiplier(mantissa)
    return multiplier, shift + carry


@converts("SOFTMAX")
def softmax(context: Context, operator: Operator) -> Expr:
    data, output = _rows(operator)
    if data.info.dtype == "int16":
        return _softmax16(context, operator)
    if output.info.dtype == "int8":
        need_quantisation(output, 1 / 256, -128)
    else:
        need_quantisation(output, 1 / 65536, -32768, tolerance=0.001)
    multiplier, shift = scaled_difference(_beta(operator) * data.scale, "beta * input scale")
    table = constant(softmaxes.exponentials(multiplier, shift))
    return get(softmaxes.Softmax)(
        context.expr(data), table, attrs=softmaxes.SoftmaxAttrs(multiplier, shift, output.info.dtype)
    )


def _softmax16(context: Context, operator: Operator) -> Expr:
    data, output = operator.required_input(0), operator.outputs[0]
    need_dtype(output, ("int16",), "output")
    need_quantisation(output, 1 / 32768, 0, tolerance=0.001)
    depth, product = data.info.shape[-1], data.scale * _beta(operator)
    need(
        depth < 1 << 16,
        f"rows of {depth} elements: their exponentials may overflow the reference's 32-bit sum",
    )
    multiplier, shift = quantize_multiplier(product / LOOKUP_RANGE)
    need(shift <= 15, f"beta * input scale is {product:.3g}, too large for the reference's 32-bit differences")
    tables = (constant(softmaxes.exponential_lookup()), constant(softmaxes.reciprocal_lookup()))
    return get(softmaxes.Softmax16)(context.expr(data), *tables, attrs=softmaxes.Softmax16Attrs(multiplier, shift))


@converts("LOG_SOFTMAX")
def log_softmax(context: Context, operator: Operator) -> Expr:
    data, output = _rows(operator, ("int8",))
    need_quantisation(output, 1 / 16, 127)
    depth = data.info.shape[-1]
    need(depth <= LONGEST_ROW, f"rows of {depth} elements: at most {LONGEST_ROW} exponentials can be summed")
    multiplier, shift = scaled_difference(data.scale, "input scale")
    table = constant(softmaxes.exponentials(multiplier, shift))
    return get(softmaxes.LogSoftmax)(context.expr(data), table, attrs=softmaxes.LogSoftmaxAttrs(multiplier, shift))


# L2_NORMALIZATION on int8 activations.

LONGEST_NORM = (2**31 - 1) // 255**2  # An int8 less its zero point is at most 255; so many squares fit 32 bits.


@converts("L2_NORMALIZATION")
def l2_normalization(context: Context, operator: Operator) -> Expr:
    data, output = _rows(operator, ("int8",))
    need_quantisation(output, 1 / 128, 0)
    name = ACTIVATIONS[operator.option("FusedActivationFunction")]
    need(name == "NONE", f"fused activation {name} is not supported here; make it an operator of its own")
    depth = data.info.shape[-1]
    need(depth <= LONGEST_NORM, f"rows of {depth} elements: at most {LONGEST_NORM} squares can be summed in 32 bits")
    return get(L2Normalize)(context.expr(data), attrs=L2NormalizeAttrs(data.zero_point))
