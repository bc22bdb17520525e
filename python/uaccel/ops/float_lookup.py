"""A function of one 8-bit variable whose results stay real, as a table of 256 single-precision numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from uaccel.model import TensorInfo
from uaccel.ops.base import Elementwise, IntegerOperator, Site, operand_arguments, register, require
from uaccel.ops.kernel import Kernel, Output, portable
from uaccel.ops.lookup import BYTES, ENTRIES, LookupAttrs
from uaccel.tvm_api import te


@register
class FloatLookup(IntegerOperator[LookupAttrs]):
    """table[input], the table indexed by the input's bits as an unsigned number."""

    name = "float_lookup"
    hides_differences = True
    arguments = ("input", "table")
    elementwise = Elementwise.FIRST

    def infer(self, inputs: Sequence[TensorInfo], attrs: LookupAttrs) -> TensorInfo:
        data, table = inputs
        require(data.dtype in BYTES, f"float_lookup: input is {data.dtype}, wanted int8 or uint8")
        wanted = TensorInfo((ENTRIES,), "float32")
        require(table == wanted, f"float_lookup: the table is {table}, wanted {wanted}")
        return TensorInfo(data.shape, table.dtype)

    def meaning(self, inputs: Sequence[Any], attrs: LookupAttrs) -> Any:
        data, table = inputs

        def element(*index: Any) -> Any:
            return table(data(*index).astype("uint8").astype("int32"))

        return te.compute(data.shape, element, name=self.name)

    def kernels(self, site: Site[LookupAttrs]) -> Sequence[Kernel]:
        arguments = (*operand_arguments(site.operands, self.arguments), Output(0))
        function = struct = "uaccel_float_lookup"
        return [portable(function, struct, {"elements": site.output.elements}, arguments)]
