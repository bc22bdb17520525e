"""What ``uaccel explain`` tells of a compilation: who computes what, why, what it costs, where layouts change."""

from __future__ import annotations

from typing import Any, Final

from uaccel.basics.words import CPU
from uaccel.lower.program import Layer
from uaccel.pipeline import Compiled
from uaccel.plans import far_off
from uaccel.telling.figures import fallback_report, offloaded_report
from uaccel.telling.report import facts_of

LAYOUT_CHANGE: Final = "permute_dims"


def explain(compiled: Compiled) -> dict[str, Any]:
    decisions = compiled.partitioned.decisions
    layers, facts = compiled.program.layers, facts_of(compiled.program)
    of_model = {decision.layer for decision in decisions}
    return {
        "model": compiled.model.name,
        "board": compiled.board,
        "accelerators": [accelerator.name for accelerator in compiled.accelerators],
        "layers": [decision.to_json() for decision in decisions],
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
        "plans": [plan.to_json() for plan in compiled.plans],
        "estimates_off": [
            {"layer": off.layer, "estimate": round(off.estimate), "measured": off.measured}
            for off in far_off(compiled.program, compiled.selection)
        ],
        "warnings": compiled.warnings,
    }


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
