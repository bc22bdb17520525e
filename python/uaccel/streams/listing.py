"""Streams for people: what is where, how each layer is cut, and every command with its loops, tokens and time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from uaccel.accelerator.region import Region
from uaccel.streams.chain import Chain
from uaccel.streams.command import Command, Tokens
from uaccel.streams.planner import Planned
from uaccel.streams.words import TOKENS

LETTERS: Final = {"load": "L", "compute": "C", "store": "S"}
MEMORIES: Final = ("activations", "weights")


def listing(planned: Planned, machine: str, region: Region) -> str:
    """The whole disassembly; ``machine`` says in a line what it is for."""
    lines = [f"; {machine}", *_summary(planned), "", *_places(planned, region), "", *_layers(planned), ""]
    layer = ""
    times = zip(planned.stream.commands, planned.stream.tokens, planned.timeline.spans, strict=True)
    for number, (command, tokens, span) in enumerate(times):
        if command.layer != layer:
            layer = command.layer
            lines.append(f"{layer}:")
        time = f"{span.begin}..{span.end}"
        lines.append(f"  {number:5} {time:>17} {_tokens(command, tokens)} {_text(command)}  ; {command.label}")
    return "\n".join(lines) + "\n"


def _summary(planned: Planned) -> Iterator[str]:
    busy = ", ".join(f"{engine} {cycles}" for engine, cycles in planned.timeline.busy.items())
    yield f"; {planned.timeline.total} cycles ({busy}), {planned.cost.bytes} bytes moved"
    yield "; columns: command, cycles, tokens awaited < and > pushed (by engine: L C S), what it does, where it stands"


def _places(planned: Planned, region: Region) -> Iterator[str]:
    named = [("constants", len(planned.constants))]
    named += [(f"input {tensor.name}", tensor.info.size) for tensor in region.inputs]
    named += [(f"output {tensor.name}", tensor.info.size) for tensor in region.outputs]
    named += [("scratch", planned.scratch)]
    for number, (name, size) in enumerate(named):
        if size:
            yield f"; place {number}: {name}, {size} bytes"
    for name, address in planned.residents.items():
        yield f"; on chip: {name} at activations+{address}"


def _layers(planned: Planned) -> Iterator[str]:
    for step in planned.steps:
        if isinstance(step, Chain):
            yield from _chain(step)
            continue
        tiling, shape = step.tiling, step.layer.shape
        pixels = f"{tiling.rows} of {shape.rows} rows, {tiling.columns} of {shape.columns} columns"
        channels = f"{tiling.blocks} of {step.layer.blocks} blocks, {tiling.steps} of {step.layer.steps} steps"
        order = "weights stay" if tiling.weights_stay else "pixels stay"
        yield f"; {step.layer.name}: {pixels}, {channels}, {order}"


def _chain(chain: Chain) -> Iterator[str]:
    made: Counter[str] = Counter()
    for rows in chain.links.bands(chain.height):
        made.update({name: len(some) for name, some in rows.items()})
    yield f"; {len(chain.links.layers)} layers in bands of {chain.height} of {chain.links.output.shape.rows} rows:"
    for layer, weights in zip(chain.links.layers, chain.weights, strict=True):
        rows_of = f"{made[layer.output]} rows for {layer.shape.rows}"
        yield f";   {layer.name}: {rows_of}, {weights.blocks} of {layer.blocks} blocks"


def _tokens(command: Command, tokens: Tokens) -> str:
    previous, following = {"load": (" ", "C"), "compute": ("L", "S"), "store": ("C", " ")}[command.engine]
    flags = [getattr(tokens, name) for name in TOKENS]
    letters = (previous, following, previous, following)
    shown = [letter if flag else "." for flag, letter in zip(flags, letters, strict=True)]
    return f"{shown[0]}{shown[1]}<{LETTERS[command.engine]}>{shown[2]}{shown[3]}"


def _text(command: Command) -> str:
    fields = command.fields
    if command.kind in ("load", "store"):
        chip = f"{MEMORIES[fields['memory']]}+{fields['address']}"
        memory = f"place {fields['place']}+{fields['offset']}"
        ends = (chip, memory) if command.kind == "load" else (memory, chip)
        return f"{command.kind} {ends[0]} <- {ends[1]}: {_runs(fields)}"
    return f"{command.kind} " + " ".join(f"{name}={value}" for name, value in fields.items() if value)


def _runs(fields: Mapping[str, int]) -> str:
    text = f"{fields['run']} bytes"
    if fields.get("coded"):
        return f"{text}, unpacked to {fields['pitch_run']}"
    for count, stride, pitch in (("runs", "stride_run", "pitch_run"), ("planes", "stride_plane", "pitch_plane")):
        if fields[count] > 1:
            text += f" x {fields[count]} (every {fields[stride]} in memory, {fields[pitch]} on chip)"
    return text
