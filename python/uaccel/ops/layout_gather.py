"""Picking slices by index: a few moves where the indices are known and regular, else a table or run-time indices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from uaccel.model import Array, TensorInfo
from uaccel.ops.base import Operand, operand_arguments
from uaccel.ops.kernel import Argument, Kernel, Output, ParameterValue, dtype_suffix, portable
from uaccel.ops.layout import layout
from uaccel.ops.layout_move import Axis, Move, move_kernels, rearranged, row_major, sources

HEADER = "uaccel_layout_gather.h"
INDEX_TYPES = ("int32", "int64")
MOST_RUNS = 4  # more moves than this are more code than a table of indices
MOST_AXES = 5  # UACCEL_GATHER_AXES

Run = tuple[int, int, int]


@layout("take")
def take(call: Any, operands: tuple[Operand, ...], outputs: tuple[TensorInfo, ...]) -> Sequence[Kernel]:
    """An index outside the axis takes the nearest entry: what mode "clip" says and what "fast" allows."""
    data, indices = operands
    if str(call.attrs.mode) not in ("clip", "fast") or indices.info.dtype not in INDEX_TYPES:
        return ()
    shape = data.info.shape
    axis = int(call.attrs.axis or 0) % len(shape)
    if indices.constant is not None:
        runs = regular_runs(np.clip(indices.constant.reshape(-1), 0, shape[axis] - 1))
        if len(runs) <= MOST_RUNS:
            return _moves(operands, shape, axis, runs, outputs[0])
    parameters = {
        "outer": math.prod(shape[:axis]),
        "entries": shape[axis],
        "count": indices.info.elements,
        "bytes": math.prod(shape[axis + 1 :]) * data.info.itemsize,
    }
    function = f"uaccel_gather_{dtype_suffix(indices.info.dtype)}"
    return (portable(function, "uaccel_gather", parameters, _arguments(operands), header=HEADER),)


def _arguments(operands: tuple[Operand, ...]) -> tuple[Argument, ...]:
    return (*operand_arguments(operands, ("data", "indices")), Output())


def regular_runs(indices: Array) -> list[Run]:
    """The indices as (first, step, count), each as long as it goes."""
    runs: list[Run] = []
    for value in (int(index) for index in indices):
        if runs:
            first, step, count = runs[-1]
            if count == 1 or value == first + step * count:
                runs[-1] = (first, value - first if count == 1 else step, count + 1)
                continue
        runs.append((value, 1, 1))
    return runs


def _moves(
    operands: tuple[Operand, ...], shape: tuple[int, ...], axis: int, runs: list[Run], output: TensorInfo
) -> Sequence[Kernel]:
    outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    count = sum(run[2] for run in runs)
    moves, done = [], 0
    for first, step, length in runs:
        loops = (
            Axis(outer, shape[axis] * inner, count * inner),
            Axis(length, step * inner, inner),
            Axis(inner, 1, 1),
        )
        moves.append(Move(sources(operands)[0], loops, first * inner, done * inner))
        done += length
    if len(moves) == 1:
        return rearranged(moves[0], math.prod(shape), output.itemsize)
    return move_kernels(moves, output.itemsize)


@layout("gather_nd")
def gather_nd(call: Any, operands: tuple[Operand, ...], _outputs: tuple[TensorInfo, ...]) -> Sequence[Kernel]:
    data, indices = operands
    vector = indices.info.shape[-1]
    if int(call.attrs.batch_dims) or indices.info.dtype != "int64" or vector > MOST_AXES:
        return ()
    picked = data.info.shape[:vector]
    parameters: dict[str, ParameterValue] = {
        "count": indices.info.elements // vector,
        "axes": vector,
        "last": math.prod(picked) - 1,
        "bytes": math.prod(data.info.shape[vector:]) * data.info.itemsize,
        "strides": tuple(row_major(picked)) + (0,) * (MOST_AXES - vector),
    }
    return (portable("uaccel_gather_nd", "uaccel_gather_nd", parameters, _arguments(operands), header=HEADER),)
