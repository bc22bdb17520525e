"""Where along an axis the largest or smallest element is; of equal ones the first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from uaccel.model import TensorInfo
from uaccel.ops import exact
from uaccel.ops.base import Attributes, IntegerOperator, Site, register, require
from uaccel.ops.exact import const
from uaccel.ops.kernel import Input, Kernel, Output, dtype_suffix, portable
from uaccel.tvm_api import te, tirx


@dataclass(frozen=True)
class ArgExtremeAttrs(Attributes):
    """``axis`` counts from the front; the output, int32 or int64, lacks it."""

    axis: int
    output_dtype: str


class _ArgExtreme(IntegerOperator[ArgExtremeAttrs]):
    arguments = ("input",)
    combine: ClassVar[Any]

    def infer(self, inputs: Sequence[TensorInfo], attrs: ArgExtremeAttrs) -> TensorInfo:
        (data,) = inputs
        require(0 <= attrs.axis < len(data.shape), f"{self.name}: {attrs.axis} is not an axis of {data}")
        kept = data.shape[: attrs.axis] + data.shape[attrs.axis + 1 :]
        return TensorInfo(kept, attrs.output_dtype)

    def meaning(self, inputs: Sequence[Any], attrs: ArgExtremeAttrs) -> Any:
        (data,) = inputs
        info, axis = exact.info(data), attrs.axis
        shape = self.infer([info], attrs).shape
        ks = [te.reduce_axis((0, info.shape[axis]), name=name) for name in ("k", "position")]

        def at(index: Sequence[Any], k: Any) -> Any:
            return data(*index[:axis], k, *index[axis:])

        extreme = te.compute(shape, lambda *i: type(self).combine(at(i, ks[0]), axis=ks[0]), name="extreme")

        def first(*index: Any) -> Any:
            """Positions that do not hold the extreme count as the one behind the last."""
            missing = const(info.shape[axis], attrs.output_dtype)
            is_extreme = at(index, ks[1]) == extreme(*index)
            return te.min(tirx.Select(is_extreme, ks[1].var.astype(attrs.output_dtype), missing), axis=ks[1])

        return te.compute(shape, first, name="position")

    def kernels(self, site: Site[ArgExtremeAttrs]) -> Sequence[Kernel]:
        axis, data = site.attrs.axis, site.operands[0].info
        parameters = {
            "outer": math.prod(data.shape[:axis]),
            "extent": data.shape[axis],
            "inner": math.prod(data.shape[axis + 1 :]),
            "wide": int(site.output.dtype == "int64"),
        }
        function = f"uaccel_{self.name}_{dtype_suffix(data.dtype)}"
        return [portable(function, "uaccel_arg_extreme", parameters, (Input(0), Output(0)))]


@register
class ArgMax(_ArgExtreme):
    """The position of the first largest element along an axis."""

    name = "arg_max"
    hides_differences = True
    combine = te.max


@register
class ArgMin(_ArgExtreme):
    """The position of the first smallest element along an axis."""

    name = "arg_min"
    hides_differences = True
    combine = te.min
