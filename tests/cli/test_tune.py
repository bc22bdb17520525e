"""``uaccel tune``: every kernel measured, the fastest kept, the same figures each time."""

from __future__ import annotations

import json
import re
import tarfile
from pathlib import Path

import pytest

from support.device.boards import board_with_tools
from support.hostile.broken import Broken
from support.models.networks import OWN
from support.run.command import Call, Done, process

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
        measured = [candidate for candidate in layer["candidates"] if candidate["cost"] is not None]
        costs = {candidate["kernel"]: candidate["cost"] for candidate in measured}
        assert len(costs) >= 2
        assert costs[layer["picked"]] == min(costs.values())
        assert layer["after"] <= 1.02 * costs[layer["picked"]] + 64, "less where no other layer calls its function"
        assert all(0 < candidate["instructions"] < candidate["cost"] for candidate in measured)
    assert report["left_out"] == []
    assert report["measured"] >= 2
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
    for word in ("picked", "not measured", "conv2d_dsp_s8", "estimated cycles, as estimated", how):
        assert word in done.out


@pytest.mark.slow
@pytest.mark.parametrize("option", [("--all",), ("--candidates", "9")], ids=" ".join)
def test_all_kernels_are_measured_where_that_is_wished(
    option: tuple[str, ...], tuned: Done, call: Call, tmp_path: Path
) -> None:
    done = call("tune", GESTURE, "--board", BOARD, "-o", tmp_path / "all.json", *option, "--json")
    assert done.status == 0
    for layer, few in zip(done.report["layers"], tuned.report["layers"], strict=True):
        assert all(candidate["cost"] for candidate in layer["candidates"])
        costs = {candidate["kernel"]: candidate["cost"] for candidate in layer["candidates"]}
        assert costs[few["picked"]] * 0.8 <= costs[layer["picked"]], "what promised little would not have saved much"


@pytest.mark.slow
def test_the_same_records_whatever_the_number_of_workers(records: Path, call: Call, tmp_path: Path) -> None:
    for jobs in ("1", "2", "3"):
        path = tmp_path / f"{jobs}.json"
        assert call("tune", GESTURE, "--board", BOARD, "-o", path, "-j", jobs).status == 0
        assert path.read_bytes() == records.read_bytes()


@pytest.mark.slow
def test_when_the_minutes_are_over_the_rest_is_left_out(call: Call, tmp_path: Path) -> None:
    done = call("tune", GESTURE, "--board", BOARD, "-o", tmp_path / "few.json", "--minutes", "0", "--json")
    report = done.report
    assert (done.status, report["measured"], report["before"]) == (0, 1, report["after"])
    left = {(entry["site"], entry["kernel"]) for entry in report["left_out"]}
    assert {site for site, _ in left} == {layer["site"] for layer in report["layers"]}
    stored = json.loads((tmp_path / "few.json").read_text())["sites"]
    assert all(kernel not in stored[site] for site, kernel in left)
    again = call("tune", GESTURE, "--board", BOARD, "-o", tmp_path / "few.json", "--minutes", "9")
    assert (again.status, "Left out" in again.out, "1 of" in again.err) == (0, False, True)
    shown = call("tune", GESTURE, "--board", BOARD, "-o", tmp_path / "shown.json", "--minutes", "0").out
    assert re.search(rf"Left out +{len(left)} kernels, as the minutes were over", shown)


@pytest.mark.slow
def test_the_second_time_is_taken_from_the_cache(
    records: Path, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UACCEL_CACHE", str(tmp_path / "cache"))
    figures = []
    for number, more in enumerate(([], [], ["--no-cache"], ["-j", "1"])):
        path = tmp_path / f"{number}.json"
        report = call("tune", GESTURE, "--board", BOARD, "-o", path, *more, "--json").report
        figures.append((report["measured"] > 0, report["kept"] > 0))
        assert path.read_bytes() == records.read_bytes()
    assert figures == [(True, False), (False, True), (True, False), (False, True)]


@pytest.mark.slow
@pytest.mark.parametrize(("weights", "status"), [("weights.value", 0), ("weights.value // 2", 3)])
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_lowering_that_computes_something_else_is_refused(
    weights: str, status: int, jobs: str, call: Call, tmp_path: Path
) -> None:
    """Planted: the second of two lowerings takes other weights."""
    planted = f"""wrong = library_call(
        "nuc_fpga_dense", Input(0), Constant("kernel", {weights}), Output(0), *data.info.shape, region.output.shape[1]
    )
    return [Lowered((call,), name="first"), Lowered((wrong,), name="second")]"""
    folder = Broken(
        "another lowering",
        "nuc_fpga",
        "accelerator.py",
        "return Lowered((call,), cycles=of_matrices(region), instructions=750)",
        planted,
    ).make(tmp_path)
    path = tmp_path / "r.json"
    done = call("tune", GESTURE, "--board", BOARD, "-a", folder, "-o", path, "-j", jobs, "--json")
    assert (done.status, path.exists()) == (status, status == 0)
    if status:
        assert done.complaint == (
            "with candidates number 2 the model gives other outputs than before: some kernel or lowering is wrong; "
            "'uaccel run --verify layers' finds it"
        )
        return
    layers = [layer for layer in done.report["layers"] if layer["engine"] == "nuc_fpga"]
    found = [[candidate["kernel"] for candidate in layer["candidates"] if candidate["cost"]] for layer in layers]
    assert found == [["first", "second"]] * len(layers) != []


def test_options_that_contradict_each_other(call: Call) -> None:
    done = call("tune", GESTURE, "--all", "--candidates", "3")
    assert done.status == 1
    assert done.complaint == ("--all measures every kernel, and --candidates only some of them; leave one of them away")


def test_a_place_that_cannot_be_written(call: Call, tmp_path: Path) -> None:
    done = call("tune", GESTURE, "--board", "host", "-o", tmp_path / "none" / "records.json")
    assert done.status == 1
    assert "none" in done.complaint
