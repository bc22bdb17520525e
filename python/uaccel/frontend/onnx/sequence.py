"""What is put into, or taken out of, a sequence at places that are computed."""

from __future__ import annotations

import math

import numpy as np

from uaccel.errors import need
from uaccel.frontend.checks import need_axis
from uaccel.frontend.onnx.convert import Context, Expr, converts
from uaccel.frontend.onnx.graph import Node
from uaccel.ops.base import constant
from uaccel.tvm_api import relax


@converts("ReverseSequence")
def reverse_sequence(context: Context, node: Node) -> Expr:
    """The first steps of each sequence backwards, as many as its length says, and the others as they are."""
    name, lengths = node.required_input(0), node.required_input(1)
    time, batch = node.attributes.get("time_axis", 0), node.attributes.get("batch_axis", 1)
    info = context.info(name)
    need({time, batch} == {0, 1} and len(info.shape) > 1, f"axes {time} and {batch} are not the first two of {info}")
    steps = constant(np.asarray(info.shape[time], context.info(lengths).dtype))
    known = relax.op.astype(relax.op.minimum(context.expr(lengths), steps), "int32")
    return relax.op.reverse_sequence(context.expr(name), known, time, batch)


@converts("TensorScatter")
def tensor_scatter(context: Context, node: Node) -> Expr:
    """A cache of keys or values in which new ones take their places: ``circular`` begins anew behind the end."""
    cache, update, starts = node.required_input(0), node.required_input(1), node.optional_input(2)
    whole, part = context.info(cache).shape, context.info(update).shape
    axis = need_axis(node.attributes.get("axis", -2), len(whole))
    need(axis > 0 and part[axis] <= whole[axis], f"{part[axis]} new entries along axis {axis} of {whole}")
    along, first = [1] * len(whole), [1] * len(whole)
    along[axis], first[0] = -1, whole[0]
    context.budget.array((math.prod(part),), 8)
    steps = constant(np.arange(part[axis], dtype=np.int64).reshape(along))
    last = constant(np.asarray(whole[axis] - part[axis], np.int64))
    start = relax.op.reshape(context.expr(starts), first) if starts else constant(np.zeros(first, np.int64))
    if node.attributes.get("mode", "linear") == "circular":
        places = relax.op.floor_mod(relax.op.add(start, steps), constant(np.asarray(whole[axis], np.int64)))
    else:
        zero = constant(np.asarray(0, np.int64))
        places = relax.op.add(relax.op.maximum(relax.op.minimum(start, last), zero), steps)
    indices = relax.op.broadcast_to(context.normal(places), part)
    return relax.op.scatter_elements(context.expr(cache), indices, context.expr(update), axis, "update")
