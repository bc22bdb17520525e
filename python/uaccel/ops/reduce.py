"""Defines reductions along axes: sums, means and extremes, running sums, positions of extremes, and the top k."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from uaccel.model import Quantisation, Shape, TensorInfo
from uaccel.ops import exact
from uaccel.ops.exact import FLOAT32, TFLITE, RoundedOnce, check_rounding, const, kernel_suffix
from uaccel.ops.fixedpoint import fixed_ratios, most_that_counts, scale_fraction
from uaccel.ops.kernel import Kernel, same
from uaccel.ops.operator import Attributes, ByLoops, Infos, IntegerOperator, Site, require
from uaccel.tvm_api import te, tirx
from uaccel.tvm_api.loops import count_to, local_array, te_let, where

# Mean, sum, maximum and minimum along any axes, where mean and sum are requantised as accumulators are.


class ReduceAttrs(Attributes):
    """``axes`` ascend; ``keep_dims`` leaves them behind with extent 1."""

    axes: tuple[int, ...]
    keep_dims: bool


class ReduceSumAttrs(ReduceAttrs):
    """``multiplier * 2**(shift - 31)`` is input scale / output scale."""

    input_zero_point: int
    output_zero_point: int
    multiplier: int
    shift: int
    rounding: str = TFLITE


def infer_reduced(data: TensorInfo, attrs: ReduceAttrs, what: str) -> TensorInfo:
    axes, rank = attrs.axes, len(data.shape)
    require(len(axes) > 0, f"{what}: there are no axes to reduce")
    require(list(axes) == sorted(set(axes)), f"{what}: axes {axes} do not ascend")
    require(all(0 <= axis < rank for axis in axes), f"{what}: axes {axes} are not axes of {data}")
    kept = [1 if axis in axes else extent for axis, extent in enumerate(data.shape)]
    shape = kept if attrs.keep_dims else [extent for axis, extent in enumerate(kept) if axis not in axes]
    return TensorInfo(tuple(shape), data.dtype)


def reduced_elements(shape: Shape, axes: Sequence[int]) -> int:
    """How many input elements are reduced to one of the output."""
    return math.prod(shape[axis] for axis in axes)


def loop_extents(shape: Shape, axes: Sequence[int]) -> list[int]:
    """The extents of alternating runs of axes: kept, reduced, kept, ...; the first and the last are kept.

    Neighbouring axes that are both kept, or both reduced, lie as one in memory and need one loop. Axes of one element
    are left out. Where there is nothing to keep at an end, its run has one element.
    """
    runs = [1]
    for axis, extent in enumerate(shape):
        reduced = axis in axes
        if extent == 1:
            continue
        if reduced == (len(runs) % 2 == 0):
            runs[-1] *= extent
        else:
            runs.append(extent)
    return runs if len(runs) % 2 else [*runs, 1]


LONGEST = 5  # the runs that the kernels have loops for: three kept, two reduced between them


def reduced(data: Any, attrs: ReduceAttrs, what: str, combine: Any, convert: Any) -> Any:
    """Applies ``combine`` over the reduced axes to the elements, each of which is ``convert``-ed."""
    info = exact.info(data)
    shape = infer_reduced(info, attrs, what).shape
    taken = {axis: te.reduce_axis((0, info.shape[axis]), name=f"r{axis}") for axis in attrs.axes}

    def element(*index: Any) -> Any:
        kept = list(index)
        if attrs.keep_dims:
            kept = [position for axis, position in enumerate(index) if axis not in taken]
        full = [taken[axis] if axis in taken else kept.pop(0) for axis in range(len(info.shape))]
        return combine(convert(data(*full)), axis=list(taken.values()))

    return te.compute(shape, element, name="reduced")


def loop_parameters(shape: Shape, axes: Sequence[int]) -> dict[str, int]:
    """The loops as fields of a kernel's structure; those that are missing run once."""
    runs = loop_extents(shape, axes)
    names = ("outer", "reduced_outer", "middle", "reduced_inner", "inner")
    return dict(zip(names, [*runs, *[1] * (LONGEST - len(runs))], strict=True))


