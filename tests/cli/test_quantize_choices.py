"""`uaccel quantize`: data of other kinds, layers in float or 16 bits, and the search that trades them."""

from __future__ import annotations

import os
import struct
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from support.run.command import Call

onnx: Any = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
helper, FLOAT = onnx.helper, onnx.TensorProto.FLOAT
Array = NDArray[Any]
SHAPE = (1, 3, 6, 6)
CLASSES = 4


def conv(name: str, given: str, result: str) -> Any:
    return helper.make_node("Conv", [given, f"{name}_w"], [result], name=name, pads=[1, 1, 1, 1])


def model_in(folder: Path) -> Path:
    """Two convolutions with clamps, the second far noisier than the first, and a dense layer."""
    random = np.random.default_rng(3)
    weights = {"first_w": random.normal(size=(4, 3, 3, 3)), "second_w": random.normal(size=(4, 4, 3, 3))}
    weights["dense_w"] = random.normal(size=(4 * 36, CLASSES))
    weights["second_w"][0] *= 60
    constants = [onnx.numpy_helper.from_array(value.astype(np.float32), name) for name, value in weights.items()]
    nodes = [
        conv("first", "x", "a"),
        helper.make_node("Relu", ["a"], ["b"], name="first_clamp"),
        conv("second", "b", "c"),
        helper.make_node("Relu", ["c"], ["d"], name="second_clamp"),
        helper.make_node("Flatten", ["d"], ["e"], name="flat"),
        helper.make_node("MatMul", ["e", "dense_w"], ["y"], name="dense"),
    ]
    ends = [helper.make_tensor_value_info("x", FLOAT, SHAPE), helper.make_tensor_value_info("y", FLOAT, [1, CLASSES])]
    graph = helper.make_graph(nodes, "small", ends[:1], ends[1:], constants)
    path = folder / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def samples(count: int = 8) -> Array:
    return np.random.default_rng(2).integers(0, 256, (count, 6, 6, 3)).astype(np.uint8)


def as_floats(pixels: Array, mean: float = 0.0, std: float = 1.0) -> Array:
    """What the command makes of images, channels first."""
    return ((pixels / 255 - mean) / std).astype(np.float32).transpose(0, 3, 1, 2)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return model_in(tmp_path)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    np.save(tmp_path / "data.npy", as_floats(samples()))
    return tmp_path / "data.npy"


