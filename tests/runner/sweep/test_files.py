"""What a sweep writes for others: JUnit XML, a Parquet table, and the label of its commit."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from support.models.networks import OWN
from support.run.command import process
from uaccel.errors import UaccelError
from uaccel.runner.sweep.matrix import SweepRow
from uaccel.runner.sweep.pool import PoolOutcome
from uaccel.runner.sweep.results import Regression, SweepResults, pyarrow, read_results, write_junit, write_parquet
from uaccel.runner.sweep.row_result import FAILED, FIGURES, RAN, RIGHT, WRONG, RowResult, commit_of, figure
from uaccel.runner.sweep.sweep import sweep

HOSTILE = "\x1b[31mred\x00 <b>&\"'\ufffe\ud800 ]]>"
GOOD = RowResult("a", SweepRow("m/kws.tflite", "mps2_an386"), RIGHT, {"instructions": 100}, took=1.25)
SLOW = RowResult("b", SweepRow("m/ic.tflite", "boards/my.board.toml", ("matrix8",)), RAN, {"ram": {"total": 7}}, took=2)
BAD = RowResult("c", SweepRow("m/ad.tflite", "host", options={"samples": 2}), WRONG, {}, "conv: 3 of 9 bytes differ", 3)
DEAD = RowResult("d", SweepRow("m/vww.tflite", "host"), FAILED, {}, f"died: {HOSTILE}", 1, f"log: {HOSTILE}")
EVERY = (GOOD, SLOW, BAD, DEAD)


def suite(folder: Path, results: Any = EVERY, worse: Any = (), name: str = "nightly") -> ET.Element:
    write_junit(folder / "r.xml", name, results, worse)
    return ET.parse(folder / "r.xml").getroot()[0]


def test_each_row_is_a_case_with_what_is_wrong(tmp_path: Path) -> None:
    worse = [Regression(SLOW.row.title, "ram.total", 5, 7), Regression(SLOW.row.title, "flash.total", 1, 2)]
    found = suite(tmp_path, worse=worse)
    totals = {"name": "nightly", "tests": "4", "failures": "2", "errors": "1", "time": "3.250"}
    assert found.attrib == totals
    kinds = {case.get("name"): [(child.tag, child.get("type")) for child in case] for case in found}
    assert kinds == {
        GOOD.row.title: [],
        SLOW.row.title: [("failure", "behind")],
        BAD.row.title: [("failure", "wrong")],
        DEAD.row.title: [("error", "failed")],
    }
    assert [case.get("classname") for case in found][:2] == ["nightly.mps2_an386", "nightly.my_board"]
    assert found[0].get("time") == "1.250"
    assert found[1][0].text == "\n".join(map(str, worse))
    assert found[2][0].get("message") == "conv: 3 of 9 bytes differ"


def test_what_xml_cannot_hold_is_escaped(tmp_path: Path) -> None:
    """The reader here refuses such characters, as those of servers do."""
    error = suite(tmp_path, [DEAD], name=HOSTILE)[0][0]
    words = "\\x1b[31mred\\x00 <b>&\"'\\ufffe\\ud800 ]]>"
    assert error.get("message") == f"died: {words}"
    assert error.text == f"log: {words}"


def test_a_table_has_a_column_for_each_figure(tmp_path: Path) -> None:
    read = pytest.importorskip("pyarrow.parquet", reason="there is no pyarrow: pip install 'uaccel[farm]'").read_table
    write_parquet(tmp_path / "r.parquet", EVERY)
    rows = read(tmp_path / "r.parquet").to_pylist()
    assert list(rows[0])[:9] == [
        *("title", "model", "board", "accelerators", "options", "tags", "repetition", "label", "status"),
    ]
    assert set(FIGURES) < set(rows[0])
    assert [row["instructions"] for row in rows] == [100, None, None, None]
    assert rows[1]["ram.total"] == 7
    assert rows[1]["accelerators"] == ["matrix8"]
    assert json.loads(rows[2]["options"]) == {"samples": 2}
    assert (rows[0]["status"], rows[0]["took"]) == (RIGHT, 1.25)


def test_without_the_package_one_line_tells_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UaccelError) as error:
        pyarrow()
    told = str(error.value)
    assert told.startswith("--parquet takes the pyarrow package, and importing it fails (")
    assert told.endswith("); install it: pip install 'uaccel[farm]'")


def test_the_command_writes_them_where_rows_fail_too(tmp_path: Path) -> None:
    shutil.copy(OWN / "gesture.tflite", tmp_path)
    (tmp_path / "m.toml").write_text('models = ["gesture.tflite"]\naccelerators = ["./none"]\n')
    done = process("sweep", tmp_path / "m.toml", "--junit", tmp_path / "r.xml", "--label", "tuesday")
    assert done.status == 1
    (case,) = ET.parse(tmp_path / "r.xml").getroot()[0]
    assert (case.get("classname"), case[0].tag) == ("m.host", "error")
    assert "none" in (case[0].get("message") or "")
    (result,) = read_results(tmp_path / "m.jsonl")
    assert result.label == "tuesday"
    for option in ("--junit", "--parquet"):
        done = process("sweep", tmp_path / "m.toml", option, tmp_path / "no" / "r")
        assert (done.status, done.complaint[:12]) == (1, "cannot write") or "pyarrow" in done.complaint


def test_new_results_get_the_label_and_those_from_before_keep_theirs(tmp_path: Path) -> None:
    class Ready:
        def run(self, items: Any) -> Any:
            for item in items:
                yield PoolOutcome(item, RowResult(item[0], SweepRow.from_json(item[1]), RIGHT).to_json())

    rows = [SweepRow("kws.tflite", "host"), SweepRow("ic.tflite", "host")]
    results = SweepResults(tmp_path / "r.jsonl")
    sweep(rows[:1], results, Ready(), label="monday")
    swept = sweep(rows, results, Ready(), label="tuesday")
    assert [result.label for result in swept.results] == ["monday", "tuesday"]
    assert [result.label for result in read_results(results.path)] == ["monday", "tuesday"]


def test_results_without_a_label_can_be_read() -> None:
    data = GOOD.to_json()
    del data["label"]
    assert RowResult.from_json(data).label == ""


def test_the_label_is_the_commit_of_the_folder(tmp_path: Path) -> None:
    assert commit_of(tmp_path) == ""
    assert commit_of(tmp_path / "none") == ""
    if shutil.which("git") is None:
        pytest.skip("git is not there")
    who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    for command in (("init", "-q"), (*who, "commit", "-q", "--allow-empty", "-m", "first")):
        subprocess.run(["git", "-C", tmp_path, *command], check=True)
    found = commit_of(tmp_path)
    whole = subprocess.run(["git", "-C", tmp_path, "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    assert len(found) == 10
    assert whole.stdout.startswith(found)


@pytest.mark.parametrize(
    ("layers", "moved"),
    [
        ([{"engine": "npu", "moved": 30}, {"engine": "cpu", "moved": None}, {"engine": "npu", "moved": 12}], 42),
        ([{"engine": "npu", "moved": 30}, {"engine": "matrix8", "moved": None}], None),
        ([{"engine": "cpu", "moved": None}], None),
        ([{"engine": "npu"}], None),
        ([], None),
    ],
)
def test_bytes_moved_are_known_where_every_layer_tells(layers: Any, moved: float | None) -> None:
    assert figure({"graph": {"layers": layers}}, "bytes_moved") == moved


NPU = json.loads((Path(__file__).parents[3] / "benchmarks" / "npu.json").read_text())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["npu", "npu_small"])
def test_utilisation_and_bytes_moved_are_those_of_the_benchmark(name: str, tmp_path: Path) -> None:
    """Which divides products by the array's size and the device's cycles, and reads the listings of streams."""
    text = f'models = ["{OWN / "gesture.tflite"}"]\naccelerators = ["{name}"]\n[run]\nverify = "no"\n'
    (tmp_path / "m.toml").write_text(text)
    done = process("sweep", tmp_path / "m.toml", "--json")
    wanted = NPU["accelerators"][name]["gesture"]
    found = done.report["list"][0]["figures"]
    assert round(found["utilisation"], 4) == wanted["utilisation"]
    assert (found["bytes_moved"], found["accelerator_cycles"]) == (wanted["moved"], wanted["cycles"])
