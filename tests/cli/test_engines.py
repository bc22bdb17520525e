"""Who computes what, on the command line: `explain`, `accelerators`, and the options that `compile` and `run` share."""

from __future__ import annotations

import io
import json
import re
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from models.field import field
from support.device.boards import board_with_tools
from support.hostile.vendor import description, vendor_folder
from support.models.float_convolutions import float_convolutions
from support.models.networks import OWN, network_named
from support.models.windows import Window, depthwise_conv_2d
from support.run.command import Call, process
from uaccel.accelerator import load_accelerators
from uaccel.build.linker_script import constant_rooms, workspace_memories
from uaccel.cli.explain import _show, why
from uaccel.codegen.options import EmitOptions
from uaccel.kernels.choice import selection_for
from uaccel.partition import Wishes
from uaccel.partition.partition import TURNED
from uaccel.pipeline import compile_model
from uaccel.report.compile_json import explain
from uaccel.report.dump import load_region
from uaccel.util.files import data_dir

GESTURE, RESIDUAL, STREAM = (OWN / f"{name}.tflite" for name in ("gesture", "residual", "stream"))
COSINES = description(operations='[Operation("cos", "relax.cos", run)]')
NOTHING = "nothing is offloaded to tiny: no operation for conv2d (3 layers); "


@pytest.fixture
def idle(tmp_path: Path) -> Path:
    """An accelerator that finds nothing to do."""
    return vendor_folder(tmp_path / "idle", COSINES)


def test_explain_as_json(call: Call) -> None:
    report = call("explain", RESIDUAL, "-a", "nuc_fpga", "-a", "conveyor", "--json").report
    assert (report["model"], report["board"], report["accelerators"]) == ("residual", "host", ["nuc_fpga", "conveyor"])
    rows = {row["name"]: row for row in report["layers"]}
    assert list(rows)[:4] == ["conv_2d_0", "conv_2d_1", "conv_2d_2", "add_3"]
    for row in rows.values():
        others = {"nuc_fpga", "conveyor"} - {row["engine"]}
        assert {rejection["accelerator"] for rejection in row["rejections"]} == others
        assert all(rejection["reason"] for rejection in row["rejections"])
        assert row["bytes"] > 0
        assert row["cpu_cycles"] > 0
        assert (row["cycles"] is None) == (row["engine"] == "cpu")
    assert rows["conv_2d_0"]["engine"] == "nuc_fpga"
    assert rows["conv_2d_0"]["macs"] == 16 * 16 * 8 * 27
    assert rows["add_3"]["rejections"] == [
        {"accelerator": "nuc_fpga", "operation": None, "reason": "no operation for add"}
    ]
    assert rows["conv_2d_0"]["rejections"] == [
        {"accelerator": "conveyor", "operation": "conv2d", "reason": "nuc_fpga is preferred to it"}
    ]
    for engine, share in report["engines"].items():
        mine = [row for row in rows.values() if row["engine"] == engine]
        assert share == {"layers": len(mine), "macs": sum(row["macs"] for row in mine)}
    covered = [layer for region in report["regions"] for layer in region["layers"]]
    assert sorted(covered) == sorted(name for name, row in rows.items() if row["engine"] != "cpu")
    assert [row["layer"] for row in report["offloaded"]] == covered
    assert {row["layer"] for row in report["fallback"]} == {n for n, row in rows.items() if row["engine"] == "cpu"}
    assert report["layout_changes"]
    assert {row["layer"] for row in report["layout_changes"]} <= {row["name"] for row in report["added"]}
    assert all(row["bytes"] > 0 and row["layer"].startswith("permute_dims_") for row in report["layout_changes"])


def test_a_transposition_of_the_models_own_moves_behind_a_slice(call: Call) -> None:
    report = call("explain", OWN / "branches.tflite", "-a", "conveyor", "--json").report
    (row,) = (row for row in report["layers"] if row["name"] == "transpose_15")
    assert (row["bytes"], row["cpu_cycles"], row["reason"]) == (0, 0, TURNED)
    moved = {"layer": "permute_dims_16", "bytes": 45}
    assert report["layout_changes"] == [moved], "behind the slice that follows it, where fewer bytes are left"


def test_without_accelerators(call: Call) -> None:
    report = call("explain", GESTURE, "--json").report
    assert (report["accelerators"], report["costs"]) == ([], "rule")
    assert {(row["engine"], row["reason"]) for row in report["layers"]} == {("cpu", "no accelerator was asked")}
    assert report["engines"]["cpu"]["layers"] == len(report["layers"])
    assert (report["offloaded"], report["fallback"], report["regions"], report["added"]) == ([], [], [], [])


