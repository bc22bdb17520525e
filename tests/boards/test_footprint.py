"""What linked firmware takes: nothing counted twice, nothing that was dropped, and no run exceeds the static stack."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.device.boards import board_with_tools
from support.models.networks import OWN
from support.run.command import Call
from uaccel.build.elf import MODEL_LIBRARY, read_map
from uaccel.build.stack_usage import INDIRECT, disassemble, library_frames, read_graph

FLASH = {"weights", "code", "rodata", "startup", "session"}
RAM = {"arena", "io", "static", "session"}
CASES = [
    ("mps2_an386", "gesture", ()),
    ("mps2_an386", "branches", ("--no-workspace-io",)),
    ("mps2_an386", "mixed", ()),
    ("mps2_an386", "residual", ("-a", "nuc_fpga")),
    ("mps2_an386", "gesture", ("-a", "npu")),
    ("qemu_riscv32", "residual", ()),
]


def bytes_of(rows: list[dict[str, Any]], *parts: str) -> int:
    return sum(row["bytes"] for row in rows if row["part"] in parts)


@pytest.mark.sample(1)
@pytest.mark.parametrize(("board", "model", "options"), CASES, ids=lambda value: "".join(value))
def test_every_byte_has_its_part(board: str, model: str, options: tuple[str, ...], tmp_path: Path, call: Call) -> None:
    tools = board_with_tools(board).cpu.toolchain
    project = tmp_path / "project"
    done = call("run", OWN / f"{model}.tflite", "-b", board, *options, "--symbols", "--project", project, "--json")
    assert done.status == 0, done.err
    ram, flash, layers = (done.report[key] for key in ("ram", "flash", "layers"))
    check_flash(flash, layers)
    rows = ram["symbols"]
    assert {row["part"] for row in rows} <= RAM
    assert rows == sorted(rows, key=lambda row: (-row["bytes"], row["name"]))
    assert (bytes_of(rows, "static"), bytes_of(rows, "session")) == (ram["static"], ram["session"])
    assert ram["arena"] <= bytes_of(rows, "arena") <= ram["arena"] + 8
    assert ram["io"] <= bytes_of(rows, "io") <= (ram["io"] + 16 * 16 if ram["io"] else 0)

    binary = (project / "build" / "firmware.bin").stat().st_size if board == "mps2_an386" else None
    whole = bytes_of(flash["symbols"], *FLASH)
    assert binary is None or binary - 512 < whole <= binary, "alignment is all that has no owner"
    check_stack(ram)
    check_frames(project / "build", f"{tools}-objdump")


def check_flash(flash: dict[str, Any], layers: list[dict[str, Any]]) -> None:
    rows = flash["symbols"]
    assert {row["part"] for row in rows} == FLASH - ({"rodata"} - {row["part"] for row in rows})
    assert rows == sorted(rows, key=lambda row: (-row["bytes"], row["name"]))
    assert bytes_of(rows, "code", "rodata") == flash["code"]
    assert bytes_of(rows, "startup") == flash["startup"] > 500
    assert bytes_of(rows, "session") == flash["session"]
    assert flash["weights"] <= bytes_of(rows, "weights") < flash["weights"] + 512
    assert flash["total"] == flash["weights"] + flash["code"]
    known = [layer["code"] for layer in layers if layer["code"] is not None]
    assert 0 < sum(known) < flash["code"]
    named = {row["name"]: row["bytes"] for row in rows}
    for layer in layers:
        if layer["code"] is not None and layer["region"] is None:
            assert layer["code"] >= named[f"layer_{layer['name']}"]


def check_stack(ram: dict[str, Any]) -> None:
    """An interrupt may come at the deepest point; it need not in a test."""
    assert 0 < ram["stack"] <= ram["stack_static"] <= ram["stack"] + 256


def check_frames(build: Path, objdump: str) -> None:
    """The bound for libraries' functions, held against functions of which the compiler knows better."""
    graph = read_graph(sorted(build.glob("CMakeFiles/*.dir/**/*.ci")))
    frames = library_frames(disassemble(build / "firmware.elf", objdump))
    names = [function.name for function in graph.values()]
    leaves = [f for f in graph.values() if not f.calls and INDIRECT not in f.calls and names.count(f.name) == 1]
    found = [(function.name, function.frame, frames(function.name)) for function in leaves]
    checked = [(name, frame, bound) for name, frame, bound in found if frame is not None and bound is not None]
    assert len(checked) > 10
    assert [row for row in checked if row[2] < row[1]] == []


@pytest.mark.slow
def test_what_was_dropped_is_not_counted(tmp_path: Path, call: Call) -> None:
    """microTVM's functions that say where tensors lie: the session server needs none of them."""
    board_with_tools("mps2_an386")
    project = tmp_path / "project"
    model = OWN / "gesture.tflite"
    report = call("run", model, "-b", "mps2_an386", "--symbols", "--project", project, "--json").report
    names = {row["name"] for row in report["flash"]["symbols"]}
    assert "tvmgen_gesture_run_c" in names
    assert "tvmgen_gesture_map_inputs" not in names
    model_code = [piece for piece in read_map(project / "build" / "firmware.map") if piece.file == MODEL_LIBRARY]
    assert model_code != []


@pytest.mark.slow
def test_what_the_model_calls_of_the_c_library_is_its_own(tmp_path: Path, call: Call) -> None:
    """expf of a float model; what only the session server calls is not."""
    board_with_tools("mps2_an386")
    report = call("run", OWN / "mixed.tflite", "-b", "mps2_an386", "--symbols", "--json").report
    parts = {row["name"]: row["part"] for row in report["flash"]["symbols"]}
    assert (parts["expf"], parts["strlen"], parts["uaccel_reset"]) == ("code", "session", "startup")


@pytest.mark.slow
def test_without_symbols_the_report_is_short(call: Call) -> None:
    report = call("run", OWN / "gesture.tflite", "--json").report
    assert "symbols" not in report["flash"]
    assert "symbols" not in report["ram"]


@pytest.mark.slow
def test_a_process_has_no_linkers_map(call: Call) -> None:
    report = call("run", OWN / "gesture.tflite", "--symbols", "--json").report
    assert (report["flash"]["symbols"], report["ram"]["symbols"]) == (None, None)
