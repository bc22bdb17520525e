"""Regions made of a few Relax calls, as an accelerator is given them, for tests without a model file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from uaccel.accelerator import Region
from uaccel.accelerator.region import region_of
from uaccel.model import Array
from uaccel.ops.base import NAMESPACE, REGISTRY
from uaccel.tvm_api import ModuleBuilder, main_bindings, relax
from uaccel.tvm_api.executor import Executor


@dataclass(frozen=True)
class Example:
    """A region and the module that says what it means."""

    region: Region
    module: Any

    def expected(self, inputs: Sequence[Array]) -> list[Array]:
        return Executor(self.module).run(inputs)


def example(shapes: Sequence[tuple[int, ...]], build: Callable[..., Any], dtype: str = "int8") -> Example:
    """``build(block, x0, x1, ...)`` binds calls by ``block.emit(call, name)`` and returns the results."""
    builder = ModuleBuilder()
    parameters = [relax.Var(f"x{i}", relax.TensorType(shape, dtype)) for i, shape in enumerate(shapes)]
    with builder.function(parameters) as block:
        results = build(block, *parameters)
        block.finish(relax.Tuple(results))
    variables, bindings = main_bindings(builder.module)
    names = [var.name for var in results]
    outputs = [var for name in names for var, _ in bindings if var.name == name]
    return Example(region_of(bindings, variables, outputs), builder.module)


def operator(name: str) -> Any:
    """The integer operator ``uaccel.<name>``: ``operator("add").attributes(...)`` are attributes of it, and
    ``operator("add")(x, y, attrs=...)`` is a call."""
    return REGISTRY[f"{NAMESPACE}{name}"]


def random_int8(generator: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return generator.integers(-128, 128, shape).astype(np.int8)
