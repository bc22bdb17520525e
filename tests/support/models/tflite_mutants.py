"""Models of one TFLite operator with one thing wrong: shapes, types, counts, missing operands, odd constants."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from support.models.many import Row
from support.models.rare_rows import FORMS, row_of
from support.models.reference_rows import Given, makers
from support.models.single_op import Activation

TYPES = ("float32", "int8", "int32", "int64", "bool", "uint8")
Shape = tuple[int, ...]


def mutants(dtype: str) -> Iterator[tuple[str, Row]]:
    """Yields one after the other for every operator."""
    rows = {name: make(dtype) for name, make in makers().items()}
    rows |= {f"{name}, rare": row_of(name, form, dtype) for name, form in FORMS.items()}
    for name, row in rows.items():
        for what, changed in (*_of_outputs(row), *_of_inputs(row)):
            yield f"{name}, {dtype}, {what}", changed


def _shapes(shape: Shape) -> set[Shape]:
    """Other ranks and other extents, some of them with as many elements."""
    more = (*shape[:-1], shape[-1] + 1) if shape else (2,)
    flat = (int(np.prod(shape)),)
    return {(*shape, 1), (1, *shape), shape[1:], shape[:-1], shape[::-1], more, flat} - {shape}


def _of_outputs(row: Row) -> Iterator[tuple[str, Row]]:
    for place, output in enumerate(row.outputs):
        others = [replace(output, shape=shape) for shape in sorted(_shapes(output.shape))]
        others += [replace(output, dtype=dtype) for dtype in TYPES if dtype != output.dtype]
        for other in others:
            outputs = [*row.outputs[:place], other, *row.outputs[place + 1 :]]
            yield f"output {place} is {other.dtype}{list(other.shape)}", replace(row, outputs=outputs)
    yield "no output", replace(row, outputs=[])
    yield "one output more", replace(row, outputs=[*row.outputs, row.outputs[-1]])


def _of_inputs(row: Row) -> Iterator[tuple[str, Row]]:
    for place, given in enumerate(row.inputs):
        before, behind = row.inputs[:place], row.inputs[place + 1 :]
        yield f"without input {place}", replace(row, inputs=[*before, *behind])
        for what, other in (("absent", None), *_others(given)):
            if row.operator in ("TRANSPOSE", "ONE_HOT") and "int64" in what:
                continue  # LiteRT reads the halves of these as int32, or drops the upper one
            yield f"input {place} {what}", replace(row, inputs=[*before, other, *behind])
    yield "no options", replace(row, options={})


def _others(given: Given) -> Sequence[tuple[str, Given]]:
    if isinstance(given, Activation):
        shapes = [replace(given, shape=shape) for shape in sorted(_shapes(given.shape) | {(), (2,)})]
        types = [replace(given, dtype=dtype) for dtype in TYPES]
        return [(f"is {each}", each) for each in (*shapes, *types, replace(given, scale=None)) if each != given]
    if given is None:
        return []
    values, flat = given.values, given.values.reshape(-1)
    arrays = [flat[:1].reshape(()), flat.reshape(1, -1), flat[:-1], np.zeros_like(values)]
    arrays += [np.full(values.shape, number).astype(values.dtype) for number in (-1, 100)]
    arrays += [values.astype(np.int64), values.astype(np.float32)]
    constants = [(f"is {each.dtype} {each.tolist()}"[:60], replace(given, values=each)) for each in arrays]
    at_run_time: tuple[str, Given] = ("is given at run time", Activation(values.shape, values.dtype.name))
    return [*constants, at_run_time]
