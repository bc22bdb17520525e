"""`uaccel new accelerator`: what it writes passes its own test, and models run on it, as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from models import dense
from support.device.boards import board_with_tools
from support.run.command import Call
from uaccel import models
from uaccel.accelerator import load_accelerator
from uaccel.accelerator.discovery import LONGEST
from uaccel.testing.driver import compile_with_each
from uaccel.util.files import data_dir

pytest_plugins = ["pytester"]

NAMES = ["mine", "my_first_npu2", "x" * LONGEST]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.slow
def test_its_own_test_passes_at_once(call: Call, pytester: pytest.Pytester) -> None:
    done = call("new", "accelerator", "mine")
    assert "Use it with --accelerator ./mine" in done.out
    run = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-q", Path.cwd() / "mine")
    run.assert_outcomes(passed=7)


@pytest.mark.parametrize(
    ("installed", "words"),
    [(object(), "  Test it with: pytest mine"), (None, "  Test it with: pip install pytest; pytest mine")],
)
def test_how_to_test_it_is_said(installed: object, words: str, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uaccel.cli.start.find_spec", lambda name: installed)
    assert words in call("new", "accelerator", "mine").out.splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("board", ["host", "mps2_an386"])
def test_a_model_runs_on_it_at_once(board: str, call: Call) -> None:
    if board != "host":
        board_with_tools(board)
    files = call("new", "accelerator", "mine", "there", "--json").report["files"]
    model = "there/tests/model.tflite"
    assert model in files
    report = call("run", model, "--accelerator", "./there", "--board", board, "--verify", "--json").report
    assert report["verify"]["bit_exact"] is True
    on_it = [layer for layer in report["layers"] if layer["engine"] == "mine"]
    assert [(layer["calls"], layer["cycles"]) for layer in on_it] == [(1, 50 + layer["macs"]) for layer in on_it]
    assert [layer["layer"] for layer in report["offloaded"]] == [layer["name"] for layer in on_it] != []


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_any_name_gives_clean_c(name: str, call: Call, tmp_path: Path) -> None:
    report = call("new", "accelerator", name, "--json").report
    assert report["accelerator"] == report["folder"] == name
    accelerator = load_accelerator(f"./{name}")
    assert accelerator.name == name
    (tmp_path / "objects").mkdir()
    assert compile_with_each(accelerator, tmp_path / "objects")
    for file in map(Path, report["files"]):
        text = "" if file.suffix == ".tflite" else file.read_text().replace(f"'{name}'", name)
        assert "starter" not in f"{file}{text}".lower()
        lines = text.splitlines() if name == "mine" else []
        assert [line for line in lines if len(line) > 120] == []


def test_what_it_cannot_do_is_said_in_words(call: Call) -> None:
    """The limit that the description states is the one that `explain` quotes."""
    assert call("new", "accelerator", "mine").status == 0
    description = Path("mine/accelerator.py")
    description.write_text(description.read_text().replace("LARGEST = 1024", "LARGEST = 24"))
    report = call("explain", "mine/tests/model.tflite", "-a", "./mine", "--json").report
    reasons = {layer["name"]: layer["reason"] for layer in report["layers"] if layer["engine"] == "cpu"}
    assert reasons["fully_connected_0"] == "mine: 1 rows of 32 for 24 units, and the device takes 24 of each"


def test_it_names_no_place_of_this_computer(call: Call) -> None:
    """A folder that is given away: the page's path is said, and not written."""
    done = call("new", "accelerator", "mine")
    assert f"How to change it tells {data_dir('docs')}/bring-your-accelerator.md" in done.out
    told = [
        file
        for file in Path("mine").rglob("*")
        if file.is_file() and str(data_dir("docs")).encode() in file.read_bytes()
    ]
    assert told == []


README = (data_dir("accelerator_template") / "README.md").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "operators"), re.findall(r"^\| `(\w+)` \| (`.*?)(?:, all of 16 bits)? \|$", README, re.M)
)
def test_models_have_the_operators_that_it_names(model: str, operators: str, call: Call) -> None:
    report = call("explain", models()[model], "--json").report
    there = {layer["op"].removeprefix("uaccel.") for layer in report["layers"]}
    assert set(re.findall(r"`(\w+)`", operators)) <= there


def test_nothing_is_overwritten(call: Call) -> None:
    Path("mine").mkdir()
    assert call("new", "accelerator", "mine").complaint == "mine exists already; choose another name, or remove it"
    assert list(Path("mine").iterdir()) == []
    Path("file").write_text("")
    done = call("new", "accelerator", "other", "file/there")
    assert (done.status, done.complaint) == (1, "file/there cannot be written: Not a directory; name another folder")


@pytest.mark.parametrize("name", ["Mine", "1st", "a-b", "a/b", "", "x" * (LONGEST + 1)])
def test_it_has_a_name_that_c_and_files_can_bear(name: str, call: Call) -> None:
    done = call("new", "accelerator", name)
    assert done.status == 1
    assert done.complaint.startswith(f"{name!r} cannot name an accelerator; wanted lower-case letters, digits and ")


@pytest.mark.parametrize("name", ["cpu", "string", "uaccel_hal", "int"])
def test_a_name_that_means_something_else_is_refused(name: str, call: Call) -> None:
    complaint = f"{name!r} cannot name an accelerator: it has a meaning already; choose another name"
    assert call("new", "accelerator", name).complaint == complaint


def test_a_name_that_is_taken_is_refused(call: Call) -> None:
    done = call("new", "accelerator", "nuc_fpga")
    assert (done.status, done.complaint) == (1, "there is an accelerator 'nuc_fpga' already; choose another name")


def test_its_model_is_made_from_a_seed() -> None:
    assert (data_dir("accelerator_template") / "tests" / "model.tflite").read_bytes() == dense.build()
