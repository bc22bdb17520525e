"""Provides the context, registry and checks of the TFLite converters, and converts operators on shapes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uaccel.errors import InternalError, ModelError, need
from uaccel.frontend.checks import Budget, at_run_time, need_axis, shape_text
from uaccel.frontend.converters import Converters, always
from uaccel.frontend.tflite import checks
from uaccel.frontend.tflite.reader import ACTIVATIONS, PADDINGS, Operator, Tensor
from uaccel.model import Array, Shape, TensorSpec
from uaccel.ops.fixedpoint import quantize_multiplier, quantize_multipliers
from uaccel.ops.operator import constant
from uaccel.ops.windows import SlidingWindow
from uaccel.tvm_api import is_constant, relax

# The context that converters get, and their registry: one function for each operator, by name.

INTEGERS = ("int8", "int16")  # Types of activations that have integer operators.

Expr = Any
Converter = Callable[["Context", Operator], "Expr | Sequence[Expr] | Update | Several"]
VariableKey = int | tuple[str, str]  # A variable tensor's index; a resource's container and name.


@dataclass
class Variable:
    """Holds state that lasts between inferences; ``expr`` is its value at this point of the walk, None before."""

    spec: TensorSpec
    initial: Array
    expr: Expr = None


@dataclass(frozen=True)
class Update:
    """Is the result of an operator that changes variables: the call gives its outputs, then the new values.

    If the output itself is the variable, the call gives it alone.
    """

    call: Expr
    variables: tuple[Tensor | VariableKey, ...]


@dataclass(frozen=True)
class Several:
    """Is the result of an operator with several outputs: the call gives them as a tuple."""

    call: Expr


def _no_subgraph(_number: int) -> Any:
    raise InternalError("this context knows no subgraphs")


def _no_block(_expr: Expr, _name: str) -> Expr:
    raise InternalError("this context has no block to bind in")


@dataclass
class Context:
    """Holds the Relax expression of every tensor met so far, and of every variable as it is at this point."""

    budget: Budget
    exprs: dict[int, Expr] = field(default_factory=dict)
    numbers: Mapping[int, Array] = field(default_factory=dict)  # Of tensors that follow from shapes alone.
    variables: dict[VariableKey, Variable] = field(default_factory=dict)
    # Variables by the indices of the tensors that are handles to them.
    handles: dict[int, VariableKey] = field(default_factory=dict)
    subgraph: Callable[[int], Any] = _no_subgraph  # Gives the module of another subgraph of the file.
    inside: tuple[int, ...] = (0,)  # The subgraphs that are being read, the innermost last.
    in_float: bool = False  # Whether the operator at hand is quantised and computed in float.
    emit: Callable[[Expr, str], Expr] = _no_block  # Binds a value that several operators share.
    rows: dict[tuple[Any, ...], Expr] = field(default_factory=dict)  # Inputs as bytes, see ``hybrid``.

    def expr(self, tensor: Tensor) -> Expr:
        if tensor.index in self.variables:
            return self.variables[tensor.index].expr
        if tensor.index in self.exprs:
            return self.exprs[tensor.index]
        if tensor.data is None:
            raise ModelError(f'tensor "{tensor.name}" is used before it is computed')
        return constant(tensor.data)


WIDE_WEIGHTS = 16  # Bits of uint8 weights that need 9 without their zero point; no file holds such.


def is_quantised(operator: Operator) -> bool:
    """Whether the first input is int8 or int16; other types go to the converters of floats by default."""
    first = operator.inputs[0] if operator.inputs else None
    return first is not None and first.info.dtype in INTEGERS


CONVERTERS: Converters[Converter] = Converters("uaccel.frontend.tflite", when=is_quantised)
converts = CONVERTERS.converts


def round_half_away(value: np.float32) -> int:
    """Rounds halves away from zero, as the reference rounds a single-precision quotient."""
    return math.floor(float(value) + 0.5) if value >= 0 else math.ceil(float(value) - 0.5)


def quantize_value(tensor: Tensor, real: float) -> int:
    """A real constant in the tensor's quantised domain, before clamping."""
    quotient = np.float32(real) / np.float32(tensor.scale)
    return tensor.zero_point + round_half_away(quotient)


def factor(what: str, real: float) -> dict[str, int]:
    """A real factor as the attributes ``<what>_multiplier`` and ``<what>_shift``."""
    multiplier, shift = quantize_multiplier(real)
    return {f"{what}_multiplier": multiplier, f"{what}_shift": shift}


