"""Fuses float layers of the CPU: products, bias, batch normalisation, a sum with another tensor, activation.

What front ends write as three operators or more becomes one operator with a kernel of its own, which takes images as
NHWC. Pools, means, resizes and transposed convolutions become such operators as well. Constants are folded into weights
and biases in double precision and rounded once, so results may differ from the separate layers' by float rounding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from uaccel import tvm_api
from uaccel.frontend.qdq.rules import number
from uaccel.model import TensorInfo
from uaccel.ops import chain_float, conv_float
from uaccel.ops import operator as operators
from uaccel.ops.conv_float import BOTH, FLOAT, LOWER, NONE, FloatSumAttrs
from uaccel.ops.operator import constant, get, info_of, infos_of, name_of
from uaccel.ops.pool import AveragePool2dFloat, MaxPool2dFloat, PoolFloatAttrs
from uaccel.ops.storage import Layout, identity, inverse, layout_name
from uaccel.tvm_api import relax

# Image layers: pools, means, resizes, transposed convolutions. Nothing is fused to them.

POOLS: Final[dict[str, type[operators.IntegerOperator[Any]]]] = {
    "relax.nn.max_pool2d": MaxPool2dFloat,
    "relax.nn.avg_pool2d": AveragePool2dFloat,
}
LAYOUTS: Final[dict[str, Layout]] = {"NHWC": (0, 1, 2, 3), "NCHW": (0, 2, 3, 1)}
NHWC, NCHW = LAYOUTS.values()
MEAN, TRANSPOSED = "relax.mean", "relax.nn.conv2d_transpose"


@dataclass(frozen=True)
class ImageLayer:
    """Describes an image layer; ``call`` makes our operator of the input in NHWC.

    ``layout`` is how the model's tensor lies, and ``covers`` has the binding's name. ``gains``: our operator is worth a
    change of layout even without a convolution in the model.
    """

    data: Any
    layout: Layout
    call: Callable[[Any], Any]
    covers: tuple[str, ...]
    gains: bool = False


def image_layer_of(var: Any, call: Any) -> ImageLayer | None:
    make = _MAKERS.get(name_of(call))
    if make is None or info_of(var).dtype != FLOAT or len(info_of(call.args[0]).shape) != 4:
        return None
    layout = _laid(call)
    return None if layout is None else make(var, call, layout)


def _laid(call: Any) -> Layout | None:
    """Returns how the images of a call lie, as the axes of a mean show; None where its result lies in another way."""
    if name_of(call) == MEAN:
        axes = sorted(int(axis) % 4 for axis in call.attrs.axis or ())
        return {(1, 2): NHWC, (2, 3): NCHW}.get((axes[0], axes[-1])) if len(axes) == 2 else None
    given = "data_layout" if name_of(call) == TRANSPOSED else "layout"
    name, out = str(getattr(call.attrs, given)), getattr(call.attrs, "out_layout", None)
    return LAYOUTS.get(name) if str(out or name) == name else None


def _pool(var: Any, call: Any, layout: Layout) -> ImageLayer | None:
    attrs, operator = call.attrs, get(POOLS[name_of(call)])
    window, strides, padding, dilation = (
        tuple(int(n) for n in values) for values in (attrs.pool_size, attrs.strides, attrs.padding, attrs.dilation)
    )
    made = PoolFloatAttrs(window, strides, padding, dilation, int(bool(attrs.count_include_pad)))
    data, wanted = (_turned(info_of(each), layout) for each in (call.args[0], var))
    if operator.infer(made, data) != wanted:
        return None  # Its windows reach beyond the padding.
    return ImageLayer(call.args[0], layout, lambda data: operator(data, attrs=made), (var.name,))


def _means(var: Any, call: Any, layout: Layout) -> ImageLayer | None:
    """Describes a mean over height and width, or an adaptive average pool whose windows all have one size."""
    counts = (1, 1) if name_of(call) == MEAN else _turned(info_of(var), layout).shape[1:3]
    extents = _turned(info_of(call.args[0]), layout).shape[1:3]
    if any(extent % count for extent, count in zip(extents, counts, strict=True)):
        return None
    window = (extents[0] // counts[0], extents[1] // counts[1])
    attrs = PoolFloatAttrs(window, window, (0, 0, 0, 0), (1, 1))
    return ImageLayer(call.args[0], layout, lambda data: get(AveragePool2dFloat)(data, attrs=attrs), (var.name,))


def _resized(var: Any, call: Any, layout: Layout) -> ImageLayer | None:
    size = [_turned(info_of(var), layout).shape[axis] for axis in (1, 2)]
    names = ("method", "coordinate_transformation_mode", "rounding_method", "cubic_alpha", "cubic_exclude")
    options = {name: getattr(call.attrs, name) for name in (*names, "extrapolation_value", "out_dtype")}
    options["roi"] = tuple(float(end) for end in call.attrs.roi)

    def made(data: Any) -> Any:
        return relax.op.image.resize2d(data, relax.ShapeExpr(size), layout="NHWC", **options)

    return ImageLayer(call.args[0], layout, made, (var.name,))


def _transposed(var: Any, call: Any, layout: Layout) -> ImageLayer | None:
    """Describes a transposed convolution by constant weights, of one group and no dilation."""
    attrs, weights = call.attrs, call.args[1]
    plain = int(attrs.groups) == 1 and all(int(step) == 1 for step in attrs.dilation)
    if not plain or not tvm_api.is_constant(weights) or info_of(weights).dtype != FLOAT:
        return None
    kernel = str(attrs.kernel_layout)
    values = np.asarray(weights.value.numpy()).transpose([kernel.index(letter) for letter in "OHWI"])
    made = conv_float.TransposeConv2dFloatAttrs(
        _turned(info_of(var), layout).shape[1:3],
        tuple(int(step) for step in attrs.strides),
        tuple(int(cut) for cut in attrs.padding[:2]),
    )
    ours = constant(np.ascontiguousarray(values))
    return ImageLayer(
        call.args[0],
        layout,
        lambda data: get(conv_float.TransposeConv2dFloat)(data, ours, attrs=made),
        (var.name,),
        gains=True,
    )


def _turned(info: TensorInfo, layout: Layout) -> TensorInfo:
    return TensorInfo(tuple(info.shape[axis] for axis in layout), info.dtype)


_MAKERS: Final[Mapping[str, Callable[[Any, Any, Layout], ImageLayer | None]]] = {
    **dict.fromkeys(POOLS, _pool),
    **dict.fromkeys((MEAN, "relax.nn.adaptive_avg_pool2d"), _means),
    "relax.image.resize2d": _resized,
    TRANSPOSED: _transposed,
}


# Sums: float layers with constant weights, and the operators behind them that can become part of them. The kernel adds
# up products and bias, then another tensor, then applies the activation; so operators are taken in that order only.

Floats = NDArray[np.float32]
CONVOLUTIONS: Final = ("relax.nn.conv2d", "relax.nn.conv1d")


@dataclass(frozen=True)
class Sums:
    """Describes ``data`` times ``weights`` (OHWI; OI of a matrix product), and what was fused to it.

    ``covers`` are the names of all bindings that it stands for. ``layout``: how the model's tensors lie, by the axes of
    ours: (0, 2, 3, 1) where they are NCHW.
    """

    data: Any
    weights: Floats
    bias: Floats
    layout: Layout
    covers: tuple[str, ...]
    window: Mapping[str, Any] = field(default_factory=dict)
    added: Any = None
    activation: str = NONE
    bounds: tuple[float, float] = (0.0, 0.0)

    @property
    def channel_axis(self) -> int:
        return self.layout[-1]


def sums_of(var: Any, call: Any) -> Sums | None:
    """Returns the layer that begins with a call; None where it begins none."""
    name = name_of(call)
    if name not in (*CONVOLUTIONS, "relax.matmul") or info_of(var).dtype != FLOAT:
        return None
    data, weights = call.args[:2]
    if (
        tvm_api.is_constant(data)
        or not tvm_api.is_constant(weights)
        or {info_of(data).dtype, info_of(weights).dtype} != {FLOAT}
    ):
        return None
    values = np.asarray(weights.value.numpy())
    return _product(var, data, values) if name == "relax.matmul" else _convolution(var, call, values)


def _product(var: Any, data: Any, values: Floats) -> Sums | None:
    """Describes the product of any number of rows by one matrix."""
    rank = len(info_of(data).shape)
    if values.ndim != 2 or rank < 2:
        return None
    return Sums(data, np.ascontiguousarray(values.T), _zeros(values.shape[1]), identity(rank), (var.name,))


def _convolution(var: Any, call: Any, values: Floats) -> Sums | None:
    attrs, flat = call.attrs, name_of(call) == "relax.nn.conv1d"
    data, ours = info_of(call.args[0]), "NWC" if flat else "NHWC"
    given, kernel = str(attrs.data_layout), str(attrs.kernel_layout)
    if sorted(given) != sorted(ours) or str(attrs.out_layout or given) != given:
        return None
    weights = values.transpose([kernel.index(letter) for letter in ("OWI" if flat else "OHWI")])
    weights = np.ascontiguousarray(weights[:, np.newaxis] if flat else weights)
    layout = tuple(given.index(letter) for letter in ours)
    channels, groups = data.shape[layout[-1]], int(attrs.groups)
    if weights.shape[3] * groups != channels or len(weights) != info_of(var).shape[layout[-1]]:
        return None
    one, none = ((1,), (0,)) if flat else ((), ())
    padding = _numbers(attrs.padding)
    half = len(padding) // 2
    window = {
        "strides": (*one, *_numbers(attrs.strides)),
        "padding": (*none, *padding[:half], *none, *padding[half:]),
        "dilation": (*one, *_numbers(attrs.dilation)),
        "groups": groups,
    }
    return Sums(call.args[0], weights, _zeros(len(weights)), layout, (var.name,), window)


def _zeros(count: int) -> Floats:
    return np.zeros(count, np.float32)


def _numbers(values: Any) -> tuple[int, ...]:
    return tuple(int(value) for value in values)


def padded(sums: Sums, pad: Any) -> Sums:
    """Returns the layer with the padding of a pad before it; the same layer where that does not pad images with 0."""
    widths = operators.moved_widths(pad, sums.layout)
    ends = [(widths[2 * axis], widths[2 * axis + 1]) for axis in range(len(sums.layout))]
    if not sums.window or any(map(any, (ends[0], ends[-1]))) or min(widths) < 0 or float(pad.attrs.pad_value) != 0.0:
        return sums
    (top, bottom), (left, right) = ends[1:-1] if len(ends) == 4 else ((0, 0), ends[1])
    whole = tuple(map(sum, zip(sums.window["padding"], (top, left, bottom, right), strict=True)))
    return replace(sums, data=pad.args[0], window={**sums.window, "padding": whole})


def grown(sums: Sums, var: Any, call: Any, before: Any) -> Sums | None:
    """Fuses a call to the layer whose result ``before`` is one of its arguments; None where that is impossible. Nothing
    follows an activation. Constants are folded only before a tensor is added: later they concern that as well."""
    if info_of(var) != info_of(before) or sums.activation != NONE:
        return None
    name = name_of(call).removeprefix("relax.")
    more = _bounded(sums, name, call)
    if more is None and name in _FOLDED and sums.added is None:
        at = next(position for position, arg in enumerate(call.args) if tvm_api.is_var(arg) and arg.same_as(before))
        more = _with_other(sums, name, call.args[1 - at], before, first=at == 0)
    return None if more is None else replace(more, covers=(*sums.covers, var.name))


def _bounded(sums: Sums, name: str, call: Any) -> Sums | None:
    """Fuses an activation that only clamps; None for any other call."""
    if name == "nn.relu":
        return replace(sums, activation=LOWER)
    bounds: tuple[float | None, ...] = (0.0, 6.0) if name == "nn.relu6" else ()
    if name == "clip":
        bounds = tuple(number(arg) for arg in call.args[1:3])
    if not bounds or None in bounds or not np.isfinite(np.asarray(bounds, np.float64)).all():
        return None
    return replace(sums, activation=BOTH, bounds=(float(bounds[0] or 0), float(bounds[1] or 0)))


Fold = Callable[[Sums, Floats], Sums]


def _shifted(sums: Sums, values: Floats) -> Sums:
    return replace(sums, bias=_rounded(sums.bias.astype(np.float64) + values))


def _scaled(sums: Sums, values: Floats) -> Sums:
    factors = values.astype(np.float64)
    spread = factors.reshape(-1, *(1,) * (sums.weights.ndim - 1))
    return replace(sums, weights=_rounded(sums.weights * spread), bias=_rounded(sums.bias * factors))


def _rounded(values: NDArray[Any]) -> Floats:
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


_FOLDED: Final[Mapping[str, Fold]] = {
    "add": _shifted,
    "subtract": lambda sums, values: _shifted(sums, -values),
    "multiply": _scaled,
}


def _with_other(sums: Sums, name: str, other: Any, before: Any, *, first: bool) -> Sums | None:
    """Fuses a constant for each channel, or adds a tensor of the same shape; None for anything else. A layer's own
    input is not added, as its kernel reads that to the end: the output could not take its place."""
    shape = info_of(before).shape
    if tvm_api.is_constant(other):
        values = _by_channel(np.asarray(other.value.numpy()), shape, sums.channel_axis)
        return None if values is None or (name == "subtract" and not first) else _FOLDED[name](sums, values)
    own_input = tvm_api.is_var(sums.data) and other.same_as(sums.data)
    if name != "add" or not tvm_api.is_var(other) or own_input or info_of(other) != info_of(before):
        return None
    return replace(sums, added=other)


def _by_channel(values: Floats, shape: tuple[int, ...], axis: int) -> Floats | None:
    """Returns a number for each channel; None where the constant varies along another axis."""
    if values.ndim > len(shape) or values.dtype != np.float32:
        return None
    full = values.reshape((1,) * (len(shape) - values.ndim) + values.shape)
    if any(extent != 1 for number, extent in enumerate(full.shape) if number != axis):
        return None
    return np.broadcast_to(full.reshape(-1), (shape[axis],))


# Chains: operators that compute element by element of one tensor, each of the result of the one before.


@dataclass(frozen=True)
class Chain:
    """Describes operators on ``data`` and numbers, by the text of ``ops/chain_float.py``, and whose bindings they are.

    It takes any layout.
    """

    data: Any
    steps: tuple[str, ...]
    covers: tuple[str, ...]
    layout: Layout = ()
    gains: bool = False

    @property
    def pays(self) -> bool:
        """Says whether some step reads the first tensor again, or a number. Functions behind each other alone stay
        layers: calls of C's library take their time, and tensors between them little."""
        return len(self.steps) > 1 and any(len(step.split()) > 2 for step in self.steps)