def png(pixels: Array) -> bytes:
    """Of 8-bit colours."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    height, width = pixels.shape[:2]
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def write_arrays(folder: Path, values: Array) -> None:
    folder.mkdir(parents=True)
    for number, value in enumerate(values):
        np.save(folder / f"{number:02}.npy", value)


def one_for_each_class(folder: Path) -> None:
    for name, rows in (("apple", slice(0, 5)), ("pear", slice(5, 8))):
        write_arrays(folder / name, as_floats(samples())[rows])


FOLDERS: dict[str, Any] = {
    "arrays": lambda folder: write_arrays(folder, as_floats(samples())),
    "a folder for the input": lambda folder: write_arrays(folder / "x", as_floats(samples())[:, np.newaxis]),
    "a folder for each class": one_for_each_class,
}


@pytest.mark.parametrize("kind", FOLDERS)
def test_a_folder_says_what_an_array_says(kind: str, model: Path, data: Path, tmp_path: Path, call: Call) -> None:
    FOLDERS[kind](tmp_path / "folder")
    wanted = call("quantize", model, "-c", data, "--json").report
    done = call("quantize", model, "-c", tmp_path / "folder", "--json").report
    assert (done["sha256"], done["samples"]) == (wanted["sha256"], 8)
    assert (done["top1"] is not None) == (kind == "a folder for each class")


def test_images(model: Path, tmp_path: Path, call: Call) -> None:
    pytest.importorskip("PIL")
    (tmp_path / "images").mkdir()
    for number, pixels in enumerate(samples()):
        (tmp_path / "images" / f"{number}.png").write_bytes(png(pixels))
    np.savez(tmp_path / "data.npz", x=as_floats(samples(), 0.5, 0.25))
    wanted = call("quantize", model, "-c", tmp_path / "data.npz", "--json").report
    wishes = ("--mean", "0.5", "--std", "0.25,0.25,0.25", "--json")
    assert call("quantize", model, "-c", tmp_path / "images", *wishes).report["sha256"] == wanted["sha256"]


def test_images_without_pillow(model: Path, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PIL", "PIL.Image"):
        monkeypatch.setitem(sys.modules, name, None)
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a.png").write_bytes(png(samples()[0]))
    done = call("quantize", model, "-c", tmp_path / "images")
    assert done.status == 1
    assert done.complaint.endswith("; pip install 'uaccel[quantize]', or give .npy files")


def types_of(path: Path) -> dict[str, int]:
    """Of zero points, by the tensor that is quantised."""
    graph = onnx.load(path).graph
    kinds = {tensor.name: tensor.data_type for tensor in graph.initializer}
    steps = [node for node in graph.node if node.op_type == "QuantizeLinear"]
    return {node.input[0].removesuffix("_QuantizeLinear_Input"): kinds[node.input[2]] for node in steps}


INT8, INT16 = onnx.TensorProto.INT8, onnx.TensorProto.INT16


def test_sixteen_bits_everywhere(model: Path, data: Path, call: Call) -> None:
    usual = call("quantize", model, "-c", data, "--json").report
    wide = call("quantize", model, "-c", data, "--activations", "int16", "--json").report
    assert Path(wide["output"]).name == "model_int16.onnx"
    assert set(types_of(Path(wide["output"])).values()) == {INT16}
    assert "a" not in types_of(Path(wide["output"])), "a step between a layer and its clamp"
    assert wide["outputs"]["y"]["snr_db"] > usual["outputs"]["y"]["snr_db"] + 1


def test_layers_that_are_named(model: Path, data: Path, call: Call) -> None:
    done = call("quantize", model, "-c", data, "--leave-out", "fir*", "--sixteen", "second", "--json").report
    assert done["kept"] == [
        {"name": "first", "as": "float", "gain_db": None},
        {"name": "second", "as": "int16", "gain_db": None},
    ]
    found = types_of(Path(done["output"]))
    assert "a" not in found
    assert (found["d"], found["y"]) == (INT16, INT8)


@pytest.mark.parametrize("trade", ["int16", "float"])
def test_the_search_keeps_no_layer_too_many(trade: str, model: Path, data: Path, tmp_path: Path, call: Call) -> None:
    usual = call("quantize", model, "-c", data, "--json").report["outputs"]["y"]["snr_db"]
    wanted = usual + 1
    found = call("quantize", model, "-c", data, "--min-snr", wanted, "--trade", trade, "--json").report
    names = [row["name"] for row in found["kept"]]
    assert names
    assert {row["as"] for row in found["kept"]} == {trade}
    assert found["outputs"]["y"]["snr_db"] >= wanted
    assert found["goal"] == {"min_snr": wanted, "max_loss": None, "trade": trade}
    option = "--sixteen" if trade == "int16" else "--leave-out"
    for left in names:
        rest = [word for name in names if name != left for word in (option, name)]
        assert call("quantize", model, "-c", data, *rest, "--json").report["outputs"]["y"]["snr_db"] < wanted


def test_nothing_is_traded_where_the_goal_holds(model: Path, data: Path, tmp_path: Path, call: Call) -> None:
    np.save(tmp_path / "labels.npy", np.zeros(8, np.int64))
    goals = ("--min-snr", "1", "--max-loss", "100", "--labels", tmp_path / "labels.npy")
    assert call("quantize", model, "-c", data, *goals, "--json").report["kept"] == []


REFUSED: dict[str, tuple[tuple[str, ...], str]] = {
    "no such layer": (("--leave-out", "frist"), '--leave-out: no layer is called "frist"; near are first'),
    "too much": (
        ("--min-snr", "200"),
        "with every layer in int16 there is signal to noise ... dB still; ask for less, or --trade float",
    ),
    "no labels": (("--max-loss", "1"), "--max-loss takes labels; give --labels, or data with a folder for each class"),
    "16 bits as operators": (
        ("--activations", "int16", "--format", "qoperator"),
        "--format qoperator has no operators of 16 bits; leave it out, or keep to 8 bits",
    ),
    "mean": (("--mean", "a"), '--mean "a" is no list of numbers; give one, or one for each channel: 0.5,0.5,0.5'),
    "all left out": (
        ("--leave-out", "*"),
        "nothing in ... can be quantised but for what is left out: its operators are ...",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_be(kind: str, model: Path, data: Path, call: Call) -> None:
    wishes, text = REFUSED[kind]
    done = call("quantize", model, "-c", data, *wishes)
    assert done.status == 1
    start, _, end = text.partition("...")
    assert done.complaint.startswith(start)
    assert done.complaint.endswith(end.rpartition("...")[2])
    assert not model.with_name("model_int8.onnx").exists()


def strange(folder: Path) -> None:
    folder.mkdir()
    (folder / "notes.txt").touch()


def uneven(folder: Path) -> None:
    write_arrays(folder, as_floats(samples()))
    np.save(folder / "99.npy", np.zeros((3, 5, 6), np.float32))


def broken(folder: Path) -> None:
    folder.mkdir()
    (folder / "a.npy").write_bytes(b"anything")


def image(content: bytes) -> Any:
    """A folder of one file whose name says that it is a PNG."""

    def make(folder: Path) -> None:
        pytest.importorskip("PIL")
        folder.mkdir()
        (folder / "a.png").write_bytes(content)

    return make


def pipe(folder: Path) -> None:
    folder.mkdir()
    os.mkfifo(folder / "a.npy")


PNG = png(samples()[0])
HEAD = PNG[12:16] + b"\0\0\x2e\xe0" * 2 + PNG[24:29]
LARGE = PNG[:12] + HEAD + zlib.crc32(HEAD).to_bytes(4, "big") + PNG[33:]
"""12,000 pixels by as many."""
POSTSCRIPT = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 6 6\n%%EndComments\nshowpage\n"
BAD: dict[str, tuple[Any, str]] = {
    "cut short": (image(PNG[:-30]), "a.png is not a readable image: "),
    "no image": (image(b"anything"), "a.png is not a readable image: cannot identify image file"),
    "a program": (image(POSTSCRIPT), "a.png is not a readable image: cannot identify image file"),
    "a bomb": (image(LARGE), "a.png is not a readable image: Image size (144000000 pixels) exceeds limit of 89478485"),
    "a pipe": (pipe, "folder holds no files; wanted images or .npy files, 100,000 at most"),
    "empty": (lambda folder: folder.mkdir(), "folder holds no files; wanted images or .npy files, 100,000 at most"),
    "other files": (strange, "notes.txt is no image and no .npy file; leave nothing else in "),
    "shapes": (uneven, "99.npy has shape [3, 5, 6], and 00.npy has [3, 6, 6]; give all samples one shape"),
    "no array": (broken, "a.npy is not a readable .npy file: "),
}


@pytest.mark.parametrize("kind", BAD)
def test_folders_that_are_no_data(kind: str, model: Path, tmp_path: Path, call: Call) -> None:
    make, text = BAD[kind]
    make(tmp_path / "folder")
    done = call("quantize", model, "-c", tmp_path / "folder")
    assert done.status == 1
    assert text in done.complaint
    assert done.err.count("\n") == done.err.count("uaccel: "), "nothing else is said"


def test_more_samples_than_memory_holds(
    model: Path, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("uaccel.quantize.calibration.LARGEST", 6 * 6 * 3 * 4 * 3)
    write_arrays(tmp_path / "folder", as_floats(samples(4)))
    done = call("quantize", model, "-c", tmp_path / "folder")
    assert (done.status, done.complaint) == (
        1,
        f"{tmp_path}/folder holds more than 1296 bytes of samples; give fewer of them",
    )


def test_a_pipe_is_not_waited_for(model: Path, tmp_path: Path, call: Call) -> None:
    pipe(tmp_path / "folder")
    done = call("quantize", model, "-c", tmp_path / "folder" / "a.npy")
    assert done.complaint.endswith("a.npy: it is a pipe and no regular file; give arrays as numpy.save writes them")
