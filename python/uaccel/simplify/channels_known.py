"""Which channels hold one number in every element, whatever the model's inputs: found from its inputs onwards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from uaccel.ops.base import constant, info_of, operator_of
from uaccel.ops.rounding import requantized
from uaccel.simplify.channels import Integers, Linked, Mask, Steps, Weighted, channels_of
from uaccel.simplify.fold_constants import evaluate
from uaccel.tvm_api import is_var, relax


@dataclass(frozen=True, eq=False)
class Known:
    """For each channel of a value whether it is known, and its number: anything where it is not."""

    mask: Mask
    number: Integers


def nothing_known(channels: int) -> Known:
    return Known(np.zeros(channels, np.bool_), np.zeros(channels, np.int64))


def known_channels(steps: Steps) -> Mapping[Any, Known]:
    """By variable; a value that is not there has no known channel."""
    known: dict[Any, Known] = {}
    for var, step in steps.items():
        found = _of_weighted(step, known) if isinstance(step, Weighted) else _of_linked(step, known)
        if found.mask.any():
            known[var] = found
    return known


def offsets(step: Weighted, known: Mapping[Any, Known]) -> Known:
    """The input channels that add the same to every output element, and what they hold above the zero point.

    A channel that is not the zero point adds less where the window sees the border.
    """
    source = known.get(step.source) or nothing_known(channels_of(step.source))
    offset = source.number - step.attrs.input_zero_point
    return Known(source.mask & ((offset == 0) | (not step.bordered)), np.where(source.mask, offset, 0))


def _of_weighted(step: Weighted, known: Mapping[Any, Known]) -> Known:
    """An output channel is known where each channel that it reads is, or has weights of zero."""
    if step.bias.dtype != np.int32:
        return nothing_known(len(step.bias))
    source = offsets(step, known)
    read = (step.taps != 0).any(axis=-2)
    mask = ~(read & ~source.mask).any(axis=-1) if step.mixes else ~read | source.mask
    if not mask.any():
        return nothing_known(len(mask))
    sums = step.taps.sum(axis=-2) * np.where(source.mask, source.number, 0)
    total = step.bias.astype(np.int64) + (sums.sum(axis=-1) if step.mixes else sums)
    limits = np.iinfo(np.int32)
    mask &= (total >= limits.min) & (total <= limits.max)
    number = requantized(np.where(mask, total, 0), step.multiplier, step.shift, step.attrs.rounding)
    finished = number + step.attrs.output_zero_point
    return Known(mask, np.clip(finished, step.attrs.clamp_min, step.attrs.clamp_max))


def _of_linked(step: Linked, known: Mapping[Any, Known]) -> Known:
    """Known where all sources are: the operator is executed on one element a channel."""
    sources = [known.get(source) for source in step.sources]
    present = [source for source in sources if source is not None]
    if len(present) < len(sources):
        return nothing_known(channels_of(step.var))
    mask: Mask = np.logical_and.reduce([source.mask for source in present])
    if not mask.any() or step.is_reshape:
        return Known(mask, present[0].number)
    operator = operator_of(step.call)
    if operator is not None and operator.keeps_number:
        attrs: Any = operator.attrs_of(step.call)
        return Known(mask, np.clip(present[0].number, attrs.clamp_min, attrs.clamp_max))
    return Known(mask, _executed(step, mask, present))


def _executed(step: Linked, mask: Mask, present: list[Known]) -> Integers:
    numbers = iter(present)
    arguments = []
    for arg in step.call.args:
        if is_var(arg):
            values = np.where(mask, next(numbers).number, 0).astype(info_of(arg).dtype)
            arg = constant(values.reshape((1,) * (len(info_of(arg).shape) - 1) + values.shape))
        arguments.append(arg)
    result = evaluate(relax.Call(step.call.op, arguments, step.call.attrs, step.call.ty_args))
    return np.asarray(result, np.int64).reshape(-1)