_BOUNDS: Mapping[str, tuple[float | None, float | None]] = {
    "NONE": (None, None),
    "RELU": (0.0, None),
    "RELU6": (0.0, 6.0),
    "RELU_N1_TO_1": (-1.0, 1.0),
    # Both runtimes leave these out: the kernels know clamps alone.
    "TANH": (None, None),
    "SIGN_BIT": (None, None),
}


def activation_range(operator: Operator, output: Tensor) -> tuple[int, int]:
    """The clamp that a fused activation means for the quantised output."""
    return bounded_range(output, *bounds(operator))


def activated(operator: Operator, value: Expr) -> Expr:
    """Applies the fused activation to a number without a scale."""
    low, high = bounds(operator)
    if low is None:
        return value
    need(low >= 0 or operator.outputs[0].info.dtype != "uint32", "its activation begins at -1, which uint32 has not")
    return relax.op.nn.relu(value) if high is None else relax.op.clip(value, low, high)


def bounds(operator: Operator) -> tuple[float | None, float | None]:
    return _BOUNDS[ACTIVATIONS[operator.option("FusedActivationFunction")]]


def bounded_range(output: Tensor, low: float | None, high: float | None) -> tuple[int, int]:
    """The output's dtype range, narrowed to the real interval low..high."""
    info = np.iinfo(output.info.dtype)
    minimum, maximum = int(info.min), int(info.max)
    if low is not None:
        minimum = max(minimum, quantize_value(output, low))
    if high is not None:
        maximum = min(maximum, quantize_value(output, high))
    return minimum, maximum


def sliding_window(operator: Operator, image: Sequence[int], kernel: Shape = (), axes: str = "HW") -> SlidingWindow:
    """The windows of a convolution with this kernel, or of a pool, along axes such as ``HW`` of an image."""
    options, dilated = operator.options, bool(kernel)
    kernel = kernel or (int(options.FilterHeight()), int(options.FilterWidth()))
    strides = tuple(int(getattr(options, f"Stride{axis}")()) for axis in axes)
    dilation = tuple(int(getattr(options, f"Dilation{axis}Factor")()) if dilated else 1 for axis in axes)
    need(dilated or min(kernel + strides) > 0, f"window {kernel} and strides {strides} must be positive")
    need(min(strides + dilation) > 0, f"strides {strides} and dilation {dilation} must be positive")
    window = SlidingWindow(kernel, strides, dilation, (0,) * (2 * len(kernel)))
    return window if PADDINGS[options.Padding()] == "VALID" else replace(window, padding=window.same(image))