def along_axis(data: TensorInfo, axis: int, extent: str = "extent") -> dict[str, int]:
    """The loops around one axis, and those within it, as fields of a kernel's structure."""
    before, behind = math.prod(data.shape[:axis]), math.prod(data.shape[axis + 1 :])
    return {"outer": before, extent: data.shape[axis], "inner": behind}


OF_SUMS = ("offset", "multiplier", "shift", "output_zero_point")  # Fields that extremes have no use for.


class _RequantisedSum(IntegerOperator[ReduceSumAttrs]):
    """Holds what mean and sum share: they differ in the factor alone."""

    def factor(self, attrs: ReduceSumAttrs, count: int) -> tuple[int, int]:
        """Multiplier and shift for the sum of ``count`` elements."""
        return attrs.multiplier, attrs.shift

    def infer(self, attrs: ReduceSumAttrs, *inputs: TensorInfo) -> TensorInfo:
        check_rounding(attrs, self.name)
        return infer_reduced(inputs[0], attrs, self.name)

    def meaning(self, attrs: ReduceSumAttrs, data: Any) -> Any:
        info = exact.info(data)
        count = reduced_elements(info.shape, attrs.axes)
        sums = reduced(data, attrs, self.name, te.sum, exact.i64)
        low, high = exact.limits(info.dtype)
        factor = [exact.const(number, "int32") for number in self.factor(attrs, count)]

        def output(*index: Any) -> Any:
            centred = sums(*index) - exact.const(attrs.input_zero_point * count)
            scaled = exact.requantize_as(attrs.rounding, exact.i32(centred), *factor)
            return exact.finish(scaled, attrs.output_zero_point, low, high, info.dtype)

        return te.compute(sums.shape, output, name=self.name)

    def kernels(self, site: Site[ReduceSumAttrs]) -> Sequence[Kernel]:
        attrs, data = site.attrs, site.operands[0].info
        count = reduced_elements(data.shape, attrs.axes)
        multiplier, shift = self.factor(attrs, count)
        parameters = {
            **loop_parameters(data.shape, attrs.axes),
            "offset": -attrs.input_zero_point * count,
            "multiplier": multiplier,
            "shift": shift,
            "output_zero_point": attrs.output_zero_point,
        }
        function = f"uaccel_reduce_sum{kernel_suffix(attrs)}"
        return self.one_call(site, parameters, struct="uaccel_reduce", function=function)


class ReduceSum(_RequantisedSum):
    """Computes output_zero_point + requantise(sum of (input - input_zero_point), multiplier, shift), saturated."""

    name = "sum"


class ReduceMean(_RequantisedSum):
    """Computes the mean: the sum, requantised by a multiplier that includes the division by the count."""

    name = "mean"

    def factor(self, attrs: ReduceSumAttrs, count: int) -> tuple[int, int]:
        """TFLite's quotient keeps as many bits as the reference keeps, and is cut off, not rounded.

        The multiplier is raised before the division, by as many bits as the count has behind its first: so the quotient
        stays below 2**31. It is raised by 32 at most, so that the dividend fits 63, and only so far that the shift
        stays above -32. With float32 rounding the attributes hold the whole factor, division included, as a float32.
        """
        if attrs.rounding == FLOAT32:
            return attrs.multiplier, attrs.shift
        bits = min(count.bit_length() - 1, 32, 31 + attrs.shift)
        return (attrs.multiplier << bits) // count, attrs.shift - bits


