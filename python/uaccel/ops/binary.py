"""Defines elementwise operators of two tensors that broadcast: sums, products, extremes, comparisons, quotients."""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Final, TypeVar

from uaccel.model import Quantisation, Shape, TensorInfo
from uaccel.ops import exact
from uaccel.ops.exact import RoundedOnce, const, i64
from uaccel.ops.fixedpoint import fixed_ratios, most_that_counts, scale_fraction
from uaccel.ops.kernel import Kernel, Output, ParameterValue, dtype_suffix, portable
from uaccel.ops.operator import Attributes, Elementwise, IntegerOperator, Site, operand_arguments, require
from uaccel.ops.softmax import leading_zeros, reciprocal_of
from uaccel.tvm_api import te, tirx

# NumPy's broadcasting, which all of them share: as a type, as a meaning and as loops of C kernels.

LOOPS = 6  # nested loops of the C kernels; the innermost runs over a row

A = TypeVar("A", bound=Attributes)


def broadcast_shape(first: Shape, second: Shape) -> Shape:
    """The shape of the result; TypeError where the two do not go together."""
    rank = max(len(first), len(second))
    pairs = list(zip(_extended(first, rank), _extended(second, rank), strict=True))
    fits = all(a == b or 1 in (a, b) for a, b in pairs)
    require(fits, f"the shapes {list(first)} and {list(second)} cannot be broadcast")
    return tuple(max(a, b) if 0 not in (a, b) else 0 for a, b in pairs)


def _extended(shape: Shape, rank: int) -> Shape:
    return (1,) * (rank - len(shape)) + shape


@dataclass(frozen=True)
class Loops:
    """Describes loops, the outermost first. A stride of 0 repeats; in the innermost loop strides are 0 or 1."""

    extents: tuple[int, ...]
    strides1: tuple[int, ...]
    strides2: tuple[int, ...]


def collapse(first: Shape, second: Shape) -> Loops:
    """Makes as few loops as the broadcast needs.

    An axis joins the one outside it if one step out there is, for both inputs, as far as all steps along this axis.
    """
    output = broadcast_shape(first, second)
    axes = zip(output, _strides(first, len(output)), _strides(second, len(output)), strict=True)
    merged: list[tuple[int, int, int]] = []
    for extent, stride1, stride2 in axes:
        if extent == 1:
            continue
        if merged and merged[-1][1:] == (stride1 * extent, stride2 * extent):
            extent *= merged.pop()[0]
        merged.append((extent, stride1, stride2))
    loops = merged or [(1, 0, 0)]
    extents, strides1, strides2 = zip(*loops, strict=True)
    return Loops(tuple(extents), tuple(strides1), tuple(strides2))


def _strides(shape: Shape, rank: int) -> tuple[int, ...]:
    """The strides in elements; 0 where the axis is repeated."""
    strides, step = [], 1
    for extent in reversed(_extended(shape, rank)):
        strides.append(0 if extent == 1 else step)
        step *= extent
    return tuple(reversed(strides))


def infer_broadcast(first: TensorInfo, second: TensorInfo, what: str) -> Shape:
    """The shape of the result; raises TypeError where kernels have too few loops for it."""
    loops = len(collapse(first.shape, second.shape).extents)
    require(loops <= LOOPS, f"{what}: broadcasting {first} and {second} takes {loops} loops, at most {LOOPS}")
    return broadcast_shape(first.shape, second.shape)


