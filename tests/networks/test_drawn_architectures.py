"""Networks that were drawn, not chosen: each is what PyTorch computes, float and quantised, from both formats."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Final

import numpy as np
import pytest

pytest.importorskip("onnxruntime")
pytest.importorskip("torchao")

from networks.drawn_architectures import BLOCKS, HEADS, drawn
from support.device.hostlib import HostModel
from support.models.exported import exported, random, save, settled, torch
from support.models.quantised_modules import FORMS, share_in_float
from uaccel.api import measure
from uaccel.frontend import import_model
from uaccel.pipeline import compile_model
from uaccel.util.files import quiet

SEEDS: Final = range(12)


@pytest.mark.slow
def test_all_blocks_and_heads_are_drawn() -> None:
    found = {name for seed in range(100) for name in drawn(seed).names}
    assert found == {*BLOCKS, *HEADS}


def few(seeds: range) -> list[object]:
    """Two are slow, the others long."""
    return [pytest.param(seed, marks=pytest.mark.long if seed > 1 else pytest.mark.slow) for seed in seeds]


@pytest.mark.parametrize("seed", few(SEEDS))
@pytest.mark.parametrize("form", ["onnx", "pt2"])
def test_floats_are_those_of_pytorch(form: str, seed: int, tmp_path: Path) -> None:
    net = settled(drawn(seed))
    given, path = random(*net.shape, seed=seed), tmp_path / f"model.{form}"
    with quiet(), warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        if form == "pt2":
            save(exported(net, (given,)), path)
        else:
            torch.onnx.export(net, (given,), str(path), dynamo=False, opset_version=17)
        results = net(given)
    found = HostModel(compile_model(path, board="host"))(given.numpy())
    for got, wanted in zip(found, results if isinstance(results, tuple) else (results,), strict=True):
        largest = abs(wanted.numpy()).max()
        np.testing.assert_allclose(got, wanted.numpy(), rtol=2e-5, atol=2e-5 * largest, err_msg=" ".join(net.names))


@pytest.mark.parametrize("seed", few(SEEDS))
@pytest.mark.parametrize("form", ["onnx", "pt2e"])
def test_quantised_no_element_is_more_than_a_step_from_float64(form: str, seed: int, tmp_path: Path) -> None:
    net = settled(drawn(seed))
    path = FORMS[form](net, [net.shape], tmp_path)
    assert share_in_float(import_model(path)) < 0.01, net.names
    verdict = measure(path, samples=1, verify="outputs")["verify"]
    assert verdict["bit_exact"], verdict["first_difference"]
    found = verdict["real_meaning"]
    assert (found["more"], (found["largest_relative_difference"] or 0) < 1e-5) == (0, True), net.names