class _Extreme(IntegerOperator[ReduceAttrs]):
    """Holds what maximum and minimum share."""

    combine: Any

    def infer(self, attrs: ReduceAttrs, *inputs: TensorInfo) -> TensorInfo:
        return infer_reduced(inputs[0], attrs, self.name)

    def meaning(self, attrs: ReduceAttrs, *inputs: Any) -> Any:
        return reduced(inputs[0], attrs, self.name, type(self).combine, lambda element: element)

    def kernels(self, site: Site[ReduceAttrs]) -> Sequence[Kernel]:
        parameters = loop_parameters(site.operands[0].info.shape, site.attrs.axes) | dict.fromkeys(OF_SUMS, 0)
        return self.one_call(site, parameters, struct="uaccel_reduce", function=f"uaccel_{self.name}")


class ReduceMax(_Extreme):
    """Finds the largest element; input and output share their quantisation."""

    name = "reduce_max"
    combine = te.max


class ReduceMin(_Extreme):
    """Finds the smallest element; input and output share their quantisation."""

    name = "reduce_min"
    combine = te.min


# Sums and means along any axes whose real result is rounded once, half to even.

BITS = 31  # of the multiplier: a sum of 32 bits with its sign times that fits 64


class ScaledSumAttrs(RoundedOnce, ReduceAttrs):
    """``multiplier / 2**shift`` is input scale / output scale, divided by the count for a mean."""

    input_zero_point: int
    multiplier: int


def require_sum(count: int, dtype: str, what: str) -> None:
    """Raises TypeError where a sum of so many elements, each less the zero point, could leave 32 bits.

    An element and a zero point of one type differ by ``high - low`` at most.
    """
    low, high = exact.limits(dtype)
    most = ((1 << 31) - 1) // (high - low)
    reason = f"{what}: the sum of {count} {dtype} elements overflows 32 bits; at most {most} are possible"
    require(count <= most, reason)


class ScaledSum(IntegerOperator[ScaledSumAttrs]):
    """Sums input - input_zero_point and multiplies by a ratio, rounded once, half to even."""

    name = "scaled_sum"

    def infer(self, attrs: ScaledSumAttrs, *inputs: TensorInfo) -> TensorInfo:
        output = infer_reduced(inputs[0], attrs, self.name)
        runs = len(loop_extents(inputs[0].shape, attrs.axes))
        require(runs <= LONGEST, f"{self.name}: axes {attrs.axes} of {inputs[0]} take {runs} loops, at most {LONGEST}")
        require_sum(reduced_elements(inputs[0].shape, attrs.axes), inputs[0].dtype, self.name)
        return output

    def meaning(self, attrs: ScaledSumAttrs, data: Any) -> Any:
        zero_point = exact.const(attrs.input_zero_point)
        sums = reduced(data, attrs, self.name, te.sum, lambda element: exact.i64(element) - zero_point)

        def output(*index: Any) -> Any:
            return exact.rounded_once(sums(*index) * exact.const(attrs.multiplier), attrs, str(data.dtype))

        return te.compute(sums.shape, output, name=self.name)

    def kernels(self, site: Site[ScaledSumAttrs]) -> Sequence[Kernel]:
        attrs, data = site.attrs, site.operands[0].info
        count = reduced_elements(data.shape, attrs.axes)
        parameters = {
            **loop_parameters(data.shape, attrs.axes),
            "offset": -attrs.input_zero_point * count,
            **same(attrs, "multiplier", "shift", "tolerance", "output_zero_point", "clamp_min", "clamp_max"),
        }
        return self.one_call(site, parameters)


def scaled_sum_attrs(
    data: TensorInfo,
    given: Quantisation,
    wanted: Quantisation,
    axes: Sequence[int],
    *,
    keep_dims: bool,
    mean: bool,
    clamp: tuple[int, int] | None = None,
) -> ScaledSumAttrs:
    """Attributes of the sum of ``data`` along ``axes``, which may count from the end, or of its mean."""
    ascending = tuple(sorted({axis + len(data.shape) if axis < 0 else axis for axis in axes}))
    count = reduced_elements(data.shape, ascending)
    ratio = scale_fraction(given.scale) / scale_fraction(wanted.scale) / (count if mean else 1)
    ratios = fixed_ratios([ratio], BITS)
    low, high = exact.limits(data.dtype)
    most = most_that_counts(ratio, count * (high - low), high - low)
    stage = RoundedOnce.stage(ratios, most, wanted.zero_point, data.dtype, clamp)
    scaled = {"input_zero_point": given.zero_point, "multiplier": ratios.multipliers[0], **stage}
    return ScaledSumAttrs(axes=ascending, keep_dims=keep_dims, **scaled)