def told_and_taken(call: Call, model: Path, board: str) -> dict[str, tuple[int, int]]:
    """Cycles of each layer, and of layers that run by rows together: as ``explain`` estimates, and as ``run`` finds."""
    used = board_with_tools(board)
    planned: Any = {"options": EmitOptions(workspace_io=True), "memories": workspace_memories(used)}  # as run plans
    rooms, selection = constant_rooms(used), selection_for(used)
    report = explain(compile_model(model, board=board, selection=selection, rooms=rooms, **planned))
    told = {row["name"]: row["cpu_cycles"] for row in report["layers"]}
    found: dict[str, tuple[int, int]] = {}
    for row in call("run", model, "-b", board, "--json").report["layers"]:
        name = row["region"] or row["name"]
        estimate, taken = found.get(name, (0, 0))
        found[name] = estimate + told.get(row["name"], 0), taken + (row["cycles_estimated"] or 0)
    return found


SMALL = 200
"""Cycles by which an estimate may always be off."""
BOARDS = ("mps2_an386", "mps3_an547", "netduino_plus_2")
MLPERF = ("ad", "kws", "ic", "vww", "sww")


def off(layers: dict[str, tuple[int, int]], share: float) -> dict[str, tuple[int, int]]:
    return {name: pair for name, pair in layers.items() if abs(pair[0] - pair[1]) > max(SMALL, share * pair[1])}


@pytest.mark.parametrize(
    ("network", "board", "share"),
    [
        ("residual", "mps2_an386", 0.15),
        ("residual", "mps3_an547", 0.17),
        ("residual", "netduino_plus_2", 0.15),
        *(pytest.param(name, board, 0.15, marks=pytest.mark.long) for name in MLPERF for board in BOARDS),
    ],
)
def test_layers_cost_what_run_finds(network: str, board: str, share: float, call: Call) -> None:
    """``run`` counts what was executed; ``explain`` knows the functions and their sizes, and builds nothing."""
    layers = told_and_taken(call, network_named(network).path, board)
    assert off(layers, share) == {}
    told, taken = (sum(pair[i] for pair in layers.values()) for i in (0, 1))
    assert told == pytest.approx(taken, rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("board", "apart"), [("mps2_an386", {"mean_63"}), ("mps3_an547", set()), ("netduino_plus_2", {"mean_63"})]
)
def test_layers_of_mobilenet_v2_cost_what_run_finds(board: str, apart: set[str], tmp_path: Path, call: Call) -> None:
    """``apart``: a mean of four pixels is told two thirds of what it takes, 0.4 % of the network."""
    model = tmp_path / "mobilenet_v2.tflite"
    model.write_bytes(field("mobilenet_v2").build(64, 10, 0.35, 7))
    assert off(told_and_taken(call, model, board), 0.15).keys() == apart


def test_explain_without_accelerators_names_functions(call: Call) -> None:
    told = call("explain", RESIDUAL, "-b", "mps2_an386", "--json").report
    assert told["costs"] == "functions"
    text = "\n".join(shown(told, 100))
    assert "conv2d_columns_dsp_s8 (arm_dsp)" in text
    assert "no accelerator was asked" not in text
    assert "plain C" not in text


def test_layers_without_the_best_kernels_are_named_last_with_their_share(call: Call, tmp_path: Path) -> None:
    (tmp_path / "m.tflite").write_bytes(depthwise_conv_2d(Window((1, 9, 9, 3), 3)))
    report = call("explain", tmp_path / "m.tflite", "-b", "mps2_an386", "--json").report
    cycles = report["layers"][0]["cpu_cycles"]
    told = "depthwise_conv_2d_0 (portable): it has 3 channels, and 4 are computed together."
    told += f" {cycles:,} cycles. Give it more channels"
    last = "100.0 % of the CPU's cycles are in 1 layer without its best kernels"
    assert [" ".join(line.split()) for line in shown(report, 160)[-2:]] == [f"Slow {told}", f"Share {last}"]
    fast = call("explain", tmp_path / "m.tflite", "-b", "mps3_an547", "--json").report["slow"]
    assert fast == {"layers": [], "share": 0.0}


def test_layers_in_printed_c_are_named(call: Call) -> None:
    (layer,) = call("explain", OWN / "mixed.tflite", "-b", "mps2_an386", "--json").report["slow"]["layers"]
    assert (layer["layer"], layer["family"]) == ("exp_5", "tir")
    assert layer["reason"] == "no kernel computes exp of these types"


