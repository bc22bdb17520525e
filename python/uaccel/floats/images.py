"""What looks at images of floats and is no sum that grows: pools, means, resizes, transposed convolutions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from uaccel.model import TensorInfo
from uaccel.ops.axes import Layout
from uaccel.ops.base import IntegerOperator, constant, get, info_of
from uaccel.ops.float_sums import FLOAT
from uaccel.ops.pool_float import AveragePool2dFloat, MaxPool2dFloat, PoolFloatAttrs
from uaccel.ops.traits import name_of
from uaccel.ops.transpose_conv2d_float import TransposeConv2dFloat, TransposeConv2dFloatAttrs
from uaccel.tvm_api import is_constant, relax

POOLS: Final[dict[str, type[IntegerOperator[Any]]]] = {
    "relax.nn.max_pool2d": MaxPool2dFloat,
    "relax.nn.avg_pool2d": AveragePool2dFloat,
}
LAYOUTS: Final[dict[str, Layout]] = {"NHWC": (0, 1, 2, 3), "NCHW": (0, 2, 3, 1)}
NHWC, NCHW = LAYOUTS.values()


@dataclass(frozen=True)
class ImageLayer:
    """``call`` makes ours of the input in NHWC; ``layout`` is how the model's lies. ``covers``: the binding's name.
    ``gains``: it is worth while in this layout wherever it stands."""

    data: Any
    layout: Layout
    call: Callable[[Any], Any]
    covers: tuple[str, ...]
    gains: bool = False


def image_layer_of(var: Any, call: Any) -> ImageLayer | None:
    make = _MAKERS.get(name_of(call))
    if make is None or info_of(var).dtype != FLOAT or len(info_of(call.args[0]).shape) != 4:
        return None
    return make(var, call)


def _laid(call: Any, given: str = "layout") -> Layout | None:
    """How the images of a call lie, None where its result lies in another way."""
    name, out = str(getattr(call.attrs, given)), getattr(call.attrs, "out_layout", None)
    return LAYOUTS.get(name) if str(out or name) == name else None


def _pool(var: Any, call: Any) -> ImageLayer | None:
    attrs, operator, layout = call.attrs, get(POOLS[name_of(call)]), _laid(call)
    if layout is None:
        return None
    window, strides, padding, dilation = (
        tuple(int(n) for n in values) for values in (attrs.pool_size, attrs.strides, attrs.padding, attrs.dilation)
    )
    made = PoolFloatAttrs(window, strides, padding, dilation, int(bool(attrs.count_include_pad)))
    data, wanted = (_turned(info_of(each), layout) for each in (call.args[0], var))
    if operator.infer([data], made) != wanted:
        return None  # windows overhang
    return ImageLayer(call.args[0], layout, lambda data: operator(data, attrs=made), (var.name,))


def _mean(var: Any, call: Any) -> ImageLayer | None:
    """Over height and width: those are told by which axes are left."""
    axes = sorted(int(axis) % 4 for axis in call.attrs.axis or ())
    layout = {(1, 2): NHWC, (2, 3): NCHW}.get((axes[0], axes[-1])) if len(axes) == 2 else None
    if layout is None:
        return None
    return _means(var, call, layout, (1, 1))


def _parts(var: Any, call: Any) -> ImageLayer | None:
    """Means over as many parts of the image, all of one size."""
    layout = _laid(call)
    if layout is None:
        return None
    counts = [_turned(info_of(var), layout).shape[axis] for axis in (1, 2)]
    extents = [_turned(info_of(call.args[0]), layout).shape[axis] for axis in (1, 2)]
    even = all(extent % count == 0 for extent, count in zip(extents, counts, strict=True))
    return _means(var, call, layout, counts) if even else None


def _means(var: Any, call: Any, layout: Layout, counts: Sequence[int]) -> ImageLayer:
    shape = _turned(info_of(call.args[0]), layout).shape
    window = (shape[1] // counts[0], shape[2] // counts[1])
    attrs = PoolFloatAttrs(window, window, (0, 0, 0, 0), (1, 1))
    return ImageLayer(call.args[0], layout, lambda data: get(AveragePool2dFloat)(data, attrs=attrs), (var.name,))


def _resized(var: Any, call: Any) -> ImageLayer | None:
    layout = _laid(call)
    if layout is None:
        return None
    size = [_turned(info_of(var), layout).shape[axis] for axis in (1, 2)]
    names = ("method", "coordinate_transformation_mode", "rounding_method", "cubic_alpha", "cubic_exclude")
    options = {name: getattr(call.attrs, name) for name in (*names, "extrapolation_value", "out_dtype")}
    options["roi"] = tuple(float(end) for end in call.attrs.roi)

    def made(data: Any) -> Any:
        return relax.op.image.resize2d(data, relax.ShapeExpr(size), layout="NHWC", **options)

    return ImageLayer(call.args[0], layout, made, (var.name,))


def _transposed(var: Any, call: Any) -> ImageLayer | None:
    """A transposed convolution by constant weights, of one group and no dilation."""
    attrs, weights, layout = call.attrs, call.args[1], _laid(call, "data_layout")
    plain = int(attrs.groups) == 1 and all(int(step) == 1 for step in attrs.dilation)
    if layout is None or not plain or not is_constant(weights) or info_of(weights).dtype != FLOAT:
        return None
    kernel = str(attrs.kernel_layout)
    values = np.asarray(weights.value.numpy()).transpose([kernel.index(letter) for letter in "OHWI"])
    made = TransposeConv2dFloatAttrs(
        _turned(info_of(var), layout).shape[1:3],
        tuple(int(step) for step in attrs.strides),
        tuple(int(cut) for cut in attrs.padding[:2]),
    )
    ours = constant(np.ascontiguousarray(values))
    return ImageLayer(
        call.args[0], layout, lambda data: get(TransposeConv2dFloat)(data, ours, attrs=made), (var.name,), gains=True
    )


def _turned(info: TensorInfo, layout: Layout) -> TensorInfo:
    return TensorInfo(tuple(info.shape[axis] for axis in layout), info.dtype)


_MAKERS: Final[Mapping[str, Callable[[Any, Any], ImageLayer | None]]] = {
    **dict.fromkeys(POOLS, _pool),
    "relax.mean": _mean,
    "relax.nn.adaptive_avg_pool2d": _parts,
    "relax.image.resize2d": _resized,
    "relax.nn.conv2d_transpose": _transposed,
}
