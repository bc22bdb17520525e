"""Operators between PT2E's steps, each against PyTorch: as integers, and at most a rare step apart."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from frontend.torch.torch_islands import ROWS, Island, Row
from support.models.exported import imported, random, torch
from uaccel.tvm_api import is_call, main_bindings
from uaccel.tvm_api.executor import Executor


@pytest.mark.parametrize("row", ROWS, ids=lambda row: " ".join(row.operators))
def test_integers_compute_it(row: Row, tmp_path: Path) -> None:
    samples = [tuple(random(*shape, seed=9 * turn + i) for i, shape in enumerate(row.shapes)) for turn in range(3)]
    program = torch.export.export(Island(row).eval(), samples[0])
    torch.export.save(program, tmp_path / "island.pt2")
    model = imported(tmp_path / "island.pt2")
    bound = [expr for _, expr in main_bindings(model.module)[1] if is_call(expr)]
    calls = [expr.op.name for expr in bound]
    bits = {int(expr.attrs["weight_bits"]) for expr in bound if hasattr(expr.attrs, "weight_bits")}
    assert bits == ({4 if row.largest < 8 else 8} if row.weights else set())
    assert calls.count("uaccel.quantize") == len(row.shapes), calls
    assert calls.count("uaccel.dequantize") == 1, calls
    assert model.warnings == ()
    executor = Executor(model.module)
    apart = elements = 0
    for sample in samples:
        (computed,) = executor.run([value.numpy() for value in sample])
        wanted = program.module()(*sample).detach().numpy()
        assert computed.shape == wanted.shape
        steps = np.rint(np.abs(computed - wanted) / row.scale)
        assert steps.max() <= 1
        apart, elements = apart + int(steps.sum()), elements + steps.size
    assert apart <= row.rarely * elements