class Broadcast(IntegerOperator[A]):
    """Broadcasts: every output element depends on one element of each input."""

    arguments = ("input1", "input2")
    elementwise = Elementwise.EACH
    kernel: ClassVar[str] = ""  # The name of the structure where it is not the operator's.

    def parameters(self, attrs: A) -> Mapping[str, ParameterValue]:
        """The fields of the kernel's structure besides the loops."""
        return asdict(attrs)

    def second_dtypes(self, dtype: str) -> tuple[str, ...]:
        """The types that the second input may have beside a first of ``dtype``."""
        return (dtype,)

    def infer(self, attrs: A, first: TensorInfo, second: TensorInfo) -> TensorInfo:
        require(second.dtype in self.second_dtypes(first.dtype), f"{self.name}: {second} does not fit {first}")
        return TensorInfo(infer_broadcast(first, second, self.name), first.dtype)

    def kernels(self, site: Site[A]) -> Sequence[Kernel]:
        first, second = (operand.info for operand in site.operands)
        parameters = {**loop_fields(first.shape, second.shape), **self.parameters(site.attrs)}
        arguments = (*operand_arguments(site.operands, ("first", "second")), Output(0))
        struct, shared = self.kernel or f"uaccel_{self.name}", places_shared(site, 2)
        function = f"{struct}_{dtype_suffix(first.dtype)}"
        return [portable(function, struct, parameters, arguments, inplace=shared)]


class BinaryOperator(Broadcast[A]):
    """States the meaning in steps: one for each input, and one that combines them."""

    def either(self, value: Any, attrs: A, number: str) -> Any:
        """What an element of input number "1" or "2" contributes, as a TE expression."""
        return value

    @abc.abstractmethod
    def combine(self, x: Any, y: Any, attrs: A, dtype: str) -> Any:
        """The output element of both contributions."""

    def meaning(self, attrs: A, *inputs: Any) -> Any:
        shape1, shape2 = (tuple(int(extent) for extent in tensor.shape) for tensor in inputs)
        first = te.compute(shape1, lambda *i: self.either(inputs[0](*i), attrs, "1"), name="first")
        second = te.compute(shape2, lambda *i: self.either(inputs[1](*i), attrs, "2"), name="second")
        dtype = str(inputs[0].dtype)

        def element(*index: Any) -> Any:
            return self.combine(element_at(first, shape1, index), element_at(second, shape2, index), attrs, dtype)

        return te.compute(broadcast_shape(shape1, shape2), element, name=self.name)


def element_at(tensor: Any, shape: Shape, index: Sequence[Any]) -> Any:
    """The element that broadcasting puts at ``index`` of the output."""
    own = index[len(index) - len(shape) :]
    return tensor(*(0 if extent == 1 else i for extent, i in zip(shape, own, strict=True)))


def loop_fields(first: Shape, second: Shape) -> dict[str, ParameterValue]:
    """The loops as fields of a kernel's structure, filled up to ``LOOPS`` with loops that run once."""
    loops = collapse(first, second)
    spare = LOOPS - len(loops.extents)
    return {
        "extents": (1,) * spare + loops.extents,
        "strides1": (0,) * spare + loops.strides1,
        "strides2": (0,) * spare + loops.strides2,
    }


def places_shared(site: Site[Any], tensors: int) -> tuple[int, ...]:
    """The run-time inputs, among the first ``tensors`` operands, that the output may lie over: each element of an input
    of the output's size is read just before the output's element in its place is written."""
    pairs = zip(site.input_indices()[:tensors], site.operands, strict=False)
    size = (site.output.elements, site.output.dtype)
    return tuple(i for i, given in pairs if i is not None and (given.info.elements, given.info.dtype) == size)


# Addition and subtraction of quantised tensors.


class AddAttrs(Attributes):
    """``scaledN`` is requantise((inputN - zero_pointN) << left_shift, multiplierN, shiftN), all on one finer scale."""

    left_shift: int
    zero_point1: int
    multiplier1: int
    shift1: int
    zero_point2: int
    multiplier2: int
    shift2: int
    output_zero_point: int
    output_multiplier: int
    output_shift: int
    clamp_min: int
    clamp_max: int


class CommonScale(BinaryOperator[AddAttrs]):
    """Brings both inputs to one finer scale before it combines them."""

    def either(self, value: Any, attrs: AddAttrs, number: str) -> Any:
        return rescaled(value, attrs, number)


