"""Lowers a layer for a tensor machine: finds its best tiling, computes its time, packs its constants, writes its C."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

import numpy as np
from numpy.typing import NDArray

from uaccel.accelerator.machine import Engines, Tiling, Timeline, extents, promising
from uaccel.accelerator.region import Lowered, Region, library_call
from uaccel.accelerator.sums import int8_only
from uaccel.accelerator.tensor.machine import (
    DEPTHWISE,
    FULLY_CONNECTED,
    MEMORIES,
    Machine,
    TensorLayer,
    Tiled,
    filters,
    layer_of,
)
from uaccel.accelerator.tensor.schedule import (
    INPUT,
    OUTPUT,
    PARAMETERS,
    WEIGHTS,
    Assign,
    Command,
    Issued,
    Let,
    Loop,
    Statement,
    Value,
    When,
    constants_bytes,
    run,
    schedule,
)
from uaccel.errors import AcceleratorError
from uaccel.model import Array, c_identifier
from uaccel.ops.kernel import Constant, Definition, Input, Output
from uaccel.util.c_text import wrap_call, wrapped_comment
from uaccel.util.text import pieces, round_up

# How long a schedule takes: the three engines, each with its commands in order, and the banks that they share.
# Commands are given in order, and each depends on earlier ones only, so one pass computes all times.

ENGINES: Final = {"load": "load", "fill": "load", "multiply": "compute", "store": "store"}


def cost(machine: Machine, time: Timeline) -> int:
    """The cycles of the engines plus those of the CPU for its commands: these make very small pieces dear."""
    return time.total + time.commands * machine.issue


@dataclass(frozen=True)
class Use:
    """Names bytes of an on-chip memory that a command reads or writes."""

    memory: str
    offset: int
    bytes: int


def time_of(machine: Machine, statements: Sequence[Statement]) -> Timeline:
    """The times of all commands if the CPU gave them without delay. A command begins when its engine is free and all
    earlier commands that use one of its banks have ended."""
    engines = Engines()
    banks: dict[tuple[str, int], int] = {}
    window: dict[str, int] = {}
    for issued in run(statements):
        if issued.intrinsic == "window":
            window = dict(issued.numbers)
        engine = ENGINES.get(issued.intrinsic)
        if engine is None or is_empty(issued):
            continue
        held = [bank for use in uses(machine, issued, window) for bank in banks_of(machine, use)]
        awaited = [banks.get(bank, 0) for bank in held]
        span = engines.run(engine, cycles_of(machine, issued, window), awaited)
        banks |= dict.fromkeys(held, span.end)
    return engines.timeline


def is_empty(issued: Issued) -> bool:
    """Whether it loads nothing."""
    return issued.intrinsic == "load" and 0 in (issued.numbers["rows"], issued.numbers["bytes"])


def cycles_of(machine: Machine, issued: Issued, window: dict[str, int]) -> int:
    """The cycles of one command alone."""
    numbers = issued.numbers
    if issued.intrinsic == "load":
        return machine.load.cycles(numbers["bytes"], numbers["rows"])
    if issued.intrinsic == "fill":
        return pieces(numbers["bytes"], machine.fill_bytes_per_cycle)
    if issued.intrinsic == "store":
        width = min(machine.store.bytes_per_cycle, machine.columns)
        return machine.store.start_up + numbers["pixels"] * pieces(numbers["channels"], width)
    outputs = numbers["rows"] * numbers["columns"] * numbers["blocks"]
    return machine.start_up + outputs * runs(machine, window)


def runs(machine: Machine, window: dict[str, int]) -> int:
    """Cycles of the array for one pixel and one block of channels."""
    return window["kernel_rows"] * window["kernel_columns"] * pieces(window["run"], machine.depth)


def uses(machine: Machine, issued: Issued, window: dict[str, int]) -> list[Use]:
    """The on-chip memory that a command touches, first to last byte."""
    numbers = issued.numbers
    if issued.intrinsic == "load":
        extent = (numbers["rows"] - 1) * numbers["pitch"] + numbers["bytes"]
        return [Use(issued.names["memory"], numbers["offset"], extent)]
    if issued.intrinsic == "fill":
        return [Use(issued.names["memory"], numbers["offset"], numbers["bytes"])]
    if issued.intrinsic == "store":
        blocks = pieces(numbers["channels"], machine.columns)
        sums = Use("accumulators", numbers["accumulators"], numbers["pixels"] * blocks * machine.pixel_bytes)
        return [sums, Use("parameters", numbers["parameters"], blocks * machine.parameter_bytes)]
    pixels, blocks = numbers["rows"] * numbers["columns"], numbers["blocks"]
    extent = (numbers["rows"] - 1) * window["row_pitch"] + (numbers["columns"] - 1) * window["column_pitch"]
    extent += (window["kernel_rows"] - 1) * window["kernel_row_pitch"]
    extent += (window["kernel_columns"] - 1) * window["kernel_column_pitch"]
    extent += round_up(window["run"], machine.depth)
    return [
        Use("activations", numbers["activations"], extent),
        Use("weights", numbers["weights"], blocks * runs(machine, window) * machine.block_bytes),
        Use("accumulators", numbers["accumulators"], pixels * blocks * machine.pixel_bytes),
    ]


def banks_of(machine: Machine, use: Use) -> list[tuple[str, int]]:
    size = machine.memory(use.memory).bank_bytes
    first, last = use.offset // size, (use.offset + use.bytes - 1) // size
    return [(use.memory, bank) for bank in range(first, last + 1)]


# The search for the best tiling: an estimate for each that fits, the schedule's exact time for the few best.

FINALISTS = 6  # Tilings whose schedules are run.
MOST_COMMANDS = 4000  # Pieces beyond which the estimate decides: there start and end matter little, and runs take long.


@functools.lru_cache(maxsize=1024)
def best(machine: Machine, layer: TensorLayer) -> Tiled | None:
    """The fastest tiling; None where not even the smallest fits."""
    found = [tiled for _, tiled in islice(promising(candidates(machine, layer), estimate, _as_it_is), FINALISTS)]
    if not found or found[0].loads("accumulators") > MOST_COMMANDS:
        return found[0] if found else None
    return min(found, key=lambda tiled: cost(machine, time_of(machine, schedule(tiled))))


def _as_it_is(tiled: Tiled) -> Tiled:
    return tiled


def candidates(machine: Machine, layer: TensorLayer) -> Iterator[Tiled]:
    """All tilings that fit, the pieces of each extent as equal as can be. Footprints grow with every extent, so sizes
    that do not fit with the smallest inner ones are skipped early."""
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


def smallest(machine: Machine, layer: TensorLayer) -> Tiled:
    """The smallest tiling: one pixel of the fewest channels at a time."""
    return Tiled(machine, layer, Tiling(1, 1, 1, 1, True))


def estimate(tiled: Tiled) -> float:
    """Estimates the cycles of a tiling. They are those of the busiest engine, or of the array and the slowest transfer
    that cannot run beside it for want of a second bank. The first load and the last store have nothing beside them."""
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
    """The cycles of all loads into each memory."""
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


def _average(layer: TensorLayer, axis: int, outputs: int) -> float:
    """The average rows (axis 0) or columns (1) of the input that a piece needs; the last one may be smaller."""
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


# Weights and output parameters are packed ahead of time, in the order and the units in which the machine reads them.


def packed_weights(tiled: Tiled, region: Region) -> NDArray[np.int8]:
    """Packs the weights: pieces in the order of the loops, each by blocks, runs of the kernel, and the array's steps. A
    step holds ``columns`` x ``depth`` values; those beyond the layer's channels are 0."""
    layer = tiled.layer
    kernel = layer.window.kernel
    weights = filters(region).reshape(layer.groups, layer.out_channels, *kernel, layer.in_channels)
    packed = [
        _blocks(tiled, group[channel : channel + tiled.channels, :, :, depth : depth + tiled.depth])
        for group in weights
        for channel in range(0, layer.out_channels, tiled.channels)
        for depth in range(0, layer.in_channels, tiled.depth)
    ]
    return np.concatenate(packed).astype(np.int8)


