"""`--inputs`: every way to get it wrong is one line that says what was wanted, before anything is built."""

from __future__ import annotations

import io
import random
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.models.networks import OWN
from support.models.tflite_writer import ModelBuilder
from support.oracle.oracle import Array
from support.run.command import Call, Done
from uaccel.errors import InputError
from uaccel.session.tensors import TensorType, load_inputs

GOOD = np.zeros((1, 4, 3, 2), np.int8)


def save(path: Path, arrays: Mapping[str, Any]) -> Path:
    np.savez(path, **arrays)
    return path


@pytest.fixture
def run(call: Call, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A run with these inputs, which must not come as far as building."""

    def build(*_: object, **__: object) -> None:
        raise AssertionError("the inputs should have been refused before the build")

    monkeypatch.setattr("uaccel.runner.execute.build_project", build)

    def run_with(path: Path) -> str:
        done: Done = call("run", small, "--inputs", path, "--outputs", tmp_path / "out.npz", "--json")
        assert done.status == 1
        assert done.report == {"error": {"message": done.complaint, "kind": "InputError", "status": 1}}
        assert not (tmp_path / "out.npz").exists()
        return done.complaint

    return run_with


@pytest.mark.parametrize(
    ("arrays", "seen"),
    [
        ({"image": GOOD}, '"image"'),
        ({}, "nothing"),
        ({"input_0": GOOD, "extra": GOOD}, '"input_0", "extra"'),
    ],
    ids=["another name", "nothing", "one too many"],
)
def test_names(arrays: dict[str, Array], seen: str, run: Any, tmp_path: Path) -> None:
    path = save(tmp_path / "in.npz", arrays)
    assert run(path) == f'{path} holds {seen}; the model\'s inputs are "input_0": name the arrays so'


@pytest.mark.parametrize("dtype", ["uint8", "int32", "float32", "float64", "bool", "complex64"])
def test_dtypes(dtype: str, run: Any, tmp_path: Path) -> None:
    path = save(tmp_path / "in.npz", {"input_0": GOOD.astype(dtype)})
    assert run(path) == f'{path}: input "input_0" is {dtype}, the model wants int8'


@pytest.mark.parametrize(
    "shape", [(), (24,), (1, 24), (4, 3), (1, 3, 4, 2), (2, 2, 4, 3, 2), (1, 4, 3, 2, 1), (1, 4, 3, 3)], ids=str
)
def test_shapes(shape: tuple[int, ...], run: Any, tmp_path: Path) -> None:
    path = save(tmp_path / "in.npz", {"input_0": np.zeros(shape, np.int8)})
    assert run(path) == (
        f'{path}: input "input_0" has shape {list(shape)}, the model wants [1, 4, 3, 2] '
        "(or several samples of it along a first axis)"
    )


@pytest.mark.parametrize("shape", [(0, 4, 3, 2), (0, 1, 4, 3, 2)], ids=str)
def test_no_samples(shape: tuple[int, ...], run: Any, tmp_path: Path) -> None:
    path = save(tmp_path / "in.npz", {"input_0": np.zeros(shape, np.int8)})
    assert run(path) == f'{path}: input "input_0" has shape {list(shape)}: no samples; give one or more'


def test_numbers_of_samples_that_differ(call: Call, tmp_path: Path) -> None:
    builder = ModelBuilder()
    a, b = (builder.input(name, (1, 4), "int8", scale=0.5) for name in "ab")
    y = builder.tensor("y", (1, 4), "int8", scale=0.5)
    builder.op("ADD", [a, b], [y])
    builder.output(y)
    model = tmp_path / "model.tflite"
    model.write_bytes(builder.build())
    path = save(tmp_path / "in.npz", {"a": np.zeros((2, 4), np.int8), "b": np.zeros((3, 4), np.int8)})
    done = call("run", model, "--inputs", path)
    assert done.status == 1
    assert done.complaint == f"{path}: inputs have different numbers of samples (a 2, b 3); give each the same"
    missing = save(tmp_path / "missing.npz", {"b": np.zeros((1, 4), np.int8)})
    complaint = call("run", model, "--inputs", missing).complaint
    assert complaint == f'{missing} holds "b"; the model\'s inputs are "a", "b": name the arrays so'


def test_a_file_that_is_not_there(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "none.npz"
    assert run(path) == f"cannot read inputs {path}: No such file or directory"


def test_a_folder(run: Any, tmp_path: Path) -> None:
    assert run(tmp_path) == f"cannot read inputs {tmp_path}: Is a directory"


def pickled() -> bytes:
    stream = io.BytesIO()
    np.savez(stream, input_0=np.array([{"not": "numbers"}], object))
    return stream.getvalue()


def cut_short() -> bytes:
    stream = io.BytesIO()
    np.savez(stream, input_0=GOOD)
    return stream.getvalue()[:150]


def array_cut_short() -> bytes:
    stream, array = io.BytesIO(), io.BytesIO()
    np.save(array, GOOD)
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("input_0.npy", array.getvalue()[:-3])
    return stream.getvalue()


def damaged() -> bytes:
    stream = io.BytesIO()
    np.savez(stream, input_0=GOOD)
    data = bytearray(stream.getvalue())
    data[170] ^= 0xFF
    return bytes(data)


def not_an_array() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("input_0", b"text")
    return stream.getvalue()


def with_header(header: bytes) -> bytes:
    """An array whose description is this."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("input_0.npy", b"\x93NUMPY\x01\0" + len(header).to_bytes(2, "little") + header + b"\n")
    return stream.getvalue()


def claiming(size: int) -> bytes:
    """A table of contents that claims so many bytes for its one entry."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("input_0.npy", b"x")
    data = stream.getvalue()
    at = data.index(b"PK\x01\x02") + 24
    return data[:at] + size.to_bytes(4, "little") + data[at + 4 :]


HEADERS = {
    "unfinished": b"{'descr': '<i1', 'shape': (((",
    "not closed": b"{'descr': '|i1', 'fortran_order': False, 'shape': (1,",
    "nested": b"(" * 4000,
    "digits": b"{'descr': '|i1', 'fortran_order': False, 'shape': (" + b"9" * 5000 + b",)}",
    "huge": b"{'descr': '|i1', 'fortran_order': False, 'shape': (9223372036854775807,)}",
    "negative": b"{'descr': '|i1', 'fortran_order': False, 'shape': (-1,)}",
    "indented": b"{'descr':\n  '|i1',\n 'x'",
    "bytes": b"\xff\xfe\0\0",
}


@pytest.mark.parametrize("name", HEADERS)
def test_a_header_that_makes_no_sense(name: str, run: Any, tmp_path: Path) -> None:
    path = tmp_path / "in.npz"
    path.write_bytes(with_header(HEADERS[name]))
    assert run(path).startswith(f"{path} is not a readable .npz file: ")


def test_more_than_is_read(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "in.npz"
    path.write_bytes(claiming((1 << 30) + 1))
    assert run(path) == (
        f"{path} is not a readable .npz file: it holds 1 arrays of 1073741825 bytes; at most 10000 of "
        f"1073741824 are read"
    )


@pytest.mark.parametrize(
    "data",
    [b"", b"text, not numbers", b"\x93NUMPY", pickled(), cut_short(), array_cut_short(), damaged(), b"PK\x03\x04"],
    ids=["empty", "text", "magic", "pickled", "cut short", "array cut short", "damaged", "zip's magic"],
)
def test_what_is_no_npz_file(data: bytes, run: Any, tmp_path: Path) -> None:
    path = tmp_path / "in.npz"
    path.write_bytes(data)
    assert run(path).startswith(f"{path} is not a readable .npz file: ")


def test_an_entry_that_is_no_array(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "in.npz"
    path.write_bytes(not_an_array())
    assert run(path) == (
        f'{path} is not a readable .npz file: "input_0" is no array, or a second one of its name; '
        "write the file with numpy.savez"
    )


def test_a_single_array(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "in.npz"
    with path.open("wb") as stream:
        np.save(stream, GOOD)
    assert run(path) == (
        f"{path} is not a readable .npz file: it is a single array (.npy); wanted an .npz with one array per name"
    )


def test_an_npy_file_is_the_input_of_a_model_with_one(tmp_path: Path) -> None:
    one, other = TensorType("x", (1, 3), "int8"), TensorType("y", (1, 3), "int8")
    values = np.array([[1, 2, 3], [4, 5, 6]], np.int8)
    np.save(tmp_path / "in.npy", values)
    assert [row[0].tolist() for row in load_inputs(tmp_path / "in.npy", [one])] == [[[1, 2, 3]], [[4, 5, 6]]]
    with pytest.raises(InputError) as caught:
        load_inputs(tmp_path / "in.npy", [one, other])
    assert str(caught.value) == (
        f"{tmp_path / 'in.npy'} is one array, the model has 2 inputs; numpy.savez('IN.npz', x=..., y=...)"
    )
    with pytest.raises(InputError, match=r"^cannot read .*none\.npy: No such file or directory; give arrays as numpy"):
        load_inputs(tmp_path / "none.npy", [one])


@pytest.mark.slow
@pytest.mark.parametrize("layout", [{"order": "F"}, {"dtype": ">i2"}], ids=["Fortran's order", "big-endian"])
def test_other_layouts_of_the_same_values(layout: dict[str, Any], call: Call, tmp_path: Path) -> None:
    model, shape = OWN / "int16.tflite", (1, 16, 8, 2)
    values = np.arange(-30000, -30000 + 256 * 99, 99, dtype=np.int16).reshape(shape)
    plain = save(tmp_path / "plain.npz", {"sound": values})
    other = save(tmp_path / "other.npz", {"sound": np.array(values, **layout)})
    reports = [call("run", model, "--inputs", path, "--json").report for path in (plain, other)]
    assert reports[0]["outputs"] == reports[1]["outputs"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("write", [np.savez, np.savez_compressed], ids=["stored", "compressed"])
def test_any_damage_is_refused_or_harmless(write: Any, tmp_path: Path) -> None:
    stream, path = io.BytesIO(), tmp_path / "in.npz"
    write(stream, input_0=GOOD)
    whole = stream.getvalue()
    generator = random.Random(3)
    refused = 0
    for number in range(len(whole) + 300):
        data = bytearray(whole[:number])
        if number >= len(whole):
            data[generator.randrange(len(data))] = generator.randrange(256)
        path.write_bytes(data)
        try:
            ((sample,),) = load_inputs(path, [TensorType("input_0", GOOD.shape, "int8")])
        except InputError:  # any other exception fails the test
            refused += 1
        else:
            assert (sample.shape, sample.dtype) == (GOOD.shape, GOOD.dtype)
    assert len(whole) <= refused < len(whole) + 300
