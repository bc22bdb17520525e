"""``metadata.json`` of an archive: Model Library Format version 7, and uaccel's own facts under a key of their own."""

from __future__ import annotations

from typing import Any

from uaccel.emit.generate import Generated
from uaccel.emit.options import EmitOptions
from uaccel.lower.program import Covered, Engine, Layer, Program
from uaccel.memory.placement import Placement
from uaccel.model import TensorSpec
from uaccel.version import __version__

FORMAT_VERSION = 7
CPU_DEVICE = 1
# The format wants a date; the same model must give the same bytes, so it is always this one.
NO_DATE = "1970-01-01 00:00:00Z"


def metadata(
    program: Program, placement: Placement, board: str, generated: Generated, options: EmitOptions
) -> dict[str, Any]:
    """The whole document."""
    module = {
        "model_name": program.name,
        "export_datetime": NO_DATE,
        "memory": _memory(program, placement, generated, options),
        "target": ["c -keys=cpu"],
        "executors": ["aot"],
        "style": "full-model",
    }
    return {
        "version": FORMAT_VERSION,
        "modules": {program.name: module},
        "uaccel": _own(program, placement, board, options),
    }


def io_bytes(program: Program, options: EmitOptions) -> int:
    """Of inputs and outputs, as far as they are not in the arena."""
    if options.workspace_io:
        return 0
    return sum(spec.info.size for spec in (*program.signature.inputs, *program.signature.outputs))


def _memory(program: Program, placement: Placement, generated: Generated, options: EmitOptions) -> dict[str, Any]:
    main = {
        "device": CPU_DEVICE,
        "workspace_size_bytes": placement.arena,
        "constants_size_bytes": generated.weight_bytes,
        "device_constants_size_bytes": sum(a.data.nbytes for a in generated.arrays if a.for_device),
        "io_size_bytes": io_bytes(program, options),
        "inputs": _sizes(program.signature.inputs),
        "outputs": _sizes(program.signature.outputs),
    }
    functions = [
        {
            "function_name": f"layer_{layer.name}",
            "workspace": [{"device": CPU_DEVICE, "workspace_size_bytes": layer.scratch}],
        }
        for layer in program.layers
        if not layer.is_view
    ]
    return {"functions": {"main": [main], "operator_functions": functions}}


def _sizes(specs: tuple[TensorSpec, ...]) -> dict[str, Any]:
    return {spec.name: {"size": spec.info.size, "dtype": spec.info.dtype} for spec in specs}


def state_facts(program: Program) -> dict[str, Any]:
    """What lasts from one inference to the next, by the names of the model file."""
    return {entry.spec.spec.name: entry.spec.spec.to_json() for entry in program.state}


def _own(program: Program, placement: Placement, board: str, options: EmitOptions) -> dict[str, Any]:
    model = program.model
    state = {"state": {"bytes": placement.state, "tensors": state_facts(program)}} if program.state else {}
    return state | {
        "version": __version__,
        "board": board,
        "workspace_io": options.workspace_io,
        "model": {"name": model.name, "format": model.source_format, "sha256": model.digest},
        "inputs": {spec.name: spec.to_json() for spec in program.signature.inputs},
        "outputs": {spec.name: spec.to_json() for spec in program.signature.outputs},
        "arena": {"bytes": placement.arena, "lower_bound": placement.plan.lower_bound},
        "requires": sorted({need for layer in program.layers for v in layer.forms for need in v.kernel.requires}),
        "accelerators": [_engine(engine) for engine in program.engines],
        "layers": [_layer(layer, placement) for layer in program.layers],
    }


def _engine(engine: Engine) -> dict[str, Any]:
    return {"name": engine.name, "tolerance": engine.tolerance}


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
