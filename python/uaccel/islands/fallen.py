"""Which quantised operators are computed in float, and why: none of them may be so without a word."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from uaccel.islands.conv import CONVOLUTIONS
from uaccel.islands.graph import Graph
from uaccel.islands.moves import grid_of, moved_from
from uaccel.islands.transposed import TRANSPOSED
from uaccel.ops.base import info_of
from uaccel.ops.traits import DEQUANTIZE, FLOATS, QUANTIZE, name_of
from uaccel.tvm_api import is_call, is_tuple_get_item, variables

RECURRENT = "uaccel.recurrent"
WEIGHTED = (*CONVOLUTIONS, *TRANSPOSED, "relax.matmul")
NO_RESULT = "its result is not quantised"
NO_WEIGHTS = "its weights are not quantised"
READ_BY_FLOATS = "what reads it computes in float"


def fallen(graph: Graph, refused: Mapping[Any, str]) -> Iterator[tuple[Any, str]]:
    """The variables of such operators, in the order of the model, each with a reason.

    They read integers, by way of floats or not, and what is quantised in the end depends on them; ``refused`` has these
    values and their reasons. One with quantised weights is meant even where its result is never quantised.
    """
    floats = {var: bound for var, bound in graph.definitions.items() if _is_float(graph, var, bound)}
    reading: set[Any] = set()
    for var, bound in floats.items():
        if any(operand in reading or _is_integer(graph, operand) for operand in variables(bound)):
            reading.add(var)
    reasons = dict(refused)
    for var in reversed(floats):
        if var in reasons:
            reasons[var] = NO_WEIGHTS if _has_float_weights(graph, var) else reasons[var]
            for operand in variables(floats[var]):
                reasons.setdefault(operand, READ_BY_FLOATS if reasons[var] == NO_WEIGHTS else reasons[var])
    for var in floats:
        if var not in reading or moved_from(graph, var) is not None:
            continue
        if var in reasons:
            yield var, reasons[var]
        elif _has_weights(graph, var):
            yield var, NO_RESULT


def _is_float(graph: Graph, var: Any, bound: Any) -> bool:
    if graph.call(var, QUANTIZE, DEQUANTIZE) is not None:
        return False
    return hasattr(var.ty, "fields") or (graph.value(var) is None and grid_of(graph, var) is None)


def _is_integer(graph: Graph, operand: Any) -> bool:
    return not hasattr(operand.ty, "fields") and grid_of(graph, operand) is not None


def _has_weights(graph: Graph, var: Any) -> bool:
    bound = graph.definitions[var]
    known = is_call(bound) and graph.name(var) in WEIGHTED and graph.integers(bound.args[1]) is not None
    return bool(known) and _is_integer(graph, bound.args[0])


def _has_float_weights(graph: Graph, var: Any) -> bool:
    bound = graph.definitions[var]
    layer = graph.definitions.get(bound.tuple_value) if is_tuple_get_item(bound) else bound
    if layer is not None and is_call(layer) and name_of(layer) == RECURRENT:
        return all(info_of(operand).dtype in FLOATS for operand in layer.args)
    weights = bound.args[1] if graph.name(var) in WEIGHTED else None
    return weights is not None and graph.value(weights) is not None and graph.integers(weights) is None
