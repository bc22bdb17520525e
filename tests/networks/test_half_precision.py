"""Models in half precision from all three front ends: widened exactly, computed in float32, half the bytes in flash."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from support.device.boards import board_with_tools
from support.device.hostlib import HostModel
from support.models.float_networks import FORMATS, FloatNetwork, keyword, mobilenet, written
from support.models.float_rows import assert_same_bits
from uaccel.api import measure
from uaccel.board import load_board
from uaccel.kernels.choice import selection_for
from uaccel.pipeline import compile_model
from uaccel.util.favour import Favour

NETWORKS: dict[str, FloatNetwork] = {"keyword": keyword(8, 2, 13), "mobilenet": mobilenet(16, 2)}
Array = NDArray[Any]


def sample(network: FloatNetwork, form: str) -> Array:
    """Numbers of half precision."""
    value = np.random.default_rng(0).normal(size=(1, *network.shape)).astype(np.float16).astype(np.float32)
    return value if form == "tflite" else np.ascontiguousarray(value.transpose(0, 3, 1, 2))


def written_as(network: FloatNetwork, form: str, folder: Path, *, half: bool) -> Path:
    """In half precision, or the same numbers as floats."""
    folder = folder / ("half" if half else "single")
    folder.mkdir()
    if half:
        return written(replace(network, half=True), form, folder)
    rounded = replace(network, half=True).weights()
    return written(_Given(network.shape, network.layers, weighted=rounded), form, folder)


class _Given(FloatNetwork):
    """With weights that are given."""

    def __init__(self, shape: Any, layers: Any, *, weighted: Any) -> None:
        super().__init__(shape, layers)
        object.__setattr__(self, "weighted", weighted)

    def weights(self) -> Any:
        return self.weighted  # type: ignore[attr-defined]


def by_its_runtime(path: Path, form: str, value: Array) -> Array:
    """Of a file of floats."""
    if form == "tflite":
        from support.oracle.oracle import Tflm

        return np.asarray(Tflm(path.read_bytes()).run([value])[0])
    if form == "onnx":
        from support.models.onnx_rows import session_of

        return np.asarray(session_of(path).run(None, {"x": value})[0])
    from support.models.exported import torch

    return np.asarray(torch.export.load(path).module()(torch.tensor(value)).detach())


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("form", [*FORMATS[:-1], pytest.param(FORMATS[-1], marks=pytest.mark.slow)])
def test_it_means_the_same_numbers_in_single_precision(form: str, name: str, tmp_path: Path) -> None:
    network = NETWORKS[name]
    single, half = (written_as(network, form, tmp_path, half=half) for half in (False, True))
    value = sample(network, form)
    compiled = compile_model(half, board="host")
    (got,) = HostModel(compiled)(value)
    wanted = by_its_runtime(single, form, value)
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5 * abs(wanted).max())
    (same,) = HostModel(compile_model(single, board="host"))(value)
    assert_same_bits(got, same, "the same numbers as floats")
    weights = [part for pair in network.weights() if pair for part in pair]
    assert compiled.generated.weight_bytes < 0.75 * sum(part.nbytes for part in weights)
    assert {info.info.dtype for info in compiled.model.signature.inputs} == {"float32"}


def test_a_file_may_be_half_precision_in_parts(tmp_path: Path) -> None:
    """Inputs and results of the converter's file are floats, and their casts stand behind the nodes that read them."""
    import onnx
    from onnxruntime.transformers.float16 import convert_float_to_float16

    network = NETWORKS["mobilenet"]
    whole, path = written_as(network, "onnx", tmp_path, half=True), tmp_path / "parts.onnx"
    single = onnx.load(str(written_as(network, "onnx", tmp_path, half=False)))
    onnx.save(convert_float_to_float16(single, keep_io_types=True, op_block_list=["Clip"]), str(path))
    assert {node.op_type for node in onnx.load(str(path)).graph.node} >= {"Cast", "Conv", "Clip"}
    value = sample(network, "onnx")
    got, wanted = (HostModel(compile_model(each, board="host"))(value)[0] for each in (path, whole))
    assert_same_bits(got, wanted, "the whole file in half precision")


def test_the_files_runtime_agrees_as_far_as_half_precision_goes(tmp_path: Path) -> None:
    """ONNX Runtime rounds results of operators to half precision, uaccel nothing."""
    from support.models.onnx_rows import session_of

    network = NETWORKS["mobilenet"]
    path = written_as(network, "onnx", tmp_path, half=True)
    value = sample(network, "onnx")
    (got,) = HostModel(compile_model(path, board="host"))(value)
    (wanted,) = session_of(path).run(None, {"x": value.astype(np.float16)})
    np.testing.assert_allclose(got, wanted.astype(np.float32), rtol=2**-7, atol=2**-7 * abs(wanted).max())


@pytest.mark.sample(1)
@pytest.mark.parametrize("board", ["mps3_an547", "mps2_an386"])
def test_boards_give_the_bits_of_the_meaning_and_widening_takes_little_time(board: str, tmp_path: Path) -> None:
    board_with_tools(board)
    path = written_as(NETWORKS["keyword"], "onnx", tmp_path, half=True)
    narrow, wide = (measure(path, board, favour=favour) for favour in ("balanced", "speed"))
    assert [run["verify"]["bit_exact"] for run in (narrow, wide)] == [True, True]
    assert wide["instructions"] < narrow["instructions"] < 1.1 * wide["instructions"]


@pytest.mark.parametrize("board", ["host", "mps3_an547"])
def test_for_speed_weights_lie_in_flash_as_floats(board: str, tmp_path: Path) -> None:
    network = NETWORKS["keyword"]
    path = written_as(network, "onnx", tmp_path, half=True)
    selections = [selection_for(load_board(board), favour=favour) for favour in (Favour.balanced, Favour.speed)]
    narrow, wide = (compile_model(path, board=board, selection=each).generated.weight_bytes for each in selections)
    pairs = zip(network.layers, network.weights(), strict=True)
    assert wide - narrow == 2 * sum(pair[0].size for layer, pair in pairs if pair and layer.kind != "depthwise")
