"""Passes of an accelerator's designers over modules: run, and held to the type of what they change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from uaccel.accelerator import Accelerator
from uaccel.accelerator.vendor import vendors
from uaccel.errors import AcceleratorError
from uaccel.tvm_api import is_module, same_type


def changed(accelerator: Accelerator, hook: str, change: Callable[[Any], Any], module: Any) -> Any:
    """The module that the pass returns; ``main`` keeps its inputs and outputs and stays the only function."""
    what = f"{hook} pass '{pass_name(change)}'"
    with vendors(accelerator.folder, what):
        after = change(module)
    if not is_module(after):
        raise AcceleratorError(f"{accelerator.folder}: {what} returned {type(after).__name__}; wanted the module")
    names = sorted(str(name.name_hint) for name in after.functions)
    if names != ["main"]:
        raise AcceleratorError(
            f"{accelerator.folder}: {what} left functions {', '.join(names) or 'none'}; wanted 'main' and nothing "
            "else: calls of Relax's or uaccel's operators, which everybody can compute"
        )
    if not same_type(after["main"], module["main"]):
        raise AcceleratorError(
            f"{accelerator.folder}: {what} made {after['main'].ty} of {module['main'].ty}; "
            "a pass keeps inputs and outputs"
        )
    return after


def pass_name(change: Any) -> str:
    """Of a function, a class with a name, or one without."""
    name = getattr(change, "name", getattr(change, "__name__", None))
    return name if isinstance(name, str) else type(change).__name__
