"""``uaccel report``, ``run --details`` and ``run --report``: what they write, and what is no stored run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.models.networks import OWN
from support.run.command import Call
from uaccel.report import page

HINT = "; wanted what 'uaccel run MODEL --json --details' writes"
MINIMAL: dict[str, Any] = {
    "schema": 1,
    "runs": 1,
    "model": "m",
    "board": "b",
    "layers": [],
    "ram": {},
    "flash": {},
    "inputs": {},
}


def stored(folder: Path, data: Any) -> Path:
    path = folder / "run.json"
    path.write_text(data if isinstance(data, str) else json.dumps(data))
    return path


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("", "is no JSON, or only a part of it: Expecting value: line 1 column 1 (char 0)"),
        (json.dumps(MINIMAL)[:30], "is no JSON, or only a part of it: "),
        ([], "is no JSON object"),
        ({"schema": 1}, "is no result of a run"),
        ({"error": {"message": "no"}}, "is the report of a command that failed"),
        ({"layers": [], "runs": 1}, "was written by an older uaccel: run the model again with this one"),
        (MINIMAL | {"schema": 2}, "has schema 2, and this uaccel reads 1: use the uaccel that wrote it, or run again"),
        (MINIMAL | {"layers": None}, "has a field that no run has so: layers is None, wanted a list; "),
        (MINIMAL | {"layers": [{"name": 3}]}, "has a field that no run has so: layers[0].name is 3, wanted text; "),
        (
            MINIMAL | {"plan": {"arena": "large"}},
            "has a field that no run has so: plan.arena is 'large', wanted a whole number from ",
        ),
        (MINIMAL | {"graph": [1]}, "has a field that no run has so: graph is [1], wanted an object; "),
    ],
)
def test_what_is_no_run_is_said_in_one_line(call: Call, tmp_path: Path, data: Any, words: str) -> None:
    path = stored(tmp_path, data)
    done = call("report", path, "-o", tmp_path / "page.html")
    assert done.status == 1
    assert done.complaint.startswith(f"{path} {words}")
    assert done.complaint.endswith(HINT)
    assert not (tmp_path / "page.html").exists()


def test_what_cannot_be_read_or_written(call: Call, tmp_path: Path) -> None:
    missing = tmp_path / "none.json"
    assert call("report", missing, "-o", tmp_path / "p.html").complaint == (
        f"cannot read {missing}: No such file or directory{HINT}"
    )
    page = tmp_path / "none" / "page.html"
    assert call("report", stored(tmp_path, MINIMAL), "-o", page).complaint == (
        f"cannot write {page}: there is no folder {page.parent}; choose another place with -o"
    )
    assert call("report", stored(tmp_path, MINIMAL), "--board", "host").complaint == (
        "--board is for a model, and a stored run is given; leave it away"
    )
    assert "of models one at a time" in call("report", "a.tflite", "b.tflite", "-o", tmp_path / "p.html").complaint


def test_a_run_with_little_in_it_has_a_page_that_says_so(call: Call, tmp_path: Path) -> None:
    done = call("report", stored(tmp_path, MINIMAL), "-o", tmp_path / "page.html", "--json")
    assert done.status == 0
    assert done.report["runs"] == [{"model": "m", "board": "b"}]
    text = (tmp_path / "page.html").read_text()
    assert done.report["bytes"] == len(text)
    for words in ("not compared with anything", "does not hold the model", "holds no memory plan", "holds no trace"):
        assert words in text


def test_a_run_that_is_stored_and_read_again_gives_the_same_page(call: Call, tmp_path: Path) -> None:
    written = tmp_path / "written.html"
    done = call("run", OWN / "residual.tflite", "--verify", "--json", "--details", "--report", written)
    assert done.status == 0
    run = done.report
    assert call("report", stored(tmp_path, run), "-o", tmp_path / "again.html").status == 0
    assert (tmp_path / "again.html").read_bytes() == written.read_bytes()
    assert written.read_text() == page([run])
    assert set(run["sources"]) == {layer["name"] for layer in run["graph"]["layers"] if not layer["view"]}
    (name, text), *_ = run["sources"].items()
    assert f"layer_{name}(" in text
    values = run["graph"]["values"]
    for layer in run["graph"]["layers"]:
        assert {*layer["inputs"], *layer["outputs"]} <= values.keys()
    arena = [value for value in values.values() if value["memory"] == "arena"]
    assert max(value["offset"] + value["bytes"] for value in arena) <= run["plan"]["arena"] == run["ram"]["arena"]
    assert run["source"]["command"] == f"uaccel run {OWN / 'residual.tflite'} --board host --verify"


def test_details_are_only_there_where_they_are_asked_for(call: Call, small: Path) -> None:
    run = call("run", small, "--json").report
    assert not {"sources", "hot", "trace"} & run.keys()
    assert {"schema", "source", "target", "graph", "plan", "constants", "decisions", "engines"} <= run.keys()
    assert len(page([run])) > 10_000


@pytest.mark.slow
def test_a_model_is_run_verified_and_shown(call: Call, small: Path, tmp_path: Path) -> None:
    done = call("report", small, "-o", tmp_path / "page.html")
    assert done.status == 0
    assert "page.html" in done.out
    text = (tmp_path / "page.html").read_text()
    assert "Every bit is as it should be" in text
    assert "http://" not in text.replace("http://www.w3.org", "")


@pytest.mark.slow
def test_wishes_about_memory_are_those_of_run(call: Call, tmp_path: Path) -> None:
    wishes = ("--ram", "4800", "--feed", "--favour", "size")
    done = call("report", OWN / "residual.tflite", *wishes, "-o", tmp_path / "page.html")
    assert done.status == 0, done.err
    carried = (tmp_path / "page.html").read_text().partition('id="runs">')[2].partition("</script>")[0]
    (run,) = json.loads(carried)
    assert {*wishes} <= {*run["source"]["command"].split()}
    assert run["ram"]["arena"] + run["ram"]["io"] <= 4800
    assert run["favour"] == "size"


QUANTISED: dict[str, Any] = {
    "output": "small_int8.onnx",
    "sha256": "ab",
    "samples": 24,
    "layers": [
        {"name": "a", "op": "Conv", "tensor": "a", "snr_db": 39.44, "max_difference": 0.5},
        {"name": "b", "op": "Flatten", "tensor": "b", "snr_db": None, "max_difference": 0.0},
    ],
}
WRONG_QUANTISED: dict[str, tuple[Any, str]] = {
    "a run": (MINIMAL, "{0} tells of no quantised model; "),
    "rows": (QUANTISED | {"layers": [{"name": "a"}]}, "{0} has layers without name, op, tensor, snr_db and max_diff"),
    "text": (QUANTISED | {"layers": [QUANTISED["layers"][0] | {"snr_db": "loud"}]}, "{0} has layers without name, op"),
    "another": (QUANTISED | {"sha256": "cd"}, "{0} is about small_int8.onnx as it was made, and not about m.onnx: "),
}


def quantised(folder: Path, data: Any) -> Path:
    (folder / "q.json").write_text(json.dumps(data))
    return folder / "q.json"


def test_a_page_shows_what_quantising_cost(call: Call, tmp_path: Path) -> None:
    run = stored(tmp_path, MINIMAL | {"source": {"sha256": "ab", "file": "m.onnx", "format": "onnx", "command": ""}})
    target = tmp_path / "page.html"
    done = call("report", run, "--quantized", quantised(tmp_path, QUANTISED), "-o", target)
    assert done.status == 0, done.err
    for words in ("over 24 samples", "<strong>a</strong>", ">39.4 dB<", ">exact<", ">0.5<"):
        assert words in target.read_text()
    two = call("report", run, run, "--quantized", tmp_path / "q.json", "-o", target)
    assert two.complaint == "--quantized is for the page of one run, and several are compared; leave it away"


@pytest.mark.parametrize("kind", WRONG_QUANTISED)
def test_what_is_wrong_with_what_quantising_told(kind: str, call: Call, tmp_path: Path) -> None:
    data, words = WRONG_QUANTISED[kind]
    run = stored(tmp_path, MINIMAL | {"source": {"sha256": "ab", "file": "m.onnx", "format": "onnx", "command": ""}})
    path = quantised(tmp_path, data)
    done = call("report", run, "--quantized", path, "-o", tmp_path / "page.html")
    assert done.status == 1
    assert done.complaint.startswith(words.format(path))
    model = tmp_path / "m.tflite"
    model.write_bytes(b"not read")
    early = call("report", model, "--quantized", path, "-o", tmp_path / "page.html")
    assert early.complaint.startswith(words.format(path).replace("m.onnx", str(model)))
    missing = tmp_path / "missing.json"
    assert call("report", run, "--quantized", missing, "-o", tmp_path / "page.html").complaint.startswith(
        f"cannot read {missing}: No such file or directory; wanted what 'uaccel quantize MODEL --json' writes"
    )
