"""What is known of generated code, as plain data: of the model, its memory, its layers and who computes them."""

from __future__ import annotations

from typing import Any

from uaccel.basics.words import BOUNDED
from uaccel.emit.generate import Generated
from uaccel.emit.options import EmitOptions
from uaccel.lower.placement import Placement
from uaccel.lower.program import Covered, Layer, Program
from uaccel.version import __version__


def facts(generated: Generated) -> dict[str, Any]:
    """All of it; ``docs/generated-code.md`` has the keys."""
    program, placement, model = generated.program, generated.placement, generated.program.model
    state = {"state": {"bytes": placement.state, "tensors": state_facts(program)}} if program.state else {}
    return state | {
        "version": __version__,
        "board": generated.board,
        "workspace_io": generated.options.workspace_io,
        "favour": program.favour.value,
        "model": {"name": model.name, "format": model.source_format, "sha256": model.digest},
        "inputs": {spec.name: spec.to_json() for spec in program.signature.inputs},
        "outputs": {spec.name: spec.to_json() for spec in program.signature.outputs},
        "arena": {"bytes": placement.arena, "lower_bound": placement.plan.lower_bound, "bounds": BOUNDED},
        **_pools(placement),
        **_constant_pools(generated),
        "requires": sorted({need for layer in program.layers for v in layer.functions for need in v.kernel.requires}),
        "device_constants": sum(array.data.nbytes for array in generated.arrays if array.for_device),
        "accelerators": [
            {"name": engine.name, "tolerance": engine.tolerance, "device": engine.has_device}
            for engine in program.engines
        ],
        "layers": [_layer(layer, placement) for layer in program.layers],
        "build": generated.build.hex(),
    }


def _pools(placement: Placement) -> dict[str, Any]:
    """Of an arena that is divided; nothing of one that is not."""
    sizes = [{"name": name, "bytes": size} for name, size in placement.pools.items() if size]
    return {"pools": sizes} if len(placement.pools) > 1 else {}


def _constant_pools(generated: Generated) -> dict[str, Any]:
    """Of constants that are divided; ``copied`` where start-up fills RAM with them."""
    sizes = generated.constant_pools
    rows = [{"name": s.name, "bytes": sizes[s.name], "copied": s.copied} for s in generated.stores if s.name in sizes]
    return {"constant_pools": rows} if rows else {}


def io_bytes(program: Program, options: EmitOptions) -> int:
    """Of inputs and outputs, as far as they are not in the arena."""
    if options.workspace_io:
        return 0
    return sum(value.info.size for value in (*program.held, *program.outputs))


def state_facts(program: Program) -> dict[str, Any]:
    """What lasts from one inference to the next, by the names of the model file."""
    return {entry.spec.spec.name: entry.spec.spec.to_json() for entry in program.state}


def _layer(layer: Layer, placement: Placement) -> dict[str, Any]:
    outputs = [
        {**value.spec.to_json(), "tensor": value.spec.name, **placement.places[value.name].to_json()}
        for value in layer.outputs
    ]
    return layer_facts(layer) | {"scratch": layer.scratch, "outputs": outputs}


def layer_facts(layer: Layer) -> dict[str, Any]:
    """What reports tell of a layer, with the compilation at hand or with the archive only."""
    commands = {"commands": list(layer.labels)} if layer.labels else {}
    return commands | {
        "index": layer.index,
        "name": layer.name,
        "op": layer.op,
        "engine": layer.engine,
        "reason": layer.reason,
        "refused": layer.refused,
        "operator": layer.origin.index,
        "tensor": layer.origin.tensor,
        "macs": layer.macs,
        "variant": layer.kernel.family,
        "covers": [_covered(covered) for covered in layer.covers],
        "outputs": [value.spec.to_json() for value in layer.outputs],
    }


def _covered(covered: Covered) -> dict[str, Any]:
    return {
        "name": covered.name,
        "op": covered.op,
        "reason": covered.reason,
        "operator": covered.origin.index,
        "tensor": covered.origin.tensor,
        "macs": covered.macs,
        "shape": list(covered.output.shape),
    }
