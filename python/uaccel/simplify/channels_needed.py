"""Which channels of each value stay: those that something reads and that no bias can stand in for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from uaccel.simplify.channels import Linked, Mask, Step, Steps, Weighted, channels_of, sources_of
from uaccel.simplify.channels_known import Known, offsets


@dataclass(frozen=True, eq=False)
class Needs:
    """The channels that stay, by variable: values that keep their channels apart from each other share one mask."""

    masks: Mapping[Any, Mask]
    groups: Mapping[Any, Any]

    def stay(self, value: Any) -> Mask:
        """All of them where the value is none of a step's."""
        group = self.groups.get(value)
        return np.ones(channels_of(value), np.bool_) if group is None else self.masks[group]


def needed_channels(steps: Steps, fixed: Iterable[Any], known: Mapping[Any, Known], multiple: int) -> Needs:
    """The fewest channels that every reader can do with, filled up to ``multiple``; all of the ``fixed`` values.

    At first nothing is needed but what is fixed; then what a reader of something needed needs, until that is all.
    """
    groups = _groups(steps)
    masks = {group: np.zeros(channels_of(group), np.bool_) for group in groups.values()}
    needs = Needs(masks, groups)
    for value in fixed:
        needs.stay(value)[:] = True
    folded = {step.var: foldable(step, known) for step in steps.values() if isinstance(step, Weighted)}
    while _read(steps, needs, folded) or _filled_up(masks.values(), multiple):
        pass
    return needs


def foldable(step: Weighted, known: Mapping[Any, Known]) -> Mask:
    """The input channels whose share can go into the bias: known ones, if no sum can leave 32 bits."""
    source = offsets(step, known)
    none = np.zeros(len(source.mask), np.bool_)
    if not step.mixes or step.bias.dtype != np.int32 or not source.mask.any():
        return none
    shares = np.abs(step.taps.sum(axis=1) * source.number)[:, source.mask].sum(axis=1)
    fits = (np.abs(step.bias.astype(np.int64)) + shares <= np.iinfo(np.int32).max).all()
    return source.mask if fits else none


def _groups(steps: Steps) -> dict[Any, Any]:
    """For each value that a step reads or makes, one that stands for all that are linked to it."""
    parent: dict[Any, Any] = {}

    def find(value: Any) -> Any:
        parent.setdefault(value, value)
        while parent[value] is not value:
            parent[value] = value = parent[parent[value]]
        return value

    for step in steps.values():
        for source in sources_of(step):
            roots = find(source), find(step.var)
            if _links(step):
                parent[roots[0]] = roots[1]
    return {value: find(value) for value in parent}


def _links(step: Step) -> bool:
    return isinstance(step, Linked) or not step.mixes


def _read(steps: Steps, needs: Needs, folded: Mapping[Any, Mask]) -> bool:
    """Readers say what they need; whether that is more than before."""
    changed = False
    for step in reversed(steps.values()):
        if isinstance(step, Linked) or not step.mixes:
            continue
        read = (step.taps[needs.stay(step.var)] != 0).any(axis=(0, 1)) & ~folded[step.var]
        stay = needs.stay(step.source)
        changed |= bool((read & ~stay).any())
        stay |= read
    return changed


def _filled_up(masks: Iterable[Mask], multiple: int) -> bool:
    """Spare channels stay, the first ones, until there are a multiple of some number; whether any did."""
    changed = False
    for mask in masks:
        count = max(1, int(mask.sum()))
        spare = np.flatnonzero(~mask)[: -(-count // multiple) * multiple - int(mask.sum())]
        mask[spare] = True
        changed |= len(spare) > 0
    return changed
