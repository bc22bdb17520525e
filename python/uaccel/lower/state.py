"""What is left of the state at the end of an inference, and which of it a layer can write where it belongs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from uaccel.lower.program import Layer, StateValue, Value, view_roots
from uaccel.model import StateSpec, TensorSpec

Copy = Callable[[TensorSpec, Any], Value]
"""Appends a layer that copies a value, or a constant, into a new one."""


@dataclass(frozen=True)
class Storing:
    """``befores``: the values that an inference begins with, ``results`` what they become, ``outputs`` the model's."""

    layers: list[Layer]
    befores: Sequence[Value]
    outputs: Sequence[Value]
    copy: Copy

    def values(self, specs: Sequence[StateSpec], results: Sequence[Any]) -> tuple[StateValue, ...]:
        """Copies come last, when every layer has read what they overwrite; those that another copy would
        overwrite are copied aside before."""
        roots = [self._root(result) if isinstance(result, Value) else None for result in results]
        befores = {value.name for value in self.befores}
        kept = [root == before.name for root, before in zip(roots, self.befores, strict=True)]
        direct = [not keep and self._is_direct(i, roots) for i, keep in enumerate(kept)]
        safe = [
            result if kept[i] or direct[i] or roots[i] not in befores else self.copy(specs[i].spec, result)
            for i, result in enumerate(results)
        ]
        afters: list[Value | None] = []
        for i, result in enumerate(safe):
            value = result if direct[i] else self.copy(specs[i].spec, result)
            afters.append(None if kept[i] else value)
        return tuple(map(StateValue, specs, self.befores, afters))

    def _root(self, value: Value) -> str:
        """The value whose bytes it looks at."""
        return view_roots(self.layers).get(value.name, value.name)

    def _is_direct(self, index: int, roots: Sequence[str | None]) -> bool:
        """Whether the layer that makes the result may write it over what was there before: nothing reads that any
        more, and nobody else wants the result's bytes elsewhere."""
        root, before = roots[index], self.befores[index].name
        if root is None or roots.count(root) > 1 or before in roots:
            return False
        if root in {self._root(value) for value in self.outputs}:
            return False
        makers = [layer for layer in self.layers if root in {value.name for value in layer.outputs}]
        readers = [layer for layer in self.layers if before in {self._root(value) for value in layer.inputs}]
        return len(makers) == 1 and all(_reads_in_time(reader, makers[0], root, before) for reader in readers)


def _reads_in_time(reader: Layer, maker: Layer, root: str, before: str) -> bool:
    """Before the result is written; or while it is, where the kernel can."""
    if reader.is_view or reader.index < maker.index:
        return True
    if reader is not maker or maker.on_accelerator:
        return False
    names = [[value.name for value in values] for values in (maker.outputs, maker.inputs)]
    return (names[0].index(root), names[1].index(before)) in maker.kernel.updates if before in names[1] else False
