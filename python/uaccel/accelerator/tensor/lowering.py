"""What an operation's description takes of this package: a check, a cost and a lowering for a machine."""

from __future__ import annotations

import functools
from collections.abc import Callable

from uaccel.accelerator.lowered import Lowered, library_call
from uaccel.accelerator.region import Region
from uaccel.accelerator.sums import int8_only
from uaccel.accelerator.tensor.c_text import function_text
from uaccel.accelerator.tensor.layer import DEPTHWISE, FULLY_CONNECTED, Layer, layer_of
from uaccel.accelerator.tensor.machine import MEMORIES, Machine
from uaccel.accelerator.tensor.pack import packed_parameters, packed_weights
from uaccel.accelerator.tensor.schedule import schedule
from uaccel.accelerator.tensor.search import best, smallest
from uaccel.accelerator.tensor.tiling import Tiled
from uaccel.accelerator.tensor.timing import cost, time_of
from uaccel.errors import AcceleratorError
from uaccel.machines.timeline import Timeline
from uaccel.model import c_identifier
from uaccel.ops.kernel import Constant, Definition, Input, Output

OPERATORS = ("uaccel.conv2d", FULLY_CONNECTED)
CALL_INSTRUCTIONS, COMMAND_INSTRUCTIONS = 500, 220
"""Of the CPU: for a layer, and for a command that it writes into registers; measured on a Cortex-M4."""


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


def does_not_fit(machine: Machine, layer: Layer) -> str | None:
    """The memory that even the smallest piece is too large for."""
    least = smallest(machine, layer)
    memory = least.lacking
    if memory is None:
        return None
    needed, there = least.footprint(memory), machine.memory(memory).bytes
    return f"one output pixel of it needs {needed} bytes of {memory}, and {machine.name} has {there}"


def cycles(machine: Machine) -> Callable[[Region], float]:
    """The cost: what the chosen schedule takes."""
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
