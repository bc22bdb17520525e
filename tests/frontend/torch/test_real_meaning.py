"""What ``--verify`` says of a program's real meaning: nothing differs, and what the integers lose is seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from frontend.torch.real_meaning import evaluated
from support.models.exported import save
from support.models.onnx_networks import Net, convolutional
from support.models.onnx_networks import quantised as quantised_onnx
from support.models.torch_networks import inputs_of, quantised
from uaccel.frontend import import_model
from uaccel.frontend.qdq import rules
from uaccel.runner.real_meaning import in_float64, real_opinion
from uaccel.tvm_api.executor import Executor


def opinion_of(path: Path, samples: list[list[Any]]) -> Any:
    """Of the compiled integers, executed here."""
    model = import_model(path)
    executor = Executor(model.module)
    found = real_opinion(model, samples, [executor.run(sample) for sample in samples])
    assert found is not None
    return found


def onnx(net: Net, folder: Path) -> tuple[Path, list[list[Any]]]:
    rng = np.random.default_rng(1)
    path = quantised_onnx(net, folder, "QDQ", "QInt8", per_channel=True)
    return path, [[rng.standard_normal((1, 3, 16, 16)).astype(np.float32)] for _ in range(4)]


def torch(network: str, folder: Path) -> tuple[Path, list[list[Any]]]:
    pytest.importorskip("torchao")
    path = save(quantised(network, "xnnpack"), folder / "model.pt2")
    return path, [[np.asarray(value) for value in inputs_of(network, seed=200 + seed)] for seed in range(4)]


def test_no_element_of_an_onnx_network_differs(tmp_path: Path) -> None:
    found = opinion_of(*onnx(convolutional(), tmp_path))
    assert (found.elements, found.equal) == (40, 40)


@pytest.mark.slow
@pytest.mark.parametrize("network", ["depthwise", "wavenet", "residual"])
def test_no_element_of_a_pytorch_network_differs(network: str, tmp_path: Path) -> None:
    found = opinion_of(*torch(network, tmp_path))
    assert found.equal == found.elements > 0


@pytest.mark.slow
def test_a_bias_that_is_rounded_to_whole_products_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Integers that execute exactly as they say, and say something else than the program."""
    path, samples = torch("depthwise", tmp_path)
    monkeypatch.setattr(rules, "with_rests", lambda multipliers, rests: multipliers)
    found = opinion_of(path, samples)
    assert found.equal < found.elements


@pytest.mark.slow
@pytest.mark.parametrize("network", ["cnn", "attention"])
def test_it_is_what_pytorch_evaluates_in_float64(network: str, tmp_path: Path) -> None:
    """Two ways to it: through Relax, and by PyTorch's own interpreter."""
    program, values = quantised(network, "xnnpack"), inputs_of(network, seed=300)
    model = import_model(save(program, tmp_path / "model.pt2"))
    got, doubts = Executor(in_float64(model.real)).run([np.asarray(value, np.float64) for value in values])
    assert doubts == 0
    np.testing.assert_allclose(got, evaluated(program, values)[0], rtol=1e-9, atol=1e-9)


def test_a_float_model_has_none(tmp_path: Path) -> None:
    path = tmp_path / "float.onnx"
    path.write_bytes(convolutional().model().SerializeToString())
    assert real_opinion(import_model(path), [], []) is None
