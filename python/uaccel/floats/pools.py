"""Pools of floats, and means over an image, as ours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from uaccel.model import TensorInfo
from uaccel.ops.axes import Layout
from uaccel.ops.base import IntegerOperator, get, info_of
from uaccel.ops.float_sums import FLOAT
from uaccel.ops.pool_float import AveragePool2dFloat, MaxPool2dFloat, PoolFloatAttrs
from uaccel.ops.traits import name_of

POOLS: Final[dict[str, type[IntegerOperator[Any]]]] = {
    "relax.nn.max_pool2d": MaxPool2dFloat,
    "relax.nn.avg_pool2d": AveragePool2dFloat,
}
NHWC, NCHW = (0, 1, 2, 3), (0, 2, 3, 1)


@dataclass(frozen=True)
class Pool:
    """``call`` makes ours of the input in NHWC; ``layout`` is how the model's lies. ``covers``: the binding's name."""

    data: Any
    layout: Layout
    call: Callable[[Any], Any]
    covers: tuple[str, ...]


def pool_of(var: Any, call: Any) -> Pool | None:
    name = name_of(call)
    if name not in (*POOLS, "relax.mean") or info_of(var).dtype != FLOAT or len(info_of(call.args[0]).shape) != 4:
        return None
    return _mean(var, call) if name == "relax.mean" else _pool(var, call)


def _pool(var: Any, call: Any) -> Pool | None:
    attrs, operator = call.attrs, get(POOLS[name_of(call)])
    layout = {"NHWC": NHWC, "NCHW": NCHW}.get(str(attrs.layout))
    if layout is None or str(attrs.out_layout or attrs.layout) != str(attrs.layout):
        return None
    window, strides, padding, dilation = (
        tuple(int(n) for n in values) for values in (attrs.pool_size, attrs.strides, attrs.padding, attrs.dilation)
    )
    made = PoolFloatAttrs(window, strides, padding, dilation, int(bool(attrs.count_include_pad)))
    data, wanted = (_turned(info_of(each), layout) for each in (call.args[0], var))
    if operator.infer([data], made) != wanted:
        return None  # windows overhang
    return Pool(call.args[0], layout, lambda data: operator(data, attrs=made), (var.name,))


def _mean(var: Any, call: Any) -> Pool | None:
    """Over height and width: those are told by which axes are left."""
    axes = sorted(int(axis) % 4 for axis in call.attrs.axis or ())
    layout = {(1, 2): NHWC, (2, 3): NCHW}.get((axes[0], axes[-1])) if len(axes) == 2 else None
    if layout is None:
        return None
    shape = _turned(info_of(call.args[0]), layout).shape
    attrs = PoolFloatAttrs(shape[1:3], (1, 1), (0, 0, 0, 0), (1, 1))
    return Pool(call.args[0], layout, lambda data: get(AveragePool2dFloat)(data, attrs=attrs), (var.name,))


def _turned(info: TensorInfo, layout: Layout) -> TensorInfo:
    return TensorInfo(tuple(info.shape[axis] for axis in layout), info.dtype)
