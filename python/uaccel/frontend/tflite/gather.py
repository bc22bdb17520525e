"""GATHER and GATHER_ND: slices picked by constant or run-time indices."""

from __future__ import annotations

import math

import numpy as np

from uaccel.errors import need
from uaccel.frontend.checks import need_axis
from uaccel.frontend.converters import always
from uaccel.frontend.tflite.convert import Context, Expr, converts, need_dtype
from uaccel.frontend.tflite.folding import apply, known, need_same_dtype, need_shape
from uaccel.frontend.tflite.reader import Operator, Tensor
from uaccel.model import Array, Shape
from uaccel.ops.base import constant
from uaccel.tvm_api import relax

INDEX_TYPES = ("int32", "int64")
MOST_AXES = 5


@converts("GATHER", when=always)
def gather(context: Context, operator: Operator) -> Expr:
    """An index that is known must exist; at run time a wrong one takes the nearest slice."""
    data, indices, output = operator.required_input(0), operator.required_input(1), operator.outputs[0]
    shape = data.info.shape
    axis = need_axis(operator.option("Axis"), len(shape))
    batch = operator.option("BatchDims")
    batch = batch + len(indices.info.shape) if batch < 0 else batch
    need(0 <= batch <= min(axis, len(indices.info.shape)), f"batch_dims {batch} is beyond axis {axis} or the indices")
    alike = shape[:batch] == indices.info.shape[:batch]
    need(alike, f"the first {batch} extents of {data.info} and indices {indices.info} differ")
    need_dtype(indices, INDEX_TYPES, "indices")
    need_same_dtype(data, output)
    need_shape(output, [*shape[:axis], *indices.info.shape[batch:], *shape[axis + 1 :]])
    _need_inside(context, indices, shape[axis])
    if batch:
        return relax.op.reshape(_batched(context, data, indices, axis, batch), output.info.shape)
    return apply(
        context,
        [data, indices],
        lambda values, picks: relax.op.take(values, picks, axis=axis, mode="clip"),
        lambda values, picks: np.take(values, picks, axis),
    )


def _batched(context: Context, data: Tensor, indices: Tensor, axis: int, batch: int) -> Expr:
    """Each batch picks from its own slices: of all slices side by side those behind the batch's first."""
    shape = data.info.shape
    batches, outer, extent = math.prod(shape[:batch]), math.prod(shape[batch:axis]), shape[axis]
    count = math.prod(indices.info.shape[batch:])
    firsts = np.arange(batches * outer, dtype=np.int32).reshape(batches, outer, 1) * np.int32(extent)
    picks = relax.op.astype(relax.op.reshape(context.expr(indices), (batches, 1, count)), "int32")
    low, high = (constant(np.array(value, np.int32)) for value in (0, extent - 1))
    flat = relax.op.add(relax.op.minimum(relax.op.maximum(picks, low), high), constant(firsts))
    slices = relax.op.reshape(context.expr(data), (batches * outer * extent, math.prod(shape[axis + 1 :])))
    return relax.op.take(slices, relax.op.reshape(flat, (batches * outer * count,)), axis=0, mode="clip")


def _need_inside(context: Context, indices: Tensor, extent: int) -> None:
    value = known(context, indices)
    if value is not None and value.size:
        wrong = [int(index) for index in value.reshape(-1) if not 0 <= index < extent]
        need(not wrong, f"index {wrong[0] if wrong else 0} lies outside the {extent} elements of the axis")


@converts("GATHER_ND", when=always)
def gather_nd(context: Context, operator: Operator) -> Expr:
    data, indices, output = operator.required_input(0), operator.required_input(1), operator.outputs[0]
    shape = data.info.shape
    need_dtype(indices, INDEX_TYPES, "indices")
    need(bool(shape) and bool(indices.info.shape), "input and indices need at least rank 1")
    count = indices.info.shape[-1]
    most = min(len(shape), MOST_AXES)
    need(
        0 < count <= most, f"indices of {count} entries for an input of rank {len(shape)}, at most {most} are possible"
    )
    need_same_dtype(data, output)
    need_shape(output, [*indices.info.shape[:-1], *shape[count:]])
    flat = _flat_indices(known(context, indices), shape[:count])
    if flat is None and count > 1:
        picks = relax.op.astype(context.expr(indices), "int64")
        return relax.op.gather_nd(context.expr(data), picks)
    picks = context.expr(indices) if flat is None else constant(flat)
    slices = relax.op.reshape(context.expr(data), (-1, *shape[count:]))
    taken = relax.op.take(slices, relax.op.reshape(picks, (-1,)), axis=0, mode="clip")
    return relax.op.reshape(taken, output.info.shape)


def _flat_indices(indices: Array | None, picked: Shape) -> Array | None:
    """Index vectors that are known, each as the number of the slice that it means."""
    if indices is None:
        return None
    for axis, extent in enumerate(picked):
        entries = indices[..., axis]
        inside = bool(((entries >= 0) & (entries < extent)).all())
        need(inside, f"an index lies outside the {extent} elements of axis {axis}")
    vectors = tuple(np.moveaxis(indices, -1, 0))
    return np.asarray(np.ravel_multi_index(vectors, picked), np.int32)
