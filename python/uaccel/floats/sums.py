"""A layer of floats with constant weights, and what of the operators behind it can become part of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from uaccel.islands.rules import number
from uaccel.ops.axes import Layout, identity
from uaccel.ops.base import info_of
from uaccel.ops.float_sums import BOTH, FLOAT, LOWER, NONE
from uaccel.ops.traits import moved_widths, name_of
from uaccel.tvm_api import is_constant, is_var

Floats = NDArray[np.float32]
CONVOLUTIONS: Final = ("relax.nn.conv2d", "relax.nn.conv1d")


@dataclass(frozen=True)
class Sums:
    """``data`` times ``weights`` (OHWI, of a matrix product OI), and what follows: ``covers`` are the names of all
    bindings that it stands for.

    ``layout``: how the model's tensors lie, by the axes of ours: (0, 2, 3, 1) where they are NCHW.
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
    """The layer that begins with a call; None where it is none of ours."""
    name = name_of(call)
    if name not in (*CONVOLUTIONS, "relax.matmul") or info_of(var).dtype != FLOAT:
        return None
    data, weights = call.args[:2]
    if is_constant(data) or not is_constant(weights) or {info_of(data).dtype, info_of(weights).dtype} != {FLOAT}:
        return None
    values = np.asarray(weights.value.numpy())
    return _product(var, data, values) if name == "relax.matmul" else _convolution(var, call, values)


def _product(var: Any, data: Any, values: Floats) -> Sums | None:
    """Of any number of rows by one matrix."""
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
    """With a frame of zeros that was put around its input; the same where it is no frame of an image."""
    widths = moved_widths(pad, sums.layout)
    ends = [(widths[2 * axis], widths[2 * axis + 1]) for axis in range(len(sums.layout))]
    if not sums.window or any(map(any, (ends[0], ends[-1]))) or min(widths) < 0 or float(pad.attrs.pad_value) != 0.0:
        return sums
    (top, bottom), (left, right) = ends[1:-1] if len(ends) == 4 else ((0, 0), ends[1])
    whole = tuple(map(sum, zip(sums.window["padding"], (top, left, bottom, right), strict=True)))
    return replace(sums, data=pad.args[0], window={**sums.window, "padding": whole})


def grown(sums: Sums, var: Any, call: Any, before: Any) -> Sums | None:
    """The layer with a call behind it, one of whose arguments is ``before``; None where it cannot be a part of it."""
    if info_of(var) != info_of(before) or sums.activation != NONE:
        return None
    name = name_of(call).removeprefix("relax.")
    more = _bounded(sums, name, call)
    if more is None and name in _FOLDED and sums.added is None:
        at = next(position for position, arg in enumerate(call.args) if is_var(arg) and arg.same_as(before))
        more = _with_other(sums, name, call.args[1 - at], before, first=at == 0)
    return None if more is None else replace(more, covers=(*sums.covers, var.name))


def _bounded(sums: Sums, name: str, call: Any) -> Sums | None:
    """With an activation that only cuts off."""
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
    """With a constant for each channel, or a tensor of the same shape that is added."""
    shape = info_of(before).shape
    if is_constant(other):
        values = _by_channel(np.asarray(other.value.numpy()), shape, sums.channel_axis)
        return None if values is None or (name == "subtract" and not first) else _FOLDED[name](sums, values)
    own_input = is_var(sums.data) and other.same_as(sums.data)  # its bytes are read to the end, so nothing replaces it
    if name != "add" or not is_var(other) or own_input or info_of(other) != info_of(before):
        return None
    return replace(sums, added=other)


def _by_channel(values: Floats, shape: tuple[int, ...], axis: int) -> Floats | None:
    """The constant for each channel, where it is one for all else."""
    if values.ndim > len(shape) or values.dtype != np.float32:
        return None
    full = values.reshape((1,) * (len(shape) - values.ndim) + values.shape)
    if any(extent != 1 for number, extent in enumerate(full.shape) if number != axis):
        return None
    return np.broadcast_to(full.reshape(-1), (shape[axis],))
