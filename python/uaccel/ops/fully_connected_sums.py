"""The sums of a fully connected layer as an accelerator gives them: raw products added up, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from uaccel.model import TensorInfo
from uaccel.ops import exact
from uaccel.ops.base import Attributes, IntegerOperator, Site, operand_arguments, register, require
from uaccel.ops.kernel import Kernel, Output, portable
from uaccel.tvm_api import te


@dataclass(frozen=True)
class FullyConnectedSumsAttrs(Attributes):
    """None: rows times transposed weights, whatever they mean."""


@register
class FullyConnectedSums(IntegerOperator[FullyConnectedSumsAttrs]):
    """Input [rows, depth] times weights [units, depth] transposed, summed in int32, which wraps."""

    name = "fully_connected_sums"
    arguments = ("input", "weights")

    def infer(self, inputs: Sequence[TensorInfo], attrs: FullyConnectedSumsAttrs) -> TensorInfo:
        data, weights = inputs
        rank = len(data.shape) == len(weights.shape) == 2
        require(rank, "fully_connected_sums: input and weights have rank 2")
        require(data.dtype == weights.dtype == "int8", f"fully_connected_sums: {data} and {weights}, wanted int8")
        fits = data.shape[1] == weights.shape[1]
        require(fits, f"fully_connected_sums: input {data} does not fit weights {weights}")
        return TensorInfo((data.shape[0], weights.shape[0]), "int32")

    def meaning(self, inputs: Sequence[Any], attrs: FullyConnectedSumsAttrs) -> Any:
        data, weights = inputs
        infos = [exact.info(tensor) for tensor in inputs]
        k = te.reduce_axis((0, infos[0].shape[1]), name="k")

        def element(row: Any, unit: Any) -> Any:
            return te.sum(exact.i32(data(row, k)) * exact.i32(weights(unit, k)), axis=k)

        return te.compute(self.infer(infos, attrs).shape, element, name="sums")

    def kernels(self, site: Site[FullyConnectedSumsAttrs]) -> Sequence[Kernel]:
        rows, units = site.output.shape
        parameters = {"rows": rows, "depth": site.operands[0].info.shape[1], "units": units}
        arguments = (*operand_arguments(site.operands, self.arguments), Output(0))
        return [portable("uaccel_fully_connected_sums", "uaccel_fully_connected_sums", parameters, arguments)]
