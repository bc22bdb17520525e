"""A program of which some consecutive layers run together by rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from uaccel.errors import InternalError
from uaccel.lower.program import Layer, Program
from uaccel.rows.chain import Chains
from uaccel.rows.group import grouped, sketch
from uaccel.rows.parts import Parts


@dataclass(frozen=True, order=True)
class Group:
    """The layers ``first`` to ``last`` of a program, at most ``band`` rows of each at a time."""

    first: int
    last: int
    band: int = 1


def apply(program: Program, groups: Iterable[Group], parts: Parts, *, feed: bool = False) -> Program:
    """With ``feed`` the first group, which must begin with the first layer, is given an input's rows."""
    chains = Chains(program)
    by_first = {group.first: group for group in groups}
    layers: list[Layer] = []
    at = 0
    while at < len(program.layers):
        group = by_first.get(at)
        if group is None:
            layers.append(replace(program.layers[at], index=len(layers)))
            at += 1
            continue
        fed = chains.feedable if feed and at == 0 else None
        chain = chains.of(group.first, group.last, fed)
        drawn = sketch(chain, group.band, parts) if chain is not None else None
        if drawn is None:
            raise InternalError(f"rows: layers {group.first} to {group.last} cannot run together")
        layers.append(grouped(drawn, parts, len(layers)))
        at = group.last + 1
    return replace(program, layers=tuple(layers))
