"""What a page of a sweep is made from: which rows count, and what is wrong with a file."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from report.swept import HOSTILE, line, sweep, write
from support.run.command import process
from uaccel.errors import InputError
from uaccel.report.sweep_page import FIGURES, history_of, known_figures, matrix, page_of_results, read_sweep


def test_the_last_of_each_title_counts_and_a_cut_line_is_left_out(tmp_path: Path) -> None:
    first, again = line("kws", "host", status="failed"), line("kws", "host", figures={"instructions": 3})
    path = write(tmp_path / "r.jsonl", [first, line("ic", "host"), again], "abc")
    with path.open("a") as stream:
        stream.write('{"digest": "cut o')
    found = read_sweep(path)
    assert found.label == "abc"
    assert [(row.number, row.title, row.status) for row in found.rows] == [
        (0, "kws on host with cpu", "right"),
        (1, "ic on host with cpu", "right"),
    ]
    assert found.rows[0].figures == {"instructions": 3.0}


def test_an_emulators_seconds_are_left_out_and_unknown_figures_go_by_their_name(tmp_path: Path) -> None:
    known = {"seconds": 0.5, "new.figure": 4, "instructions": True}
    emulated = line("kws", "mps2_an386", figures=known, report={"target": {"emulated": True}})
    real = line("kws", "nucleo", figures=known, report={"target": {"emulated": False}})
    rows = read_sweep(write(tmp_path / "r.jsonl", [emulated, real])).rows
    assert rows[0].figures == {"new.figure": 4.0}
    assert rows[1].figures == {"seconds": 0.5, "new.figure": 4.0}
    assert [figure.label for figure in known_figures(rows)] == ["Seconds, measured", "new.figure"]


def test_every_figure_of_a_sweep_has_words() -> None:
    from uaccel.runner.sweep.row_result import FIGURES as MEASURED

    assert sorted(figure.name for figure in FIGURES) == sorted(MEASURED)


def test_the_map_has_a_place_for_each_row(tmp_path: Path) -> None:
    found = read_sweep(write(tmp_path / "r.jsonl", sweep()))
    made = matrix([found])
    assert isinstance(made, Mapping)
    assert made["boards"] == [("mps2_an386", 14), ("host", 2)]
    assert [engines for board, engines, _ in made["columns"] if board == "host"] == ["cpu", "matrix8"]
    assert [numbers for _, _, numbers in made["columns"]][2] == ("ROWS=4", "PORTS=1")
    placed = sorted(number for _, _, cells in made["rows"] for cell in cells for number in cell)
    assert placed == list(range(len(found.rows)))


def test_a_history_has_gaps_where_a_row_failed_or_was_not(tmp_path: Path) -> None:
    one = [line("kws", "host", figures={"instructions": 3}), line("ic", "host", figures={"instructions": 5})]
    two = [line("kws", "host", status="failed"), line("ad", "host", figures={"instructions": 7})]
    sweeps = [read_sweep(write(tmp_path / f"{i}.jsonl", rows)) for i, rows in enumerate((one, two))]
    assert history_of(sweeps) == {
        "kws on host with cpu": [{"instructions": 3.0}, None],
        "ic on host with cpu": [{"instructions": 5.0}, None],
        "ad on host with cpu": [None, {"instructions": 7.0}],
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", " holds no result; wanted what 'uaccel sweep' writes"),
        ("not json\n{}\n", ":1 is no result; wanted what 'uaccel sweep' writes"),
        ("[]\n[]\n", ":1 is no result; wanted what 'uaccel sweep' writes"),
        (
            json.dumps(line("m", "b") | {"figures": [1]}) + "\n{}\n",
            ":1 is no result; wanted what 'uaccel sweep' writes",
        ),
        (json.dumps(line("m", "b") | {"row": 3}) + "\n", " holds no result; wanted what 'uaccel sweep' writes"),
    ],
)
def test_what_is_no_sweep_is_told(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        read_sweep(path)
    assert str(error.value) == f"{path}{words}"


def test_fields_of_any_kind_make_a_page_or_a_line_of_error(tmp_path: Path) -> None:
    strange: list[Any] = [None, 3, "x", [], {}, [1], {"a": None}, HOSTILE, -1.5, True]
    for key in (*line("m", "b"), "tags", "options", "accelerators", "model", "board"):
        for value in strange:
            row = line("m", "b", figures={"instructions": 3})
            (row if key in row else row["row"])[key] = value
            path = write(tmp_path / "r.jsonl", [row, line("n", "b", figures={"ram.total": 3})])
            with contextlib.suppress(InputError):
                text, _ = page_of_results([path, path])
                assert "<script>alert" not in text


def test_the_command_and_what_it_refuses(tmp_path: Path) -> None:
    one, two = (write(tmp_path / f"{name}.jsonl", sweep(), name) for name in ("mon", "tue"))
    done = process("report", one, two, "-o", tmp_path / "p.html", "--json")
    assert (done.status, [entry["label"] for entry in done.report["sweeps"]]) == (0, ["mon", "tue"])
    assert "no room for it" in (tmp_path / "p.html").read_text()
    refused = process("report", one, "run.json", "-o", tmp_path / "q.html")
    wanted = "run.json is no sweep's results, and others given are; give .jsonl files alone, or none"
    assert (refused.status, refused.complaint) == (1, wanted)
    refused = process("report", one, "--board", "host")
    assert refused.complaint.startswith("--board is for a model")
    refused = process("report", one, "--quantized", "q.json")
    assert refused.complaint == "--quantized is for the page of one run, and a sweep's results are given; leave it away"
    assert not (tmp_path / "q.html").exists()