def shown(report: dict[str, Any], width: int) -> list[str]:
    stream = io.StringIO()
    _show(Console(file=stream, width=width, markup=False, emoji=False, highlight=False), report)
    return [line.rstrip() for line in stream.getvalue().splitlines()]


@pytest.mark.sample(1)
@pytest.mark.parametrize("width", [80, 100, 160])
def test_explain_fits_a_screen(width: int) -> None:
    asked = load_accelerators(["nuc_fpga", "conveyor"])
    for model in (GESTURE, RESIDUAL, OWN / "branches.tflite"):
        report = explain(compile_model(model, board="host", accelerators=asked, wishes=Wishes("cost")))
        lines = shown(report, width)
        assert max(map(len, lines)) <= width
        text = "\n".join(lines)
        assert "…" not in text
        words = set(text.split())
        assert {row["name"] for row in report["layers"]} <= words
        for name in ("MACs", "Bytes", "Cycles", "Why"):
            assert name in words
        narrowest = max(len(line) for line in lines if "conv_2d_0" in line)
        assert narrowest > 50, "reasons have room"


def test_reasons_that_are_alike_are_said_once() -> None:
    def row(engine: str, reason: str, *rejections: tuple[str, str]) -> dict[str, Any]:
        told = [{"accelerator": name, "operation": None, "reason": text} for name, text in rejections]
        return {"engine": engine, "reason": reason, "rejections": told}

    assert why(row("cpu", "a: no; b: no; c: never", ("a", "no"), ("b", "no"), ("c", "never"))) == "a, b: no; c: never"
    assert why(row("a", "it does", ("b", "no"))) == "it does; b: no"
    assert why(row("cpu", "pinned to the CPU", ("a", "kept"))) == "pinned to the CPU; a: kept"
    assert why(row("cpu", "no accelerator was asked")) == "no accelerator was asked"
    assert why(row("cpu", "a: x; a: y", ("a", "x"), ("a", "x"), ("a", "y"))) == "a: x; a: y"