# Cumulative sums along an axis, quantised.


class CumsumAttrs(Attributes):
    """``exclusive`` leaves out the element itself, ``reverse`` sums from the end. Both are 0 or 1.

    A sum is raised by ``left_shift`` bits, wraps to 32, and is brought to the output's scale.
    """

    axis: int
    exclusive: int
    reverse: int
    left_shift: int
    input_zero_point: int
    output_zero_point: int
    multiplier: int
    shift: int
    clamp_min: int
    clamp_max: int


class Cumsum(IntegerOperator[CumsumAttrs]):
    """Sums all elements so far; each sum begins with minus the input's zero point, as the reference's does."""

    name = "cumsum"

    def infer(self, attrs: CumsumAttrs, data: TensorInfo) -> TensorInfo:
        require(data.dtype == "int8", f"cumsum: input is {data.dtype}, wanted int8")
        require(0 <= attrs.axis < len(data.shape), f"cumsum: {attrs.axis} is not an axis of {data}")
        return data

    def meaning(self, attrs: CumsumAttrs, data: Any) -> Any:
        info, axis = exact.info(data), attrs.axis
        k = te.reduce_axis((0, info.shape[axis]), name="k")

        def total(*index: Any) -> Any:
            """The sum of the elements up to this one; ``counts`` selects them, since a reduction runs over all."""
            position = index[axis]
            before = (k.var > position) if attrs.reverse else (k.var < position)
            counts = before if attrs.exclusive else tirx.any(before, tirx.all(k.var <= position, k.var >= position))
            value = exact.i64(data(*index[:axis], k, *index[axis + 1 :])) - const(attrs.input_zero_point)
            return te.sum(tirx.Select(counts, value, const(0)), axis=k)

        sums = te.compute(info.shape, total, name="sums")

        def element(*index: Any) -> Any:
            raised = exact.wrap32((sums(*index) - const(attrs.input_zero_point)) << const(attrs.left_shift))
            return exact.rounded_twice(raised, attrs, "int8")

        return te.compute(info.shape, element, name="cumsum")

    def kernels(self, site: Site[CumsumAttrs]) -> Sequence[Kernel]:
        parameters = {
            **along_axis(site.operands[0].info, site.attrs.axis),
            **same(site.attrs, "exclusive", "reverse", "left_shift", "input_zero_point", "output_zero_point"),
            **same(site.attrs, "multiplier", "shift", "clamp_min", "clamp_max"),
        }
        return self.one_call(site, parameters, inplace=(0,))


# Positions of the largest or smallest element along an axis; of equal ones the first counts.


class ArgExtremeAttrs(Attributes):
    """``axis`` counts from the front; the output, int32 or int64, lacks it."""

    axis: int
    output_dtype: str


