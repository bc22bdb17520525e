"""Product of a function of one 8-bit tensor and a function of another, the real result rounded once, half to even."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uaccel.errors import ModelError
from uaccel.model import Array, TensorInfo
from uaccel.ops import exact
from uaccel.ops.base import Attributes, IntegerOperator, Site, register, require
from uaccel.ops.broadcast import LOOPS, broadcast_shape, collapse, element_at, loop_parameters, places_shared
from uaccel.ops.kernel import Constant, Input, Kernel, Output, portable
from uaccel.ops.lookup import ENTRIES
from uaccel.ops.ratio import LONGEST_SHIFT
from uaccel.tvm_api import te

BITS = 30  # of each factor: a product takes 61, with its sign
WIDE_BITS = 52  # of a factor that a tensor itself is multiplied by, in two words
WORD = 32
FURTHEST = 1024  # steps from the zero point
NEAR = 2.0**-20  # steps: products that may be wrong by no more are ties where they are as near to the middle
NOISE = 2.0**-8  # steps that the rounded entries of tables may be wrong by
MOST_BITS = 31  # after the point of each: a product of small ones has no more than round_half_even can shift by


@dataclass(frozen=True)
class FunctionProductAttrs(Attributes):
    """``shift``: how many bits after the point a product of two entries has; within ``tolerance`` of the middle it is
    a tie. ``functions`` names them for reports."""

    shift: int
    tolerance: int
    output_zero_point: int
    clamp_min: int
    clamp_max: int
    functions: str


@register
class FunctionProduct(IntegerOperator[FunctionProductAttrs]):
    """table1[input1] * table2[input2], the tables indexed by the inputs' bits. A table of one entry is a zero point.
    The second may have 64 bits: low words, as signed numbers, and then high words."""

    name = "function_product"
    arguments = ("input1", "input2", "table1", "table2")

    def infer(self, inputs: Sequence[TensorInfo], attrs: FunctionProductAttrs) -> TensorInfo:
        first, second, table1, table2 = inputs
        require(first.dtype == second.dtype == "int8", f"{self.name}: {first} and {second}, wanted two of int8")
        one, entries, words = (TensorInfo((count,), "int32") for count in (1, ENTRIES, 2 * ENTRIES))
        known = (table1, table2) in ((one, entries), (entries, entries), (one, words))
        require(known, f"{self.name}: the tables are {table1} and {table2}, wanted {ENTRIES} of int32")
        loops = len(collapse(first.shape, second.shape).extents)
        require(loops <= LOOPS, f"{self.name}: broadcasting {first} and {second} takes {loops} loops, at most {LOOPS}")
        return TensorInfo(broadcast_shape(first.shape, second.shape), "int8")

    def meaning(self, inputs: Sequence[Any], attrs: FunctionProductAttrs) -> Any:
        *data, table1, table2 = inputs
        shapes = [tuple(int(extent) for extent in tensor.shape) for tensor in data]

        def element(*index: Any) -> Any:
            x, y = (element_at(tensor, shape, index) for tensor, shape in zip(data, shapes, strict=True))
            first = exact.i32(x) - table1(0) if int(table1.shape[0]) == 1 else table1(_place(x))
            second = exact.i64(table2(_place(y)))
            if int(table2.shape[0]) > ENTRIES:
                second = second + exact.i64(table2(_place(y) + ENTRIES)) * exact.const(1 << WORD)
            rounded = exact.round_half_even(exact.i64(first) * second, attrs.shift, attrs.tolerance)
            return exact.finish(rounded, attrs.output_zero_point, attrs.clamp_min, attrs.clamp_max, "int8")

        return te.compute(broadcast_shape(*shapes), element, name=self.name)

    def kernels(self, site: Site[FunctionProductAttrs]) -> Sequence[Kernel]:
        first, second, table1, table2 = site.operands
        parameters = asdict(site.attrs) | loop_parameters(first.info.shape, second.info.shape)
        del parameters["functions"]
        parameters["entries1"] = table1.info.elements
        parameters["words2"] = table2.info.elements // ENTRIES
        tables = (Constant("table1", table1.value), Constant("table2", table2.value))
        arguments = (Input(0), Input(1), *tables, Output(0))
        name = "uaccel_function_product"
        return [portable(f"{name}_s8", name, parameters, arguments, inplace=places_shared(site, 2))]


def _place(value: Any) -> Any:
    return value.astype("uint8").astype("int32")


def function_product_operands(
    first: NDArray[np.float64] | int,
    second: NDArray[np.float64],
    output_zero_point: int,
    clamp: tuple[int, int],
    functions: str,
) -> tuple[FunctionProductAttrs, Array, Array]:
    """Attributes and tables. ``second`` has the real values of the second factor by the bits of its input, so that the
    product counts steps of the output; ``first`` those of the first, or the zero point of a tensor itself."""
    if isinstance(first, int):
        table1, largest = np.array([first], np.int32), 255.0
        table2, shift = _fixed(second, np.ones(1), BITS, MOST_BITS)
        if largest / 2.0 ** (shift + 1) > NEAR:
            table2, shift = _fixed(second, np.ones(1), WIDE_BITS, LONGEST_SHIFT)
        wrong = (largest + 1) / 2
    else:
        table1, bits1 = _fixed(np.asarray(first), second, BITS, MOST_BITS)
        table2, bits2 = _fixed(second, np.asarray(first), BITS, MOST_BITS)
        shift = bits1 + bits2
        wrong = (float(np.abs(table1).max()) + float(np.abs(table2).max()) + 1) / 2
    if shift < 1:
        raise ModelError(f"a factor reaches {2.0 ** (BITS - shift):.3g} steps of the output's scale, too far")
    steps = wrong / 2.0**shift
    if steps > NOISE:
        raise ModelError(f"its factors have so wide ranges that 32 bits leave them {steps:.3g} steps")
    tolerance = math.ceil(wrong) if steps <= NEAR else 0
    attrs = FunctionProductAttrs(shift, tolerance, output_zero_point, *clamp, functions)
    return attrs, table1, table2 if table2.dtype == np.int32 else _words(table2)


def _fixed(values: NDArray[np.float64], others: NDArray[np.float64], size: int, most: int) -> tuple[Array, int]:
    """With as many bits after the point as ``size`` has room for; what the least of the other factors carries beyond
    the output's range in any case is cut off, infinity too. Nothing times infinity is nothing."""
    if np.isnan(values).any():
        raise ModelError("a function of one of its inputs has a value that is no number")
    least = np.abs(others[np.isfinite(others) & (others != 0)]).min(initial=np.inf)
    held = np.clip(values, -FURTHEST / least, FURTHEST / least)
    bits = min(size - int(np.frexp(np.abs(held).max())[1]), most)
    return np.rint(np.ldexp(held, bits)).astype(np.int32 if size == BITS else np.int64), bits


def _words(values: Array) -> Array:
    """Numbers of 64 bits as low words and high words, both signed."""
    low = values.astype(np.int32)
    return np.concatenate([low, (values - low) >> WORD]).astype(np.int32)
