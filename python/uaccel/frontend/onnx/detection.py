"""TopK, and NonMaxSuppression with room for as many boxes as there can be."""

from __future__ import annotations

from uaccel.errors import need
from uaccel.frontend.onnx.convert import Context, Expr, converts
from uaccel.frontend.onnx.graph import Node
from uaccel.ops.base import get
from uaccel.ops.boxes import NonMaxSuppression, NonMaxSuppressionAttrs
from uaccel.ops.top_k import TopK, TopKAttrs
from uaccel.tvm_api import relax

NO_MORE = "how many boxes it keeps depends on data; make it an output, and go on in the application"


@converts("TopK")
def top_k(context: Context, node: Node) -> list[Expr]:
    """Sorted, also where the file does not ask for it."""
    name = node.required_input(0)
    rank = len(context.info(name).shape)
    axis, largest = (node.attributes.get(key, default) for key, default in (("axis", -1), ("largest", 1)))
    need(-rank <= axis < rank, f"axis {axis} is none of its input's {rank}")
    count = int(context.need_number(node.required_input(1), "count"))
    attrs = TopKAttrs(axis % rank, count, int(largest != 0), "int64")
    whole = context.block.emit(get(TopK)(context.expr(name), attrs=attrs), node.layer_name)
    return [context.normal(relax.TupleGetItem(whole, number)) for number in range(2)]


@converts("NonMaxSuppression")
def non_max_suppression(context: Context, node: Node) -> Expr:
    """What computes with its rows would take those for boxes that are none: they are for the application."""
    made = node.outputs[0]
    need(made in context.graph.outputs, f'"{made}" is no output of the model; {NO_MORE}')
    names = [node.required_input(place) for place in range(2)]
    most, overlap, least = (
        context.need_number(name, role) if (name := node.optional_input(place)) else None
        for place, role in ((2, "limit"), (3, "overlap"), (4, "least score"))
    )
    need(most is not None and most > 0, "it keeps no box of a class; give it max_output_boxes_per_class")
    scores, declared = context.info(names[1]), context.graph.inferred.get(made)
    need(len(scores.shape) == 3, f"its scores are {scores}, wanted [batch, classes, boxes]")
    batch, classes, count = scores.shape
    attrs = NonMaxSuppressionAttrs(
        rows=batch * classes * min(int(most or 0), count) if declared is None else declared.shape[0],
        most=int(most or 0),
        overlap=float(overlap or 0.0),
        bounded=int(least is not None),
        least=float(least or 0.0),
        centred=int(node.attributes.get("center_point_box", 0)),
    )
    return get(NonMaxSuppression)(*map(context.expr, names), attrs=attrs)