class _ArgExtreme(IntegerOperator[ArgExtremeAttrs]):
    hides_differences = True
    combine: ClassVar[Any]

    def infer(self, attrs: ArgExtremeAttrs, data: TensorInfo) -> TensorInfo:
        require(0 <= attrs.axis < len(data.shape), f"{self.name}: {attrs.axis} is not an axis of {data}")
        kept = data.shape[: attrs.axis] + data.shape[attrs.axis + 1 :]
        return TensorInfo(kept, attrs.output_dtype)

    def meaning(self, attrs: ArgExtremeAttrs, data: Any) -> Any:
        info, axis = exact.info(data), attrs.axis
        shape = self.infer(attrs, info).shape
        ks = [te.reduce_axis((0, info.shape[axis]), name=name) for name in ("k", "position")]

        def at(index: Sequence[Any], k: Any) -> Any:
            return data(*index[:axis], k, *index[axis:])

        extreme = te.compute(shape, lambda *i: type(self).combine(at(i, ks[0]), axis=ks[0]), name="extreme")

        def first(*index: Any) -> Any:
            """The least position that holds the extreme; others count as the one behind the last."""
            missing = const(info.shape[axis], attrs.output_dtype)
            is_extreme = at(index, ks[1]) == extreme(*index)
            return te.min(tirx.Select(is_extreme, ks[1].var.astype(attrs.output_dtype), missing), axis=ks[1])

        return te.compute(shape, first, name="position")

    def kernels(self, site: Site[ArgExtremeAttrs]) -> Sequence[Kernel]:
        parameters = along_axis(site.operands[0].info, site.attrs.axis) | {"wide": int(site.output.dtype == "int64")}
        return self.one_call(site, parameters, struct="uaccel_arg_extreme", function=f"uaccel_{self.name}")


class ArgMax(_ArgExtreme):
    """Finds the position of the first largest element along an axis."""

    name = "arg_max"
    combine = te.max


class ArgMin(_ArgExtreme):
    """Finds the position of the first smallest element along an axis."""

    name = "arg_min"
    combine = te.min


# The k largest or smallest elements along an axis in their order, and where they were.


class TopKAttrs(Attributes):
    """``axis`` counts from the front; ``largest`` 0 asks for the smallest; positions are int32 or int64."""

    axis: int
    count: int
    largest: int
    position_dtype: str


class TopK(ByLoops[TopKAttrs]):
    """Sorts the best elements by insertion: each element takes its place among the best so far.

    The first of equal elements comes first, since an element passes those that are strictly worse only. Most elements
    do not precede the last of the best, and cost one comparison.
    """

    name = "top_k"
    hides_differences = True

    def infer(self, attrs: TopKAttrs, data: TensorInfo) -> tuple[TensorInfo, ...]:
        require(0 <= attrs.axis < len(data.shape), f"top_k: {attrs.axis} is not an axis of {data}")
        extent = data.shape[attrs.axis]
        require(1 <= attrs.count <= extent, f"top_k: {attrs.count} of {extent} elements, wanted 1 to {extent}")
        shape = (*data.shape[: attrs.axis], attrs.count, *data.shape[attrs.axis + 1 :])
        return TensorInfo(shape, data.dtype), TensorInfo(shape, attrs.position_dtype)

    def write(self, infos: Infos, attrs: TopKAttrs, data: Any, values: Any, positions: Any) -> None:
        info = infos[0]
        outer, inner = math.prod(info.shape[: attrs.axis]), math.prod(info.shape[attrs.axis + 1 :])
        extent, count = info.shape[attrs.axis], attrs.count
        place = local_array(1, "int32")

        def precedes(value: Any, at: Any) -> Any:
            """Whether the value comes before the entry there; an entry is free while its position is below 0."""
            better = value > values[at] if attrs.largest else value < values[at]
            return tirx.any(positions[at] < tirx.const(0, attrs.position_dtype), better)

        with count_to(outer) as o, count_to(inner) as i:
            first = o * count * inner + i
            with count_to(count) as rank:
                values[first + rank * inner] = tirx.const(0, info.dtype)
                positions[first + rank * inner] = tirx.const(-1, attrs.position_dtype)
            with count_to(extent) as number:
                value = te_let(data[(o * extent + number) * inner + i])
                with where(precedes(value, first + (count - 1) * inner)):
                    place[0] = count - 1
                    with count_to(count - 1) as step:
                        before = first + (count - 2 - step) * inner
                        with where(precedes(value, before)):
                            values[before + inner] = values[before]
                            positions[before + inner] = positions[before]
                            place[0] = count - 2 - step
                    values[first + place[0] * inner] = value
                    positions[first + place[0] * inner] = tirx.Cast(attrs.position_dtype, number)
