"""``--state``: outputs that are inputs of the next inference, from each front end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from support.device.boards import board_with_tools
from support.device.hostlib import HostModel
from support.models.tflite_writer import ModelBuilder
from support.run.command import call_in
from uaccel.errors import ModelError
from uaccel.frontend import import_model
from uaccel.model import write_npz
from uaccel.pipeline import compile_model
from uaccel.runner.onnx_runtime import session_of
from uaccel.tvm_api.executor import Executor

Array = np.ndarray[Any, Any]
FRAMES = np.random.default_rng(4).standard_normal((100, 1, 3)).astype(np.float32)
ZEROS = np.zeros((1, 5), np.float32)
WEIGHTS = np.random.default_rng(5).uniform(-0.6, 0.6, (8, 5)).astype(np.float32)


def cell(path: Path, names: tuple[str, str] = ("h", "h_out"), width: int = 5) -> Path:
    """A cell: its hidden vector is tanh([x, h] W), its output the first two of that. The state lies between others."""
    state, after = names
    real, given = TensorProto.FLOAT, WEIGHTS[: 3 + width, :width]
    nodes = [
        helper.make_node("Concat", ["x", state], ["joined"], axis=1),
        helper.make_node("MatMul", ["joined", "weights"], ["sums"]),
        helper.make_node("Tanh", ["sums"], [after]),
        helper.make_node("Slice", [after, "from", "to", "axis"], ["head"]),
        helper.make_node("Add", ["head", "z"], ["y"]),
    ]
    constants = {"weights": given, "from": [0], "to": [2], "axis": [1]}
    graph = helper.make_graph(
        nodes,
        "cell",
        [helper.make_tensor_value_info(name, real, [1, size]) for name, size in (("x", 3), (state, width), ("z", 2))],
        [helper.make_tensor_value_info(name, real, [1, size]) for name, size in ((after, width), ("y", 2))],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def looped(path: Path, first: Array, frames: Array, name: str = "h") -> list[Array]:
    """ONNX Runtime, with the state fed back by hand."""
    session, outputs = session_of(path), []
    for frame in frames:
        first, y = session.run(None, {"x": frame, name: first, "z": np.ones((1, 2), np.float32)})
        outputs.append(y)
    return outputs


def test_what_is_bound_is_no_input_and_no_output(tmp_path: Path) -> None:
    model = import_model(cell(tmp_path / "cell.onnx"), state=["h_out=h"])
    assert [spec.name for spec in model.signature.inputs] == ["x", "z"]
    assert [spec.name for spec in model.signature.outputs] == ["y"]
    assert [entry.spec.name for entry in model.state] == ["h"]
    executor, ones = Executor(model.module, state=model.state), np.ones((1, 2), np.float32)
    wanted = looped(tmp_path / "cell.onnx", ZEROS, FRAMES)
    for frame, expected in zip(FRAMES, wanted, strict=True):
        np.testing.assert_allclose(executor.run([frame, ones])[0], expected, atol=1e-6)


@pytest.mark.parametrize("board", ["host", pytest.param("mps3_an547", marks=pytest.mark.slow)])
def test_frames_of_a_sequence(board: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """From a stored value, against ONNX Runtime by hand, and by the command's own verdict; from the archive, too."""
    if board != "host":
        board_with_tools(board)
    path, first = cell(tmp_path / "cell.onnx"), np.full((1, 5), 0.5, np.float32)
    np.savez(tmp_path / "first.npz", h=first)
    np.savez(tmp_path / "in.npz", x=FRAMES, z=np.ones((100, 1, 2), np.float32))
    call = call_in(capfd)
    wishes = ("--inputs", tmp_path / "in.npz", "--sequence", "--verify", "--json")
    state = ("--state", "h_out=h", "--state-from", tmp_path / "first.npz")
    done = call("run", path, "--board", board, *wishes, *state, "--project", tmp_path / "project")
    assert done.status == 0, done.err
    again = call("run", tmp_path / "project", *wishes)
    for report in (done.report, again.report):
        got = np.reshape(report["outputs"]["y"]["data"], (100, 2))
        np.testing.assert_allclose(got, np.concatenate(looped(path, first, FRAMES)), atol=1e-5)
        assert report["verify"]["against"] == ["exact meaning", "onnxruntime"]
        assert report["ram"]["state"] == 24


