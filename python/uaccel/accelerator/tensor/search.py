"""The search for the best tiling: an estimate for each that fits, the schedule's exact time for the few best."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from itertools import islice

from uaccel.accelerator.tensor.layer import Layer
from uaccel.accelerator.tensor.machine import Machine
from uaccel.accelerator.tensor.schedule import schedule
from uaccel.accelerator.tensor.tiling import Tiled
from uaccel.accelerator.tensor.timing import cost, time_of
from uaccel.basics.numbers import pieces
from uaccel.machines.search import promising
from uaccel.machines.tiling import Tiling, extents

FINALISTS = 6
MOST_COMMANDS = 4000
"""Beyond these the estimate decides: start and end matter little there."""


@functools.lru_cache(maxsize=1024)
def best(machine: Machine, layer: Layer) -> Tiled | None:
    """The fastest tiling; None where not even the smallest fits."""
    found = [tiled for _, tiled in islice(promising(candidates(machine, layer), estimate, _as_it_is), FINALISTS)]
    if not found or found[0].loads("accumulators") > MOST_COMMANDS:
        return found[0] if found else None
    return min(found, key=lambda tiled: cost(machine, time_of(machine, schedule(tiled))))


def _as_it_is(tiled: Tiled) -> Tiled:
    return tiled


def candidates(machine: Machine, layer: Layer) -> Iterator[Tiled]:
    """All that fit, the pieces of each extent being as equal as can be."""
    for steps in extents(pieces(layer.in_channels, machine.step)):
        for blocks in extents(pieces(layer.out_channels, machine.columns)):
            if Tiled(machine, layer, Tiling(1, 1, blocks, steps, True)).lacking:
                continue
            for rows in extents(layer.output.rows):
                if Tiled(machine, layer, Tiling(rows, 1, blocks, steps, True)).lacking:
                    continue
                for columns in extents(layer.output.columns):
                    for stay in (True, False):
                        tiled = Tiled(machine, layer, Tiling(rows, columns, blocks, steps, stay))
                        if tiled.lacking is None:
                            yield tiled


def smallest(machine: Machine, layer: Layer) -> Tiled:
    """One pixel of the fewest channels at a time."""
    return Tiled(machine, layer, Tiling(1, 1, 1, 1, True))


def estimate(tiled: Tiled) -> float:
    """Cycles: of the busiest engine, or of the array and of the transfers that it cannot go on beside."""
    loads, compute, store = _loading(tiled), _computing(tiled), _storing(tiled)
    load = sum(loads.values())
    alone = sum(time for memory, time in loads.items() if not tiled.is_double_buffered(memory))
    stored_alone = 0 if tiled.is_double_buffered("accumulators") else store
    ramp = load / tiled.loads("activations") + store / tiled.loads("accumulators")
    return max(load, store, compute + max(alone, stored_alone)) + ramp + _giving(tiled)


def _giving(tiled: Tiled) -> int:
    """The CPU's cycles for the commands."""
    tiling, sums = tiled.tiling, tiled.loads("accumulators")
    loads = tiled.loads("activations") * (1 if _comes_whole(tiled) else tiled.layer.window.extent(0, tiling.rows))
    stores = sums * (1 if tiling.columns == tiled.layer.output.columns else tiling.rows)
    constants = tiled.loads("weights") + tiled.loads("parameters")
    return tiled.machine.issue * (loads + stores + constants + sums * tiled.depth_pieces)


def _comes_whole(tiled: Tiled) -> bool:
    """Whether one transfer brings a piece of the input."""
    return tiled.layer.groups == 1 and not tiled.is_split and tiled.runs_whole_rows


def _loading(tiled: Tiled) -> dict[str, float]:
    """For each memory."""
    dma, layer, tiling = tiled.machine.load, tiled.layer, tiled.tiling
    rows, pixels = _average(layer, 0, tiling.rows), _average(layer, 1, tiling.columns)
    usual, last = tiled.depths
    if _comes_whole(tiled):
        total = dma.start_up + rows * (pixels * layer.in_channels / dma.bytes_per_cycle)
    else:
        beats = (tiled.depth_pieces - 1) * pieces(usual, dma.bytes_per_cycle) + pieces(last, dma.bytes_per_cycle)
        total = rows * (tiled.depth_pieces * dma.start_up + pixels * beats)
    if layer.is_padded(0) or layer.is_padded(1):
        total += rows * pixels * layer.in_channels / tiled.machine.fill_bytes_per_cycle
    times = {
        memory: tiled.loads(memory) * (dma.start_up + tiled.footprint(memory) / dma.bytes_per_cycle)
        for memory in ("weights", "parameters")
    }
    return times | {"activations": tiled.loads("activations") / tiled.depth_pieces * total}


def _average(layer: Layer, axis: int, outputs: int) -> float:
    """Rows (axis 0) or columns (1) of the input that a piece needs, the last and smaller one included."""
    extent = (layer.output.rows, layer.output.columns)[axis]
    return layer.window.extent(axis, 1) + (extent / pieces(extent, outputs) - 1) * layer.window.strides[axis]


def _computing(tiled: Tiled) -> float:
    layer, multiplications = tiled.layer, tiled.loads("accumulators") * tiled.depth_pieces
    pixels = layer.output.pixels
    steps = tiled.group_weight_bytes // tiled.machine.block_bytes
    return multiplications * tiled.machine.start_up + layer.groups * pixels * steps


def _storing(tiled: Tiled) -> float:
    dma, layer, tiling = tiled.machine.store, tiled.layer, tiled.tiling
    commands = tiled.loads("accumulators") * (1 if tiling.columns == layer.output.columns else tiling.rows)
    pixels = layer.output.pixels
    beats = pieces(tiled.channels, min(dma.bytes_per_cycle, tiled.machine.columns))
    return commands * dma.start_up + layer.groups * tiled.channel_pieces * pixels * beats
