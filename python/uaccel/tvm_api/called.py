"""Functions of Python that an executed module calls; modules told apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from tvm_ffi.structural import structural_hash

from uaccel.model import Array
from uaccel.tvm_api import te, tirx, tvm

Computed = Callable[[Sequence[Array]], Sequence[Array]]


def calling(
    function: Computed, name: str, inputs: list[Any], outputs: Sequence[tuple[tuple[int, ...], str]]
) -> list[Any]:
    """TE tensors that ``function`` computes when the module runs on this computer; ``name`` tells it from others."""
    symbol = f"uaccel.called.{name}"

    def packed(*tensors: Any) -> None:
        values = function([np.array(tensor.numpy()) for tensor in tensors[: len(inputs)]])
        for tensor, value in zip(tensors[len(inputs) :], values, strict=True):
            tensor.copyfrom(np.ascontiguousarray(value).reshape(tuple(tensor.shape)))

    tvm.register_global_func(symbol, packed, override=True)
    shapes, dtypes = [shape for shape, _ in outputs], [dtype for _, dtype in outputs]
    made = te.extern(
        shapes, inputs, lambda ins, outs: tirx.call_packed(symbol, *ins, *outs), name="called", dtype=dtypes
    )
    return [made] if len(shapes) == 1 else list(made)


def digest_of(module: Any) -> str:
    """Of what a module is, whatever its variables are called."""
    return f"{structural_hash(module) & (1 << 64) - 1:016x}"
