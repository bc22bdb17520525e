"""What a compilation tells: the JSON of section "report" in docs/cli.md."""

from __future__ import annotations

from typing import Any

from uaccel.basics.words import BOUNDED
from uaccel.emit.facts import io_bytes, layer_facts, state_facts
from uaccel.lower.program import Program
from uaccel.pipeline import Compiled
from uaccel.project.footprint import Footprint
from uaccel.telling.figures import (
    Facts,
    fallback_report,
    flash_report,
    layer_reports,
    memory_report,
    offloaded_report,
    with_code,
)


def compile_report(compiled: Compiled) -> dict[str, Any]:
    """What is known without building: sizes that only a linker knows are null."""
    program, signature = compiled.program, compiled.model.signature
    layers = facts_of(program)
    state = {"state": state_facts(program)} if program.state else {}
    return state | {
        "model": compiled.model.name,
        "name": program.name,
        "board": compiled.board,
        "workspace_io": compiled.options.workspace_io,
        "favour": program.favour.value,
        "accelerators": [accelerator.name for accelerator in compiled.accelerators],
        "inputs": {spec.name: spec.to_json() for spec in signature.inputs},
        "outputs": {spec.name: spec.to_json() for spec in signature.outputs},
        "layers": with_code(layer_reports(layers, None, {}, {}), None),
        "ram": ram_report(compiled, None, stack=None),
        "flash": flash_report(compiled.generated.weight_bytes, None, compiled.generated.constant_pools),
        "offloaded": offloaded_report(layers),
        "fallback": fallback_report(layers),
        "warnings": compiled.warnings,
    }


def facts_of(program: Program) -> list[Facts]:
    return [layer_facts(layer) for layer in program.layers]


def ram_report(compiled: Compiled, taken: Footprint | None, *, stack: int | None) -> dict[str, Any]:
    placement = compiled.placement
    io = io_bytes(compiled.program, compiled.options)
    state = placement.state if compiled.program.state else None
    pools = {"pools": dict(placement.pools)} if len(placement.pools) > 1 else {}
    bound = placement.plan.lower_bound
    copied = compiled.generated.copied_bytes
    return pools | memory_report(placement.arena, bound, BOUNDED, io, taken, stack=stack, state=state, copied=copied)
