"""``--input-shape``: for ONNX models with free dimensions, and for the batch of TFLite models."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import numpy as np
import pytest

from support.models.onnx_networks import Net, convolutional
from support.models.onnx_rows import compare, session_of
from support.models.tflite_writer import ModelBuilder
from support.oracle.oracle import run_tflm
from support.run.command import Call
from uaccel.frontend import import_model

USAGE = "Invalid value for '--input-shape': "


@pytest.fixture(scope="module")
def free(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small ONNX network with a free batch."""
    path = tmp_path_factory.mktemp("model") / "free.onnx"
    path.write_bytes(convolutional("N").model().SerializeToString())
    return path


@pytest.mark.slow
def test_a_model_with_a_free_dimension_runs_once_that_is_given(free: Path, tmp_path: Path, call: Call) -> None:
    complaint = call("run", free, "--json").complaint
    assert complaint == (
        f'{free}: input "x" [N,3,16,16] has the dynamic dimension 0 ("N"); firmware needs every extent fixed: '
        "add --input-shape x:1,3,16,16, or with the extent you want"
    )
    values = np.random.default_rng(0).standard_normal((2, 3, 16, 16)).astype(np.float32)
    np.savez(tmp_path / "in.npz", x=values)
    done = call(
        *("run", free, "--input-shape", "x:2,3,16,16", "--inputs", tmp_path / "in.npz"),
        *("--outputs", tmp_path / "out.npz", "--verify", "--json"),
    )
    assert done.status == 0, done.err
    (got,) = np.load(tmp_path / "out.npz").values()
    compare(got, session_of(free).run(None, {"x": values})[0], "the output", relative=1e-4)
    verify = done.report["verify"]
    assert verify["bit_exact"] or verify["largest_difference"] <= verify["tolerance"], "floats, within their rounding"
    assert call("compile", free, "--input-shape", "x:2,3,16,16", "-o", tmp_path / "m.tar").status == 0
    assert call("create", tmp_path / "m.tar", tmp_path / "project").status == 0
    verify = call("run", tmp_path / "project", "--verify", "--samples", "1", "--json").report["verify"]
    assert verify["bit_exact"] or verify["largest_difference"] <= verify["tolerance"]
    assert verify["not_compared"] is None


def test_the_shape_is_part_of_how_a_file_was_generated(free: Path, tmp_path: Path, call: Call) -> None:
    archive = tmp_path / "out.tar"
    done = call("compile", free, "--input-shape", "x:2,3,16,16", "-o", archive, "--json")
    assert done.status == 0, done.err
    assert done.report["inputs"]["x"]["shape"] == [2, 3, 16, 16]
    with tarfile.open(archive) as tar:
        header = tar.extractfile("./codegen/host/include/tvmgen_free.h") or io.BytesIO()
        command = "uaccel compile free.onnx --board host --name free --input-shape x:2,3,16,16"
        assert command in header.read().decode()
        model = tar.extractfile("./src/free.onnx") or io.BytesIO()
        (tmp_path / "again.onnx").write_bytes(model.read())
    assert import_model(tmp_path / "again.onnx").signature.inputs[0].info.shape == (2, 3, 16, 16)


@pytest.mark.parametrize("command", ["compile", "run", "explain", "tune"])
@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["x"], "'x': wanted NAME:D0,D1,... as in x:1,3,224,224"),
        ([":1,2"], "':1,2': wanted NAME:D0,D1,... as in x:1,3,224,224"),
        (["x:1,N"], "'x:1,N': wanted NAME:D0,D1,... as in x:1,3,224,224"),
        (["x:1,0"], "'x:1,0': extents must be positive"),
        (["x:1", "x:2"], "'x:2': input 'x' has a shape already"),
    ],
)
def test_spellings_that_say_nothing(command: str, words: list[str], wanted: str, free: Path, call: Call) -> None:
    options = [part for word in words for part in ("--input-shape", word)]
    done = call(command, free, *options)
    assert done.status == 2
    assert done.complaint == f"{USAGE}{wanted}; see 'uaccel {command} --help'"


def test_explain_takes_it_too(free: Path, call: Call) -> None:
    done = call("explain", free, "--input-shape", "x:1,3,16,16", "--json")
    assert done.status == 0, done.err
    assert "relax.nn.conv2d" in {layer["op"] for layer in done.report["layers"]}


def test_a_name_may_hold_colons(tmp_path: Path, call: Call) -> None:
    net = Net("N", 4)
    net.add("Relu")
    model = net.model()
    model.graph.input[0].name = model.graph.node[0].input[0] = "x:0"
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    assert call("explain", path, "--input-shape", "x:0:2,4", "--json").status == 0


def _lite(batch: int, signature: int | None) -> bytes:
    """FULLY_CONNECTED and LOGISTIC; ``signature`` is the batch as the author declared it."""
    builder = ModelBuilder()

    def signed(width: int) -> list[int] | None:
        return None if signature is None else [signature, width]

    data = builder.input("x", [batch, 4], "int8", scale=0.05, zero_point=3, signature=signed(4))
    weights = builder.constant("w", np.arange(-10, 10, dtype=np.int8).reshape(5, 4), scale=0.02)
    middle = builder.tensor("m", [batch, 5], "int8", scale=0.05, signature=signed(5))
    output = builder.tensor("y", [batch, 5], "int8", scale=1 / 256, zero_point=-128, signature=signed(5))
    builder.op("FULLY_CONNECTED", [data, weights, None], [middle], {"fused_activation_function": "NONE"})
    builder.op("LOGISTIC", [middle], [output])
    builder.output(output)
    return builder.build()


@pytest.mark.slow
def test_the_batch_of_a_tflite_model_where_its_author_left_it_open(tmp_path: Path, call: Call) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(_lite(1, -1))
    values = np.random.default_rng(0).integers(-128, 127, (3, 4)).astype(np.int8)
    np.savez(tmp_path / "in.npz", x=values)
    done = call(
        *("run", path, "--input-shape", "x:3,4", "--inputs", tmp_path / "in.npz"),
        *("--outputs", tmp_path / "out.npz", "--verify", "--json"),
    )
    assert done.status == 0, done.err
    (got,) = np.load(tmp_path / "out.npz").values()
    np.testing.assert_array_equal(got, run_tflm(_lite(3, None), [values])[0])


@pytest.mark.parametrize(
    ("signature", "shape", "wanted"),
    [
        (-1, "z:2,4", 'has no input "z" for --input-shape; its inputs are: x'),
        (-1, "x:4", '--input-shape x:4 has 1 extents; input "x" [1,4] has 2'),
        (
            -1,
            "x:2,5",
            '--input-shape x:2,5 changes more than the batch (the first extent) of input "x" [1,4], and a TFLite file '
            "holds every other shape worked out; set the shape before converting the model to TFLite",
        ),
        (
            None,
            "x:2,4",
            '--input-shape x:2,4: the file fixes the batch of input "x" [1,4]; '
            "set the shape before converting the model to TFLite",
        ),
    ],
)
def test_shapes_that_a_tflite_model_does_not_allow(
    signature: int | None, shape: str, wanted: str, tmp_path: Path, call: Call
) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(_lite(1, signature))
    done = call("compile", path, "--input-shape", shape, "-o", tmp_path / "out.tar")
    assert done.status == 1
    assert done.complaint.replace(f"{path}: ", "").replace(f"{path} ", "") == wanted
