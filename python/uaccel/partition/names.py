"""What a model's layers are called, in wishes, reports and C alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from uaccel.floats import Fused
from uaccel.model import ImportedModel, UniqueNames, c_identifier
from uaccel.partition.layouts import LayoutsChanged
from uaccel.tvm_api import is_call, is_operator_call, main_bindings


def layer_names(model: ImportedModel) -> Mapping[str, str]:
    """By binding, each name once."""
    unique = UniqueNames()
    return {
        var.name: unique.take(wanted_name(model, var.name, expr))
        for var, expr in main_bindings(model.module)[1]
        if is_operator_call(expr)
    }


def turned_names(before: Any, turned: LayoutsChanged, names: Mapping[str, str]) -> Mapping[str, str]:
    """The same layers where they hold their results in other layouts; what only changes a layout is not the layer."""
    operators = {var.name: expr.op for var, expr in main_bindings(before)[1] if is_call(expr)}
    found = {}
    for var, expr in main_bindings(turned.module)[1]:
        old = turned.origins.get(var.name, var.name)
        if old in names and is_call(expr) and expr.op == operators.get(old):
            found[var.name] = names[old]
    return found


def fused_names(fused: Fused, names: Mapping[str, str]) -> Mapping[str, str]:
    """By binding once float layers are joined; what only gives such a one in the model's layout is not the layer."""
    moved = set(fused.origins.values())
    found = {name: names[old] for name, old in fused.origins.items() if old in names}
    return found | {name: layer for name, layer in names.items() if name not in moved}


def wanted_name(model: ImportedModel, binding: str, call: Any) -> str:
    """The binding's name; one of TVM's making is called after its operator and where it comes from."""
    origin = model.origins.get(binding)
    if origin is not None and binding not in model.tensors:
        return part_name(call, origin.index)
    return c_identifier(binding)


def part_name(call: Any, operator: int) -> str:
    """Of a call that is not the whole of a model's operator."""
    return c_identifier(f"{call.op.name.rpartition('.')[2]}_{operator}")
