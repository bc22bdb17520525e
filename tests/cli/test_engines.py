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

from support.device.boards import board_with_tools
from support.hostile.vendor import description, vendor_folder
from support.models.float_convolutions import float_convolutions
from support.models.networks import OWN
from support.run.command import Call, process
from uaccel.accelerator import load_accelerators
from uaccel.cli.explain import _show, why
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


def test_without_accelerators_layers_cost_what_their_functions_do(call: Call) -> None:
    """``run`` counts. Estimates know a function's products and results, and not the shape of the layer."""
    board_with_tools("mps2_an386")
    told = call("explain", RESIDUAL, "-b", "mps2_an386", "--json").report
    taken = call("run", RESIDUAL, "-b", "mps2_an386", "--json").report
    cycles = {row["name"]: row["cycles_estimated"] for row in taken["layers"]}
    large = {row["name"]: row["cpu_cycles"] for row in told["layers"] if row["macs"] > 50_000}
    assert (told["costs"], len(large)) == ("functions", 5)
    assert all(0.6 < cost / cycles[name] < 1.4 for name, cost in large.items())
    assert 0.8 < sum(row["cpu_cycles"] for row in told["layers"]) / taken["cycles_estimated"] < 1.2
    text = "\n".join(shown(told, 100))
    assert "conv2d_columns_dsp_s8 (arm_dsp)" in text
    assert "no accelerator was asked" not in text
    assert "plain C" not in text


def test_layers_in_plain_c_are_named_with_their_share(call: Call) -> None:
    report = call("explain", OWN / "mixed.tflite", "-b", "mps2_an386", "--json").report
    shares = {row["name"]: row["cpu_cycles"] for row in report["layers"] if row["family"] == "portable" and row["macs"]}
    part = 100 * sum(shares.values()) / sum(row["cpu_cycles"] for row in report["layers"])
    assert [*shares] == ["fully_connected_6"]
    line = next(line for line in shown(report, 100) if "plain C" in line)
    assert line.split() == f"Portable fully_connected_6: {part:.1f} % of the cycles, in plain C".split()


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
    text = call("accelerators").out
    assert all(name in text for name in rows)


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