def rescaled(value: Any, attrs: Any, number: str) -> Any:
    raised = centred(value, attrs, number) << exact.const(attrs.left_shift, "int32")
    factor = (getattr(attrs, f"{name}{number}") for name in ("multiplier", "shift"))
    return exact.i32(exact.requantize_const(raised, *factor))


def centred(value: Any, attrs: Any, number: str, dtype: str = "int32") -> Any:
    """An element less its input's zero point."""
    return value.astype(dtype) - exact.const(getattr(attrs, f"zero_point{number}"), dtype)


class _Sum(CommonScale):
    kernel = "uaccel_add"
    sign: int

    def combine(self, x: Any, y: Any, attrs: AddAttrs, dtype: str) -> Any:
        return exact.rounded_twice(x + y if self.sign > 0 else x - y, attrs, dtype, "output_")

    def parameters(self, attrs: AddAttrs) -> Mapping[str, ParameterValue]:
        return {**super().parameters(attrs), "sign": self.sign}


class Add(_Sum):
    """Computes clamp(output_zero_point + requantise(scaled1 + scaled2, output_multiplier, output_shift))."""

    name = "add"
    sign = 1


class Sub(_Sum):
    """Computes clamp(output_zero_point + requantise(scaled1 - scaled2, output_multiplier, output_shift))."""

    name = "sub"
    sign = -1


# Multiplication of quantised tensors.


class MulAttrs(Attributes):
    """``multiplier * 2**(shift - 31)`` is input scale * input scale / output scale."""

    zero_point1: int
    zero_point2: int
    output_zero_point: int
    multiplier: int
    shift: int
    clamp_min: int
    clamp_max: int


class Mul(BinaryOperator[MulAttrs]):
    """Computes clamp(output_zero_point + requantise(product, multiplier, shift)).

    ``product`` is (input1 - zero_point1) * (input2 - zero_point2).
    """

    name = "mul"

    def either(self, value: Any, attrs: MulAttrs, number: str) -> Any:
        return centred(value, attrs, number)

    def combine(self, x: Any, y: Any, attrs: MulAttrs, dtype: str) -> Any:
        return exact.rounded_twice(x * y, attrs, dtype)


# The smaller and the larger of two tensors' stored values.


class _Choice(BinaryOperator[Attributes]):
    """Compares what is stored, whatever the scales, as the reference does."""

    hides_differences = True

    def parameters(self, attrs: Attributes) -> Mapping[str, ParameterValue]:
        return {}


class Minimum(_Choice):
    """Computes min(input1, input2) of the stored values."""

    name = "minimum"

    def combine(self, x: Any, y: Any, attrs: Attributes, dtype: str) -> Any:
        return tirx.min(x, y)


class Maximum(_Choice):
    """Computes max(input1, input2) of the stored values."""

    name = "maximum"

    def combine(self, x: Any, y: Any, attrs: Attributes, dtype: str) -> Any:
        return tirx.max(x, y)


# The squared difference of quantised tensors.


class SquaredDifference(CommonScale):
    """Computes clamp(output_zero_point + requantise((scaled1 - scaled2) ** 2, output_multiplier, output_shift))."""

    name = "squared_difference"

    def combine(self, x: Any, y: Any, attrs: AddAttrs, dtype: str) -> Any:
        return exact.rounded_twice((x - y) * (x - y), attrs, dtype, "output_")


# Comparisons of quantised tensors, which are brought to a common scale as the reference rounds it.

# The attribute ``kind`` is a place in this list.
KINDS: Final = ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")


class CompareAttrs(Attributes):
    """Each input is raised by ``left_shift`` bits and scaled; ``kind`` is the comparison's place in ``KINDS``."""

    kind: int
    left_shift: int
    zero_point1: int
    multiplier1: int
    shift1: int
    zero_point2: int
    multiplier2: int
    shift2: int


