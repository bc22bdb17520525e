"""Machines of one family, what they can be asked to save, and traces of them: on the command line."""

from __future__ import annotations

import json
import shutil
import tarfile
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from support.device.boards import board_with_tools
from support.models.networks import OWN
from support.run.command import Call
from uaccel.accelerator import load_accelerator, module_of
from uaccel.errors import AcceleratorError
from uaccel.util.files import data_dir

GESTURE = OWN / "gesture.tflite"


def test_own_files_come_before_those_of_the_base() -> None:
    small, large = load_accelerator("npu_small"), load_accelerator("npu")
    own = {name for name, path in small.files.items() if path.is_relative_to(small.folder)}
    assert own == {"device/npu_machine.h", "driver/npu_names.h", "driver/npu_small.h"}
    assert set(small.files) == set(large.files) | own
    assert {path for name, path in small.files.items() if name not in own} <= set(large.files.values())


def test_an_archive_holds_all_files_under_the_variants_name(call: Call, tmp_path: Path) -> None:
    archive = tmp_path / "small.tar"
    assert call("compile", GESTURE, "-a", "npu_small", "-o", archive).status == 0
    with tarfile.open(archive) as tar:
        names = [member.name for member in tar.getmembers() if member.isfile() and "accelerators/" in member.name]
        machine = next(name for name in names if name.endswith("npu_machine.h"))
        file = tar.extractfile(machine)
        assert file is not None
        text = file.read().decode()
    assert all("accelerators/npu_small/" in name for name in names)
    assert len(names) == len(load_accelerator("npu_small").files)
    assert "#define NPU_ROWS 8" in text


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A user's own machine of the family: an array of 4 rows and 12 columns, and small memories."""
    folder = tmp_path / "npu_mine"
    shutil.copytree(data_dir("accelerators") / "npu_small", folder, ignore=shutil.ignore_patterns("__pycache__"))
    for path in [*folder.rglob("*.h"), folder / "accelerator.py"]:
        text = path.read_text().replace("npu_small", "npu_mine").replace("NpuSmall", "NpuMine")
        for name, value in (("ROWS", 4), ("COLUMNS", 12), ("ACTIVATION_BYTES", 2048), ("WEIGHT_BYTES", 1024)):
            text = text.replace(f"#define NPU_{name} 8 ", f"#define NPU_{name} {value} ")
            text = text.replace(f"#define NPU_{name} 8192", f"#define NPU_{name} {value}")
            text = text.replace(f"#define NPU_{name} 6144", f"#define NPU_{name} {value}")
        path.write_text(text)
    (folder / "driver/npu_small.h").rename(folder / "driver/npu_mine.h")
    return folder


@pytest.mark.slow
def test_a_users_own_machine_of_the_family(mine: Path, call: Call) -> None:
    assert load_accelerator(str(mine)).memories == {"activations": 2048, "weights": 1024, "sums": 2048}
    report = call("run", OWN / "residual.tflite", "-a", mine, "--verify", "--json").report
    assert report["verify"]["bit_exact"] is True
    assert "npu_mine" in {layer["engine"] for layer in report["layers"]}


