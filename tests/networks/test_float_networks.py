"""Float networks from all three front ends: joined layers, the right numbers, and the same bits on boards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from support.float_networks import FORMATS, FloatNetwork, as_torch, keyword, mobilenet, written
from support.float_rows import assert_same_bits
from support.hostlib import HostModel
from uaccel.pipeline import Compiled, compile_model
from uaccel.tvm_api.executor import Executor

NETWORKS: dict[str, FloatNetwork] = {"keyword": keyword(8, 2, 13), "mobilenet": mobilenet(16)}
Array = NDArray[Any]


def sample(network: FloatNetwork, seed: int = 0) -> Array:
    """NHWC."""
    return np.random.default_rng(seed).normal(size=(1, *network.shape)).astype(np.float32)


def given(value: Array, form: str) -> Array:
    return value if form == "tflite" else np.ascontiguousarray(value.transpose(0, 3, 1, 2))


def oracle(network: FloatNetwork, form: str, path: Path, value: Array) -> Array:
    """The runtime of the format."""
    if form == "tflite":
        from support.oracle import Tflm

        return np.asarray(Tflm(path.read_bytes()).run([value])[0])
    if form == "onnx":
        from support.onnx_rows import session_of

        return np.asarray(session_of(path).run(None, {"x": given(value, form)})[0])
    from support.exported import torch

    return np.asarray(as_torch(network)[0](torch.tensor(given(value, form))).detach())


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("form", FORMATS)
def test_results_are_those_of_the_formats_runtime(form: str, name: str, tmp_path: Path) -> None:
    network = NETWORKS[name]
    path = written(network, form, tmp_path)
    compiled = compile_model(path, board="host")
    value = sample(network)
    (got,) = HostModel(compiled)(given(value, form))
    wanted = oracle(network, form, path, value)
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5 * abs(wanted).max())
    exact = Executor(compiled.model.module).run([given(value, form)])[0]
    assert_same_bits(got, exact, "the module that was lowered")
    (meant,) = Executor(compiled.stages["import"]).run([given(value, form)])
    if form == "tflite":
        assert_same_bits(got, meant, "the model as it was imported: its sums have this order")
    assert layers_of(compiled) == [kind_of(layer.kind) for layer in network.layers if layer.kind != "add"]


def kind_of(kind: str) -> str:
    return {"dense": "fully_connected_float", "pool": "average_pool2d_float"}.get(kind, "conv2d_float")


def layers_of(compiled: Compiled) -> list[str]:
    """All that compute something."""
    return [layer.op for layer in compiled.program.layers if not layer.is_view and layer.op != "permute_dims"]
