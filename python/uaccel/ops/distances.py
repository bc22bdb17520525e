"""Squares of the distances between rows, in float: what kernels of support vectors are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from uaccel.model import TensorInfo
from uaccel.ops import exact
from uaccel.ops.base import Attributes, IntegerOperator, Site, register, require
from uaccel.tvm_api import te


@dataclass(frozen=True)
class DistancesAttrs(Attributes):
    pass


@register
class Distances(IntegerOperator[DistancesAttrs]):
    """Of each row of the input to each row of ``others``; C is printed from the meaning."""

    name = "distances"
    arguments = ("input", "others")

    def infer(self, inputs: Sequence[TensorInfo], attrs: DistancesAttrs) -> TensorInfo:
        one, other = inputs
        fit = len(one.shape) == len(other.shape) == 2 and one.shape[1] == other.shape[1]
        require(fit, f"distances: {one} and {other}, wanted rows of one length")
        return TensorInfo((one.shape[0], other.shape[0]), one.dtype)

    def meaning(self, inputs: Sequence[Any], attrs: DistancesAttrs) -> Any:
        one, other = inputs
        shape = self.infer([exact.info(tensor) for tensor in inputs], attrs).shape
        k = te.reduce_axis((0, one.shape[1]), name="k")

        def square(i: Any, j: Any) -> Any:
            return (one[i, k] - other[j, k]) * (one[i, k] - other[j, k])

        return te.compute(shape, lambda i, j: te.sum(square(i, j), axis=k), name=self.name)

    def macs(self, site: Site[DistancesAttrs]) -> int:
        return site.output.elements * site.operands[0].info.shape[1]
