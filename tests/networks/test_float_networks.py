"""Float networks from all three front ends: joined layers, the right numbers, and the same bits on boards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from support.device.hostlib import HostModel
from support.models.float_networks import FORMATS, FloatNetwork, as_torch, keyword, mobilenet, written
from support.models.float_networks import NETWORKS as WHOLE
from support.models.float_rows import assert_same_bits
from uaccel.pipeline import Compiled, compile_model
from uaccel.tvm_api.executor import Executor

ROOT = Path(__file__).resolve().parents[2]
NETWORKS: dict[str, FloatNetwork] = {"keyword": keyword(8, 2, 13), "mobilenet": mobilenet(16, 2)}
Array = NDArray[Any]


def sample(network: FloatNetwork, seed: int = 0) -> Array:
    """NHWC."""
    return np.random.default_rng(seed).normal(size=(1, *network.shape)).astype(np.float32)


def given(value: Array, form: str) -> Array:
    return value if form == "tflite" else np.ascontiguousarray(value.transpose(0, 3, 1, 2))


def oracle(network: FloatNetwork, form: str, path: Path, value: Array) -> Array:
    """The runtime of the format."""
    if form == "tflite":
        from support.oracle.oracle import Tflm

        return np.asarray(Tflm(path.read_bytes()).run([value])[0])
    if form == "onnx":
        from support.models.onnx_rows import session_of

        return np.asarray(session_of(path).run(None, {"x": given(value, form)})[0])
    from support.models.exported import torch

    return np.asarray(as_torch(network)[0](torch.tensor(given(value, form))).detach())


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("form", [*FORMATS[:-1], pytest.param(FORMATS[-1], marks=pytest.mark.slow)])
def test_results_are_those_of_the_formats_runtime(form: str, name: str, tmp_path: Path) -> None:
    network = NETWORKS[name]
    path = written(network, form, tmp_path)
    compiled = compile_model(path, board="host")
    value = sample(network)
    (got,) = HostModel(compiled)(given(value, form))
    wanted = oracle(network, form, path, value)
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5 * abs(wanted).max())
    stage = compiled.stages["import"] if form == "tflite" else compiled.model.module
    assert_same_bits(got, Executor(stage).run([given(value, form)])[0], "what it means: TFLite's sums have this order")
    assert layers_of(compiled) == [kind_of(layer.kind) for layer in network.layers if layer.kind != "add"]


def kind_of(kind: str) -> str:
    return {"dense": "fully_connected_float", "pool": "average_pool2d_float"}.get(kind, "conv2d_float")


def layers_of(compiled: Compiled) -> list[str]:
    """All that compute something."""
    return [layer.op for layer in compiled.program.layers if not layer.is_view and layer.op != "permute_dims"]


STORED: dict[str, dict[str, Any]] = json.loads((ROOT / "benchmarks" / "floats.json").read_text())


@pytest.mark.parametrize("name", WHOLE)
def test_the_arena_is_as_stored(name: str, tmp_path: Path) -> None:
    path = written(WHOLE[name](), "tflite", tmp_path)
    assert compile_model(path, board="host").placement.arena == STORED[name]["mps2_an386"]["now"]["arena"]


HALF = ", half precision"


def test_figures_stand_on_the_page() -> None:
    page = (ROOT / "docs" / "reference" / "kernels.md").read_text()
    keys = ("instructions", "cycles_estimated", "arena")
    for name in WHOLE:
        for board, entry in STORED[name].items():
            figures = " | ".join(f"{entry[when][key]:,}" for key in keys for when in ("before", "now"))
            assert f"| `{name}` on `{board}` | {figures} |" in page
            assert all(entry["now"][key] < entry["before"][key] / 2 for key in keys)


def test_what_half_precision_takes_stands_on_the_page() -> None:
    page = (ROOT / "docs" / "reference" / "kernels.md").read_text()
    for name in WHOLE:
        for board, entry in STORED[name + HALF].items():
            single, half = (STORED[row][board]["now"] for row in (name, name + HALF))
            before, now = (each["cycles_estimated"] / single["cycles_estimated"] for each in (entry["before"], half))
            bytes_of = f"{single['weights']:,} | {half['weights']:,}"
            assert f"| `{name}` | `{board}` | {bytes_of} | {before:.2f} | {now:.2f} |" in page
            assert now < 1.06
