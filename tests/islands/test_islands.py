"""Operators between dequantize and quantize, each against ONNX Runtime: as integers, and at most a rare step apart."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from support.onnx_islands import CASES, Case
from support.onnx_models import Graph, onnx_runtime
from uaccel.frontend import import_model
from uaccel.tvm_api import is_call, main_bindings
from uaccel.tvm_api.executor import Executor

INTEGER_PLUMBING = {"requantize"}  # uint8 at the graph's ends


@pytest.mark.sample(12)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_integers_compute_it(case: Case, tmp_path: Path) -> None:
    graph = Graph()
    case.make(graph)
    path = graph.save(tmp_path / "model.onnx")
    model = import_model(path)
    calls = {expr.op.name for _, expr in main_bindings(model.module)[1] if is_call(expr)}
    ours = {name.removeprefix("uaccel.") for name in calls if name.startswith("uaccel.")}
    assert ours - INTEGER_PLUMBING == set(case.operators)
    assert model.warnings == ()
    executor = Executor(model.module)
    apart = elements = 0
    for seed in range(3):
        inputs = graph.samples(seed)
        for computed, wanted in zip(executor.run(list(inputs.values())), onnx_runtime(path, inputs), strict=True):
            assert computed.dtype == wanted.dtype
            assert computed.shape == wanted.shape
            difference = np.abs(computed.astype(int) - wanted.astype(int))
            assert difference.max() <= 1
            apart, elements = apart + int(difference.sum()), elements + difference.size
    assert apart <= case.rarely * elements
