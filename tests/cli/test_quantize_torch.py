"""`uaccel quantize` of PyTorch programs: PT2E's arithmetic, and integers from one end to the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torchao")

from support.models.architectures.blocks import conv, head, nn, plus, seq
from support.models.exported import exported, random, save, settled
from support.run.command import Call
from uaccel.frontend import import_model
from uaccel.tvm_api import is_call, main_bindings

SHAPE = (1, 3, 12, 12)
SAMPLES = np.random.default_rng(1).standard_normal((6, *SHAPE[1:])).astype(np.float32)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    body = plus(conv(8, 8), conv(8, 8, 3, None))
    module = seq(conv(3, 8, stride=2), body, nn.MaxPool2d(2), nn.Conv2d(8, 8, 1), nn.Hardswish(), head(8))
    np.save(tmp_path / "data.npy", SAMPLES)
    return save(exported(settled(module), [random(*SHAPE)]), tmp_path / "model.pt2")


def quantised(call: Call, model: Path, *wishes: Any) -> dict[str, Any]:
    done = call("quantize", model, "-c", model.with_name("data.npy"), *wishes, "--json")
    assert done.status == 0, done.err
    return done.report


def operators(path: str) -> set[str]:
    calls = [expr.op.name for _, expr in main_bindings(import_model(Path(path)).module)[1] if is_call(expr)]
    return {name.removeprefix("uaccel.") for name in calls}


def test_every_layer_is_integers(model: Path, call: Call) -> None:
    report = quantised(call, model)
    assert Path(report["output"]).name == "model_int8.pt2"
    assert import_model(Path(report["output"])).warnings == ()
    assert {"conv2d", "weighted_sum", "max_pool2d", "lookup", "fully_connected"} <= operators(report["output"])
    assert report["outputs"]["linear"]["snr_db"] > 25
    assert report["weight_bytes"]["after"] < 0.5 * report["weight_bytes"]["before"]
    rows = {row["name"]: row for row in report["layers"]}
    assert rows["conv2d"]["tensor"] == "relu"
    assert rows["conv2d_2"]["tensor"] == "batch_norm_2"
    assert rows["linear"]["snr_db"] == pytest.approx(report["outputs"]["linear"]["snr_db"])


@pytest.mark.slow
def test_wishes(model: Path, call: Call) -> None:
    usual = quantised(call, model)["outputs"]["linear"]["snr_db"]
    wide = quantised(call, model, "--activations", "int16")
    assert wide["outputs"]["linear"]["snr_db"] > usual + 1
    assert "relax.nn.conv2d" not in operators(wide["output"])
    origins = import_model(Path(wide["output"])).origins  # the names of layers once compiled
    compiled = next(name for name, origin in origins.items() if origin.tensor == "conv2d_3")
    assert compiled == f"conv2d_{origins[compiled].index}" != "conv2d_3"
    named = quantised(call, model, "--leave-out", compiled, "--sixteen", "linear")
    assert {row["name"]: row["as"] for row in named["kept"]} == {"conv2d_3": "float", "linear": "int16"}
    assert "relax.nn.conv2d" in operators(named["output"])
    found = quantised(call, model, "--min-snr", usual + 1)
    assert found["outputs"]["linear"]["snr_db"] >= usual + 1
    assert 0 < len(found["kept"]) < len(found["layers"])


@pytest.mark.slow
def test_what_cannot_be(model: Path, call: Call) -> None:
    data = model.with_name("data.npy")
    path = Path(quantised(call, model)["output"])
    rows = {
        (path,): f"{path} is quantised already (dequantize_per_channel, ",
        (model, "--format", "qoperator"): f"{model}: --format qoperator is for ONNX models; leave it out",
        (model, "--leave-out", "conv9"): '--leave-out: no layer is called "conv9"; near are conv',
    }
    for (given, *wishes), text in rows.items():
        done = call("quantize", given, "-c", data, *wishes)
        assert done.status == 1
        assert done.complaint.startswith(text)
