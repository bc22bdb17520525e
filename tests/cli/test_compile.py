"""`uaccel compile`: what it reports and what it writes."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

import pytest

from support.models.networks import OWN
from support.run.command import Call, process

BRANCHES = OWN / "branches.tflite"
TENSOR = {"shape": list, "dtype": str, "scale": (float, type(None)), "zero_point": (int, type(None))}
RAM = dict.fromkeys(("arena", "arena_lower_bound", "io"), int) | {"arena_bounds": str}
UNKNOWN_RAM = ("static", "stack", "stack_static", "session", "total")
LAYER = {
    "name": str,
    "op": str,
    "engine": str,
    "reason": str,
    "calls": type(None),
    "code": type(None),
    "instructions": type(None),
    "cycles": type(None),
}


def assert_types(value: dict[str, Any], wanted: dict[str, Any], where: str) -> None:
    for key, kind in wanted.items():
        assert key in value, f"{where} lacks {key}"
        assert isinstance(value[key], kind), f"{where}.{key} is {value[key]!r}"


def test_the_report_holds_what_the_design_promises(tmp_path: Path) -> None:
    done = process("compile", BRANCHES, "--board", "host", "-o", "made.tar", "--json", cwd=tmp_path)
    assert done.status == 0
    report = done.report
    assert (report["model"], report["board"], report["accelerators"]) == ("branches", "host", [])
    assert list(report["inputs"]) == ["image", "context"]
    assert list(report["outputs"]) == ["mul_2", "fully_connected_1", "arg_max_1"]
    for name, tensor in (*report["inputs"].items(), *report["outputs"].items()):
        assert_types(tensor, TENSOR, name)
    assert report["inputs"]["image"]["shape"] == [1, 12, 12, 4]
    assert report["inputs"]["image"]["dtype"] == "int8"
    assert report["inputs"]["image"]["scale"] > 0
    assert report["outputs"]["arg_max_1"] == {"shape": [1, 6, 6], "dtype": "int32", "scale": None, "zero_point": None}
    assert len(report["layers"]) >= 25
    for layer in report["layers"]:
        assert_types(layer, LAYER, layer["name"])
        assert layer["engine"] == "cpu"
    assert_types(report["ram"], RAM, "ram")
    assert {key: report["ram"][key] for key in UNKNOWN_RAM} == dict.fromkeys(UNKNOWN_RAM)
    assert report["ram"]["io"] == 12 * 12 * 4 + 6 * 6 * 8 + 6 * 6 * 5 + 7 + 4 * 6 * 6
    assert report["ram"]["arena"] >= report["ram"]["arena_lower_bound"] > 0
    assert report["ram"]["arena_bounds"] == "layer by layer, outputs over what is read of their inputs"
    assert report["flash"]["weights"] > 0
    assert (report["flash"]["code"], report["flash"]["session"], report["flash"]["total"]) == (None, None, None)
    assert report["archive"] == "made.tar"


@pytest.mark.slow
def test_progress_is_on_stderr_and_nothing_else_is(small: Path, tmp_path: Path) -> None:
    done = process("compile", small, "--json", cwd=tmp_path)
    assert done.report["archive"] == "small.tar"
    assert done.err.splitlines()[-1] == "uaccel: write small.tar"
    assert all(line.startswith("uaccel: ") for line in done.err.splitlines())
    assert len(done.err.splitlines()) >= 4


def test_the_archive_is_named_after_the_model_and_readable_by_others(
    small: Path, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call("compile", small).status == 0
    assert [path.name for path in tmp_path.iterdir()] == ["small.tar"]
    assert (tmp_path / "small.tar").stat().st_mode & 0o777 == 0o644
    with tarfile.open(tmp_path / "small.tar") as tar:
        assert "./codegen/host/include/tvmgen_small.h" in tar.getnames()


def test_a_name_of_ones_own(small: Path, tmp_path: Path, call: Call) -> None:
    report = call("compile", small, "--name", "Door Opener", "-o", tmp_path / "x.tar", "--json").report
    assert (report["model"], report["name"]) == ("small", "door_opener")
    with tarfile.open(tmp_path / "x.tar") as tar:
        assert "./codegen/host/include/tvmgen_door_opener.h" in tar.getnames()


def test_an_archive_that_is_there_is_replaced_as_a_whole(small: Path, tmp_path: Path, call: Call) -> None:
    target = tmp_path / "x.tar"
    target.write_bytes(b"old")
    target.chmod(0o600)
    with target.open("rb") as old:  # whoever has it open keeps what it was
        assert call("compile", small, "-o", target).status == 0
        assert old.read() == b"old"
    assert tarfile.is_tarfile(target)
    assert [path.name for path in tmp_path.iterdir()] == ["x.tar"]


def test_a_failure_leaves_the_old_archive(tmp_path: Path, call: Call) -> None:
    target = tmp_path / "x.tar"
    target.write_bytes(b"old")
    model = tmp_path / "bad.tflite"
    model.write_bytes(b"no model at all")
    assert call("compile", model, "-o", target).status == 1
    assert target.read_bytes() == b"old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.tflite", "x.tar"]


def test_people_see_layers_memory_and_where_the_archive_is(small: Path, tmp_path: Path, call: Call) -> None:
    done = call("compile", small, "-o", tmp_path / "x.tar")
    assert done.status == 0
    for words in ("conv_2d_0", "1x4x3x3", "648", "1 on cpu", "conv2d_s8"):
        assert words in done.out
    assert "io 60" in done.out
    assert str(tmp_path / "x.tar") in done.out
