"""IF and WHILE: operators that run other subgraphs of the file."""

from __future__ import annotations

from uaccel.errors import need
from uaccel.frontend.converters import always
from uaccel.frontend.tflite.convert import Context, Expr, Several, converts
from uaccel.frontend.tflite.reader import Operator
from uaccel.ops.base import get
from uaccel.ops.control import If, Kind, While, control_attrs

DEEPEST = 8
"""Subgraphs within each other."""


@converts("IF", when=always)
def if_(context: Context, operator: Operator) -> Expr | Several:
    options = operator.options
    numbers = (options.ThenSubgraphIndex(), options.ElseSubgraphIndex())
    return _control(context, operator, Kind.IF, numbers)


@converts("WHILE", when=always)
def while_(context: Context, operator: Operator) -> Expr | Several:
    options = operator.options
    numbers = (options.CondSubgraphIndex(), options.BodySubgraphIndex())
    return _control(context, operator, Kind.WHILE, numbers)


def _control(context: Context, operator: Operator, kind: Kind, numbers: tuple[int, int]) -> Expr | Several:
    need(len(context.inside) < DEEPEST, f"subgraphs lie more than {DEEPEST} deep in each other")
    for number in numbers:
        need(number not in context.inside, f"its subgraph {number} runs itself")
    tensors = [context.expr(operator.required_input(i)) for i in range(len(operator.inputs))]
    need(len(tensors) > 0, "it has no inputs; wanted a condition, or what its loop changes")
    call = get(If if kind is Kind.IF else While)(*tensors, attrs=control_attrs(kind, *map(context.subgraph, numbers)))
    return call if len(operator.outputs) == 1 else Several(call)
