"""``uaccel tune``: every kernel measured, the fastest kept, the same figures each time."""

from __future__ import annotations

import json
import re
import tarfile
from pathlib import Path

import pytest

from support.boards import board_with_tools
from support.command import Call, Done, process
from support.networks import OWN

GESTURE = OWN / "gesture.tflite"
BOARD = "mps2_an386"


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Done:
    board_with_tools(BOARD)
    folder = tmp_path_factory.mktemp("records")
    return process("tune", GESTURE, "--board", BOARD, "-o", folder / "gesture.json", "--json", cwd=folder)


@pytest.fixture
def records(tuned: Done) -> Path:
    return Path(tuned.report["records"])


@pytest.mark.slow
def test_the_kernels_are_measured(tuned: Done, records: Path) -> None:
    done, report = tuned, tuned.report
    assert (done.status, report["board"], report["unit"]) == (0, BOARD, "estimated cycles")
    assert 0 < report["after"] <= report["before"]
    for layer in report["layers"]:
        costs = {candidate["kernel"]: candidate["cost"] for candidate in layer["candidates"]}
        assert len(costs) >= 2
        assert costs[layer["picked"]] == min(costs.values())
        assert layer["after"] <= 1.02 * costs[layer["picked"]] + 64, "less where no other layer calls its function"
        assert all(0 < candidate["instructions"] < candidate["cost"] for candidate in layer["candidates"])
    stored = json.loads(records.read_text())
    assert (stored["format"], stored["cpu"], stored["unit"]) == (1, "cortex-m4", "estimated cycles")
    assert {site: set(costs) for site, costs in stored["instructions"].items()} == {
        site: set(costs) for site, costs in stored["sites"].items()
    }
    assert {layer["site"] for layer in report["layers"]} < set(stored["sites"])
    assert any(site.startswith("softmax(") for site in stored["sites"]), "without a choice, but measured"


@pytest.mark.slow
def test_what_is_known_is_not_measured_again(records: Path, call: Call) -> None:
    before = records.read_bytes()
    done = call("tune", GESTURE, "--board", BOARD, "-o", records, "--json")
    assert done.status == 0
    assert records.read_bytes() == before
    assert "1 of" not in done.err


@pytest.mark.slow
def test_the_same_figures_each_time(records: Path, call: Call) -> None:
    before = records.read_bytes()
    done = call("tune", GESTURE, "--board", BOARD, "-o", records, "--again", "--json")
    assert "1 of" in done.err
    assert records.read_bytes() == before


@pytest.mark.slow
def test_records_of_instructions_stay_such(records: Path, call: Call, tmp_path: Path) -> None:
    stored = json.loads(records.read_text())
    instructions = stored.pop("instructions")
    old = stored | {"unit": "instructions", "sites": dict(list(instructions.items())[:-1])}
    (tmp_path / "old.json").write_text(json.dumps(old))
    done = call("tune", GESTURE, "--board", BOARD, "-o", tmp_path / "old.json", "--json")
    assert (done.status, done.report["unit"]) == (0, "instructions")
    assert json.loads((tmp_path / "old.json").read_text()) == old | {"sites": instructions}


@pytest.mark.slow
def test_kernels_are_chosen_by_records(records: Path, call: Call, tmp_path: Path) -> None:
    stored = json.loads(records.read_text())
    for costs in stored["sites"].values():
        costs.update({kernel: number for number, kernel in enumerate(sorted(costs, reverse=True))})
    path = tmp_path / "odd.json"
    path.write_text(json.dumps(stored))
    for command in (["explain"], ["compile", "-o", str(tmp_path / "x.tar")]):
        done = call(*command, GESTURE, "--board", BOARD, "--records", path, "--json")
        assert done.status == 0
    with tarfile.open(tmp_path / "x.tar") as tar:
        (source,) = [member for member in tar.getnames() if member.endswith("tvmgen_gesture.c")]
        stream = tar.extractfile(source)
        assert stream is not None
        assert b"--name gesture --records odd.json\n" in stream.read()
    reasons = [layer["reason"] for layer in done.report["layers"]]
    told = r"\(portable\); the cheapest measured, \d+ estimated cycles"
    assert any(re.search(told, reason) for reason in reasons)
    done = call("run", GESTURE, "--board", BOARD, "--records", path, "--verify", "--json")
    assert done.report["verify"]["bit_exact"]


@pytest.mark.slow
def test_records_of_another_cpu_are_refused(records: Path, call: Call) -> None:
    done = call("run", GESTURE, "--board", "host", "--records", records)
    assert done.status == 1
    assert done.complaint == (
        f"{records}: measured on cortex-m4, and this is for native; measure with 'uaccel tune' and this board"
    )


@pytest.mark.slow
def test_for_a_person(records: Path, call: Call) -> None:
    done = call("tune", GESTURE, "--board", BOARD, "-o", records)
    assert done.status == 0
    how = f"{records.name}; use them with --records"
    for word in ("picked", "conv2d_dsp_s8", "estimated cycles, as estimated", how):
        assert word in done.out


def test_a_place_that_cannot_be_written(call: Call, tmp_path: Path) -> None:
    done = call("tune", GESTURE, "--board", "host", "-o", tmp_path / "none" / "records.json")
    assert done.status == 1
    assert "none" in done.complaint
