"""``--verify`` begins with the test data beside an ONNX model, and damaged data are one line."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.models.onnx_rows import Array, Given, model_of, row
from support.run.command import Call
from uaccel.model import write_npz

onnx = pytest.importorskip("onnx")
WEIGHTS = np.random.default_rng(0).uniform(-1, 1, (6, 4)).astype(np.float32)
X = np.random.default_rng(1).uniform(-1, 1, (2, 6)).astype(np.float32)
BOARDS = ["host", "mps2_an386"]


def proto(array: Array, name: str = "") -> bytes:
    """A file of a data set, as ONNX's own tools write it."""
    return bytes(onnx.numpy_helper.from_array(array, name).SerializeToString())


def data_set(folder: Path, number: int, inputs: list[Array], outputs: list[Array]) -> Path:
    place = folder / f"test_data_set_{number}"
    place.mkdir()
    for side, arrays in (("input", inputs), ("output", outputs)):
        for n, array in enumerate(arrays):
            (place / f"{side}_{n}.pb").write_bytes(proto(array))
    return place


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "m.onnx"
    path.write_bytes(model_of({"row": row("MatMul", Given((2, 6)), WEIGHTS)}, 17).SerializeToString())
    return path


@pytest.mark.parametrize("board", BOARDS)
def test_verification_begins_with_the_data_beside_the_model(board: str, model: Path, call: Call) -> None:
    data_set(model.parent, 0, [X], [X @ WEIGHTS])
    data_set(model.parent, 10, [X * 3], [X * 3 @ WEIGHTS])
    data_set(model.parent, 2, [X * 2], [X * 2 @ WEIGHTS])
    shown = call("run", model, "--board", board, "--verify")
    assert shown.status == 0, shown.err
    names = "test_data_set_0, test_data_set_2, test_data_set_10"
    assert f"the first of 8 are {names} beside the model" in shown.out
    assert "with test_data_set_*: floats within" in shown.out
    report = call("run", model, "--board", board, "--verify", "--json", "--outputs", model.with_suffix(".npz")).report
    assert (report["verify"]["samples"], report["verify"]["data_sets"]["folders"]) == (8, names.split(", "))
    assert report["verify"]["data_sets"]["largest_relative_difference"] < 1e-5
    with np.load(model.with_suffix(".npz")) as outputs:
        np.testing.assert_allclose(outputs["row/out0"], X @ WEIGHTS, rtol=1e-5, atol=1e-6)


def test_outputs_that_the_data_deny_fail_the_verification(model: Path, call: Call) -> None:
    wrong = X @ WEIGHTS
    wrong[1, 2] += 0.5
    data_set(model.parent, 0, [X], [X @ WEIGHTS])
    data_set(model.parent, 1, [X], [wrong])
    done = call("run", model, "--verify", "--json")
    assert (done.status, done.report["verify"]["bit_exact"]) == (3, False)
    assert 'sample 1, output "row/out0", element [1,2] is ' in done.complaint
    assert f"test_data_set_* states {wrong[1, 2]}" in done.complaint


@pytest.mark.parametrize(
    ("words", "samples"), [((), 12), (("--samples", "1"), 1), (("--repeat", "3"), 14)], ids=["all", "one", "again"]
)
def test_all_data_are_taken_unless_fewer_samples_are_wanted(
    words: tuple[str, ...], samples: int, model: Path, call: Call
) -> None:
    for number in range(12):
        data_set(model.parent, number, [X * number], [X * number @ WEIGHTS])
    verify = call("run", model, "--verify", *words, "--json").report["verify"]
    assert (verify["samples"], len(verify["data_sets"]["folders"])) == (samples, min(samples, 12))
    assert verify["data_sets"]["largest_relative_difference"] < 1e-5


def test_other_runs_take_no_data(model: Path, call: Call) -> None:
    data_set(model.parent, 0, [X], [X @ WEIGHTS + 1])
    with model.with_name("in.npz").open("wb") as stream:
        write_npz(stream, {"row/in0": X})
    given = call("run", model, "--verify", "--inputs", model.with_name("in.npz"), "--json")
    assert (given.status, "data_sets" in given.report["verify"]) == (0, False)
    assert call("run", model).status == 0


def test_data_without_outputs_are_inputs(model: Path, call: Call) -> None:
    data_set(model.parent, 0, [X], [])
    assert call("run", model, "--verify", "--json").report["verify"]["data_sets"] == {"folders": ["test_data_set_0"]}
    shown = call("run", model, "--verify", "--samples", "1")
    assert "it is test_data_set_0 beside the model" in shown.out
    assert "with test_data_set" not in shown.out


def test_tensors_that_say_their_names_may_come_in_any_order(tmp_path: Path, call: Call) -> None:
    path, one, other = tmp_path / "m.onnx", X, X + 5
    path.write_bytes(model_of({"row": row("Sub", Given((2, 6)), Given((2, 6)))}, 17).SerializeToString())
    folder = data_set(tmp_path, 0, [other, one], [one - other])
    for number, name in enumerate(("row/in1", "row/in0")):
        (folder / f"input_{number}.pb").write_bytes(proto([other, one][number], name))
    assert call("run", path, "--verify").status == 0


