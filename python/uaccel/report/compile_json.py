"""Describes a compilation as plain data: who computes what and why, the graph, the memory plan."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any, Final

from uaccel.build.archive_reader import Metadata
from uaccel.codegen.archive import document
from uaccel.codegen.generate import layer_facts
from uaccel.codegen.layers import LayerFunctions
from uaccel.codegen.weights import ConstantPool, where_constants_lie
from uaccel.kernels.choice import Shares
from uaccel.kernels.registry import EMBEDDED
from uaccel.lower.placement import Place, computed_before, lifetimes, needed_by_layer
from uaccel.lower.plan_search import Estimator, far_off
from uaccel.lower.program import Layer, Program, view_roots
from uaccel.lower.slow_layers import cycles_of, slow_report
from uaccel.partition.partition import Decision
from uaccel.pipeline import Compiled
from uaccel.report.archived import STRUCTURE, archive_report
from uaccel.report.latency import Facts
from uaccel.report.run_json import fallback_report, offloaded_report
from uaccel.util.text import CPU, named

# The report of a compilation (docs/reference/json.md).


def compile_report(compiled: Compiled) -> dict[str, Any]:
    """The report without a build: what an archive of the compilation tells."""
    metadata = Metadata(b"", document(compiled.generated, {"warnings": compiled.warnings}))
    return archive_report(metadata, {"plan": {"pools": _pools(compiled)}, "engines": _engines(compiled)})


def facts_of(program: Program) -> list[Facts]:
    return [layer_facts(layer) for layer in program.layers]


# The JSON of ``uaccel explain``: who computes what, why, what it costs, where layouts change.

LAYOUT_CHANGE: Final = "permute_dims"


def explain(compiled: Compiled) -> dict[str, Any]:
    decisions = compiled.partitioned.decisions
    layers, facts = compiled.program.layers, facts_of(compiled.program)
    of_model = {decision.layer for decision in decisions}
    return {
        "model": compiled.model.name,
        "board": compiled.board,
        "accelerators": [accelerator.name for accelerator in compiled.accelerators],
        "costs": "functions" if compiled.selection.target.has(EMBEDDED) else "rule",
        "layers": [decision.to_json() | _on_the_cpu(compiled, decision) for decision in decisions],
        "engines": _shares(compiled),
        "regions": [_region(layer) for layer in layers if layer.on_accelerator],
        "layout_changes": [
            {"layer": layer.name, "bytes": layer.outputs[0].info.size}
            for layer in layers
            if layer.op == LAYOUT_CHANGE and layer.name not in of_model and not layer.is_view
        ],
        "added": [
            {"name": layer.name, "op": layer.op, "reason": layer.reason}
            for layer in layers
            if not layer.on_accelerator and not layer.covers and layer.name not in of_model
        ],
        "offloaded": offloaded_report(facts),
        "fallback": fallback_report(facts),
        "slow": slow_report(compiled.program, compiled.selection, _lie(compiled)),
        "plans": [plan.to_json() for plan in compiled.plans],
        "estimates_off": [
            {"layer": off.layer, "estimate": round(off.estimate), "measured": off.measured}
            for off in far_off(compiled.program, compiled.selection)
        ],
        "warnings": compiled.warnings,
    }


def _on_the_cpu(compiled: Compiled, decision: Decision) -> dict[str, Any]:
    """Says what computes a layer, if the CPU does, and what it would take there."""
    layers = (layer for whole in compiled.program.layers for layer in whole.operators)
    layer = next((layer for layer in layers if layer.name == decision.layer and not layer.on_accelerator), None)
    if layer is None:
        return {"function": None, "family": None}
    cycles = cycles_of(layer, compiled.selection, _lie(compiled))
    return {"function": layer.reason, "family": layer.kernel.family, "cpu_cycles": cycles}


def _lie(compiled: Compiled) -> dict[str, Shares]:
    return where_constants_lie(compiled.program, compiled.generated.arrays, compiled.selection.target.memories)


def _shares(compiled: Compiled) -> dict[str, dict[str, int]]:
    shares: dict[str, dict[str, int]] = {}
    for engine in (*(accelerator.name for accelerator in compiled.accelerators), CPU):
        rows = [decision for decision in compiled.partitioned.decisions if decision.engine == engine]
        shares[engine] = {"layers": len(rows), "macs": sum(row.macs for row in rows)}
    return shares


def _region(layer: Layer) -> dict[str, Any]:
    return {
        "name": layer.name,
        "engine": layer.engine,
        "layers": [covered.name for covered in layer.covers],
        "inputs": [list(value.info.shape) for value in layer.inputs],
        "outputs": [list(value.info.shape) for value in layer.outputs],
        "functions": list(dict.fromkeys(call.function for call in layer.kernel.calls)),
    }


# Structure, for report pages: where the model comes from, its graph, its memory plan and who decided what. It is a file
# of the archive, and part of the JSON of ``uaccel run`` (``docs/reference/json.md``).


def structure(compiled: Compiled) -> dict[str, Any]:
    """The structure of a compilation. Nothing in it depends on the computer; ``sources`` says where a layer's functions
    begin and end in the executor."""
    model, generated = compiled.model, compiled.generated
    return {
        "source": {
            "file": f"{model.name}{model.file.suffix if model.file else ''}",
            "format": model.source_format,
            "bytes": len(model.file.data) if model.file else None,
            "sha256": model.digest,
        },
        "graph": {"values": values_report(compiled), "layers": _layers(compiled)},
        "plan": plan_report(compiled),
        "constants": [
            {"symbol": array.symbol, "bytes": array.data.nbytes, "layers": list(array.users)}
            | ({"pool": array.pool} if array.pool else {})
            for array in generated.arrays
        ],
        "decisions": [decision.to_json() for decision in compiled.partitioned.decisions],
        "plans": [plan.to_json() for plan in compiled.plans],
        "engines": _engines(compiled),
        "slow": slow_report(compiled.program, compiled.selection, _lie(compiled)),
        "sources": _spans(compiled, generated.sources[f"tvmgen_{compiled.program.name}.c"]),
    }


def structure_file(compiled: Compiled) -> dict[str, bytes]:
    """The file of the archive with the structure."""
    return {STRUCTURE: json.dumps(structure(compiled), separators=(",", ":")).encode()}


def _spans(compiled: Compiled, executor: str) -> dict[str, list[list[int]]]:
    program, generated = compiled.program, compiled.generated
    functions = LayerFunctions(program, ConstantPool(program, generated.names), generated.ahead)
    texts = {layer.name: functions.of(layer) for layer in program.layers if not layer.is_view}
    begins = {name: [(executor.index(text), len(text)) for text in parts] for name, parts in texts.items()}
    return {name: [[begin, begin + length] for begin, length in parts] for name, parts in begins.items()}


def _engines(compiled: Compiled) -> list[dict[str, Any]]:
    return [_engine(accelerator) for accelerator in compiled.accelerators]


def _engine(accelerator: Any) -> dict[str, Any]:
    """An accelerator; ``macs_per_cycle`` and ``bytes_per_cycle`` are null if its description does not state them."""
    return {
        **named(accelerator, "name", "description", "tolerance"),
        "memories": dict(accelerator.memories),
        "macs_per_cycle": accelerator.macs_per_cycle,
        "bytes_per_cycle": accelerator.bytes_per_cycle,
    }


def values_report(compiled: Compiled) -> dict[str, dict[str, Any]]:
    """Every tensor of the program: its type, where it lies, and from which layer to which it is needed."""
    program, placement = compiled.program, compiled.placement
    lives = lifetimes(program, workspace_io=compiled.options.workspace_io)
    every = [*program.inputs, *program.outputs]
    every += [value for layer in program.layers for value in (*layer.inputs, *layer.outputs)]
    roots = view_roots(program.layers)
    found: dict[str, dict[str, Any]] = {}
    for value in every:
        place, life = placement.places.get(value.name), lives.get(value.name)
        found[value.name] = {
            "tensor": value.spec.name,
            **value.spec.to_json(),
            "bytes": value.info.size,
            **(place.to_json() if place is not None else {"memory": None, "offset": None}),
            "first": life.first if life is not None else None,
            "last": life.last if life is not None else None,
            "view_of": roots.get(value.name),
        }
    return found


def plan_report(compiled: Compiled) -> dict[str, Any]:
    """The memory plan: blocks of bytes from a first to a last layer, and how near it is to the lower bound."""
    placement = compiled.placement
    plan = placement.plan
    ahead = compiled.generated.ahead.blocks(compiled.program)
    found = needed_by_layer(compiled.program, workspace_io=compiled.options.workspace_io, ahead=ahead)
    return {
        "arena": placement.arena,
        "lower_bound": plan.lower_bound,
        "optimal": plan.optimal,
        "steps": len(compiled.program.layers),
        "blocks": [
            {"name": b.name, "size": b.size, "first": b.first, "last": b.last, "offset": plan.offsets[b.name]}
            for b in placement.blocks
        ],
        "scratch": [
            {"layer": layer.name, "step": layer.index, "bytes": layer.scratch, **_place(placement.scratch[layer.index])}
            for layer in compiled.program.layers
            if layer.index in placement.scratch
        ],
        "ahead": [
            {
                "layer": compiled.program.layers[index].name,
                "first": computed_before(compiled.program, index),
                "last": index,
                "bytes": ahead[index],
                **_place(place),
            }
            for index, place in placement.ahead.items()
        ],
        "pools": _pools(compiled),
        "live": [
            found.get(step, sum(block.size for block in placement.blocks if block.live(step)))
            for step in range(len(compiled.program.layers))
        ],
        "overlaps": [asdict(overlap) for overlap in placement.overlaps],
        "state": placement.state,
    }


def _pools(compiled: Compiled) -> list[dict[str, Any]]:
    return [{"name": name, "bytes": size} for name, size in compiled.placement.pools.items()]


def _place(place: Place) -> dict[str, Any]:
    return {"offset": place.offset} | ({"pool": place.pool} if place.pool else {})


def _layers(compiled: Compiled) -> list[dict[str, Any]]:
    estimator = Estimator(compiled.selection)
    calls = {call.layer: call for call in compiled.partitioned.calls.values() if len(call.covers) > 1}
    rows = [(layer, _layer(layer, estimator)) for layer in compiled.program.layers]
    for layer, row in rows:
        if layer.name in calls:
            covers = [(c.name, list(c.sources), list(c.results)) for c in calls[layer.name].covers]
            row["inner"] = [inner | _moved(layer, inner["name"]) for inner in _inner(covers)]
        elif layer.streaming is not None:
            covers = [(o.name, [v.name for v in o.inputs], [v.name for v in o.outputs]) for o in layer.operators]
            row["inner"] = _inner(covers)
    return [row for _, row in rows]


def _moved(layer: Layer, name: str) -> dict[str, int]:
    return {"moved": layer.moved_by[name]} if name in layer.moved_by else {}


def _inner(covers: list[tuple[str, list[Any], list[str]]]) -> list[dict[str, Any]]:
    """Tells for operators that are computed together, given by name, sources and results: which others each reads, and
    which values from outside."""
    maker = {result: name for name, _, results in covers for result in results}
    return [
        {
            "name": name,
            "reads": list(dict.fromkeys(maker[source] for source in sources if source in maker)),
            "outside": [source for source in sources if source is not None and source not in maker],
            "results": results,
        }
        for name, sources, results in covers
    ]


def _layer(layer: Layer, estimator: Estimator) -> dict[str, Any]:
    estimate, choice = estimator.by_rule(layer), layer.choice
    return {
        **named(layer, "name", "op", "engine"),
        "inputs": [value.name for value in layer.inputs],
        "outputs": [value.name for value in layer.outputs],
        "view": layer.is_view,
        "scratch": layer.scratch,
        "covers": [covered.name for covered in layer.covers],
        "functions": list(dict.fromkeys(call.function for call in layer.kernel.calls)),
        "estimate": {"instructions": round(estimate.instructions), "cycles": round(estimate.cycles)},
        "moved": layer.moved,
        **({} if layer.cpu_cycles is None else {"cpu_cycles": round(layer.cpu_cycles)}),
        **({"on_chip": [list(tile) for tile in layer.tiles]} if layer.tiles else {}),
        "choice": None
        if choice is None
        else {"options": list(choice.options), "picked": choice.options[choice.picked], "why": choice.why},
    }
