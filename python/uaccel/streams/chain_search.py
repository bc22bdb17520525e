"""Which successive layers pay as chains, and how high their bands are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice, pairwise
from typing import Final

from uaccel.basics.numbers import pieces
from uaccel.machines.search import promising
from uaccel.machines.tiling import extents
from uaccel.streams.chain import Chain, Links, linked, whole_width
from uaccel.streams.chain_emitter import emit_chain
from uaccel.streams.chain_places import again, placed, weight_places
from uaccel.streams.cost import Cost, Key
from uaccel.streams.decided import Decided, Home
from uaccel.streams.emitter import Constants, Emitter
from uaccel.streams.layer import Layer
from uaccel.streams.machine import Machine
from uaccel.streams.residency import Residents

MOST: Final = 6
"""Layers of a chain."""
TRIED: Final = 4
"""Chains of the same layers that are played through."""
SLACK: Final = 1.1
"""By how much estimates may be wrong."""
LONGEST: Final = 400
"""Bands times layers of a chain that is still tried."""

Step = Decided | Chain
"""Of a region, in order: a layer on its own, or some of them that pass rows to each other."""


@dataclass(frozen=True)
class Region:
    """``inside``: tensors that only layers of the region see, and that have to go to memory and come back."""

    machine: Machine
    layers: tuple[Layer, ...]
    inside: frozenset[str]
    residents: Residents
    homes: Mapping[str, Home]
    objective: str


def emitted(
    machine: Machine, steps: Sequence[Step], homes: Mapping[str, Home], constants: Constants | None = None
) -> Emitter:
    emitter = Emitter(machine, homes, constants)
    for step in steps:
        if isinstance(step, Chain):
            emit_chain(emitter, step)
        else:
            emitter.layer(step)
    return emitter


def spans(steps: Sequence[Step]) -> list[tuple[int, int]]:
    """Of the layers of each chain, from and to."""
    counts = [len(step.links.layers) if isinstance(step, Chain) else 1 for step in steps]
    ends = list(accumulate(counts))
    return [(end - count, end) for end, count in zip(ends, counts, strict=True) if count > 1]


def with_chains(region: Region, decided: Sequence[Decided]) -> list[Step]:
    """The layers with chains where those cost less: the least sum of what all steps cost on their own, if it holds for
    all of them together."""
    if not region.inside:
        return list(decided)
    steps = _least(region, decided)
    return steps if _cost(region, steps) < _cost(region, decided) else list(decided)


def _least(region: Region, decided: Sequence[Decided]) -> list[Step]:
    alone = [_cost(region, [one]) for one in decided]
    best: list[tuple[Key, list[Step]]] = [((0, 0), [])]
    found = _chains(region, decided)
    for end in range(1, len(decided) + 1):
        options = [(_sum(best[end - 1][0], alone[end - 1]), [*best[end - 1][1], decided[end - 1]])]
        for begin in range(end):
            if (begin, end) in found:
                key, chain = found[begin, end]
                options.append((_sum(best[begin][0], key), [*best[begin][1], chain]))
        best.append(min(options, key=lambda option: option[0]))
    return best[-1][1]


def _chains(region: Region, decided: Sequence[Decided]) -> dict[tuple[int, int], tuple[Key, Chain]]:
    """The best one of each stretch of layers, where it costs less than they do one by one."""
    found = {}
    for begin, end in stretches(region):
        one_by_one = _cost(region, decided[begin:end])
        tried = [
            (_cost(region, [chain]), chain)
            for estimated, chain in islice(chains_of(region, begin, end), TRIED)
            if estimated[0] <= SLACK * one_by_one[0]
        ]
        cost, chain = min(tried, key=lambda pair: pair[0], default=(one_by_one, None))
        if chain is not None and cost < one_by_one:
            found[begin, end] = (cost, chain)
    return found


def stretches(region: Region) -> Iterator[tuple[int, int]]:
    layers = region.layers
    for begin in range(len(layers)):
        for end in range(begin + 2, min(begin + MOST, len(layers)) + 1):
            if layers[end - 2].output not in region.inside:
                break
            if linked(layers[begin:end], (*layers[:begin], *layers[end:])):
                yield begin, end


def chains_of(region: Region, begin: int, end: int) -> Iterator[tuple[Key, Chain]]:
    """Those of a stretch that fit on chip, with estimates of what they cost; the best ones first."""
    machine, links = region.machine, Links(region.layers[begin:end])
    taken = region.residents.taken(begin, end)
    if any(one[1] > other[0] for one, other in pairwise(sorted(taken))):
        return  # bands read the first ones as long as they write the last ones
    ways = [(weights, again(machine, links.layers, weights)) for weights in weight_places(machine, links.layers)]
    options = [
        (height, buffered, *way)
        for height in extents(links.output.shape.rows, sparsely=True)
        for buffered in ((True, False) if machine.activations.banks > 1 else (False,))
        for way in ways
        if pieces(links.output.shape.rows, height) * len(links.layers) <= LONGEST
    ]
    yield from promising(
        options,
        lambda option: _estimate(region, links, option[0], option[1], option[3]).key(region.objective),
        lambda option: placed(machine, links, *option[:3], region.residents.addresses, taken),
    )


def _estimate(region: Region, links: Links, height: int, buffered: bool, weights: int) -> Cost:
    """As if all bands were alike; ``weights``: cycles that those of each band take to come."""
    machine, whole = region.machine, links.output.shape.rows
    count = pieces(whole, height)
    begin = (count - 1) // 2 * height
    rows = links.rows(range(begin, min(begin + height, whole)))
    made = {layer.output for layer in links.layers}
    sizes = {name: len(some) * links.shapes[name].row_pitch for name, some in rows.items()}
    loads = [sizes[name] for name in rows if name not in made and name not in region.residents.addresses]
    stores = [sizes[links.output.output]] if links.output.output in region.homes else []
    load = weights + sum(machine.load.cycles(size) for size in loads)
    store = sum(machine.store.cycles(size) for size in stores)
    compute = sum(layer.cycles(whole_width(layer, rows[layer.output])) for layer in links.layers)
    moved = count * (machine.brought(weights) + sum(loads) + sum(stores))
    each = max(load, store, compute) if buffered and count > 1 else load + compute + store
    return Cost(count * each, moved)


def _cost(region: Region, steps: Sequence[Step]) -> Key:
    return emitted(region.machine, steps, region.homes).cost().key(region.objective)


def _sum(one: Key, other: Key) -> Key:
    return one[0] + other[0], one[1] + other[1]
