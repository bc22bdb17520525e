"""Operators of PyTorch: what TVM executes of the imported module against the exported program itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from frontend.torch.torch_rows import GROUPS, SLOW_GROUPS, Row
from support.models.exported import Net, computed, exported, imported, random, save
from uaccel.pipeline import compile_model
from uaccel.tvm_api.executor import Executor

INPUTS = [random(1, 4, 8, 8), random(1, 4, 8, 8, seed=1)]


def wrong(rows: Mapping[str, Row], folder: Path) -> dict[str, str]:
    """The rows that differ, all of them computed by one program."""
    program = exported(Net(lambda x, y: tuple(row(x, y) for row in rows.values())).eval(), INPUTS)
    model = imported(save(program, folder / "rows.pt2"))
    got = Executor(model.module).run([np.asarray(value) for value in INPUTS])
    found = {}
    for name, expected, value in zip(rows, computed(program, INPUTS), got, strict=True):
        if expected.dtype != value.dtype or expected.shape != value.shape:
            found[name] = f"{value.dtype} {value.shape}, wanted {expected.dtype} {expected.shape}"
        elif not np.allclose(value, expected, rtol=1e-4, atol=1e-4, equal_nan=True):
            found[name] = f"differs by {np.abs(value.astype(np.float64) - expected).max()}"
    return found


@pytest.mark.parametrize("group", GROUPS)
def test_operators_compute_what_pytorch_does(group: str, tmp_path: Path) -> None:
    assert wrong(GROUPS[group], tmp_path) == {}


@pytest.mark.long
@pytest.mark.parametrize("group", SLOW_GROUPS)
def test_more_operators_compute_what_pytorch_does(group: str, tmp_path: Path) -> None:
    assert wrong(SLOW_GROUPS[group], tmp_path) == {}


def test_a_recurrent_layer_stays_one_for_each_direction(tmp_path: Path) -> None:
    """And is not unrolled into its steps."""
    rows = {name: GROUPS["often"][name] for name in ("lstm two layers both ways", "lstm projected", "rnn relu")}
    program = exported(Net(lambda x, y: tuple(row(x, y) for row in rows.values())).eval(), INPUTS)
    layers = compile_model(save(program, tmp_path / "rows.pt2"), board="host").program.layers
    assert [layer.op for layer in layers].count("recurrent") == 4 + 4 + 1
    assert len(layers) < 60