def chain_of(var: Any, call: Any, begun: Chain | None = None, before: Any = None) -> Chain | None:
    """Returns the chain that a call begins, or continues behind ``before``; None where it does neither."""
    name, info = name_of(call).removeprefix("relax."), info_of(var)
    data = next((arg for arg in call.args if tvm_api.is_var(arg)), None) if begun is None else begun.data
    if name not in chain_float.STEPS or info.dtype != FLOAT or data is None or info_of(data) != info:
        return None
    slope = [float(call.attrs.alpha)] if name == "nn.leakyrelu" else []
    given = [*(_argument(arg, data, before) for arg in call.args), *slope]
    words = [one for one in given if one is not None]
    if len(words) < len(given) or words.count(chain_float.BEFORE) > 1:
        return None
    chain = begun or Chain(data, (), ())
    return replace(chain, steps=(*chain.steps, chain_float.step(name, words)), covers=(*chain.covers, var.name))


def _argument(arg: Any, data: Any, before: Any) -> str | float | None:
    """Returns an argument of a step: the first tensor, the result before, or a number; None for any other."""
    if tvm_api.is_var(arg):
        known = {chain_float.BEFORE: before, chain_float.FIRST: data}
        return next((word for word, one in known.items() if one is not None and arg.same_as(one)), None)
    if tvm_api.is_constant(arg):
        return float(arg.value.numpy().item()) if info_of(arg).elements == 1 else None
    return number(arg)


