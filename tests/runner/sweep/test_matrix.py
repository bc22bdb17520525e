"""What a matrix file says: its rows, and for every mistake one line that names it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from support.models.networks import OWN
from uaccel.errors import AcceleratorError, UaccelError
from uaccel.runner.sweep.matrix import SweepRow, all_rows, read_matrix, variant
from uaccel.util.files import data_dir

WHOLE = """
models = ["gesture.tflite", "mixed.tflite"]
boards = ["host", "mps2_an386"]
accelerators = [[], "matrix8", ["npu", "matrix8"]]
[run]
samples = 2
[[options]]
[[options]]
favour = "size"
[[exclude]]
board = "host"
accelerator = "npu"
[[exclude]]
model = "mix*"
favour = "size"
[figures]
instructions = 0
"flash.total" = 1.5
"""


def matrix(folder: Path, text: str) -> Path:
    for name in ("gesture", "mixed"):
        shutil.copy(OWN / f"{name}.tflite", folder)
    path = folder / "m.toml"
    path.write_text(text)
    return path


def test_rows_are_every_combination_but_what_is_excluded(tmp_path: Path) -> None:
    found = read_matrix(matrix(tmp_path, WHOLE))
    titles = [row.title for row in found.rows]
    assert len(titles) == len(set(titles)) == 2 * 2 * 3 * 2 - (1 * 2 * 2) - (1 * 5) + 0
    assert titles[:3] == [
        "gesture on host with cpu samples=2",
        "gesture on host with cpu samples=2 favour=size",
        "gesture on host with matrix8 samples=2",
    ]
    assert not any("host with npu" in title or ("mixed" in title and "size" in title) for title in titles)
    assert (found.figures, found.expected) == (
        {"instructions": 0.0, "flash.total": 1.5},
        tmp_path / "m.expected.json",
    )


def test_a_row_survives_the_way_to_another_process(tmp_path: Path) -> None:
    for row in read_matrix(matrix(tmp_path, WHOLE)).rows:
        assert SweepRow.from_json(row.to_json()) == row
        assert SweepRow.from_json(row.to_json()).digest() == row.digest()


def test_another_compiler_makes_another_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = SweepRow(str(OWN / "gesture.tflite"), "mps2_an386")
    before = row.digest()
    (tmp_path / "arm-none-eabi-gcc").write_text("#!/bin/sh\n")
    (tmp_path / "arm-none-eabi-gcc").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert row.digest() != before


MISTAKES = {
    "models": "models is []; wanted a list of names, one at least",
    'models = "a.tflite"': "models is 'a.tflite'; wanted a list",
    'models = ["none.tflite"]': "models names 'none.tflite', and there is no file ",
    'models = ["gesture.tflite"]\nboard = ["host"]': "unknown key 'board'; did you mean 'boards'?; known: models, ",
    'models = ["gesture.tflite"]\nrepetitions = 0': "repetitions is 0; wanted a number from 1 to 1000",
    'models = ["gesture.tflite"]\naccelerators = [3]': "accelerators has 3; wanted a name, a path, or a list of them",
    'models = ["gesture.tflite"]\n[run]\nfavour = "tiny"': (
        "favour in [run] is 'tiny'; wanted balanced or speed or size or ram"
    ),
    'models = ["gesture.tflite"]\n[run]\nsamples = true': "samples in [run] is True; wanted a number",
    'models = ["gesture.tflite"]\n[run]\nsampels = 1': "unknown key 'sampels' in [run]; did you mean 'samples'?; ",
    'models = ["gesture.tflite"]\n[run]\ninputs = "x.npz"': "inputs in [run] names 'x.npz', and there is no file ",
    'models = ["gesture.tflite"]\n[[exclude]]\nboard = "host"': "every row is excluded; wanted one at least",
    'models = ["gesture.tflite"]\n[[exclude]]': "[[exclude]] is {}; wanted a table with model, board, accelerator or ",
    'models = ["gesture.tflite"]\n[[space]]\naccelerator = "npu"': '[[space]] takes accelerator = "NAME" and lists ',
    'models = ["gesture.tflite"]\n[[space]]\naccelerator = "npu"\nNPU_ROWS = 8': (
        "NPU_ROWS in [[space]] is 8; wanted a list of numbers"
    ),
    'models = ["gesture.tflite"]\n[figures]\ninstructions = -1': (
        "instructions in [figures] is -1; wanted by how many percent it may grow"
    ),
    'models = ["gesture.tflite"]\nboards = ["hots"]': None,
    "models = [": " is no TOML file: ",
}


@pytest.mark.parametrize("text", MISTAKES, ids=lambda text: text[-30:])
def test_every_mistake_is_one_line_that_names_it(text: str, tmp_path: Path) -> None:
    path = matrix(tmp_path, text if "=" in text else "models = []")
    with pytest.raises(UaccelError) as caught:
        read_matrix(path)
    wanted = MISTAKES[text]
    message = str(caught.value)
    assert "\n" not in message
    assert wanted is None or wanted in message, message
    assert wanted is None or str(path) in message


def test_a_design_space_makes_folders_that_differ_in_a_number(tmp_path: Path) -> None:
    text = 'models = ["gesture.tflite"]\n[[space]]\naccelerator = "npu"\nNPU_ROWS = [4, 8]\nNPU_COLUMNS = [8]\n'
    rows = all_rows(read_matrix(matrix(tmp_path, text)), tmp_path / "made")
    assert [row.tags for row in rows] == [{}, {"NPU_ROWS": 4, "NPU_COLUMNS": 8}, {"NPU_ROWS": 8, "NPU_COLUMNS": 8}]
    header = (Path(rows[1].accelerators[0]) / "device" / "npu_machine.h").read_text()
    assert "#define NPU_ROWS 4 " in header
    assert "#define NPU_COLUMNS 8 " in header
    original = (data_dir("accelerators") / "npu" / "device" / "npu_machine.h").read_text()
    assert header == original.replace("NPU_ROWS 16", "NPU_ROWS 4").replace("NPU_COLUMNS 16", "NPU_COLUMNS 8")
    assert variant("npu", {"NPU_ROWS": 4, "NPU_COLUMNS": 8}, tmp_path / "made") == Path(rows[1].accelerators[0])
    assert len({row.digest() for row in rows}) == 3


def test_a_number_that_nothing_states_is_named(tmp_path: Path) -> None:
    with pytest.raises(AcceleratorError, match=r"^NPU_ROW is not stated in npu; did you mean 'NPU_ROWS'\?; wanted "):
        variant("npu", {"NPU_ROW": 4}, tmp_path)
    with pytest.raises(
        AcceleratorError, match=r"^a design space varies an accelerator's folder, and .*nothing is none"
    ):
        variant("nothing", {"A": 4}, tmp_path)
