"""Constants that leave zeros out, as LiteRT reads them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from support.models.tflite_writer import ModelBuilder, Sparsity
from support.oracle.oracle import run_litert
from uaccel.errors import ModelError
from uaccel.frontend import import_model
from uaccel.tvm_api.executor import Executor

Array = npt.NDArray[Any]
FORMS: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[int, int], str, str]] = {
    "rows": ((5, 7), (0, 1), {}, "DS", "uint8"),
    "columns": ((5, 7), (1, 0), {}, "DS", "uint16"),
    "rows without any value": ((6, 4), (0, 1), {}, "SS", "int32"),
    "blocks": ((8, 6), (0, 1, 2, 3), {0: 4, 1: 2}, "DSDD", "uint8"),
    "blocks of columns": ((4, 12), (0, 1, 2), {1: 4}, "DSD", "uint16"),
    "filters": ((4, 3, 3, 8), (0, 1, 2, 3), {}, "DDDS", "uint8"),
    "filters in another order": ((4, 3, 3, 8), (3, 0, 2, 1), {}, "DDSS", "int32"),
}
"""Shape, order of visit, sizes of blocks by axis, dense or sparse, and the type of indices."""


def _stored(data: Array, order: Sequence[int], blocks: dict[int, int], formats: str) -> tuple[list[float], list[Any]]:
    """The values that stay, and what each dimension lists of them: visited one by one."""
    rank, blocked = data.ndim, list(blocks)
    outer = [size // blocks.get(axis, 1) for axis, size in enumerate(data.shape)]
    sizes = [*outer, *(blocks[axis] for axis in blocked)]
    kept: dict[tuple[int, ...], float] = {}
    for place in product(*(range(sizes[dimension]) for dimension in order)):
        at = dict(zip(order, place, strict=True))
        index = [
            at[axis] * blocks[axis] + at[rank + blocked.index(axis)] if axis in blocks else at[axis]
            for axis in range(rank)
        ]
        kept[place] = data[tuple(index)]
    alive = {place for place, value in kept.items() if value}
    levels: list[Any] = []
    heads: list[tuple[int, ...]] = [()]
    for position, form in enumerate(formats):
        size = sizes[order[position]]
        below = [
            [(*head, i) for i in range(size) if form == "D" or any(p[: position + 1] == (*head, i) for p in alive)]
            for head in heads
        ]
        segments = np.cumsum([0, *map(len, below)]).tolist()
        levels.append(size if form == "D" else (segments, [head[-1] for each in below for head in each]))
        heads = [head for each in below for head in each]
    return [kept[head] for head in heads], levels


def _model(name: str, dtype: str) -> tuple[bytes, tuple[int, ...]]:
    shape, order, blocks, formats, kind = FORMS[name]
    rng = np.random.default_rng(sum(map(ord, name)))
    data = rng.integers(1, 9, shape) * (rng.random(shape) < 0.2)
    values, levels = _stored(data, order, blocks, formats)
    model = ModelBuilder()
    x = model.input("x", shape, dtype)
    packed = model.sparse("w", shape, np.asarray(values, dtype), Sparsity(order, tuple(blocks), tuple(levels), kind))
    full, y = model.tensor("full", shape, dtype), model.tensor("y", shape, dtype)
    model.op("DENSIFY", [packed], [full])
    model.op("ADD", [x, full], [y])
    return model.build(y), shape


@pytest.mark.parametrize("name", FORMS)
def test_the_values_are_where_litert_finds_them(name: str, tmp_path: Path) -> None:
    data, shape = _model(name, "float32")
    path = tmp_path / "m.tflite"
    path.write_bytes(data)
    values = np.random.default_rng(1).random(shape, np.float32)
    (got,) = Executor(import_model(path).module).run([values])
    (wanted,) = run_litert(data, [values])
    assert (np.asarray(got) == wanted).all()


def _broken(sparsity: Sparsity, count: int = 2) -> bytes:
    model = ModelBuilder()
    x = model.input("x", (2, 3), "float32")
    packed = model.sparse("w", (2, 3), np.ones(count, np.float32), sparsity)
    full, y = model.tensor("full", (2, 3), "float32"), model.tensor("y", (2, 3), "float32")
    model.op("DENSIFY", [packed], [full])
    model.op("ADD", [x, full], [y])
    return model.build(y)


BROKEN = {
    "an order of other dimensions": (Sparsity((0, 2), (), (2, ([0, 1, 2], [0, 1]))), r"visits the dimensions \[0, 2\]"),
    "blocks of no dimension": (Sparsity((0, 1, 2), (5,), (2, 3, 1)), r"has blocks of the dimensions \[5\]"),
    "too few segments": (Sparsity((0, 1), (), (2, ([0, 2], [0, 1]))), "do not divide its 2 indices among 2"),
    "segments that fall": (Sparsity((0, 1), (), (2, ([0, 3, 2], [0, 1]))), "do not divide its 2 indices among 2"),
    "an index beyond the end": (Sparsity((0, 1), (), (2, ([0, 1, 2], [0, 3]))), "a value at 3 of an axis of 3"),
    "more places than values": (Sparsity((0, 1), (), (2, 3)), "has 2 values and places for 6"),
    "a huge dimension": (Sparsity((0, 1), (), (1 << 30, 1 << 30)), "has 1073741824 times 1 of them"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_contradictions_are_damage(what: str, tmp_path: Path) -> None:
    sparsity, words = BROKEN[what]
    path = tmp_path / "m.tflite"
    path.write_bytes(_broken(sparsity))
    with pytest.raises(ModelError, match=rf"m.tflite is damaged or truncated \(.*{words}; copy or convert .*"):
        import_model(path)
