"""Writes loops that fill tensors: for the meanings of operators whose results depend on earlier ones."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from tvm import te
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as script


def te_extern_loops(
    outputs: list[tuple[tuple[int, ...], str]], inputs: list[Any], write: Callable[..., None], name: str
) -> list[Any]:
    """TE tensors of these shapes and types that ``write`` fills. It gets inputs and outputs as arrays, indexed as they
    lie in memory, and loops with ``count_to``. This is for results that depend on earlier ones."""

    def statement(sources: Any, targets: Any) -> Any:
        with IRBuilder() as builder:
            with count_to(1):  # arrays want a frame to stand in
                write(*(script.buffer_proxy(buffer) for buffer in (*sources, *targets)))
            return builder.get()

    shapes, dtypes = [shape for shape, _ in outputs], [dtype for _, dtype in outputs]
    made = te.extern(shapes, inputs, statement, name=name, dtype=dtypes)
    return [made] if len(shapes) == 1 else list(made)


def count_to(extent: int) -> Any:
    """A loop inside ``te_extern_loops``: ``with count_to(4) as i``."""
    return script.serial(0, extent)


@contextlib.contextmanager
def where(condition: Any) -> Iterator[None]:
    """A condition inside ``te_extern_loops``: ``with where(a[i] > 0)``."""
    with script.If(condition), script.Then():
        yield


def while_holds(condition: Any) -> Any:
    """A loop inside ``te_extern_loops`` that goes on while the condition holds."""
    return script.While(condition)


def local_array(count: int, dtype: str) -> Any:
    """An array inside ``te_extern_loops``."""
    return script.buffer_proxy(script.decl_buffer([count], dtype, scope="local"))


def te_let(value: Any) -> Any:
    """A value inside ``te_extern_loops`` that is computed once, however often expressions use it."""
    array = local_array(1, str(value.ty.dtype))
    array[0] = value
    return array[0]
