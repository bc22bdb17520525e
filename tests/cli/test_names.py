"""Names from files reach terminal, JSON and C as names, through whole commands."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from rich.table import Table
from rich.text import Text

from support.device.generated import cc
from support.hostile.hostile import HOSTILE, hostile_onnx, hostile_tflite
from support.run.command import Call, Done
from uaccel.cli import output
from uaccel.errors import escape_terminal
from uaccel.util.files import data_dir

NAMES = list(HOSTILE.values())
FILE = "m\x1b[2J\n*$(touch pwned)`touch pwned`;'\"\\??)\u202e"
"""Of a model, without its suffix; a byte that is no UTF-8 comes on top."""


def assert_obeyed_by_nobody(*texts: str) -> None:
    for text in texts:
        assert [c for c in text if c != "\n" and not c.isprintable()] == []


@pytest.fixture(scope="module", params=["tflite", pytest.param("onnx", marks=pytest.mark.slow)])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All hostile names in one file, whose own name is one too."""
    made = hostile_tflite() if request.param == "tflite" else hostile_onnx()
    path = tmp_path_factory.mktemp("hostile") / os.fsdecode(FILE.encode() + b"\xff." + request.param.encode())
    path.write_bytes(made)
    return path


def ended_well(done: Done) -> Done:
    assert done.status == 0, done.err
    assert_obeyed_by_nobody(done.out, done.err)
    return done


@pytest.mark.slow
def test_explain(call: Call, model: Path) -> None:
    ended_well(call("explain", model, "--board", "host", "--accelerator", "npu", "--allow-none"))
    layers = ended_well(call("explain", model, "--board", "host", "--json")).report["layers"]
    assert len(layers) >= len(NAMES)


def test_compile(call: Call, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "made.tar" in ended_well(call("compile", model, "-o", "made.tar")).out
    report = ended_well(call("compile", model, "-o", "made.tar", "--json")).report
    assert list(report["inputs"]) == NAMES
    subprocess.run(["tar", "xf", "made.tar"], check=True)
    for source in (*Path("codegen/host/src").glob("*.c"), *Path("templates").glob("*.c")):
        cc(source, "-fsyntax-only", include=[Path("codegen/host/include"), data_dir("firmware") / "include"])
    assert json.loads(Path("metadata.json").read_text())["uaccel"]["inputs"].keys() == set(NAMES)
    (header,) = Path("codegen/host/include").glob("tvmgen_*.h")
    command = re.search(r"regenerate:\n \*   (.+)\n", header.read_text())
    assert command
    shell = f'uaccel() {{ printf \'%s\\n\' "$#" "$2"; }}; {command[1]}'
    done = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[0] == "6", "compile, the model, --board host, --name and its name"
    assert not Path("pwned").exists()


@pytest.mark.slow
def test_run(call: Call, model: Path, tmp_path: Path) -> None:
    done = ended_well(call("run", model, "--board", "host", "--verify"))
    name = HOSTILE["end of line"]
    assert any(f"  Output    {escape_terminal(output)}" in done.out for output in (name[::-1], f"{name}!"))
    outputs = ended_well(call("run", model, "--board", "host", "--json")).report["outputs"]
    assert len(outputs) == len(NAMES)


@pytest.mark.parametrize(
    "kind",
    [
        "terminal",
        *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("terminal, 8 bits", "end of line", "nothing")),
    ],
)
def test_what_is_refused_is_named_and_obeyed_by_nobody(kind: str, call: Call, tmp_path: Path) -> None:
    name = HOSTILE[kind]
    unknown = tmp_path / "model.onnx"
    unknown.write_bytes(hostile_onnx(name, name))
    refused: list[tuple[Any, ...]] = [
        ("compile", unknown, "--board", "host", "-o", tmp_path / "made.tar"),
        ("compile", tmp_path / name, "--board", "host", "-o", tmp_path / "made.tar"),
        ("explain", unknown, "--board", name),
        ("explain", unknown, "--board", "host", "--accelerator", name),
        ("compile", unknown, "--board", "host", "--workspace-pool", name, "-o", tmp_path / "made.tar"),
        ("create", tmp_path / name, tmp_path / "project", "--board", "host"),
        ("run", tmp_path / name),
        ("build", tmp_path / name),
        (name,),
    ]
    for arguments in refused:
        done = call(*arguments)
        assert done.status in (1, 2), arguments
        assert_obeyed_by_nobody(done.complaint)


def test_a_console_shows_names_whatever_they_are_part_of() -> None:
    stream = io.StringIO()
    screen = output.console(stream)
    table = Table("a", "b")
    for name in NAMES:
        table.add_row(name, Text(name))
        screen.print(name, Text(name))
    screen.print(table)
    assert_obeyed_by_nobody(stream.getvalue())
    assert "\\x1b[2J\\x1b]0;title" in stream.getvalue()