@pytest.mark.slow
def test_a_stream_is_refused_by_a_machine_of_another_size(
    mine: Path, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    assert call("run", GESTURE, "-a", mine, "--project", project).status == 0
    (header,) = project.glob("accelerators/npu_mine/device/npu_machine.h")
    header.write_text(header.read_text().replace("#define NPU_COLUMNS 12", "#define NPU_COLUMNS 13"))
    done = call("run", project)
    assert done.status == 4
    assert "the command stream is for a machine of another size" in done.complaint


@pytest.mark.slow
@pytest.mark.parametrize("board", ["host", pytest.param("mps2_an386", marks=pytest.mark.long)])
def test_two_machines_of_the_family_in_one_model(board: str, call: Call) -> None:
    if board != "host":
        board_with_tools(board)
    engines = ("-a", "npu", "-a", "npu_small", "--forbid", "conv_2d_2=npu")
    report = call("run", GESTURE, *engines, "--board", board, "--verify", "--json").report
    assert report["verify"]["bit_exact"] is True
    cycles: dict[str, int] = defaultdict(int)
    for layer in report["layers"]:
        cycles[layer["engine"]] += layer["cycles"] or 0
    assert cycles["npu"] > 0
    assert cycles["npu_small"] > 0
    assert {layer["name"]: layer["engine"] for layer in report["layers"]}["conv_2d_2"] == "npu_small"


def test_a_module_of_nobody() -> None:
    with pytest.raises(AcceleratorError, match=r"^no accelerator 'npv'; did you mean 'npu'\?; there are: conveyor, "):
        module_of("npv")


def test_a_base_that_is_no_folder(mine: Path, call: Call) -> None:
    file = mine / "accelerator.py"
    text = file.read_text().replace("ACCELERATOR = ", "from dataclasses import replace\nfound = ")
    file.write_text(text + '\nACCELERATOR = replace(found, base=Path("/nowhere"))\n')
    done = call("explain", GESTURE, "-a", mine)
    assert done.status == 1
    assert done.complaint.endswith(
        "base is PosixPath('/nowhere'); wanted the absolute path of the folder whose C files it shares"
    )


def test_objectives_are_listed(call: Call) -> None:
    rows = {row["name"]: row["objectives"] for row in call("accelerators", "--json").report["accelerators"]}
    assert rows["npu"] == rows["npu_small"] == ["latency", "energy"]
    assert rows["conveyor"] == ["latency"]


def test_an_objective_that_nobody_can_plan_for(call: Call) -> None:
    done = call("explain", GESTURE, "-a", "conveyor", "--objective", "energy")
    assert (done.status, done.out) == (1, "")
    assert done.complaint == (
        "objective energy: conveyor cannot plan for it; 'uaccel accelerators --json' tells which can"
    )


def test_an_objective_without_accelerators(call: Call) -> None:
    done = call("run", GESTURE, "--objective", "energy")
    assert done.status == 1
    assert done.complaint == "--objective is about accelerators, and none is given; add --accelerator NAME|PATH"


def test_the_objective_is_in_what_to_type_for_the_same(call: Call, tmp_path: Path) -> None:
    archive = tmp_path / "energy.tar"
    assert call("compile", GESTURE, "-a", "npu", "--objective", "energy", "-o", archive).status == 0
    with tarfile.open(archive) as tar:
        sources = [tar.extractfile(name) for name in tar.getnames() if name.endswith(".c") and "host/src" in name]
        assert any(b"--accelerator npu --objective energy" in file.read() for file in sources if file is not None)


def traced(call: Call, path: Path, *arguments: Any) -> tuple[dict[str, Any], dict[str, list[dict[str, Any]]]]:
    """The report, and the spans by track, of which none overlap each other."""
    done = call("run", *arguments, "--trace", path, "--json")
    assert done.status == 0, done.err
    events = json.loads(path.read_text())["traceEvents"]
    names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    tracks: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            tracks[names[event["tid"]]].append(event)
    for spans in tracks.values():
        for before, after in pairwise(spans):
            assert before["ts"] + before["dur"] <= after["ts"]
    return done.report, tracks


@pytest.mark.slow
@pytest.mark.parametrize("board", ["host", "mps2_an386"])
def test_a_trace_shows_every_engine(board: str, call: Call, tmp_path: Path) -> None:
    if board != "host":
        board_with_tools(board)
    report, tracks = traced(call, tmp_path / "trace.json", GESTURE, "-a", "npu", "--board", board, "--repeat", 2)
    assert set(tracks) == {"cpu", "npu load", "npu compute", "npu store"}
    engines = [event for track in tracks if track != "cpu" for event in tracks[track]]
    begin = tracks["cpu"][0]["dur"]
    assert max(event["ts"] + event["dur"] for event in engines) - begin == report["accelerator_cycles"]
    assert any(overlap(a, b) for a in tracks["npu load"] for b in tracks["npu compute"])
    assert tracks["npu compute"][0]["name"] == "conv_2d_0: convolve"
    assert tracks["cpu"][-1]["name"] == "softmax_8"
    counted = sum(event["dur"] for event in tracks["cpu"])
    if board == "host":
        assert counted == 0
    else:
        assert 0.8 * report["instructions"] < counted <= report["instructions"]  # activation is nobody's layer


def overlap(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return bool(one["ts"] < other["ts"] + other["dur"] and other["ts"] < one["ts"] + one["dur"])


@pytest.mark.slow
def test_a_project_is_traced_as_well(call: Call, tmp_path: Path) -> None:
    """What its commands are called stands in its archive."""
    project = tmp_path / "project"
    assert call("run", GESTURE, "-a", "npu", "--project", project).status == 0
    report, tracks = traced(call, tmp_path / "trace.json", project)
    assert tracks["npu compute"][0]["name"] == "conv_2d_0: convolve"
    assert max(e["ts"] + e["dur"] for e in tracks["npu store"]) == report["accelerator_cycles"]


@pytest.mark.slow
def test_each_layer_of_a_command_stream_has_its_span(call: Call, tmp_path: Path) -> None:
    report, tracks = traced(call, tmp_path / "trace.json", GESTURE, "-a", "conveyor")
    belt = tracks["conveyor belt"]
    assert [event["name"] for event in belt] == [
        layer["name"] for layer in report["layers"] if layer["engine"] == "conveyor" and layer["calls"]
    ]
    assert sum(event["dur"] for event in belt) == report["accelerator_cycles"]


@pytest.mark.slow
def test_a_device_that_tells_of_no_engines_has_one_track(call: Call, tmp_path: Path) -> None:
    report, tracks = traced(call, tmp_path / "trace.json", GESTURE, "-a", "nuc_fpga")
    assert sum(event["dur"] for event in tracks["nuc_fpga work"]) == report["accelerator_cycles"]


@pytest.mark.sample(1)
@pytest.mark.parametrize("what", ["model", "project"])
def test_a_trace_that_cannot_be_written(what: str, call: Call, tmp_path: Path) -> None:
    subject = GESTURE
    if what == "project":
        subject = tmp_path / "project"
        assert call("run", GESTURE, "--project", subject).status == 0
    done = call("run", subject, "--trace", tmp_path / "nowhere" / "trace.json")
    assert (done.status, done.out) == (1, "")
    assert "--trace" in done.complaint
    assert "\n" not in done.complaint
