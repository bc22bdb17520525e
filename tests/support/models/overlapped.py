"""Placements that no planner would make: every output as close before its input as its kernel allows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from support.models.relax_modules import lowered
from uaccel.codegen.generate import generate
from uaccel.codegen.options import EmitOptions
from uaccel.kernels.choice import Selection
from uaccel.lower.placement import Place, Placement
from uaccel.lower.program import Layer, Program
from uaccel.memory import Plan
from uaccel.pipeline import Compiled
from uaccel.util.text import round_up

WORD = 8
ALIGNMENT = 4

Distance = Callable[[Layer], int | None]


def stated(layer: Layer) -> int | None:
    """Of the first input, as far as alignment lets it be; None where the kernel says nothing."""
    distance = layer.kernel.behind.get(0)
    return None if distance is None else round_up(distance, ALIGNMENT)


def in_place(layer: Layer) -> int | None:
    """Nought where the output may lie over the first input."""
    fits = layer.outputs[0].info.size <= layer.inputs[0].info.size
    return 0 if fits and 0 in layer.kernel.inplace else None


def row_less(layer: Layer) -> int | None:
    """A bug: a row of the output less."""
    distance = stated(layer)
    _, *sides = layer.outputs[0].info.shape
    return None if distance is None else max(0, distance - layer.outputs[0].info.size // sides[0])


def closest(program: Program, distance: Distance) -> Placement:
    """Layers apart from each other, of which each has inputs of its own."""
    places: dict[str, Place] = {}
    scratch: dict[int, Place] = {}
    end = 0

    def place(name: str, at: int, size: int) -> None:
        nonlocal end
        places[name] = Place("arena", offset=at)
        end = max(end, round_up(at + size, WORD))

    for layer in program.layers:
        output, behind, start = layer.outputs[0], distance(layer), end
        place(output.name, start, output.info.size)
        for index, value in enumerate(layer.inputs):
            if value.name not in places:
                over = behind is not None and index == 0
                place(value.name, start + (behind or 0) if over else end, value.info.size)
        scratch[layer.index] = Place("arena", offset=end)
        end = round_up(end + layer.scratch, WORD)
    for value in program.inputs:
        if value.name not in places:
            place(value.name, end, value.info.size)
    return Placement(places, scratch, Plan({}, end, 0, optimal=False, method="closest"), ())


def leanest(program: Program) -> Program:
    """With the kernels of least scratch memory."""

    def lean(layer: Layer) -> Layer:
        *_, (kernel, _more) = [(layer.kernel, 0.0), *layer.kernel.leaner()]
        return replace(layer, kernel=kernel)

    return replace(program, layers=tuple(map(lean, program.layers)))


def compiled_overlapped(
    module: Any, selection: Selection, distance: Distance = stated, *, lean: bool = False
) -> Compiled:
    partitioned, program = lowered(module, selection)
    program = leanest(program) if lean else program
    generated = generate(program, closest(program, distance), EmitOptions(workspace_io=True))
    return Compiled(generated, {"import": module}, partitioned)