def test_half_precision_is_what_the_file_has(tmp_path: Path, call: Call) -> None:
    path, half = tmp_path / "m.onnx", X.astype(np.float16)
    path.write_bytes(model_of({"row": row("Mul", Given((2, 6), "float16"), half)}, 17).SerializeToString())
    data_set(tmp_path, 0, [half], [half * half])
    assert call("run", path, "--verify").status == 0


def test_a_new_statement_is_read_though_results_are_kept(
    model: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UACCEL_CACHE", str(model.with_name("cache")))
    folder = data_set(model.parent, 0, [X], [X @ WEIGHTS])
    assert call("run", model, "--verify").status == 0
    (folder / "output_0.pb").write_bytes(proto(X @ WEIGHTS + 1))
    assert call("run", model, "--verify").status == 3


def test_data_that_the_onnx_package_brings(call: Call) -> None:
    """PyTorch computed these outputs."""
    path = Path(onnx.__file__).parent / "backend/test/data/pytorch-converted/test_Conv2d_strided/model.onnx"
    if not path.exists():
        pytest.skip("this version of the onnx package brings no data")
    assert call("run", path, "--verify", "--json").report["verify"]["data_sets"]["largest_relative_difference"] < 1e-6


def external() -> bytes:
    tensor = onnx.numpy_helper.from_array(X)
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="/etc/passwd")
    return bytes(tensor.SerializeToString())


def huge() -> bytes:
    return bytes(onnx.TensorProto(data_type=1, dims=[1 << 40, 1 << 20]).SerializeToString())


DAMAGE: dict[str, tuple[Callable[[], Any], str]] = {
    "no protobuf": (lambda: b"\xff\xfenothing", "is no tensor of ONNX, or is damaged (9 bytes)"),
    "cut off": (lambda: proto(X)[:-8], "is no tensor of ONNX, or is damaged"),
    "empty": (lambda: b"", "has type undefined, which cannot be compiled"),
    "text": (lambda: proto(np.array(["a"], object)), "has type string, which cannot be compiled"),
    "another type": (lambda: proto(X.astype(np.float64)), 'is float64 [2, 6], the model\'s input "row/in0" is float32'),
    "another shape": (lambda: proto(X[:1]), "is float32 [1, 6], the model's input"),
    "more than it holds": (huge, "has 0 elements, wanted"),
    "in another file": (external, "keeps its values in another file"),
}


@pytest.mark.parametrize(("data", "words"), DAMAGE.values(), ids=DAMAGE)
def test_damaged_and_mismatched_data_are_one_line(data: Callable[[], Any], words: str, model: Path, call: Call) -> None:
    folder = data_set(model.parent, 0, [X], [X @ WEIGHTS])
    (folder / "input_0.pb").write_bytes(data())
    done = call("run", model, "--verify")
    assert done.status == 1
    assert words in done.complaint
    assert str(folder / "input_0.pb") in done.complaint
    assert done.complaint.endswith("; copy the folder again, or leave it out with --inputs IN.npz")


def test_files_that_are_missing_are_named(model: Path, call: Call) -> None:
    folder = data_set(model.parent, 0, [X, X], [X @ WEIGHTS])
    assert f"{folder} holds input_0.pb, input_1.pb; wanted input_0.pb; " in call("run", model, "--verify").complaint
    (folder / "input_1.pb").unlink()
    (folder / "input_0.pb").rename(folder / "input_00.pb")
    assert f"{folder} holds input_00.pb; wanted input_0.pb; " in call("run", model, "--verify").complaint
    (folder / "input_00.pb").unlink()
    assert f"{folder} holds no input; wanted input_0.pb; " in call("run", model, "--verify").complaint


def test_an_output_with_more_rows_than_the_model_makes_is_no_output_of_it(model: Path, call: Call) -> None:
    data_set(model.parent, 0, [X], [np.zeros((3, 4), np.float32)])
    words = 'output_0.pb is float32 [3, 4], the model\'s output "row/out0" is float32 [2, 4]'
    assert words in call("run", model, "--verify").complaint


@pytest.mark.parametrize("seed", range(4))
def test_any_damage_of_a_file_is_refused_or_harmless(seed: int, model: Path, call: Call) -> None:
    from uaccel.errors import InputError
    from uaccel.runner.data_sets import data_sets
    from uaccel.session.tensors import TensorType

    folder, rng = data_set(model.parent, 0, [X], [X @ WEIGHTS]), np.random.default_rng(seed)
    types = [TensorType("row/in0", (2, 6), "float32")], [TensorType("row/out0", (2, 4), "float32")]
    for _ in range(200):
        data = bytearray(proto(X, "row/in0"))
        for place in rng.integers(0, len(data), rng.integers(1, 4)):
            data[place] = rng.integers(0, 256)
        (folder / "input_0.pb").write_bytes(data[: rng.integers(0, len(data) + 1)] if rng.integers(2) else data)
        with suppress(InputError):
            (found,) = data_sets(model, *types)
            assert (found.inputs[0].shape, str(found.inputs[0].dtype)) == ((2, 6), "float32")