def test_a_state_is_written_in_place(tmp_path: Path) -> None:
    """Nothing of the cell's hidden vector is in the arena."""
    path = cell(tmp_path / "cell.onnx")
    bound = compile_model(path, board="host", state=["h_out=h"])
    assert bound.placement.state == 24
    assert "copy" not in {layer.op for layer in bound.program.layers}


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (("h0", "hn"), ["auto"]),
        (("state", "stateN"), ["auto"]),
        (("past_key_values.0.key", "present.0.key"), ["present.*=past_key_values.*"]),
        (("past_key_values.0.key", "present.0.key"), ["auto"]),
        (("conv_cache", "conv_cache_out"), ["auto"]),
        (("cell_in", "cell_out"), ["auto"]),
        (("hidden", "next_hidden"), ["auto"]),
        (("a=b", "c=d"), ["c=d=a=b"]),
    ],
)
def test_names_of_states(names: tuple[str, str], words: list[str], tmp_path: Path) -> None:
    model = import_model(cell(tmp_path / "m.onnx", names), state=words)
    assert [entry.spec.name for entry in model.state] == [names[0]]
    assert [pair.words for pair in model.bound] == [f"{names[1]}={names[0]}"]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["h_out"], "--state 'h_out': wanted OUT=IN, an output and the input that it becomes, or auto"),
        (["k=h"], '--state k=h: the model has no output "k"; its outputs are h_out, y'),
        (["h_out=k"], '--state h_out=k: the model has no input "k"; its inputs are x, h, z'),
        (
            ["h_out=x"],
            "--state h_out=x: the output is float32 [1,5], the input float32 [1,3]; wanted the same shape and type",
        ),
        (["h_out=h", "h_out=h"], '--state h_out=h: output "h_out" is bound already; name it once'),
        (["h_out=h", "y=h"], '--state y=h: input "h" is bound already; name it once'),
        (["h*=h"], "--state 'h*=h': both names must have '*' equally often"),
        (["k*=h*"], "--state 'k*=h*': no output matches 'k*'; the outputs are h_out, y"),
        (
            ["h_out=h", "y=z"],
            "--state: every output becomes state, and none is left to tell a result; leave one as it is",
        ),
    ],
)
def test_refusals(words: list[str], text: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError) as caught:
        import_model(cell(tmp_path / "m.onnx"), state=words)
    assert str(caught.value) == text


def test_an_autoencoder_has_no_state(tmp_path: Path) -> None:
    with pytest.raises(ModelError) as caught:
        import_model(cell(tmp_path / "m.onnx", ("data", "data_out")), state=["auto"])
    assert str(caught.value) == (
        "--state auto: no output is named as the next value of an input; outputs: data_out, y; inputs: x, data, z; "
        "name a pair with --state OUT=IN"
    )


@pytest.mark.parametrize(
    ("arrays", "words", "text"),
    [
        ({"h": np.zeros((1, 5), np.float32)}, [], "no output is bound to an input; add --state OUT=IN"),
        ({"x": np.zeros((1, 3), np.float32)}, ["h_out=h"], '"x" is no input that is bound; bound are h'),
        ({"h": np.zeros((5,), np.int8)}, ["h_out=h"], '"h" is int8 [5]; wanted float32 [1,5]'),
    ],
)
def test_first_values_that_do_not_fit(arrays: dict[str, Array], words: list[str], text: str, tmp_path: Path) -> None:
    first = tmp_path / "first.npz"
    with first.open("wb") as stream:
        write_npz(stream, arrays)
    with pytest.raises(ModelError) as caught:
        import_model(cell(tmp_path / "m.onnx"), state=words, state_from=first)
    assert str(caught.value).replace(f" {first}", "").startswith(f"--state-from: {text}")


