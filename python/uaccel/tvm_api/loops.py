"""Loops that fill tensors: meanings of operators that depend on their own earlier results."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as script

from uaccel.tvm_api import te


def written_by_loops(
    outputs: list[tuple[tuple[int, ...], str]], inputs: list[Any], write: Callable[..., None], name: str
) -> list[Any]:
    """TE tensors of these shapes and types that ``write`` fills: it is given inputs and outputs as arrays, indexed
    as they lie in memory, and loops with ``count_to``. For what depends on its own earlier results."""

    def statement(sources: Any, targets: Any) -> Any:
        with IRBuilder() as builder:
            with count_to(1):  # arrays want a frame to stand in
                write(*(script.buffer_proxy(buffer) for buffer in (*sources, *targets)))
            return builder.get()

    shapes, dtypes = [shape for shape, _ in outputs], [dtype for _, dtype in outputs]
    made = te.extern(shapes, inputs, statement, name=name, dtype=dtypes)
    return [made] if len(shapes) == 1 else list(made)


def count_to(extent: int) -> Any:
    """A loop of ``written_by_loops``: ``with count_to(4) as i``."""
    return script.serial(0, extent)


@contextlib.contextmanager
def where(condition: Any) -> Iterator[None]:
    """What happens where it holds, inside ``written_by_loops``: ``with where(a[i] > 0)``."""
    with script.If(condition), script.Then():
        yield


def while_holds(condition: Any) -> Any:
    """A loop inside ``written_by_loops`` that goes on while the condition holds."""
    return script.While(condition)


def local_array(count: int, dtype: str) -> Any:
    """An array inside ``written_by_loops``."""
    return script.buffer_proxy(script.decl_buffer([count], dtype, scope="local"))


def computed_once(value: Any) -> Any:
    """A value inside ``written_by_loops`` that expressions may use often without growing by it."""
    array = local_array(1, str(value.ty.dtype))
    array[0] = value
    return array[0]