class Compare(BinaryOperator[CompareAttrs]):
    """Computes input1 (==, !=, >, >=, <, <=) input2, of int8."""

    name = "compare"
    hides_differences = True

    def infer(self, attrs: CompareAttrs, *inputs: TensorInfo) -> TensorInfo:
        require(inputs[0].dtype == "int8", f"compare: input is {inputs[0].dtype}, wanted int8")
        require(0 <= attrs.kind < len(KINDS), f"compare: {attrs.kind} is no comparison")
        return TensorInfo(super().infer(attrs, *inputs).shape, "bool")

    def either(self, value: Any, attrs: CompareAttrs, number: str) -> Any:
        return rescaled(value, attrs, number)

    def combine(self, x: Any, y: Any, attrs: CompareAttrs, dtype: str) -> Any:
        answers = (tirx.all(x <= y, x >= y), tirx.any(x < y, x > y), x > y, x >= y, x < y, x <= y)
        return answers[attrs.kind]


# Addition and subtraction whose real result is rounded once, half to even.

BITS = 31  # of the larger multiplier: with 17 bits of an int16 less its zero point far from overflow


class WeightedSumAttrs(RoundedOnce):
    """``multiplier / 2**shift`` is input scale / output scale, the second negative for a difference."""

    zero_point1: int
    multiplier1: int
    zero_point2: int
    multiplier2: int


class WeightedSum(BinaryOperator[WeightedSumAttrs]):
    """Computes (input1 - zero_point1) * ratio1 + (input2 - zero_point2) * ratio2, rounded once, half to even."""

    name = "weighted_sum"

    def either(self, value: Any, attrs: WeightedSumAttrs, number: str) -> Any:
        return centred(value, attrs, number, "int64") * exact.const(getattr(attrs, f"multiplier{number}"))

    def combine(self, x: Any, y: Any, attrs: WeightedSumAttrs, dtype: str) -> Any:
        return exact.rounded_once(x + y, attrs, dtype)


def weighted_sum_attrs(
    first: Quantisation,
    second: Quantisation,
    output: Quantisation,
    dtype: str,
    *,
    sign: int = 1,
    clamp: tuple[int, int] | None = None,
) -> WeightedSumAttrs:
    """Attributes of first + ``sign`` * second; ``clamp`` bounds the stored result, as a following activation does."""
    wanted = scale_fraction(output.scale)
    ratios = fixed_ratios([scale_fraction(first.scale) / wanted, sign * scale_fraction(second.scale) / wanted], BITS)
    low, high = exact.limits(dtype)
    multiplier1, multiplier2 = ratios.multipliers
    return WeightedSumAttrs(
        zero_point1=first.zero_point,
        multiplier1=multiplier1,
        zero_point2=second.zero_point,
        multiplier2=multiplier2,
        **RoundedOnce.stage(ratios, 2 * (high - low), output.zero_point, dtype, clamp),
    )


# Multiplication whose real result is rounded once, half to even.

MULTIPLIER_BITS = 30  # a product of two int16 elements takes 33 bits with its sign, both together 63


class ProductAttrs(RoundedOnce):
    """``multiplier / 2**shift`` is input scale * input scale / output scale."""

    zero_point1: int
    zero_point2: int
    multiplier: int


class Product(BinaryOperator[ProductAttrs]):
    """Computes (input1 - zero_point1) * (input2 - zero_point2) * ratio, rounded once, half to even."""

    name = "product"

    def either(self, value: Any, attrs: ProductAttrs, number: str) -> Any:
        return centred(value, attrs, number, "int64")

    def combine(self, x: Any, y: Any, attrs: ProductAttrs, dtype: str) -> Any:
        return exact.rounded_once(x * y * exact.const(attrs.multiplier), attrs, dtype)


