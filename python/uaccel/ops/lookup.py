"""A function of one 8-bit variable, as a table of its 256 values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uaccel.model import Array, TensorInfo
from uaccel.ops.base import Attributes, Elementwise, IntegerOperator, Site, register, require
from uaccel.ops.kernel import Argument, Constant, Input, Kernel, Output, portable
from uaccel.tvm_api import te

ENTRIES = 256
BYTES = ("int8", "uint8")


@dataclass(frozen=True)
class LookupAttrs(Attributes):
    """``function`` names what the table holds, for reports and for accelerators that have that function."""

    function: str


@register
class Lookup(IntegerOperator[LookupAttrs]):
    """table[input], the table indexed by the input's bits as an unsigned number."""

    name = "lookup"
    hides_differences = True
    arguments = ("input", "table")
    elementwise = Elementwise.FIRST

    def infer(self, inputs: Sequence[TensorInfo], attrs: LookupAttrs) -> TensorInfo:
        data, table = inputs
        require(data.dtype in BYTES, f"lookup: input is {data.dtype}, wanted int8 or uint8")
        fits = table.shape == (ENTRIES,) and table.dtype in BYTES
        require(fits, f"lookup: the table is {table}, wanted {ENTRIES} of int8 or uint8")
        return TensorInfo(data.shape, table.dtype)

    def meaning(self, inputs: Sequence[Any], attrs: LookupAttrs) -> Any:
        data, table = inputs

        def element(*index: Any) -> Any:
            return table(data(*index).astype("uint8").astype("int32"))

        return te.compute(data.shape, element, name="lookup")

    def kernels(self, site: Site[LookupAttrs]) -> Sequence[Kernel]:
        return [lookup_kernel(site.output.elements, site.operands[1].value)]


def lookup_kernel(elements: int, table: Array) -> Kernel:
    arguments: tuple[Argument, ...] = (Input(0), Constant("table", table), Output(0))
    parameters = {"elements": elements}
    return portable("uaccel_lookup", "uaccel_lookup", parameters, arguments, inplace=(0,))


def by_bits(values: Array) -> Array:
    """The values for -128..127 in the order of a table: first those for 0..127."""
    return np.roll(values, ENTRIES // 2)


def stored_values(dtype: str) -> NDArray[np.int64]:
    """What the 256 entries of a table stand for: the stored values of an 8-bit type, by their bits."""
    return np.arange(ENTRIES).astype(np.uint8).view(dtype).astype(np.int64)


def worth_a_table(elements: int) -> bool:
    """A table takes more flash than the arithmetic that it replaces; fewer elements than entries do not repay it."""
    return elements >= ENTRIES
