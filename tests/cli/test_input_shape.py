"""``--input-shape``: for ONNX models with free dimensions, and for the batch of TFLite models."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import numpy as np
import pytest

from support.models.onnx_networks import convolutional
from support.models.onnx_rows import compare, session_of
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
