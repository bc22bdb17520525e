"""Computed indices of PyTorch's operators: exact where they are legal, inside of their tensors where they are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.models.exported import Net, computed, exported, save, torch
from support.models.onnx_rows import Given
from support.oracle.hostile_indices import differences, indices
from support.oracle.sanitized import POOL
from uaccel.codegen.options import EmitOptions
from uaccel.memory import Pool
from uaccel.pipeline import compile_model

F = torch.nn.functional
# The table, indices of its rows from both ends, of its columns, of classes, of an unpooled image; real ones; values.
INPUTS = [
    Given((4, 5)), indices((3,), -4, 3), indices((4, 3), 0, 4), indices((4,), 0, 3), indices((1, 1, 2, 2), 0, 15),
    Given((3,), low=0, high=3), Given((4, 3)), Given((1, 5)), indices((1,), 0, 3),
]  # fmt: skip


def picks(
    table: Any, rows: Any, columns: Any, classes: Any, cells: Any, reals: Any, new: Any, row: Any, one: Any
) -> Any:
    return (
        torch.gather(table, 1, columns),
        torch.scatter(table, 1, columns[:, :1], new[:, :1]),
        torch.scatter_add(table, 1, columns, new),
        F.nll_loss(table, classes, reduction="none"),
        F.cross_entropy(table, classes),
        F.max_unpool2d(new[:2, :2].reshape(1, 1, 2, 2), cells, 2),
        F.embedding(classes, table),
        F.one_hot(classes, 5),
        table[rows],
        table[reals.to(torch.int64)],
        torch.index_put(table, (one,), row),
        torch.index_add(table, 0, one, row),
        torch.index_select(table, 0, one),
        torch.take(table, columns),
    )


@pytest.mark.slow
def test_indices_of_pytorch(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    program = exported(Net(picks).eval(), [torch.from_numpy(given.values(rng)) for given in INPUTS])
    options = EmitOptions(pools=(Pool(POOL),))
    compiled = compile_model(save(program, tmp_path / "picks.pt2"), board="host", options=options)
    assert differences(compiled, INPUTS, lambda values: computed(program, [torch.from_numpy(v) for v in values])) == []
