"""Where a wrong bit first appears: every layer that a device computed against its exact meaning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uaccel.lower.program import Program
from uaccel.pipeline import Compiled
from uaccel.tvm_api import is_call, main_bindings
from uaccel.tvm_api.executor import Executor

Array = NDArray[Any]
Layers = Mapping[tuple[int, int], Array]
"""Values by (layer, output)."""


@dataclass(frozen=True)
class Mismatch:
    """The first element of a tensor that is not as it should be, and how many more there are."""

    index: tuple[int, ...]
    expected: float | int
    got: float | int
    differing: int
    size: int

    def __str__(self) -> str:
        where = ",".join(map(str, self.index))
        many = f"{self.differing} of {self.size} elements differ"
        return f"[{where}] is {self.got}, expected {self.expected}; {many}"


@dataclass(frozen=True)
class WrongLayer:
    """The first layer in order of execution whose output is not its exact meaning."""

    index: int
    name: str
    op: str
    engine: str
    output: int
    mismatch: Mismatch

    def __str__(self) -> str:
        return f'layer {self.index} "{self.name}" ({self.op} on {self.engine}), element {self.mismatch}'


def differing(expected: Array, got: Array, tolerance: float = 0) -> NDArray[np.bool_]:
    """Element by element. Bytes must be equal; float kernels of two compilers may differ in the last bits.

    ``tolerance``: what accelerators that are not exact state, in steps of an integer type, relative for float.
    """
    if got.dtype.kind == "f":
        return ~np.isclose(got, expected, rtol=max(1e-5, tolerance), atol=max(1e-6, tolerance), equal_nan=True)
    if tolerance and got.dtype.kind in "iu":
        return np.asarray(np.abs(got.astype(np.int64) - expected.astype(np.int64)) > tolerance)
    return np.asarray(got != expected)


def compare(got: Array, expected: Array, tolerance: float = 0) -> Mismatch | None:
    """The first element that differs, and how many do."""
    expected = np.asarray(expected).reshape(got.shape)
    where = np.argwhere(differing(expected, got, tolerance))
    if not len(where):
        return None
    index = tuple(int(i) for i in where[0])
    return Mismatch(index, expected[index].item(), got[index].item(), len(where), int(got.size))


def exact_layers(compiled: Compiled, inputs: Sequence[Array]) -> dict[tuple[int, int], Array]:
    """What every layer should compute. Layers that the compiler added to copy an output are not among them."""
    module = compiled.model.module
    values = iter(Executor(module, state=compiled.model.state, intermediates=True).run(inputs))
    found: dict[tuple[int, int], Array] = {}
    layer = 0
    for var, expression in main_bindings(module)[1]:
        outputs = [next(values) for _ in getattr(var.ty, "fields", [var])]
        if is_call(expression):  # each became one layer, in this order
            found |= {(layer, number): value for number, value in enumerate(outputs)}
            layer += 1
    return found


def tolerance_of(program: Program) -> float:
    """What its accelerators may differ by; 0 where all of them are exact."""
    return max((engine.tolerance for engine in program.engines), default=0)


def first_wrong_layer(program: Program, exact: Layers, computed: Layers) -> WrongLayer | None:
    """``computed`` may lack layers: views are never executed."""
    for layer, output in sorted(exact.keys() & computed.keys()):
        mismatch = compare(computed[layer, output], exact[layer, output], tolerance_of(program))
        if mismatch is not None:
            wrong = program.layers[layer]
            return WrongLayer(layer, wrong.name, wrong.op, wrong.engine, output, mismatch)
    return None