def _blocks(tiled: Tiled, weights: Array) -> Array:
    """Packs one piece [channels, kernel rows, kernel columns, depth]."""
    columns, lanes = tiled.machine.columns, tiled.machine.depth
    runs = weights.reshape(weights.shape[0], weights.shape[1], tiled.kernel_columns, -1)
    channels, kernel_rows, kernel_columns, run = runs.shape
    steps = -(-run // lanes)
    padded = np.pad(runs, ((0, -channels % columns), (0, 0), (0, 0), (0, steps * lanes - run)))
    split = padded.reshape(-1, columns, kernel_rows, kernel_columns, steps, lanes)
    return split.transpose(0, 2, 3, 4, 1, 5).ravel()


def packed_parameters(tiled: Tiled, region: Region) -> NDArray[np.int32]:
    """Packs biases, multipliers and shifts by block of channels; the input's zero point is folded into the biases."""
    layer, columns = tiled.layer, tiled.machine.columns
    bias, multiplier, shift = (operand.value.astype(np.int64) for operand in region.operands[2:5])
    weights = filters(region).astype(np.int64)
    sums = weights.reshape(len(weights), -1).sum(axis=1)
    folded = bias - layer.input_zero_point * sums
    rows = np.stack([np.broadcast_to(row, folded.shape) for row in (folded, multiplier, shift)])
    grouped = rows.reshape(3, layer.groups, layer.out_channels)
    padded = np.pad(grouped, ((0, 0), (0, 0), (0, -layer.out_channels % columns)))
    blocks = padded.reshape(3, layer.groups, -1, columns)
    return blocks.transpose(1, 2, 0, 3).ravel().astype(np.int32)


# A schedule as a C function over the driver's intrinsics, for a reader as much as for a compiler.

PARAMETER_LIST = (
    f"const int8_t *{INPUT}",
    f"const int8_t *{WEIGHTS}",
    f"const int32_t *{PARAMETERS}",
    f"int8_t *{OUTPUT}",
)


def function_text(name: str, tiled: Tiled, comment: Sequence[str]) -> str:
    """Writes the C function, which returns 0 or the driver's error."""
    machine, layer = tiled.machine, tiled.layer
    weight_bytes, parameter_bytes = constants_bytes(tiled)
    shared = {INPUT: layer.input.bytes, WEIGHTS: weight_bytes, PARAMETERS: parameter_bytes}
    shared[OUTPUT] = layer.output.bytes
    lines = [f"    {machine.intrinsic('begin')}();"]
    lines += [f"    {machine.intrinsic('share')}({name}, {size});" for name, size in shared.items()]
    lines += body_lines(machine, schedule(tiled), 1)
    lines.append(f"    return {machine.intrinsic('finish')}({OUTPUT}, {layer.output.bytes});")
    head = wrap_call(f"static int32_t {name}", PARAMETER_LIST)
    return "\n".join([wrapped_comment(comment, indent=4), head, "{", *lines, "}", ""])


def body_lines(machine: Machine, statements: Iterable[Statement], depth: int) -> list[str]:
    indent = "    " * depth
    lines: list[str] = []
    for statement in statements:
        if isinstance(statement, Let):
            kind = "int32_t" if statement.variable else "const int32_t"
            lines.append(f"{indent}{kind} {statement.name} = {statement.value};")
        elif isinstance(statement, Assign):
            lines.append(f"{indent}{statement.name} = {statement.value}; /* {statement.why} */")
        elif isinstance(statement, Command):
            arguments = [_argument(machine, name, value) for name, value in statement.arguments.items()]
            lines.append(wrap_call(f"{indent}{machine.intrinsic(statement.intrinsic)}", arguments) + ";")
        else:
            lines += [f"{indent}{_head(statement)} {{", *body_lines(machine, statement.body, depth + 1), f"{indent}}}"]
    return lines


def _head(statement: Loop | When) -> str:
    if isinstance(statement, When):
        return f"if ({statement.condition})"
    name, step = statement.name, statement.step
    advance = f"++{name}" if step == 1 else f"{name} += {step}"
    return f"for (int32_t {name} = 0; {name} < {statement.stop}; {advance})"


def _argument(machine: Machine, name: str, value: Value | str) -> str:
    return f"{machine.name}_{value}".upper() if name == "memory" else str(value)


# What an operation's description needs: a check, a cost and a lowering for a machine.

OPERATORS = ("uaccel.conv2d", FULLY_CONNECTED)
# The CPU's instructions for a layer, and for a command that it writes into registers; measured on a Cortex-M4.
CALL_INSTRUCTIONS, COMMAND_INSTRUCTIONS = 500, 220


def fits(machine: Machine) -> Callable[[Region], str | None]:
    """The check: why the machine cannot compute a layer, None where it can."""

    def check(region: Region) -> str | None:
        if region.root.op == DEPTHWISE:
            inputs, outputs = region.operands[0].info.shape[3], region.output.shape[3]
            if inputs > 1:
                work = min(outputs // inputs, machine.columns)
                rest = f"{work} of {machine.name}'s {machine.columns} columns would work"
                return f"each channel sees itself alone, and {rest}"
        elif region.root.op not in OPERATORS:
            return f"it is {region.root.op}, and {machine.name} multiplies matrices: {' and '.join(OPERATORS)}"
        reason = int8_only(region)
        if reason is None and any(operand.constant is None for operand in region.operands[2:]):
            reason = "its bias or its scales are computed at run time, wanted constants"
        return reason or does_not_fit(machine, layer_of(region))

    return check


def does_not_fit(machine: Machine, layer: TensorLayer) -> str | None:
    """Says which memory even the smallest piece is too large for; None where it fits."""
    least = smallest(machine, layer)
    memory = least.lacking
    if memory is None:
        return None
    needed, there = least.footprint(memory), machine.memory(memory).bytes
    return f"one output pixel of it needs {needed} bytes of {memory}, and {machine.name} has {there}"


def cycles(machine: Machine) -> Callable[[Region], float]:
    """The cost: the cycles of the chosen schedule."""
    return lambda region: float(cost(machine, timed(machine, region)))


def timed(machine: Machine, region: Region) -> Timeline:
    """How long the machine takes for a layer, and each of its engines."""
    return _time(_chosen(machine, region))


def convolution(machine: Machine) -> Callable[[Region], Lowered]:
    """The lowering: one generated function a layer, with its constants packed."""

    def lower(region: Region) -> Lowered:
        tiled = _chosen(machine, region)
        name = f"{machine.name}_layer_{c_identifier(region.root.name)}"
        comment = described(tiled)
        call = library_call(
            name,
            Input(0),
            Constant("weights", packed_weights(tiled, region)),
            Constant("parameters", packed_parameters(tiled, region)),
            Output(0),
        )
        source = Definition(name, function_text(name, tiled, comment), ())
        time = _time(tiled)
        return Lowered(
            (call,),
            source=source,
            artefacts={f"{name}.txt": "\n".join(comment) + "\n"},
            cycles=time.total,
            instructions=CALL_INSTRUCTIONS + COMMAND_INSTRUCTIONS * time.commands,
        )

    return lower


def _chosen(machine: Machine, region: Region) -> Tiled:
    tiled = best(machine, layer_of(region))
    if tiled is None:
        raise AcceleratorError(f"{machine.name}: {region.root} does not fit: {fits(machine)(region)}; use fits()")
    return tiled


@functools.lru_cache(maxsize=256)
def _time(tiled: Tiled) -> Timeline:
    return time_of(tiled.machine, schedule(tiled))


def described(tiled: Tiled) -> list[str]:
    """The tiling in words and numbers."""
    layer, tiling, time = tiled.layer, tiled.tiling, _time(tiled)
    groups = f"{layer.groups} groups of " if layer.groups > 1 else ""
    kernel = "x".join(map(str, layer.window.kernel))
    order = "all pixels by one piece of the weights" if tiling.weights_stay else "all weights by one piece of the input"
    double = [memory for memory in MEMORIES if tiled.is_double_buffered(memory)]
    share = ", ".join(f"{engine} {busy}" for engine, busy in time.busy.items())
    return [
        f"{layer.input.rows}x{layer.input.columns} pixels of {groups}{layer.in_channels} channels, kernel {kernel}, "
        f"to {layer.output.rows}x{layer.output.columns} of {layer.out_channels}.",
        f"In pieces of {tiling.rows}x{tiling.columns} pixels, {tiled.channels} of the output's channels "
        f"and {tiled.depth} of the input's; {order}.",
        "On chip: " + ", ".join(f"{name} {tiled.footprint(name)} bytes" for name in MEMORIES) + ".",
        f"Double-buffered: {', '.join(double) or 'nothing'}.",
        f"About {time.total} cycles for {time.commands} commands (busy: {share}).",
    ]
