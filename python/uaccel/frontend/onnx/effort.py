"""What it takes to compute a node of constants at import, told before it is computed: memory and time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from uaccel.errors import need
from uaccel.frontend.onnx.convert import Context
from uaccel.frontend.onnx.graph import Node
from uaccel.frontend.onnx.operators import AT_ONCE, SMALLER
from uaccel.model import Array, TensorInfo

MOST_WORK: Final = 1 << 31
"""Elementary steps of numpy for one node: seconds."""
SLOW: Final = 1 << 16
"""Steps that an element takes where the evaluator may go from element to element in Python."""


def spend(context: Context, node: Node, values: Mapping[str, Array], types: Mapping[str, TensorInfo]) -> None:
    """ModelError where it is too much."""
    given = sum(value.size for value in values.values())
    if node.op in SMALLER:
        made, size = given, sum(8 * value.size * max(1, value.ndim) for value in values.values())
    else:
        infos = [types.get(name) for name in node.outputs if name]
        known = [info for info in infos if info is not None]
        need(len(known) == len(infos), "its inputs are constant, and how large its result is cannot be told beforehand")
        made, size = sum(info.elements for info in known), sum(info.size for info in known)
    context.budget.bytes(size)
    need(
        _steps(node, [values[name] for name in node.inputs if name], given, made) <= MOST_WORK,
        "its inputs are constant, and computing it would take too long; compute it before you export the model",
    )


def _steps(node: Node, values: list[Array], given: int, made: int) -> int:
    if node.op in AT_ONCE:
        return given + made
    if node.op in ("MatMul", "MatMulInteger", "Gemm"):
        return made * max((max(value.shape[-2:], default=1) for value in values), default=1)
    if node.op == "Einsum":
        return math.prod(max(1, extent) for value in values for extent in value.shape)
    return (given + made) * SLOW
