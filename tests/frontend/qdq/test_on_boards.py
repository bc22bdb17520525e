"""The kernels of what islands become: as generated C they give what the module means, here and on a board."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from frontend.qdq.onnx_real_sums import REALS, TABLES
from support.device.boards import board_with_tools
from support.models.onnx_islands import CASES
from support.models.onnx_models import Graph
from uaccel.board import load_board
from uaccel.kernels.choice import Selection, target_of
from uaccel.pipeline import compile_model
from uaccel.runner.compiled import run_compiled
from uaccel.tvm_api.executor import Executor

OF_REALS = {"uaccel_fully_connected_sums", "uaccel_dequantize_sums", "uaccel_float_lookup"}

OF_INTEGERS = {"lookup16", "layer_norm_s8", "layer_norm_s16", "softmax_once_s16_s16", "batch_matmul_s16_float32"} | {
    "requantize_u16_s16",
    "requantize_s16_u16",
}
OPERATORS = {"batch_matmul", "lookup16", "layer_norm", "softmax_once", "function_product", "prelu_once"}


@pytest.mark.slow
@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["host", "mps2_an386"])
def test_same_numbers(name: str, tmp_path: Path) -> None:
    graph = Graph()
    for case in (
        *REALS,
        *TABLES,
        *(case for case in CASES if set(case.operators) & OPERATORS or "uint16" in case.name),
    ):
        case.make(graph)
    path = graph.save(tmp_path / "model.onnx", 21)
    board = load_board(name) if name == "host" else board_with_tools(name)
    compiled = compile_model(path, board=name, selection=Selection.on(target_of(board)))
    samples = [list(graph.samples(seed).values()) for seed in range(3)]
    run = run_compiled(compiled, board, samples, tmp_path / "run", lambda step: None).run
    meaning = Executor(compiled.stages["import"])
    for sample, outputs in zip(samples, run.outputs, strict=True):
        for number, (got, wanted) in enumerate(zip(outputs, meaning.run(sample), strict=True)):
            assert got.dtype == wanted.dtype, number
            noise = 1e-6 * float(np.abs(wanted).max()) if wanted.dtype == np.float32 else 0
            np.testing.assert_allclose(got, wanted, rtol=0, atol=noise, err_msg=f"output {number}")
    called = {call.function for layer in compiled.program.layers for call in layer.kernel.calls}
    assert called >= OF_REALS | {f"uaccel_{name}" for name in OF_INTEGERS}
