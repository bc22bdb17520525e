"""Networks of 16 bits, each of their layers alone: within a step of float64 for the integers that it is given.

In float32, which the files mean, one rounding in some thousand falls to the other side. Through the layers behind it a
step becomes several, so the whole network is not held to float64.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("torchao")

import onnx

from support.models.architectures import ARCHITECTURES
from support.models.exported import settled, torch
from support.models.quantised_modules import by_onnx_runtime
from uaccel.frontend import import_model
from uaccel.runner.real_meaning import real_opinion
from uaccel.tvm_api.executor import Executor

NETWORKS: Final = ("gated_cell", pytest.param("transformer", marks=pytest.mark.long))
QUANTIZE, DEQUANTIZE = "QuantizeLinear", "DequantizeLinear"


def layers(path: Path, folder: Path) -> Iterator[Path]:
    """A model of what lies before each quantised tensor, from quantised ones on."""
    onnx.shape_inference.infer_shapes_path(path, path)
    graph = onnx.load(path).graph
    makers = {name: node for node in graph.node for name in node.output}

    def given(name: str) -> set[str]:
        node = makers.get(name)
        if node is None or node.op_type == QUANTIZE:
            return {name} - {entry.name for entry in graph.initializer}
        return {source for entry in node.input if entry for source in given(entry)}

    for number, node in enumerate(node for node in graph.node if node.op_type == QUANTIZE):
        inputs = sorted(given(node.input[0]))
        if inputs and node.input[0] not in {entry.name for entry in graph.input}:
            target = folder / f"layer{number}.onnx"
            onnx.utils.extract_model(path, target, inputs, [node.output[0]], check_model=False)
            yield target


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_each_layer_is_within_a_step(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    row = ARCHITECTURES[name]
    path = by_onnx_runtime(settled(row.make()), row.shapes, tmp_path, "QUInt16")
    count, random = 0, np.random.default_rng(1)
    for target in layers(path, tmp_path):
        model = import_model(target)
        specs = [spec.info for spec in model.signature.inputs]
        samples: list[list[Any]] = [
            [random.integers(0, 65535, info.shape, np.uint16, endpoint=True) for info in specs] for _ in range(2)
        ]
        executor = Executor(model.module)
        found = real_opinion(model, samples, [executor.run(sample) for sample in samples])
        assert found is not None
        assert (found.more, found.one_step <= 0.03 * found.elements + 1) == (0, True), (target.name, found)
        count += 1
    assert count > 8
