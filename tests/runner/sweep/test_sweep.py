"""A matrix that is run, cut off, run on, and held to stored figures."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from support.models.networks import OWN
from support.run.command import Call, process
from support.run.rows import alike, lines
from uaccel.runner.sweep.matrix import SweepRow
from uaccel.runner.sweep.pool import PoolOutcome
from uaccel.runner.sweep.results import Regression, SweepResults, behind, read_results
from uaccel.runner.sweep.row_result import RIGHT, WRONG, RowResult, figure
from uaccel.runner.sweep.sweep import Item, sweep
from uaccel.util.files import data_dir
from uaccel.util.reads import state

SMALL = """
models = ["gesture.tflite"]
boards = ["host"]
accelerators = [[], ["matrix8"], ["./broken"]]
[run]
samples = 2
[figures]
"flash.total" = 0
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A matrix with an accelerator whose driver forgets a value, and one whose description is no Python."""
    folder = tmp_path_factory.mktemp("sweep")
    shutil.copy(OWN / "gesture.tflite", folder)
    (folder / "broken").mkdir()
    (folder / "broken" / "accelerator.py").write_text("this is no Python\n")
    (folder / "m.toml").write_text(SMALL)
    return folder


def test_rows_that_are_right_and_one_that_fails(folder: Path) -> None:
    done = process("sweep", folder / "m.toml", "--json", cwd=folder)
    assert done.status == 1
    assert done.complaint.startswith("1 of 3 rows failed, first gesture on host with broken samples=2: ")
    assert done.report["counts"] == {"right": 2, "failed": 1}
    results = lines(folder / "m.jsonl")
    assert [result["status"] for result in sorted(results, key=lambda one: one["title"])] == [
        "failed",
        "right",
        "right",
    ]
    assert {"broken/accelerator.py" in result["error"] for result in results} == {True, False}
    again = process("sweep", folder / "m.toml", "--json", cwd=folder)
    assert (again.report["taken_over"], again.report["counts"]) == (2, {"right": 2, "failed": 1})


@pytest.mark.slow
def test_one_by_one_or_killed_and_resumed_the_results_are_the_same(folder: Path, tmp_path: Path) -> None:
    text = SMALL.replace(', ["./broken"]', "").replace("samples = 2", "samples = 2\nverify = 'outputs'")
    (folder / "two.toml").write_text(text + '[[options]]\n[[options]]\nfavour = "size"\n')
    whole, cut = tmp_path / "whole.jsonl", tmp_path / "cut.jsonl"
    assert process("sweep", folder / "two.toml", "-o", whole, "-j", "1").status == 0
    command = [sys.executable, "-m", "uaccel", "sweep", str(folder / "two.toml"), "-o", str(cut), "-j", "2"]
    for _ in range(2):
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        before = len(cut.read_bytes()) if cut.exists() else 0
        deadline = time.monotonic() + 60
        while child.poll() is None and time.monotonic() < deadline:
            if cut.exists() and len(cut.read_bytes()) > before:
                break
            time.sleep(0.02)
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
    with cut.open("ab") as stream:
        stream.write(b'{"digest": "cut o')
    assert process("sweep", folder / "two.toml", "-o", cut, "-j", "2").status == 0
    results = [json.loads(line) for line in cut.read_text().splitlines() if line.endswith("}")]
    assert len(results) == len({result["digest"] for result in results}) == 4, (
        "none is lost, none is run to the end twice"
    )
    assert alike(results) == alike(lines(whole))


@pytest.mark.slow
def test_a_figure_that_grows_fails_until_it_is_accepted(folder: Path, tmp_path: Path) -> None:
    path = folder / "gate.toml"
    path.write_text(SMALL.replace(', ["./broken"]', ""))
    stored, results = folder / "gate.expected.json", tmp_path / "r.jsonl"
    first = process("sweep", path, "-o", results, "--accept", "--json")
    assert (first.status, first.report["behind"]) == (0, [])
    figures = json.loads(stored.read_text())["figures"]
    assert set(figures) == {"gesture on host with cpu samples=2", "gesture on host with matrix8 samples=2"}
    assert process("sweep", path, "-o", results, "--json").status == 0
    title = "gesture on host with matrix8 samples=2"
    figures[title]["flash.total"] -= 1  # planted: as if it had been one byte less
    stored.write_text(json.dumps({"figures": figures}))
    worse = process("sweep", path, "-o", results, "--json")
    assert worse.status == 1
    assert worse.complaint.startswith(f"1 figure fell behind, first {title}: flash.total is ")
    assert [entry["title"] for entry in worse.report["behind"]] == [title]
    assert process("sweep", path, "-o", results, "--accept").status == 0
    assert process("sweep", path, "-o", results).status == 0


@pytest.mark.slow
def test_an_accelerator_that_computes_wrong_ends_with_status_3(folder: Path, tmp_path: Path) -> None:
    """Planted: the device subtracts products."""
    broken = tmp_path / "matrix8"
    shutil.copytree(data_dir("accelerators") / "matrix8", broken)
    source = broken / "device" / "matrix8_commands.c"
    text = source.read_text()
    sums = "sums[i / MATRIX8_DEPTH] += "
    assert sums in text
    source.write_text(text.replace(sums, sums.replace("+=", "-=")))
    shutil.copy(folder / "gesture.tflite", tmp_path)
    (tmp_path / "m.toml").write_text('models = ["gesture.tflite"]\naccelerators = ["./matrix8"]\n')
    done = process("sweep", tmp_path / "m.toml", "--json")
    assert (done.status, done.report["counts"]) == (3, {WRONG: 1})
    assert done.complaint.startswith("1 of 1 rows are wrong, gesture on host with matrix8 first; see ")


def test_a_place_that_cannot_be_written_and_names_that_clash(folder: Path, tmp_path: Path, call: Call) -> None:
    done = call("sweep", folder / "m.toml", "-o", tmp_path / "no" / "r.jsonl")
    assert (done.status, done.complaint[:12]) == (1, "cannot write")
    (tmp_path / "other").mkdir()
    shutil.copy(OWN / "mixed.tflite", tmp_path / "other" / "gesture.tflite")
    shutil.copy(OWN / "gesture.tflite", tmp_path)
    (tmp_path / "m.toml").write_text('models = ["gesture.tflite", "other/gesture.tflite"]\n')
    done = call("sweep", tmp_path / "m.toml")
    wanted = "2 rows are called 'gesture on host with cpu'; rename a model, or give one a name"
    assert (done.status, done.complaint) == (1, f"{tmp_path / 'm.toml'}: {wanted}")
    done = call("sweep", tmp_path / "m.toml", "--accept")
    assert done.complaint.endswith("has no [figures], so that --accept would store nothing; say which must hold")


ROW = SweepRow("m.tflite", "host")


@pytest.mark.parametrize(
    ("name", "percent", "stored", "now", "worse"),
    [
        ("instructions", 0, 100, 100, False),
        ("instructions", 0, 100, 101, True),
        ("instructions", 1, 100, 101, False),
        ("instructions", 0, 100, 90, False),
        ("flash.total", 1, 1000, 1011, True),
        ("utilisation", 0, 0.5, 0.49, True),
        ("utilisation", 5, 0.5, 0.49, False),
        ("offloaded", 0, 3, 2, True),
        ("offloaded", 0, 3, 4, False),
        ("instructions", 0, 0, 1, True),
    ],
)
def test_what_is_worse(name: str, percent: float, stored: float, now: float, worse: bool) -> None:
    result = RowResult("d", ROW, RIGHT, REPORTS[name](now))
    found = behind([result], {name: percent}, {ROW.title: {name: stored}})
    assert found == ([Regression(ROW.title, name, stored, now)] if worse else [])
    assert all(str(entry).startswith(f"{ROW.title}: {name} is ") for entry in found)


REPORTS: dict[str, Any] = {
    "instructions": lambda value: {"instructions": value},
    "flash.total": lambda value: {"flash": {"total": value}},
    "offloaded": lambda value: {"offloaded": [{}] * value},
    "utilisation": lambda value: {
        "engines": [{"name": "e", "macs_per_cycle": 10}],
        "layers": [{"engine": "e", "cycles": 10, "macs": 100 * value}, {"engine": "cpu", "cycles": 0, "macs": 5}],
    },
}


def test_figures_of_reports_that_lack_them() -> None:
    assert figure({}, "instructions") is None
    assert figure({"ram": {"total": None}}, "ram.total") is None
    assert figure({"ram": 3}, "ram.total") is None
    assert figure({"engines": [], "layers": []}, "utilisation") is None


class Rows:
    """An engine that gives each row the result that it had before."""

    def run(self, items: Sequence[Item]) -> Iterator[PoolOutcome]:
        for digest, row in items:
            yield PoolOutcome((digest, row), RowResult(digest, SweepRow.from_json(row), RIGHT).to_json())


def test_a_result_is_taken_over_while_what_was_read_for_it_stands(tmp_path: Path) -> None:
    row, read = replace(ROW, model=str(OWN / "gesture.tflite"), board="host"), tmp_path / "read"
    read.write_text("1")
    results = SweepResults(tmp_path / "r.jsonl")
    with results:
        results.add(RowResult(row.digest(), row, RIGHT, reads={f"content {read}": state(f"content {read}")}))
    assert sweep([row], results, Rows()).taken_over == 1
    read.write_text("2")
    assert sweep([row], results, Rows()).taken_over == 0


def test_results_of_somebody_else_are_refused_and_a_cut_line_is_left_out(tmp_path: Path, call: Call) -> None:
    path = tmp_path / "r.jsonl"
    with SweepResults(path) as results:
        results.add(RowResult("a", ROW, RIGHT, {"instructions": 3}))
    with path.open("ab") as stream:
        stream.write(b'{"digest": "b", "ro')
    with SweepResults(path) as results:
        results.add(RowResult("c", ROW, RIGHT))
    assert [result.digest for result in read_results(path)] == ["a", "c"]
    done = call("sweep", tmp_path / "none.toml")
    assert done.complaint.endswith("none.toml: No such file or directory; wanted a matrix file in TOML")
