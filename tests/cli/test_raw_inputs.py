"""``--inputs`` and ``evaluate`` with pixels, images and real numbers, where the file says how they become inputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from frontend.tflite.test_metadata import model
from support.models.tflite_metadata import AXIS, About, metadata
from support.oracle.oracle import Array
from support.run.command import Call, Done

SCALE, ZERO = 0.0078125, -1
PIXELS = np.random.default_rng(3).integers(0, 256, (4, 2, 2, 2)).astype(np.uint8)
NAMES = About(files=[("labels.txt", AXIS, "")])


def stored(real: Array) -> Array:
    """The input's integers for real numbers, by the definition of its scale."""
    steps = real.astype(np.float64) / SCALE
    whole: Array = np.clip(np.trunc(steps + np.copysign(0.5, steps)) + ZERO, -128, 127).astype(np.int8)
    return whole


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.tflite").write_bytes(model(metadata([About((100.0, 127.5), (120.0,))], [NAMES])))
    np.savez("bytes.npz", x=PIXELS)
    np.savez("real.npz", x=((PIXELS - np.array([100.0, 127.5])) / 120).astype(np.float32))
    np.savez("exact.npz", x=stored(((PIXELS - np.array([100.0, 127.5])) / 120).astype(np.float32)))
    return tmp_path


def outputs(call: Call, given: str, board: str = "host") -> tuple[Array, Done]:
    done = call("run", "m.tflite", "--board", board, "--inputs", given, "--outputs", "out.npz", "--json")
    assert done.status == 0, done.err
    with np.load("out.npz") as arrays:
        return np.asarray(arrays["y"]), done


@pytest.mark.parametrize("board", ["host", "mps2_an386"])
def test_bytes_and_real_numbers_become_the_inputs_integers(board: str, folder: Path, call: Call) -> None:
    wanted, exact = outputs(call, "exact.npz", board)
    assert len({row.tobytes() for row in wanted}) > 1
    assert "inputs_made" not in exact.report
    told = {
        "bytes.npz": "x: (value - [100, 127.5]) / 120, as the file's metadata say, then real numbers to int8",
        "real.npz": "x: real numbers to int8",
    }
    for name, note in told.items():
        found, done = outputs(call, name, board)
        np.testing.assert_array_equal(found, wanted)
        assert done.report["inputs_made"] == [note]
    shown = call("run", "m.tflite", "--board", board, "--inputs", "bytes.npz").out
    assert told["bytes.npz"] in " ".join(shown.split())


def test_images_are_pixels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call) -> None:
    image = pytest.importorskip("PIL.Image")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.tflite").write_bytes(model(metadata([About((127.5,), (127.5,))], [NAMES]), channels=3))
    pixels = np.random.default_rng(4).integers(0, 256, (2, 2, 2, 3)).astype(np.uint8)
    Path("set").mkdir()
    for number, values in enumerate(pixels):
        image.fromarray(values).save(f"set/{number}.png")
    np.savez("exact.npz", x=stored(((pixels - 127.5) / 127.5).astype(np.float32)))
    wanted, _ = outputs(call, "exact.npz")
    found, done = outputs(call, "set")
    np.testing.assert_array_equal(found, wanted)
    assert "(value - 127.5) / 127.5" in done.report["inputs_made"][0]
    np.testing.assert_array_equal(
        outputs(call, "set/1.png")[0], wanted[1:2].reshape(outputs(call, "set/1.png")[0].shape)
    )


@pytest.mark.parametrize("name", ["bytes.npz", "real.npz"])
def test_without_metadata_arrays_are_of_the_inputs_type(name: str, folder: Path, call: Call) -> None:
    (folder / "m.tflite").write_bytes(model(None))
    assert "the model wants int8" in call("run", "m.tflite", "--inputs", name).complaint


def test_without_metadata_nothing_says_what_pixels_are(folder: Path, call: Call) -> None:
    (folder / "m.tflite").write_bytes(model(None, channels=3))
    (folder / "a.png").write_bytes(b"")
    words = 'a.png: nothing says how pixels become the numbers of input "x" (int8), since the model\'s file has no such'
    assert call("run", "m.tflite", "--inputs", "a.png").complaint.startswith(words)


def test_what_stands_for_no_number(folder: Path, call: Call) -> None:
    np.savez("nan.npz", x=np.full((1, 2, 2, 2), np.nan, np.float32))
    words = 'nan.npz: input "x" holds a NaN, which no int8 stands for'
    assert call("run", "m.tflite", "--inputs", "nan.npz").complaint == words
    np.savez("flat.npz", x=np.zeros((4, 9), np.uint8))
    assert "the model wants int8" in call("run", "m.tflite", "--inputs", "flat.npz").complaint


def test_evaluate_knows_the_names_of_classes(folder: Path, call: Call) -> None:
    classes = outputs(call, "exact.npz")[0].reshape(4, 3).argmax(1)
    known = np.array(["cat", "dog", 'guinea "pig"'])
    Path("names.txt").write_text("\n".join(known[classes]))
    wrong = classes.copy()
    wrong[0] = (classes[0] + 1) % 3
    Path("wrong.csv").write_text("label\n" + "\n".join(map(str, wrong)))
    done = call("evaluate", "m.tflite", "--data", "bytes.npz", "--labels", "names.txt", "--json")
    assert (done.report["correct"], len(done.report["inputs_made"])) == (4, 1)
    assert {row["label"]: row["samples"] for row in done.report["classes"]} == {
        known[label]: int((classes == label).sum()) for label in set(classes.tolist())
    }
    shown = call("evaluate", "m.tflite", "--data", "bytes.npz", "--labels", "wrong.csv")
    assert f"most others are taken for {known[classes[0]]}" in shown.out
    Path("other.txt").write_text("cow\n" * 4)
    complaint = call("evaluate", "m.tflite", "--data", "bytes.npz", "--labels", "other.txt").complaint
    assert complaint.endswith("line 1: 'cow' is no label; wanted a whole number from 0, or a name such as 'cat'")