@pytest.mark.parametrize("command", ["compile", "run", "explain"])
def test_nothing_offloaded_is_an_error_with_the_reasons(
    command: str, idle: Path, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = call(command, GESTURE, "-a", idle, "--json")
    assert done.status == 1
    assert done.complaint.startswith("nothing is offloaded to tiny: no operation for ")
    assert done.complaint.endswith("'uaccel explain' tells layer by layer, --allow-none goes on without")
    if command == "explain":
        assert all(row["rejections"] for row in done.report["layers"]), "the report is what was asked for"
    else:
        assert done.report == {"error": {"kind": "AcceleratorError", "message": done.complaint, "status": 1}}
    assert [path.name for path in tmp_path.iterdir()] == ["idle"], "no archive that nobody wanted"


@pytest.mark.sample(1)
@pytest.mark.parametrize("command", ["compile", "run", "explain"])
def test_unless_that_is_fine(
    command: str, idle: Path, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = call(command, GESTURE, "-a", idle, "--allow-none", "--json")
    assert done.status == 0, done.err
    report = done.report
    assert (report["accelerators"], report["offloaded"]) == (["tiny"], [])
    assert {row["reason"] for row in report["fallback"]} >= {"tiny: no operation for conv2d"}
    assert {row["engine"] for row in report["layers"]} == {"cpu"}


KEPT = re.compile(
    r"nothing is offloaded: the CPU alone is estimated as cheapest, with ([\d,]+) instructions; "
    r"with nuc_fpga it would be ([\d,]+) instructions and cycles, ([\d,]+) more"
)


@pytest.mark.sample(1)
@pytest.mark.parametrize("command", ["compile", "run", "explain"])
def test_nor_is_it_an_error_where_the_cpu_is_the_cheapest(
    command: str, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = ("-a", "nuc_fpga", "--choose", "cost", "--json", *(["--verify"] if command == "run" else []))
    done = call(command, STREAM, *asked)
    assert done.status == 0, done.err
    report = done.report
    assert {row["engine"] for row in report["layers"]} == {"cpu"}
    (warning,) = report["warnings"]
    told = KEPT.fullmatch(warning)
    assert told is not None, warning
    alone, others, more = (int(number.replace(",", "")) for number in told.groups())
    assert abs(others - alone - more) <= 1
    assert more > 0
    if command == "explain":
        (chosen,) = (plan for plan in report["plans"] if plan["chosen"])
        assert (chosen["name"], chosen["total"]) == ("cpu", alone)
    assert command != "run" or report["verify"]["bit_exact"]
    forced = call(command, STREAM, *asked, "--pin", "*=cpu")
    assert forced.complaint.startswith("nothing is offloaded to nuc_fpga: "), "no plan could have offloaded anything"


OPTIONS = [
    ("--choose", "cost"),
    ("--pin", "conv_2d_0=cpu"),
    ("--forbid", "conv_2d_0=cpu"),
    ("--engines", "x.toml"),
    ("--fallback", "cpu"),
]


@pytest.mark.parametrize(("option", "value"), OPTIONS)
def test_options_about_accelerators_without_one(option: str, value: str, call: Call) -> None:
    done = call("compile", GESTURE, option, value, "--json")
    assert (done.status, done.complaint) == (
        1,
        f"{option} is about accelerators, and none is given; add --accelerator NAME|PATH",
    )


def test_wishes_by_option_and_file(tmp_path: Path, call: Call) -> None:
    file = tmp_path / "engines.toml"
    file.write_text('[pin]\n"conv_*" = "cpu"\n')
    words = ("-a", "nuc_fpga", "--engines", file, "--pin", "conv_2d_1=nuc_fpga", "--forbid", "fully_*=nuc_fpga")
    report = call("explain", RESIDUAL, *words, "--json").report
    assert [row["name"] for row in report["layers"] if row["engine"] == "nuc_fpga"] == ["conv_2d_1"]
    done = call("compile", RESIDUAL, "-a", "nuc_fpga", "--pin", "add_3=nuc_fpga", "--json")
    assert (done.status, done.complaint) == (1, "layer add_3 cannot be pinned to nuc_fpga: no operation for add")


def test_an_archive_says_how_to_make_it_again(tmp_path: Path, call: Call) -> None:
    vendor = vendor_folder(
        tmp_path / "chips" / "mine", description(operations='[Operation("softmax", "softmax", run)]')
    )
    words = ["-a", f"{vendor}/accelerator.py", "--pin", "softmax_*=tiny", "--choose", "preference"]
    archive = tmp_path / "g.tar"
    done = call("compile", GESTURE, *words, "-o", archive, "--json")
    assert done.status == 0, done.err
    with tarfile.open(archive) as tar:
        member = tar.extractfile("./codegen/host/src/tvmgen_gesture.c")
        assert member is not None
        head = " ".join(member.read().decode()[:2000].split())
    assert "--accelerator mine/" in head
    assert str(tmp_path) not in head


def test_a_dump_is_loaded_again(tmp_path: Path, call: Call) -> None:
    done = call("compile", GESTURE, "-a", "conveyor", "-o", tmp_path / "g.tar", "--dump", tmp_path / "dump", "--json")
    assert done.status == 0, done.err
    partition = json.loads((tmp_path / "dump" / "partition.json").read_text())
    names = {row["region"] or row["name"] for row in partition if row["engine"] == "conveyor"}
    folders = sorted((tmp_path / "dump" / "regions").iterdir())
    assert {folder.name for folder in folders} == names
    for folder in folders:
        region = load_region(folder)
        assert region.calls[-1].function == "conveyor_play"
        assert region.artefacts


def test_the_list_of_accelerators(call: Call) -> None:
    report = call("accelerators", "--json").report
    rows = {row["name"]: row for row in report["accelerators"]}
    assert set(rows) >= {"nuc_fpga", "conveyor", "matrix8", "vanilla"}
    nuc = rows["nuc_fpga"]
    assert (nuc["exact"], nuc["tolerance"], nuc["error"]) == (True, 0, None)
    assert {"name": "dense", "operators": ["uaccel.fully_connected"]} in nuc["operations"]
    assert (Path(nuc["folder"]) / "accelerator.py").is_file()
    assert (rows["vanilla"]["exact"], rows["vanilla"]["tolerance"]) == (False, 1e-5)
    assert rows["vanilla"]["fpga"] is None
    text = call("accelerators").out
    assert all(name in text for name in rows)
    assert "docs/rtl.md#instructions-inside-the-core" in text.split()


@pytest.mark.parametrize("name", ["dot4", "matrix8", "npu_small", "npu_tiny", "nuc_fpga"])
def test_an_fpgas_share_is_the_measured_one(name: str, call: Call) -> None:
    measured = json.loads((Path(__file__).parents[2] / "benchmarks" / "area.json").read_text())[f"{name} on ecp5-85k"]
    (row,) = (row for row in call("accelerators", "--json").report["accelerators"] if row["name"] == name)
    assert row["fpga"] == {"part": "ecp5-85k", **measured["area"]}
    assert f"{measured['area']['lut']:,} LUT" in call("accelerators").out


def test_pages_that_accelerators_name_are_there(call: Call) -> None:
    for row in call("accelerators", "--json").report["accelerators"]:
        file, _, section = row["page"].partition("#")
        titles = re.findall(r"^#+ (.+)$", Path(file).read_text(), re.MULTILINE)
        assert not section or section in {re.sub(r"[^a-z -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize(("page", "told"), [("https://chip.example/", "https://chip.example/"), ("", None)])
def test_a_page_elsewhere_and_a_size_that_cannot_be_read(
    page: str, told: str | None, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = vendor_folder(tmp_path / "chip", description(page=repr(page)))
    (folder / "rtl").mkdir()
    (folder / "rtl" / "synth.json").write_text('{"area": 3}')
    for place in ("accelerator.discovery", "cli.accelerators"):
        monkeypatch.setattr(f"uaccel.{place}.accelerator_folders", lambda: {"tiny": folder})
    done = call("accelerators", "--json")
    (row,) = (row for row in done.report["accelerators"] if row["name"] == "tiny")
    assert (row["page"], row["fpga"], row["error"]) == (told, None, None)
    assert f"{folder}/rtl/synth.json: wanted what 'uaccel synth --json' writes" in done.err


def test_one_that_cannot_be_used_is_listed_with_the_reason(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = vendor_folder(tmp_path / "broken", "1 / 0\n")
    for place in ("accelerator.discovery", "cli.accelerators"):
        monkeypatch.setattr(f"uaccel.{place}.accelerator_folders", lambda: {"broken": broken})
    (row,) = (r for r in call("accelerators", "--json").report["accelerators"] if r["name"] == "broken")
    assert (
        row["error"]
        == f"{broken}/accelerator.py cannot be imported: ZeroDivisionError: division by zero (accelerator.py, line 1)"
    )
    assert "cannot be used: " in call("accelerators").out


WRONG = ["check=5", "check=lambda r: r.nothing", "cost=lambda r: None", "expand=lambda e, r, i: None"]


@pytest.mark.slow
@pytest.mark.parametrize("fields", WRONG)
def test_a_vendors_mistake_is_one_line(fields: str, tmp_path: Path) -> None:
    """In a process of its own, with all that C++ writes to stderr by itself."""
    text = description(operations=f'[Operation("s", "softmax", run, {fields})]')
    vendor = vendor_folder(tmp_path / "chip", text)
    done = process("explain", GESTURE, "-a", vendor, cwd=tmp_path)
    assert (done.status, done.out) == (1, "")
    assert done.complaint.startswith(str(vendor))
    assert all(line.startswith("uaccel: ") for line in done.err.splitlines()), done.err


@pytest.mark.slow
def test_the_first_wrong_layer_is_named(tmp_path: Path, call: Call) -> None:
    """An accelerator that computes convolutions to four channels with other weights than the model's."""
    wrong = tmp_path / "wrong"
    shutil.copytree(data_dir("accelerators") / "nuc_fpga", wrong)
    text = (wrong / "accelerator.py").read_text()
    right = 'Constant("kernel", weights.value)'
    assert right in text
    spoilt = text.replace(right, 'Constant("kernel", weights.value ^ (weights.info.shape[0] == 4))')
    (wrong / "accelerator.py").write_text(spoilt)
    done = call("run", RESIDUAL, "-a", wrong, "--verify", "layers", "--json")
    assert done.status == 3
    told = done.report["verify"]["first_wrong_layer"]
    first = next(row["name"] for row in done.report["layers"] if row["op"] == "conv2d" and row["outputs"][0][1] == 4)
    assert (told["layer"], told["engine"], told["op"]) == (first, "nuc_fpga", "conv2d")
    assert told["expected"] != told["got"]
    assert 0 < told["differing"] <= told["size"]
    assert "the first wrong layer is layer " in done.complaint
    assert f'"{first}" (conv2d on nuc_fpga), element [' in done.complaint
    assert done.report["verify"]["bit_exact"] is False


@pytest.mark.slow
def test_a_project_is_verified_within_the_tolerance_of_its_accelerator(tmp_path: Path, call: Call) -> None:
    model = tmp_path / "floats.tflite"
    model.write_bytes(float_convolutions())
    assert call("compile", model, "-a", "vanilla", "-o", tmp_path / "f.tar").status == 0
    assert call("create", tmp_path / "f.tar", tmp_path / "p", "--board", "host").status == 0
    done = call("run", tmp_path / "p", "--verify", "--json")
    assert done.status == 0, done.err
    assert done.report["verify"]["within_tolerance"] is True
    assert done.report["verify"]["tolerance"] == pytest.approx(1e-5)
    assert "is within 1e-05 of the exact meaning" in call("run", tmp_path / "p", "--verify").out
