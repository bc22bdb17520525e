"""Small ONNX networks against ONNX Runtime: float in C, quantised as TVM executes the imported module."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from support.device.hostlib import HostModel
from support.models.onnx_networks import Net, convolutional, quantised, transformer, unet
from support.models.onnx_rows import compare, random_feeds, session_of
from uaccel.frontend import import_model
from uaccel.pipeline import compile_model
from uaccel.tvm_api import main_bindings
from uaccel.tvm_api.executor import Executor

NETWORKS: dict[str, Callable[[], Net]] = {"convolutional": convolutional, "transformer": transformer, "unet": unet}


@pytest.mark.parametrize("name", NETWORKS)
def test_a_float_network_gives_what_onnx_runtime_gives(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.onnx"
    path.write_bytes(NETWORKS[name]().model().SerializeToString())
    session = session_of(path)
    feeds = random_feeds(session)
    host = HostModel(compile_model(path, board="host"))
    for got, wanted in zip(host(*feeds.values()), session.run(None, feeds), strict=True):
        compare(got, wanted, name, relative=1e-4)


@pytest.mark.slow
def test_shapes_that_depend_on_free_dimensions_are_known_once_these_are_given(tmp_path: Path) -> None:
    path = tmp_path / "free.onnx"
    path.write_bytes(transformer("batch", "length").model().SerializeToString())
    model = import_model(path, {"x": (2, 5, 8)})
    session = session_of(path)
    feeds = {"x": random_feeds(session_of(transformer(2, 5).model()))["x"]}
    (got,) = Executor(model.module).run(list(feeds.values()))
    compare(got, session.run(None, feeds)[0], "y", relative=1e-4)
    names = {var.name.partition("_")[0] for var, _ in main_bindings(model.module)[1]}
    assert not names & {"shape", "gather", "unsqueeze", "concat"}


@pytest.mark.slow
@pytest.mark.parametrize("activations", ["QUInt8", "QInt8"])
@pytest.mark.parametrize("form", ["QDQ", "QOperator"])
def test_a_quantised_network_is_imported_as_it_means(form: str, activations: str, tmp_path: Path) -> None:
    """TVM rounds halves of quantisation the other way, so a step may be lost, seldom; integers come exact later."""
    path = quantised(convolutional(), tmp_path, form, activations, per_channel=activations == "QInt8")
    model = import_model(path)
    session = session_of(path)
    feeds = random_feeds(session)
    (got,) = Executor(model.module).run(list(feeds.values()))
    (wanted,) = session.run(None, feeds)
    last = [spec for spec in model.tensors.values() if spec.quantisation is not None][-1]
    assert last.quantisation is not None
    assert abs(got - wanted).max() <= last.quantisation.scale * 1.01


def test_layers_are_called_by_operator_and_number_and_know_their_tensors(tmp_path: Path) -> None:
    path = quantised(convolutional(), tmp_path, "QOperator", "QInt8", per_channel=True)
    model = import_model(path)
    origin, spec = model.origins["qlinearconv_1"], model.tensors["qlinearconv_1"]
    assert (origin.index, origin.op) == (1, "QLinearConv")
    assert origin.tensor == spec.name == "t0_quantized"
    assert spec.info.dtype == "int8"
    assert spec.quantisation is not None
    assert {model.origins[var.name].op for var, _ in main_bindings(model.module)[1] if var.name != "gv"} == {
        "QuantizeLinear",
        "QLinearConv",
        "QLinearAdd",
        "MaxPool",
        "QLinearGlobalAveragePool",
        "Flatten",
        "QGemm",
        "DequantizeLinear",
    }