# The pass over ``main``: every result that is still there keeps its name.


FloatLayer = Sums | ImageLayer | Chain


@dataclass(frozen=True)
class Fused:
    """Holds the new module; ``origins`` has the old binding's name for a binding in another layout.

    ``covers``: for a binding the names of all old ones that it stands for, itself last.
    """

    module: Any
    origins: Mapping[str, str]
    covers: Mapping[str, tuple[str, ...]]


def fuse_floats(module: Any) -> Fused:
    """Fuses the float layers of a module, which stays as it is where there are none."""
    found, gone = _layers(module)
    if not found:
        return Fused(module, {}, {})
    return _Writer(module, found, gone).run()


def _layers(module: Any) -> tuple[dict[Any, FloatLayer], set[Any]]:
    """Finds layers by the variable that each ends with, and the variables inside them, which nothing else reads. One
    pass in order of execution: a layer grows by a binding that alone reads its result so far. The fused operator takes
    the place of its last binding, where all that it reads has been computed."""
    _, bindings = tvm_api.main_bindings(module)
    uses = Counter(used for _, expr in bindings for used in tvm_api.variables(expr))
    uses.update(tvm_api.variables(tvm_api.main_result(module)))
    found: dict[Any, FloatLayer] = {}
    pads: dict[Any, Any] = {}
    gone: set[Any] = set()
    for var, expr in bindings:
        if not tvm_api.is_operator_call(expr) or tvm_api.is_tuple_type(var):
            continue
        if operators.pads_with_number(expr) and uses[var] == 1:
            pads[var] = expr
        layer = _with_more(found, uses, gone, var, expr)
        made = layer or sums_of(var, expr) or image_layer_of(var, expr) or chain_of(var, expr)
        if isinstance(made, Sums) and made.data in pads and layer is None:
            wider = padded(made, pads[made.data])
            gone |= {made.data} if wider is not made else set()
            made = wider
        if made is not None:
            found[var] = made
    apart = {var: one for var, one in found.items() if isinstance(one, Chain) and not one.pays}
    kept = {name for chain in apart.values() for name in chain.covers}
    gone -= {inner for inner in gone if inner.name in kept}
    return _worth_while({var: one for var, one in found.items() if var not in apart}), gone