def product_attrs(
    first: Quantisation, second: Quantisation, output: Quantisation, dtype: str, *, clamp: tuple[int, int] | None = None
) -> ProductAttrs:
    """Attributes of first * second; ``clamp`` bounds the stored result, as a following activation does."""
    ratio = scale_fraction(first.scale) * scale_fraction(second.scale) / scale_fraction(output.scale)
    ratios = fixed_ratios([ratio], MULTIPLIER_BITS)
    low, high = exact.limits(dtype)
    most = most_that_counts(ratio, (high - low) ** 2, high - low)
    points = {"zero_point1": first.zero_point, "zero_point2": second.zero_point}
    stage = RoundedOnce.stage(ratios, most, output.zero_point, dtype, clamp)
    return ProductAttrs(multiplier=ratios.multipliers[0], **points, **stage)


# Division of quantised tensors, as the reference does it without dividing.
#
# The divisor's magnitude is shifted left by its leading zeros, so that Newton's steps find its inverse. The dividend
# takes the divisor's sign and is shifted left as far as it goes. Two rounded products with the inverse and the
# multiplier follow, and one shift to the right takes back all of these shifts.

# The reference's Newton steps make this of 1 / 0, whose negative sign the quotient then gets.
OF_ZERO: Final = -1515870788


class Div(Broadcast[MulAttrs]):
    """Computes input1 / input2, of int8. A quotient that takes a shift by more than 31 bits is zero.

    ``multiplier`` and ``shift`` bring the quotient of the stored values to the output's scale.
    """

    name = "div"

    def infer(self, attrs: MulAttrs, *inputs: TensorInfo) -> TensorInfo:
        require(inputs[0].dtype == "int8", f"div: input is {inputs[0].dtype}, wanted int8")
        return super().infer(attrs, *inputs)

    def meaning(self, attrs: MulAttrs, *inputs: Any) -> Any:
        infos = [exact.info(tensor) for tensor in inputs]
        divisor = te.compute(infos[1].shape, lambda *i: i64(inputs[1](*i)) - const(attrs.zero_point2), name="divisor")
        size = te.compute(infos[1].shape, lambda *i: tirx.max(divisor(*i), -divisor(*i)), name="size")
        zeros = te.compute(infos[1].shape, lambda *i: leading_zeros(size(*i)), name="zeros")

        def normalised(*i: Any) -> Any:
            """2**31 stands for zero."""
            return tirx.Select(size(*i) > const(0), size(*i) << zeros(*i), const(1 << 31))

        inverse = reciprocal_of(te.compute(infos[1].shape, normalised, name="normalised"))

        shape = broadcast_shape(infos[0].shape, infos[1].shape)

        def dividend(*index: Any) -> Any:
            value = i64(element_at(inputs[0], infos[0].shape, index)) - const(attrs.zero_point1)
            return tirx.Select(element_at(divisor, infos[1].shape, index) < const(0), -value, value)

        signed = te.compute(shape, dividend, name="dividend")
        positive = te.compute(shape, lambda *i: tirx.max(signed(*i), -signed(*i) - const(1)), name="positive")
        room = te.compute(shape, lambda *i: leading_zeros(positive(*i)) - const(1), name="room")

        def scaled(*index: Any) -> Any:
            is_zero = element_at(size, infos[1].shape, index) < const(1)
            factor = tirx.Select(is_zero, const(OF_ZERO), element_at(inverse, infos[1].shape, index))
            raised = signed(*index) << room(*index)
            return exact.high_mul(exact.high_mul(raised, factor), const(attrs.multiplier))

        def right(*index: Any) -> Any:
            bits = const(31 - attrs.shift) - element_at(zeros, infos[1].shape, index)
            return bits + room(*index)

        scaleds, rights = te.compute(shape, scaled, name="scaled"), te.compute(shape, right, name="right")

        def quotient(*index: Any) -> Any:
            rounded = exact.rounding_divide_by_power(scaleds(*index), tirx.min(rights(*index), const(31)))
            return tirx.Select(rights(*index) > const(31), const(0), rounded)

        quotients = te.compute(shape, quotient, name="quotient")

        bounds = (attrs.output_zero_point, attrs.clamp_min, attrs.clamp_max, infos[0].dtype)
        return te.compute(shape, lambda *index: exact.finish(quotients(*index), *bounds), name="div")
