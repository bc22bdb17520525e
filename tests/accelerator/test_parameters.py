"""A planner's parameters: tuning varies them, the planner's own figures first. Nothing else makes several plans."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from support.device.boards import board_with_tools
from support.models.networks import OWN, network_named
from support.run.command import process
from uaccel.accelerator import load_accelerator
from uaccel.errors import AcceleratorError
from uaccel.kernels import Choice, Estimated, RankedSelector, Records, RecordsSelector
from uaccel.kernels.choice import Selection, Selector
from uaccel.pipeline import compile_model
from uaccel.util.files import data_dir

GESTURE, BOARD = OWN / "gesture.tflite", "mps2_an386"
WAYS = {"twice": 2, "once": 1, "thrice": 3}
EDITS = (
    ("from functools import partial", "import sys\nfrom functools import partial"),
    ("def convolve(region: Region)", 'def convolve(region: Region, way: str = "")'),
    ("def multiply(region: Region)", 'def multiply(region: Region, way: str = "")'),
    (
        "return Lowered((call,), cycles=of_matrices(region), instructions=750)",
        'print("planned", way, file=sys.stderr)\n    many = {"twice": 2, "once": 1, "thrice": 3}[way]\n'
        "    return Lowered((call,) * many, cycles=many * of_matrices(region), instructions=750)",
    ),
    ('    name="nuc_fpga",', '    name="nuc_fpga",\n    parameters={"way": ("twice", "once", "thrice")},'),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """nuc_fpga, as if it could do its matrices several times for nothing."""
    made = tmp_path / "mine"
    shutil.copytree(data_dir("accelerators") / "nuc_fpga", made, ignore=shutil.ignore_patterns("__pycache__", "tests"))
    for right, wrong in EDITS:
        _edit(made, right, wrong)
    return made


def _edit(folder: Path, right: str, wrong: str) -> None:
    text = (folder / "accelerator.py").read_text()
    assert text.count(right) == 1, right
    (folder / "accelerator.py").write_text(text.replace(right, wrong))


def choice_of(folder: Path, selector: Selector) -> tuple[Choice, int]:
    """Of the matrix product; and how many calls of the driver it has become."""
    compiled = compile_model(
        GESTURE, board="host", selection=Selection(selector=selector), accelerators=[load_accelerator(str(folder))]
    )
    (layer,) = (one for one in compiled.program.layers if one.choice and one.choice.site.startswith("nuc_fpga.dense"))
    assert layer.choice is not None
    return layer.choice, len(layer.kernel.calls)


def test_one_plan_is_made_where_nothing_is_tuned(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    choice, calls = choice_of(folder, Estimated())
    assert (choice.options, choice.picked, calls) == (("way twice", "way once", "way thrice"), 0, 2)
    assert capsys.readouterr().err == "planned twice\n"


@pytest.mark.parametrize(
    ("most", "worth"), [(2, ["way twice", "way once"]), (None, ["way twice", "way once", "way thrice"])]
)
def test_the_planner_says_what_is_worth_measuring(most: int | None, worth: list[str], folder: Path) -> None:
    ranked = RankedSelector(Estimated(), number=1, most=most)
    choice, calls = choice_of(folder, ranked)
    assert list(ranked.worth(choice)) == worth
    assert (choice.options[choice.picked], calls) == ("way once", 1)


def test_records_choose_and_nothing_else_is_planned(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    site = choice_of(folder, Estimated())[0].site
    records = Records("any", {site: {"way twice": 50, "way thrice": 40}}, "estimated cycles")
    capsys.readouterr()
    choice, calls = choice_of(folder, RecordsSelector(records))
    assert (choice.options[choice.picked], calls) == ("way thrice", 3)
    assert capsys.readouterr().err == "planned twice\nplanned thrice\n"


@pytest.mark.slow
def test_tune_keeps_the_better_one(folder: Path, tmp_path: Path) -> None:
    board_with_tools(BOARD)
    done = process("tune", GESTURE, "-b", BOARD, "-a", folder, "-o", tmp_path / "r.json", "-j", "1", "--json")
    assert done.status == 0, done.err
    (layer,) = (one for one in done.report["layers"] if one["site"].startswith("nuc_fpga.dense"))
    assert layer["picked"] == "way once"
    assert [row["kernel"] for row in layer["candidates"] if row["cost"] is not None] == ["way twice", "way once"]
    assert layer["after"] < layer["before"]
    stored = json.loads((tmp_path / "r.json").read_text())["sites"][layer["site"]]
    assert stored["way once"] < stored["way twice"]


def test_several_ways_for_one_choice_are_refused(folder: Path) -> None:
    _edit(
        folder, "return Lowered((call,) * many, cycles", "return [Lowered((call,)), Lowered((call,))]\n    print(cycles"
    )
    _edit(folder, "print(cycles=", "print(end=")
    with pytest.raises(AcceleratorError, match="returned 2 ways for one choice of its parameters; wanted one"):
        choice_of(folder, Estimated())


@pytest.mark.slow
def test_npu_finds_a_better_plan_among_more_that_are_played_through() -> None:
    ranked = RankedSelector(Estimated(), number=1, most=2)
    compiled = compile_model(
        network_named("sww").path,
        board="host",
        selection=Selection(selector=ranked),
        accelerators=[load_accelerator("npu")],
    )
    (choice,) = (one.choice for one in compiled.program.layers if one.choice and one.engine == "npu")
    assert ranked.worth(choice) == ("played 5, sizes some", "played 12, sizes some")