def test_two_states_that_change_places(tmp_path: Path) -> None:
    """Each becomes what the other was, so that neither may be written before both are read."""
    real = TensorProto.FLOAT
    nodes = [
        helper.make_node("Add", ["x", "a"], ["y"]),
        helper.make_node("Identity", ["b"], ["next_a"]),
        helper.make_node("Mul", ["a", "x"], ["next_b"]),
    ]
    values = [helper.make_tensor_value_info(name, real, [1, 4]) for name in ("x", "a", "b", "y", "next_a", "next_b")]
    graph = helper.make_graph(nodes, "swap", values[:3], values[3:])
    path = tmp_path / "swap.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    np.savez(tmp_path / "first.npz", a=np.full((1, 4), 2, np.float32), b=np.full((1, 4), 3, np.float32))
    words = ["next_a=a", "next_b=b"]
    firmware = HostModel(compile_model(path, board="host", state=words, state_from=tmp_path / "first.npz"))
    x, a, b = np.arange(4, dtype=np.float32)[None], np.full((1, 4), 2, np.float32), np.full((1, 4), 3, np.float32)
    for _ in range(4):
        (got,) = firmware(x)
        np.testing.assert_array_equal(got, x + a)
        a, b = b, a * x


def quantised(path: Path, scale: float) -> Path:
    """A sum of int8: the state has the quantisation of the input, or another scale."""
    model = ModelBuilder()
    x, h = (model.input(name, (1, 4), "int8", scale=0.5, zero_point=3) for name in ("x", "h"))
    y, after = (model.tensor(name, (1, 4), "int8", scale=scale, zero_point=3) for name in ("y", "after"))
    model.op("ADD", [x, h], [after], {"fused_activation": "NONE"})
    model.op("MAXIMUM", [after, x], [y])
    model.output(after)
    path.write_bytes(model.build(y))
    return path


def test_an_int8_state_begins_with_its_zero_point(tmp_path: Path) -> None:
    (entry,) = import_model(quantised(tmp_path / "m.tflite", 0.5), state=["after=h"]).state
    assert entry.initial.tolist() == [[3, 3, 3, 3]]
    with pytest.raises(ModelError) as caught:
        import_model(quantised(tmp_path / "m.tflite", 0.25), state=["after=h"])
    assert str(caught.value) == (
        "--state after=h: the output has scale 0.25, zero point 3, the input scale 0.5, zero point 3; "
        "quantise both alike"
    )


def test_calibration_by_frames(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Samples give the other inputs alone; the ranges of the state are those that it reaches frame by frame."""
    path, call = cell(tmp_path / "cell.onnx"), call_in(capfd)
    np.savez(tmp_path / "in.npz", x=FRAMES, z=np.ones((100, 1, 2), np.float32))
    done = call("quantize", path, "-c", tmp_path / "in.npz", "-o", tmp_path / "q.onnx", "--state", "h_out=h", "--json")
    assert done.status == 0, done.err
    assert min(output["snr_db"] for output in done.report["outputs"].values()) > 30
    wishes = ("--inputs", tmp_path / "in.npz", "--sequence", "--verify", "--state", "h_out=h", "--json")
    done = call("run", tmp_path / "q.onnx", "--board", "host", *wishes)
    assert done.status == 0, done.err
    got, wanted = np.reshape(done.report["outputs"]["y"]["data"], (100, 2)), looped(path, ZEROS, FRAMES)
    np.testing.assert_allclose(got, np.concatenate(wanted), atol=0.1)
    done = call("quantize", path, "-c", tmp_path / "in.npz", "-o", tmp_path / "q.onnx")
    assert done.status != 0
    assert 'the model\'s inputs are "x", "h", "z"' in done.err


def test_what_is_written_to_and_from_one_tensor_is_not_in_place(tmp_path: Path) -> None:
    """Rows are put down in another order in the tensor that they come from."""
    text = """<ir_version: 8, opset_import: ["" : 17]> g (float[4,3] x) => (float[4,3] y) <int64[4,3] at =
        {3,3,3, 2,2,2, 1,1,1, 0,0,0}> { t = Add(x, x) s = ScatterElements<axis = 0>(t, at, t) y = Add(s, x) }"""
    path = tmp_path / "m.onnx"
    path.write_bytes(onnx.parser.parse_model(text).SerializeToString())
    values = np.arange(12, dtype=np.float32).reshape(4, 3)
    (got,) = HostModel(compile_model(path, board="host"))(values)
    np.testing.assert_array_equal(got, 2 * values[::-1] + values)