def channel_multipliers(
    data: Tensor, weights: Tensor, output: Tensor, channels: int, *, single: bool = False
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Multiplier and shift of each output channel: input scale * weight scale / output scale, in double precision.

    ``single``: the product is rounded to single precision, as LiteRT does for uint8.
    """
    scales = np.asarray(weights.required_quantisation.scales, np.float64)
    need(len(scales) in (1, channels), f"{len(scales)} weight scales for {channels} output channels")
    products = np.float64(data.scale) * scales
    if single:
        products = (np.float32(data.scale) * scales.astype(np.float32)).astype(np.float64)
    effective = products / np.float64(output.scale)
    multiplier, shift = quantize_multipliers(np.broadcast_to(effective, (channels,)))
    checks.need_possible_shift(data, int(shift.max(initial=0)))
    return multiplier, shift


def bias_values(bias: Tensor | None, channels: int, data: Tensor, wide: Sequence[str] = ("int32", "int64")) -> Array:
    """The bias, or zeros of the accumulator's type; ``wide``: the types it may have beside 16-bit activations."""
    is_wide = data.info.dtype == "int16"
    if bias is None:
        return np.zeros(channels, np.int64 if is_wide else np.int32)
    checks.need_dtype(bias, wide if is_wide else ("int32",), "bias")
    values = checks.need_constant(bias, "bias").reshape(-1)
    need(len(values) == channels, f"{len(values)} bias values for {channels} output channels")
    return values


# Constant folding: constants of the file, and results that depend on nothing else.


def constant_value(context: Context, tensor: Tensor) -> Array | None:
    """The tensor's value; None where it is computed or given at run time."""
    expr = context.exprs.get(tensor.index)
    if expr is None:
        return tensor.data
    return np.asarray(expr.value.numpy()) if is_constant(expr) else None


def need_known(context: Context, tensor: Tensor, role: str) -> Array:
    value = constant_value(context, tensor)
    if value is None:
        raise at_run_time(role, tensor.name)
    need(value.dtype.kind == "i", f'{role} "{tensor.name}" is {value.dtype}, wanted integers')
    return value


def need_numbers(context: Context, tensor: Tensor, role: str, count: int) -> list[int]:
    """A constant list of ``count`` integers."""
    numbers = [int(value) for value in need_known(context, tensor, role).reshape(-1)]
    need(len(numbers) == count, f'{role} "{tensor.name}" has {len(numbers)} entries, wanted {count}')
    return numbers


def apply(
    context: Context, tensors: Sequence[Tensor], symbolic: Callable[..., Expr], folded: Callable[..., Array]
) -> Expr:
    """Applies ``symbolic`` to the tensors' expressions, or ``folded`` to their values if all are known."""
    values = [constant_value(context, tensor) for tensor in tensors]
    if all(value is not None for value in values):
        return constant(folded(*values))
    return symbolic(*[context.expr(tensor) for tensor in tensors])


# Operators that only change a shape, and those that return shapes.


def reshaped(expr: Expr, old: Shape, new: Shape) -> Expr:
    return expr if old == new else relax.op.reshape(expr, new)


@converts("RESHAPE", "STABLEHLO_RESHAPE", when=always)
def reshape(context: Context, operator: Operator) -> Expr:
    """The output's own shape counts, as in the reference; a shape given as a tensor or option repeats it."""
    data, output = operator.required_input(0), operator.outputs[0]
    need(data.info.elements == output.info.elements, f"cannot reshape {data.info} to {output.info}")
    checks.need_same_type(data, output)
    return apply(
        context,
        [data],
        lambda expr: relax.op.reshape(expr, output.info.shape),
        lambda array: array.reshape(output.info.shape),
    )


@converts("SQUEEZE", when=always)
def squeeze(context: Context, operator: Operator) -> Expr:
    """Drops the named axes of one element, or all such axes where none is named."""
    shape, options = operator.required_input(0).info.shape, operator.given_options
    named = [int(options.SqueezeDims(i)) for i in range(options.SqueezeDimsLength())] if options else []
    axes = {need_axis(axis, len(shape)) for axis in named}
    for axis in axes:
        need(shape[axis] == 1, f"axis {axis} of {shape_text(shape)} has {shape[axis]} elements, wanted 1 to drop it")
    dropped = axes if named else {axis for axis, extent in enumerate(shape) if extent == 1}
    checks.need_shape(operator.outputs[0], [extent for axis, extent in enumerate(shape) if axis not in dropped])
    return reshape(context, operator)


@converts("EXPAND_DIMS", when=always)
def expand_dims(context: Context, operator: Operator) -> Expr:
    shape = list(operator.required_input(0).info.shape)
    axis = constant_value(context, operator.required_input(1))
    if axis is not None:
        (number,) = need_numbers(context, operator.required_input(1), "axis", 1)
        place = need_axis(number, len(shape) + 1)
        checks.need_shape(operator.outputs[0], [*shape[:place], 1, *shape[place:]])
    return reshape(context, operator)


@converts("SHAPE", when=always)
def shape(_context: Context, operator: Operator) -> Expr:
    data, output = operator.required_input(0), operator.outputs[0]
    checks.need_asked_type(operator, "OutType")
    checks.need_shape(output, [len(data.info.shape)])
    return constant(np.array(data.info.shape, output.info.dtype))


@converts("RANK", when=always)
def rank(_context: Context, operator: Operator) -> Expr:
    data, output = operator.required_input(0), operator.outputs[0]
    checks.need_dtype(output, ("int32",), "output")
    checks.need_shape(output, [])
    return constant(np.array(len(data.info.shape), output.info.dtype))


@converts("BROADCAST_ARGS", when=always)
def broadcast_args(context: Context, operator: Operator) -> Expr:
    """Folds the common shape of two; both must be known, since every shape is fixed."""
    first, second = (need_known(context, operator.required_input(i), "shape") for i in (0, 1))
    output = operator.outputs[0]
    try:
        common = np.broadcast_shapes(tuple(first.reshape(-1)), tuple(second.reshape(-1)))
    except ValueError:
        common = None
    need(common is not None, f"the shapes {first.tolist()} and {second.tolist()} have no common one")
    checks.need_shape(output, [len(common or ())])
    return constant(np.array(common, output.info.dtype))
