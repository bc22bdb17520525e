"""Channels that are known at compile time, or that nobody reads, are cut out of weights and tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uaccel.model import Array
from uaccel.ops.base import constant, info_of
from uaccel.simplify.channels import Linked, Steps, Weighted, sources_of, steps_of
from uaccel.simplify.channels_known import Known, known_channels, offsets
from uaccel.simplify.channels_needed import Needs, foldable, needed_channels
from uaccel.tvm_api import main_bindings, main_result, rebuild_main, relax, variables


@dataclass(frozen=True)
class DropChannels:
    """Before: any module. After: no channel inside it is spare, but those that make counts a multiple.

    A channel is spare when it holds one number that its readers' biases can take in, or when nothing needed depends
    on it. What stays computes what it did: every tensor is the one it was, with channels left out.
    """

    name: str = "drop_channels"
    multiple: int = 4

    def __call__(self, module: Any) -> Any:
        steps = steps_of(module)
        known = known_channels(steps)
        needs = needed_channels(steps, _fixed(module, steps), known, self.multiple)
        if all(mask.all() for mask in needs.masks.values()):
            return module

        def change(var: Any, expr: Any) -> Any:
            step = steps.get(var)
            if step is None:
                return expr
            return _cut(step, expr, needs, known) if isinstance(step, Weighted) else _cut_shape(step, expr, needs)

        return rebuild_main(module, change)


def _fixed(module: Any, steps: Steps) -> list[Any]:
    """The values that keep all of their channels: inputs and outputs, and what other operators read or make."""
    parameters, bindings = main_bindings(module)
    outside = [*parameters, *variables(main_result(module))]
    for var, expr in bindings:
        if var not in steps:
            outside += [var, *variables(expr)]
    involved = {value for step in steps.values() for value in (step.var, *sources_of(step))}
    return [value for value in outside if value in involved]


def _cut(step: Weighted, call: Any, needs: Needs, known: Mapping[Any, Known]) -> Any:
    """The layer with the output channels that stay, of the input channels that stay."""
    outputs, inputs = needs.stay(step.var), needs.stay(step.source)
    if outputs.all() and inputs.all():
        return call
    weights = step.weights[outputs][..., inputs] if step.mixes else step.weights[..., outputs]
    per_channel = (_with_dropped(step, inputs, known), step.multiplier, step.shift)
    attrs = step.attrs if step.mixes else replace(step.attrs, groups=int(outputs.sum()))
    constants = [constant(weights), *(constant(values[outputs]) for values in per_channel)]
    return step.operator(call.args[0], *constants, attrs=attrs)


def _with_dropped(step: Weighted, inputs: NDArray[np.bool_], known: Mapping[Any, Known]) -> Array:
    """The bias with what dropped input channels added to every sum."""
    dropped = foldable(step, known) & ~inputs
    if not dropped.any():
        return step.bias
    shares = step.taps.sum(axis=1)[:, dropped] @ offsets(step, known).number[dropped]
    return np.asarray(step.bias + shares, step.bias.dtype)


def _cut_shape(step: Linked, call: Any, needs: Needs) -> Any:
    """The same call: types are inferred anew. A reshape alone states its shape."""
    stay = needs.stay(step.var)
    if not step.is_reshape or stay.all():
        return call
    return relax.op.reshape(call.args[0], (*info_of(step.var).shape[:-1], int(stay.sum())))