def _with_more(
    found: dict[Any, FloatLayer], uses: Counter[Any], gone: set[Any], var: Any, call: Any
) -> Sums | Chain | None:
    """Returns the layer that a call continues, which it alone reads, and takes it from where it ended before."""
    for begun in reversed(call.args):
        layer = found.get(begun) if tvm_api.is_var(begun) and uses[begun] == 1 else None
        more: Sums | Chain | None = grown(layer, var, call, begun) if isinstance(layer, Sums) else None
        if isinstance(layer, Chain):
            more = chain_of(var, call, layer, begun)
        if more is not None:
            del found[begun]
            gone.add(begun)
            return more
    return None


def _worth_while(found: dict[Any, FloatLayer]) -> dict[Any, FloatLayer]:
    """Leaves image layers in NCHW as they are unless some layer that gains by NHWC changes layouts anyway."""
    if any(layer.layout != identity(len(layer.layout)) and _gains(layer) for layer in found.values()):
        return found
    return {var: layer for var, layer in found.items() if not (isinstance(layer, ImageLayer) and layer.layout == NCHW)}


def _is_split(var: Any, value: Any) -> bool:
    """Says whether a binding splits float tensors. As a tuple, a split would fix its input in the model's layout."""
    return (
        tvm_api.is_operator_call(value)
        and name_of(value) == "relax.split"
        and all(info.dtype == FLOAT for info in infos_of(var))
    )


