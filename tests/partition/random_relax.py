"""Models that hypothesis thinks of: layers that read any that came before, exact to the bit wherever they run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from support.models.partitioned import model_of
from uaccel.model import ImportedModel
from uaccel.tvm_api import FunctionBlock, relax

OP = relax.op
Draw = Callable[[st.SearchStrategy[Any]], Any]
ONE = ("negative", "abs")
TWO = ("add", "maximum")
BOTH_ENDS = ("flatten", "turn", "split")
"""Views, moves, and a tuple, each with what brings it back to the one shape."""
KINDS = (*ONE, *TWO, *BOTH_ENDS)
OPERATORS = (*ONE, *TWO, "reshape", "permute_dims", "concat", "split")
"""What these models are made of, as an accelerator names them."""
SHAPE = (2, 3)
VALUES = np.zeros(SHAPE, np.float32)


@st.composite
def models(draw: Draw) -> ImportedModel:
    """What no layer reads is a result, as some others are."""
    steps = draw(
        st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=9)
    )
    kept = draw(st.sets(st.integers(0, 15), max_size=2))

    def body(block: FunctionBlock, inputs: list[Any]) -> Any:
        values, read = list(inputs), set[Any]()
        for number, (kind, one, other) in enumerate(steps):
            pair = values[one % len(values)], values[other % len(values)]
            used = pair if kind in (*TWO, "split") else pair[:1]
            read |= set(used)
            values += _emitted(block, kind, number, used)
        results = [i for i, value in enumerate(values[2:], 2) if value not in read or i in kept]
        return relax.Tuple([values[i] for i in results])

    return model_of(body, [VALUES, VALUES])


def _emitted(block: FunctionBlock, kind: str, number: int, used: tuple[Any, ...]) -> list[Any]:
    if kind == "split":
        both = block.emit(OP.concat(list(used), axis=0), f"concat_{number}")
        halves = block.emit(OP.split(both, 2, axis=0), f"split_{number}")
        return [block.emit(relax.TupleGetItem(halves, i), f"half_{number}_{i}") for i in (0, 1)]
    if kind == "flatten":
        flat = block.emit(OP.reshape(used[0], (6,)), f"flat_{number}")
        return [block.emit(OP.reshape(flat, SHAPE), f"shaped_{number}")]
    if kind == "turn":
        turned = block.emit(OP.permute_dims(used[0], (1, 0)), f"turned_{number}")
        return [block.emit(OP.reshape(turned, SHAPE), f"back_{number}")]
    return [block.emit(getattr(OP, kind)(*used), f"{kind}_{number}")]
