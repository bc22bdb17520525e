"""Models in bundles (``.task``): named, alone, in inner bundles; damage and size are one line."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.models.windows import Window, conv_2d
from support.run.command import Call
from uaccel.errors import ModelError
from uaccel.frontend import bundle, import_model
from uaccel.frontend.checks import read_file

SMALL = conv_2d(Window(input=(1, 4, 3, 2), channels=3))
LARGE = conv_2d(Window(input=(1, 4, 3, 2), channels=5))


def packed(files: Mapping[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


def write(folder: Path, files: Mapping[str, bytes], name: str = "hand.task") -> Path:
    path = folder / name
    path.write_bytes(packed(files))
    return path


@pytest.fixture
def nested(tmp_path: Path) -> Path:
    """As gesture recognition is shipped: two bundles, one of which has two models."""
    inner = packed({"small.tflite": SMALL, "large.tflite": LARGE}, zipfile.ZIP_DEFLATED)
    return write(tmp_path, {"one.task": inner, "other.task": packed({"small.tflite": LARGE}), "data.binarypb": b"x"})


@pytest.mark.parametrize(
    ("words", "channels"),
    [("one.task:small.tflite", 3), ("one.task:large.tflite", 5), ("other.task:small.tflite", 5), ("other.task", 5)],
)
def test_a_model_in_a_bundle_is_that_model(words: str, channels: int, nested: Path) -> None:
    path = Path(f"{nested}:{words}")
    model = import_model(path)
    assert model.signature.outputs[0].info.shape[-1] == channels
    assert (model.name, model.file) == (Path(words.rpartition(":")[2]).stem, model.file)
    assert model.file is not None
    assert (model.file.suffix, model.file.data) == (".tflite", {3: SMALL, 5: LARGE}[channels])


@pytest.mark.parametrize("board", ["host", "mps2_an386"])
def test_a_model_in_a_bundle_runs_and_equals_its_runtime(
    board: str, nested: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UACCEL_CACHE", str(nested.with_name("cache")))
    for _ in range(2):  # compiled, then taken from the cache
        done = call("run", f"{nested}:one.task:large.tflite", "--board", board, "--verify", "--json")
        assert (done.status, done.report["model"], done.report["verify"]["bit_exact"]) == (0, "large", True)
        assert done.report["verify"]["against"][1:]
    nested.write_bytes(packed({"one.task": packed({"large.tflite": SMALL})}))
    again = call("run", f"{nested}:one.task:large.tflite", "--board", board, "--json")
    assert next(iter(again.report["outputs"].values()))["shape"][-1] == 3


def test_the_only_model_need_not_be_named(tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, {"a.tflite": SMALL, "labels.txt": b"x"})
    assert call("compile", "hand.task").status == 0
    assert call("compile", "hand.task:a.tflite").status == 0
    assert {path.name for path in tmp_path.glob("*.tar")} == {"hand.tar", "a.tar"}


def test_several_models_are_listed(nested: Path) -> None:
    with pytest.raises(ModelError) as refused:
        import_model(nested)
    listed = "one.task:small.tflite, one.task:large.tflite, other.task:small.tflite"
    assert str(refused.value) == f"{nested} holds 3 models: {listed}; name one, as {nested}:one.task:small.tflite"
    with pytest.raises(ModelError, match=r"hand.task:one.task holds 2 models: small.tflite, large.tflite; name one"):
        import_model(Path(f"{nested}:one.task"))


def bomb() -> bytes:
    return packed({"a.tflite": bytes(1 << 20)}, zipfile.ZIP_DEFLATED)


def deep() -> bytes:
    data = packed({"a.tflite": SMALL})
    for _ in range(5):
        data = packed({"i.task": data})
    return data


CRC = packed({"a.tflite": SMALL}).replace(SMALL, SMALL[:-1] + bytes([SMALL[-1] ^ 1]))
DAMAGE: dict[str, tuple[bytes, str, str]] = {
    "no zip": (b"TFL3", "", r"hand.task is no bundle \(a zip of models\), or is damaged: File is not a zip file; copy"),
    "empty": (packed({}), "", "holds no .tflite file: nothing; wanted a bundle of models"),
    "no model": (packed({"a.bin": b""}), "", "holds no .tflite file: a.bin; wanted a bundle of models"),
    "not in it": (
        packed({"hand.tflite": SMALL}),
        ":hnd.tflite",
        "has no file 'hnd.tflite'; did you mean 'hand.tflite'\\?; it holds hand.tflite",
    ),
    "wrong bytes": (CRC, ":a.tflite", "or is damaged: Bad CRC-32 for file 'a.tflite'"),
    "inner one damaged": (packed({"i.task": b"x"}), "", r"hand.task:i.task is no bundle"),
    "another format": (packed({"a.task": packed({"b.pb": b""})}), ":a.task:b.pb", "suffix '.pb' is not known"),
    "too many files": (packed({f"{n}.tflite": b"" for n in range(1001)}), "", "holds 1001 files; at most 1000"),
    "inner one too large": (packed({"i.task": bomb() + bytes(1 << 17)}), "", "i.task has .* bytes, and at most 65,536"),
    "too deep": (deep(), ":" + ":".join(["i.task"] * 5) + ":a.tflite", "bundles in bundles; at most 3 are opened"),
    "too deep to look": (deep(), "", "holds no .tflite file: i.task; wanted"),
}


@pytest.mark.parametrize(("data", "words", "told"), DAMAGE.values(), ids=DAMAGE)
def test_what_is_no_bundle_of_models_is_one_line(
    data: bytes, words: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "hand.task"
    path.write_bytes(data)
    if "65,536" in told:
        monkeypatch.setattr(bundle, "LARGEST", 1 << 16)
    with pytest.raises(ModelError, match=told) as refused:
        import_model(Path(f"{path}{words}"))
    assert "\n" not in str(refused.value)


def test_a_model_is_as_large_as_any_model_may_be(tmp_path: Path) -> None:
    (tmp_path / "hand.task").write_bytes(bomb())
    with pytest.raises(ModelError, match=r"a.tflite has 1,048,576 bytes, and at most 65,536 are read"):
        read_file(tmp_path / "hand.task:a.tflite", 1 << 16)


def test_a_bundle_that_is_not_there(tmp_path: Path, call: Call) -> None:
    for words in ("no.task", "no.task:a.tflite"):
        done = call("compile", str(tmp_path / words))
        assert (done.status, "no.task: No such file or directory; check the path" in done.complaint) == (1, True)


def test_a_file_whose_name_looks_like_a_place_in_a_bundle_is_a_file(tmp_path: Path) -> None:
    path = tmp_path / "m.task:a.tflite"
    path.write_bytes(SMALL)
    assert import_model(path).name == "m.task:a"


@pytest.mark.parametrize("seed", range(3))
def test_any_damage_is_refused_or_harmless(seed: int, nested: Path) -> None:
    rng, whole = np.random.default_rng(seed), nested.read_bytes()
    outcomes: set[Any] = set()
    for _ in range(150):
        data = bytearray(whole)
        for place in rng.integers(0, len(data), rng.integers(1, 6)):
            data[place] = rng.integers(0, 256)
        nested.write_bytes(data[: rng.integers(1, len(data))] if rng.integers(4) == 0 else data)
        try:
            outcomes.add(len(bundle.read(Path(f"{nested}:one.task:large.tflite"), 1 << 20)))
        except ModelError:
            outcomes.add("refused")
    assert outcomes == {"refused", len(LARGE)}
