"""``main`` with its float layers joined; every result that is still there has its old name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from uaccel.floats.images import NCHW, ImageLayer, image_layer_of
from uaccel.floats.sums import Sums, grown, padded, sums_of
from uaccel.ops.axes import Layout, identity, inverse, layout_name
from uaccel.ops.base import constant, get, info_of, infos_of
from uaccel.ops.conv2d_float import Conv2dFloat, Conv2dFloatAttrs
from uaccel.ops.float_sums import FLOAT, FloatSumAttrs
from uaccel.ops.fully_connected_float import FullyConnectedFloat
from uaccel.ops.traits import name_of, pads_with_number
from uaccel.tvm_api import (
    Emit,
    is_operator_call,
    is_tuple_type,
    is_var,
    main_bindings,
    main_result,
    relax,
    relax_substitute,
    rewrite_main,
    variables,
)


@dataclass(frozen=True)
class Fused:
    """``origins``: for a binding in another layout the name of the old one with that value. ``covers``: for a binding
    the names of all old ones that it stands for, itself last."""

    module: Any
    origins: Mapping[str, str]
    covers: Mapping[str, tuple[str, ...]]


def fuse_floats(module: Any) -> Fused:
    """Nothing changes where there are no such layers."""
    found, gone = _layers(module)
    if not found:
        return Fused(module, {}, {})
    return _Writer(module, found, gone).run()


def _layers(module: Any) -> tuple[dict[Any, Sums | ImageLayer], set[Any]]:
    """By the variable that each ends with; and the variables inside of layers, which nobody else reads."""
    _, bindings = main_bindings(module)
    uses = Counter(used for _, expr in bindings for used in variables(expr))
    uses.update(variables(main_result(module)))
    found: dict[Any, Sums | ImageLayer] = {}
    pads: dict[Any, Any] = {}
    gone: set[Any] = set()
    for var, expr in bindings:
        if not is_operator_call(expr) or is_tuple_type(var):
            continue
        if pads_with_number(expr) and uses[var] == 1:
            pads[var] = expr
        layer = _with_more(found, uses, gone, var, expr)
        made = layer or sums_of(var, expr) or image_layer_of(var, expr)
        if isinstance(made, Sums) and made.data in pads and layer is None:
            wider = padded(made, pads[made.data])
            gone |= {made.data} if wider is not made else set()
            made = wider
        if made is not None:
            found[var] = made
    return _worth_while(found), gone


def _with_more(
    found: dict[Any, Sums | ImageLayer], uses: Counter[Any], gone: set[Any], var: Any, call: Any
) -> Sums | None:
    """The layer that a call continues, which it alone reads; it is found no more where it was."""
    for begun in reversed(call.args):
        layer = found.get(begun) if is_var(begun) and uses[begun] == 1 else None
        more = grown(layer, var, call, begun) if isinstance(layer, Sums) else None
        if more is not None:
            del found[begun]
            gone.add(begun)
            return more
    return None


def _worth_while(found: dict[Any, Sums | ImageLayer]) -> dict[Any, Sums | ImageLayer]:
    """A pool in NCHW stays as it is where no convolution wants another layout."""
    if any(layer.layout != identity(len(layer.layout)) and _gains(layer) for layer in found.values()):
        return found
    return {var: layer for var, layer in found.items() if not (isinstance(layer, ImageLayer) and layer.layout == NCHW)}


def _is_split(var: Any, value: Any) -> bool:
    """One of floats, which would hold its input in the order in which the model has the axes."""
    return (
        is_operator_call(value)
        and name_of(value) == "relax.split"
        and all(info.dtype == FLOAT for info in infos_of(var))
    )


def _parts(emit: Emit, var: Any, split: Any) -> Any:
    """Its fields, each cut out by itself."""
    infos, axis = infos_of(var), int(split.attrs.axis)
    ends = np.cumsum([info.shape[axis] for info in infos]).tolist()
    begins = [0, *ends[:-1]]
    cut = [
        emit(relax.op.strided_slice(split.args[0], [axis], [begin], [end]), f"{var.name}_{number}")
        for number, (begin, end) in enumerate(zip(begins, ends, strict=True))
    ]
    return emit(relax.Tuple(cut), var.name)


def _gains(layer: Sums | ImageLayer) -> bool:
    return isinstance(layer, Sums) or layer.gains


class _Writer:
    def __init__(self, module: Any, found: Mapping[Any, Sums | ImageLayer], gone: set[Any]) -> None:
        self.module, self.found, self.gone = module, found, gone
        self.bound: dict[Any, Any] = {}
        self.origins: dict[str, str] = {}
        self.emit: Emit = lambda expr, name: expr

    def run(self) -> Fused:
        module = rewrite_main(self.module, self._write)
        own = {old: name for name, old in self.origins.items()}
        covers = {own.get(var.name, var.name): layer.covers for var, layer in self.found.items()}
        return Fused(module, self.origins, covers)

    def _write(self, emit: Emit, var: Any, value: Any) -> Any:
        self.emit = emit
        layer = self.found.get(var)
        if var in self.gone:
            return var
        if layer is None:
            made = _parts(emit, var, value) if _is_split(var, value) else emit(value, var.name)
        else:
            made = self._sums(var, layer) if isinstance(layer, Sums) else self._image(var, layer)
        self.bound[var] = made
        return made

    def _old(self, expr: Any) -> Any:
        """A variable of the old module in the new one."""
        return relax_substitute(expr, self.bound)

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
        attrs = Conv2dFloatAttrs(*ends, **layer.window)
        names = (f"{var.name}_in", f"{var.name}_added")
        turned = [self._turned(each, layer.layout, name) for each, name in zip((data, *added), names, strict=False)]
        if len(shape) == 3:
            turned = [self._reshaped(each, (n, 1, w, c)) for each in turned for n, w, c in [info_of(each).shape]]
        call = get(Conv2dFloat)(turned[0], *constants, *turned[1:], attrs=attrs)
        if len(shape) == 4:
            return self._named(var, call, layer.layout)
        flat = relax.op.reshape(self._own(var, call, "_rows"), tuple(shape[axis] for axis in layer.layout))
        return self._named(var, flat, layer.layout)

    def _product(self, var: Any, data: Any, constants: list[Any], added: list[Any], attrs: FloatSumAttrs) -> Any:
        shape = info_of(var).shape
        if len(shape) == 2:
            return self.emit(get(FullyConnectedFloat)(data, *constants, *added, attrs=attrs), var.name)
        rows = [self._reshaped(each, (-1, info_of(each).shape[-1])) for each in (data, *added)]
        call = get(FullyConnectedFloat)(rows[0], *constants, *rows[1:], attrs=attrs)
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
        """Ours, and the model's tensor in its own layout."""
        if layout == identity(len(layout)):
            return self.emit(call, var.name)
        return self.emit(relax.op.permute_dims(self._own(var, call, layout=layout), inverse(layout)), var.name)

    def _own(self, var: Any, call: Any, suffix: str = "", layout: Layout = NCHW) -> Any:
        name = f"{var.name}{suffix or '_' + layout_name(layout)}"
        self.origins[name] = var.name
        return self.emit(call, name)
