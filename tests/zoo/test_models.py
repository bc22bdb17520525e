"""The known models: what is listed holds together, and one comes out of a package's wheel whole and right."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.run.command import Call, call_in
from uaccel.runner.options import read_shapes
from uaccel.zoo import known
from uaccel.zoo.known import KnownModel, find_model, known_models

DATA = b"a model"
DIGEST = hashlib.sha256(DATA).hexdigest()
TASKS = {"vision", "audio", "motion", "signal", "language", "tabular"}
MODELS = known_models()


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str]) -> Call:
    return call_in(capfd)


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A list with one model, and a folder that pip looks for wheels in, and nowhere else."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    row = find_model("sine").to_json()
    row |= {"package": "carrier", "version": "1.0", "wheel": "py3-none-any", "path": "carrier/sine.tflite"}
    row |= {"bytes": len(DATA), "sha256": DIGEST}
    listed = tmp_path / "models.json"
    listed.write_text(json.dumps({"models": [row]}))
    monkeypatch.setattr(known, "LIST", listed)
    return tmp_path


def wheel(folder: Path, data: bytes = DATA, path: str = "carrier/sine.tflite") -> None:
    about = "carrier-1.0.dist-info"
    with zipfile.ZipFile(folder / "carrier-1.0-py3-none-any.whl", "w") as archive:
        archive.writestr(path, data)
        archive.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: carrier\nVersion: 1.0\n")
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{about}/RECORD", "")


def test_the_list_holds_together() -> None:
    assert len(MODELS) >= 40
    for values in ([model.name for model in MODELS], [model.sha256 for model in MODELS]):
        assert len(set(values)) == len(MODELS)
    assert {model.task for model in MODELS} == TASKS


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_an_entry(model: KnownModel) -> None:
    assert len(model.sha256) == 64
    assert model.bytes > 0
    assert model.file.endswith((".tflite", ".onnx"))
    assert len(model.wheel.split("-")) == 3
    assert model.options[::2] == ["--input-shape"] * (len(model.options) // 2)
    assert set(read_shapes(model.options[1::2], "")) <= {one["name"] for one in model.inputs}
    assert model.needs is None or model.refused is None


def test_the_table(call: Call) -> None:
    done = call("models")
    assert done.status == 0
    assert [line for line in done.out.splitlines() if len(line.rstrip()) > 100] == []
    for model in MODELS:
        assert model.name in done.out


def test_json_has_all_or_one(call: Call) -> None:
    assert [one["name"] for one in call("models", "--json").report["models"]] == [model.name for model in MODELS]
    assert call("models", "micro-alexa", "--json").report["models"] == [find_model("micro-alexa").to_json()]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_one_model(call: Call, model: KnownModel) -> None:
    told = call("models", model.name).out
    for part in (model.title, model.sha256, model.licence, f"uaccel models get {model.name}"):
        assert part in told


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("jarvis", "there is no model 'jarvis'; the nearest are micro-hey-jarvis, wake-hey-jarvis; 'uaccel models' "),
        ("micro-alexxa", "there is no model 'micro-alexxa'; the nearest are micro-alexa"),
        ("7", "there is no model '7'; 'uaccel models' lists all "),
    ],
)
@pytest.mark.parametrize("words", [(), ("show",), ("get",)])
def test_an_unknown_name(call: Call, name: str, told: str, words: tuple[str, ...]) -> None:
    done = call("models", *words, name)
    assert done.status == 1
    assert done.complaint.startswith(told)


def test_get_takes_the_file_out_of_the_wheel(call: Call, index: Path) -> None:
    wheel(index)
    report = call("models", "get", "sine", "-o", index / "new" / "folder", "--json").report
    assert report["file"] == str(index / "new" / "folder" / "sine.tflite")
    assert Path(report["file"]).read_bytes() == DATA


def test_a_file_that_is_there_stays(call: Call, index: Path) -> None:
    (index / "sine.tflite").write_bytes(DATA)
    assert call("models", "get", "sine", "-o", index).status == 0  # though there is no wheel


def damaged(folder: Path) -> None:
    wheel(folder)
    file = folder / "carrier-1.0-py3-none-any.whl"
    file.write_bytes(file.read_bytes().replace(DATA, b"A MODEL"))


SILENT = {"PIP_NO_INDEX": "0", "PIP_FIND_LINKS": "", "PIP_INDEX_URL": "http://127.0.0.1:9/simple"}


@pytest.mark.parametrize(
    ("prepare", "settings", "told"),
    [
        (lambda folder: wheel(folder, b"another"), {}, f"has the SHA-256 {hashlib.sha256(b'another').hexdigest()}, "),
        (lambda folder: wheel(folder, b"longer than it"), {}, f"wanted {DIGEST}: the package index gives another "),
        (lambda folder: wheel(folder, path="other"), {}, "cannot read carrier/sine.tflite of carrier 1.0: there is "),
        (damaged, {}, "the wheel is damaged: Bad CRC-32"),
        (lambda folder: None, {}, "cannot download carrier 1.0: pip says 'No matching distribution found for carrier"),
        (lambda folder: None, SILENT, "cannot download carrier 1.0: the package index does not answer; check the netw"),
    ],
    ids=["digest", "longer", "no file", "damaged", "no package", "no network"],
)
def test_what_cannot_be_got(
    call: Call,
    index: Path,
    monkeypatch: pytest.MonkeyPatch,
    prepare: Callable[[Path], None],
    settings: dict[str, str],
    told: str,
) -> None:
    prepare(index)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    done = call("models", "get", "sine", "-o", index / "out")
    assert done.status == 1
    assert told in done.complaint
    assert not (index / "out" / "sine.tflite").exists()


def test_a_python_without_pip(call: Call, index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = index / "python"
    program.write_text(f"#!/bin/sh\necho {program}: No module named pip\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    told = f"cannot download carrier 1.0: {program} has no pip; run python -m ensurepip"
    assert call("models", "get", "sine", "-o", index).complaint == told


def test_a_download_without_end(call: Call, index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known, "SECONDS", 0.0)
    told = "cannot download carrier 1.0: no end within 0 s; check the network and pip's settings, such as PIP_INDEX_URL"
    assert call("models", "get", "sine", "-o", index).complaint == told


def test_a_folder_that_is_a_file(call: Call, index: Path) -> None:
    (index / "file").write_bytes(b"")
    told = f"cannot make folder {index}/file: File exists; choose another place with -o"
    assert call("models", "get", "sine", "-o", index / "file").complaint == told


@pytest.mark.parametrize(
    ("tags", "words"),
    [
        ("py3-none-any", []),
        ("py3-none-linux_x86_64", ["--platform", "linux_x86_64", "--abi", "none", "--implementation", "py"]),
        ("cp311-cp311-a.b", ["--platform", "a", "--platform", "b", "--abi", "cp311", "--implementation", "cp"]),
    ],
)
def test_a_wheel_of_another_system(tags: str, words: list[str]) -> None:
    row: dict[str, Any] = find_model("sine").to_json() | {"wheel": tags}
    more = ["--python-version", "311"] if tags.startswith("cp") else []
    assert list(known._tags(KnownModel(**row))) == [*words, *more]