def _split_parts(emit: tvm_api.Emit, var: Any, split: Any) -> Any:
    """Emits the fields of a split as slices, each of which may take any layout."""
    infos, axis = infos_of(var), int(split.attrs.axis)
    ends = np.cumsum([info.shape[axis] for info in infos]).tolist()
    begins = [0, *ends[:-1]]
    cut = [
        emit(relax.op.strided_slice(split.args[0], [axis], [begin], [end]), f"{var.name}_{number}")
        for number, (begin, end) in enumerate(zip(begins, ends, strict=True))
    ]
    return emit(relax.Tuple(cut), var.name)


def _gains(layer: FloatLayer) -> bool:
    return isinstance(layer, Sums) or layer.gains


class _Writer:
    def __init__(self, module: Any, found: Mapping[Any, FloatLayer], gone: set[Any]) -> None:
        self.module, self.found, self.gone = module, found, gone
        self.bound: dict[Any, Any] = {}
        self.origins: dict[str, str] = {}
        self.emit: tvm_api.Emit = lambda expr, name: expr

    def run(self) -> Fused:
        module = tvm_api.rewrite_main(self.module, self._write)
        own = {old: name for name, old in self.origins.items()}
        covers = {own.get(var.name, var.name): layer.covers for var, layer in self.found.items()}
        return Fused(module, self.origins, covers)

    def _write(self, emit: tvm_api.Emit, var: Any, value: Any) -> Any:
        self.emit = emit
        layer = self.found.get(var)
        if var in self.gone:
            return var
        if layer is None:
            made = _split_parts(emit, var, value) if _is_split(var, value) else emit(value, var.name)
        elif isinstance(layer, Chain):
            attrs = chain_float.ChainAttrs(";".join(layer.steps))
            made = emit(get(chain_float.FloatChain)(self._old(layer.data), attrs=attrs), var.name)
        else:
            made = self._sums(var, layer) if isinstance(layer, Sums) else self._image(var, layer)
        self.bound[var] = made
        return made

    def _old(self, expr: Any) -> Any:
        """Returns an expression of the old module with the variables of the new one."""
        return tvm_api.relax_substitute(expr, self.bound)

    def _image(self, var: Any, layer: ImageLayer) -> Any:
        call = layer.call(self._turned(self._old(layer.data), layer.layout, f"{var.name}_in"))
        shape = info_of(var).shape
        if len(shape) == 4:
            return self._named(var, call, layer.layout)
        return self.emit(relax.op.reshape(self._own(var, call), shape), var.name)

    def _sums(self, var: Any, layer: Sums) -> Any:
        data, shape = self._old(layer.data), info_of(var).shape
        ends = (layer.activation, *layer.bounds)
        constants = [constant(layer.weights), constant(layer.bias)]
        added = [] if layer.added is None else [self._old(layer.added)]
        if not layer.window:
            return self._product(var, data, constants, added, FloatSumAttrs(*ends))
        attrs = conv_float.Conv2dFloatAttrs(*ends, **layer.window)
        names = (f"{var.name}_in", f"{var.name}_added")
        turned = [self._turned(each, layer.layout, name) for each, name in zip((data, *added), names, strict=False)]
        if len(shape) == 3:
            turned = [self._reshaped(each, (n, 1, w, c)) for each in turned for n, w, c in [info_of(each).shape]]
        call = get(conv_float.Conv2dFloat)(turned[0], *constants, *turned[1:], attrs=attrs)
        if len(shape) == 4:
            return self._named(var, call, layer.layout)
        flat = relax.op.reshape(self._own(var, call, "_rows"), tuple(shape[axis] for axis in layer.layout))
        return self._named(var, flat, layer.layout)

    def _product(self, var: Any, data: Any, constants: list[Any], added: list[Any], attrs: FloatSumAttrs) -> Any:
        shape = info_of(var).shape
        if len(shape) == 2:
            return self.emit(get(conv_float.FullyConnectedFloat)(data, *constants, *added, attrs=attrs), var.name)
        rows = [self._reshaped(each, (-1, info_of(each).shape[-1])) for each in (data, *added)]
        call = get(conv_float.FullyConnectedFloat)(rows[0], *constants, *rows[1:], attrs=attrs)
        return self.emit(relax.op.reshape(self._own(var, call, "_rows"), shape), var.name)

    def _reshaped(self, value: Any, shape: tuple[int, ...]) -> Any:
        info = info_of(value)
        whole = tuple(info.elements // info.shape[-1] if extent < 0 else extent for extent in shape)
        return self.emit(relax.op.reshape(value, whole), f"{value.name}_rows")

    def _turned(self, value: Any, layout: Layout, name: str) -> Any:
        if layout == identity(len(layout)):
            return value
        return self.emit(relax.op.permute_dims(value, layout), name)

    def _named(self, var: Any, call: Any, layout: Layout) -> Any:
        """Emits our call, and a permute of it that is the model's tensor in its own layout."""
        if layout == identity(len(layout)):
            return self.emit(call, var.name)
        return self.emit(relax.op.permute_dims(self._own(var, call, layout=layout), inverse(layout)), var.name)

    def _own(self, var: Any, call: Any, suffix: str = "", layout: Layout = NCHW) -> Any:
        name = f"{var.name}{suffix or '_' + layout_name(layout)}"
        self.origins[name] = var.name
        return self.emit(call, name)
