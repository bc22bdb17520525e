"""``board/board.json`` of a project: what is of another form is refused before anything is run by it."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from support.hostile.json_mutants import change, places
from uaccel.bench import port_of_project
from uaccel.board import available_boards
from uaccel.build.board_json import board_json, read_board_json
from uaccel.errors import DeviceError, UaccelError

BOARDS = {board.name: board for board in available_boards()}


def written(folder: Path, document: Any) -> Path:
    """A project of which there is only this file."""
    (folder / "board").mkdir(exist_ok=True)
    (folder / "board" / "board.json").write_text(json.dumps(document))
    return folder


@pytest.mark.parametrize("name", BOARDS)
def test_what_is_made_is_read(name: str, tmp_path: Path) -> None:
    document = json.loads(board_json(BOARDS[name], None))
    assert read_board_json(written(tmp_path, document)).runs == document["runs"]


def use(project: Path) -> str:
    """What is said against it, where anything is."""
    try:
        for run in read_board_json(project).runs:
            assert run["kind"] == "serial" or isinstance(run["command"][0], str)
        port_of_project(project)
    except (UaccelError, DeviceError) as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", ["host", "netduino_plus_2"])
def test_mutants(name: str, tmp_path: Path) -> None:
    refused = 0
    for seed in range(200):
        rng, document = random.Random(seed), json.loads(board_json(BOARDS[name], None))
        at = list(places(document))
        change(*rng.choice(at), at, rng)
        project = written(tmp_path, document)
        complaint = use(project)
        assert complaint.isprintable()
        refused += complaint.endswith("; make the project anew")
    assert 50 < refused < 200


WRONG = {
    "no object": ([], "it is [], wanted an object"),
    "no way to run": ({"runs": []}, "runs is [], wanted a list of 1 or more"),
    "an unknown way": ({"runs": [{"kind": "ssh"}]}, "runs[0].kind is 'ssh', wanted one of host, qemu, rtl, serial"),
    "no program": (
        {"runs": [{"kind": "host", "command": []}]},
        "in runs of kind host command is [], wanted a list of 1 or more",
    ),
    "areas of other than two numbers": (
        {"runs": [{"kind": "qemu", "command": ["qemu"], "ram": None, "rtt": [[0, 1], [2, 3, 4]]}]},
        "in runs of kind qemu rtt[1] is [2, 3, 4], wanted an origin and a length",
    ),
    "no memory": (
        {"runs": [{"kind": "qemu", "command": ["qemu"], "ram": {"origin": -1, "length": 1}}]},
        "in runs of kind qemu ram.origin is -1, wanted a whole number from 0 to 1099511627776",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_of_another_form(name: str, tmp_path: Path) -> None:
    change, words = WRONG[name]
    document = change if isinstance(change, list) else json.loads(board_json(BOARDS["host"], None)) | change
    with pytest.raises(UaccelError) as caught:
        read_board_json(written(tmp_path, document))
    file = tmp_path / "board" / "board.json"
    assert str(caught.value) == f"{file} is not as it was made: {words}; make the project anew"
