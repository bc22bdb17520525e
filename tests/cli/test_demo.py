"""`uaccel demo`: what it shows and reports, that what it says to try next works, and that it can fail."""

from __future__ import annotations

import io
import shlex
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import uaccel
from support.device.boards import board_with_tools
from support.run.command import Call, is_exact
from uaccel.cli import start as demo
from uaccel.runner import perform as running
from uaccel.runner.perform import Performed
from uaccel.util.files import page

LABELS = ["still", "tap", "swipe", "shake", "circle", "lift"]


@dataclass(frozen=True)
class Seen:
    """One demo on board host: the job, its report, and what shows it to a person."""

    ran: Performed
    report: dict[str, Any]
    show: Callable[[Console], None]


@pytest.fixture(scope="module")
def seen() -> Seen:
    caught: dict[str, Any] = {}
    honest = running.perform

    def perform(*arguments: Any) -> Performed:
        caught["ran"] = ran = honest(*arguments)
        return ran

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "perform", perform)
        patch.setattr(demo, "emit", lambda report, _, show: caught.update(report=report, show=show))
        demo.DemoCommand().run()
    return Seen(**caught)


def test_the_bundled_model_ran_partly_on_the_bundled_accelerator_and_is_right(seen: Seen) -> None:
    report = seen.report
    assert (report["board"], report["accelerators"], report["runs"]) == ("host", ["matrix8"], 6)
    assert report["verify"]["bit_exact"] is True
    engines = {layer["engine"]: layer["calls"] for layer in report["layers"] if layer["calls"]}
    assert set(engines) == {"cpu", "matrix8"}
    assert report["answers"] == [{"sample": label, "answer": label} for label in LABELS]
    assert report["model_file"] == str(uaccel.models()["gesture"])
    assert Path(report["samples_file"]).is_file()


@pytest.mark.parametrize("width", [60, 80, 120])
def test_it_fits_the_screen_and_says_all(seen: Seen, width: int) -> None:
    console = Console(file=io.StringIO(), width=width, markup=False, emoji=False, highlight=False)
    seen.show(console)
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    shown, _, after = text.partition("\n\n  The same firmware")
    assert max(map(len, shown.splitlines())) <= width
    words = " ".join(shown.split())
    for layer in seen.report["layers"]:
        assert f" {layer['name']} {layer['engine']} " in words
    for sentence in (
        "6 of 6 right: still, tap, swipe, shake, circle, lift",
        "Engine matrix8: 4 layers, 7,184 multiply-accumulates (90%); 126 calls of its driver in 6 inferences",
        "Why cpu softmax_8: no operation for softmax",
        "Verified every output of 6 samples equals the exact meaning",
        "depthwise_conv_2d_1, depthwise_conv_2d_3: each channel sees itself alone",
    ):
        assert sentence in words
    commands = [line.strip() for line in after.splitlines() if line.startswith("    ")]
    assert commands == [*(row["command"] for row in seen.report["next"]), str(page("bring-your-accelerator.md"))]
    assert "…" not in text


@pytest.mark.slow
def test_what_it_says_to_try_next_works(
    seen: Seen, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    commands = [row["command"].removeprefix(demo._program()) for row in seen.report["next"]]
    assert [shlex.split(command)[0] for command in commands] == ["demo", "run", "explain", "new"]
    assert shlex.split(commands[0]) == ["demo", "--board", demo.EMULATED]
    for command in commands[1:]:
        done = call(*shlex.split(command), "--json")
        assert done.status == 0, done.err
        if command.startswith(" run"):
            assert is_exact(done.report, samples=6)


@pytest.mark.slow
def test_the_same_on_an_emulated_board(call: Call) -> None:
    board_with_tools(demo.EMULATED)
    report = call("demo", "--board", demo.EMULATED, "--json").report
    assert report["verify"]["bit_exact"] is True
    assert [row["answer"] for row in report["answers"]] == LABELS
    assert report["instructions"] > 10_000
    assert [shlex.split(row["command"].removeprefix(demo._program()))[0] for row in report["next"]] == [
        *("run", "explain", "new")
    ]


def test_a_difference_from_the_exact_meaning_ends_with_status_3(
    seen: Seen, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "perform", lambda *_: replace(seen.ran, complaint="verification failed: sample 0"))
    done = call("demo")
    assert (done.status, done.complaint) == (3, "verification failed: sample 0")


def test_a_wrong_answer_is_named(seen: Seen) -> None:
    rows = [{"sample": "tap", "answer": "swipe"}, {"sample": "lift", "answer": "lift"}]
    assert demo._answer_words(rows) == "tap taken for swipe, lift"


def test_tflite_micro_is_asked_where_it_is_installed(seen: Seen) -> None:
    pytest.importorskip("tflite_micro")
    told = seen.report["verify"]["runtime"]
    assert seen.report["verify"]["against"] == ["exact meaning", "tflite-micro"]
    assert told["runtime"].startswith("TensorFlow Lite Micro ")
    assert (told["elements"], told["equal"]) == (36, 36)


def test_a_real_board_is_refused_at_once(call: Call) -> None:
    done = call("demo", "--board", "nucleo_f746zg")
    assert done.status == 1
    assert done.complaint == (
        "board nucleo_f746zg is a real one, and the demo runs where nothing is flashed: host, mps2_an385, mps2_an386, "
        "mps2_an500, mps2_an505, mps3_an547, qemu_riscv32, qemu_riscv32v, rtl_vexriscv, "
        "rtl_vexriscv_qspi; "
        f"how a real board is used tells {page('boards.md')}"
    )


@pytest.mark.parametrize(
    ("found", "called", "program"),
    [
        ("/usr/bin/uaccel", "/usr/bin/uaccel", "uaccel"),
        (None, ".venv/bin/uaccel", ".venv/bin/uaccel"),
        (None, "/my venv/bin/uaccel", "'/my venv/bin/uaccel'"),
        (None, "/x/uaccel/__main__.py", "/usr/bin/python3 -m uaccel"),
    ],
)
def test_the_commands_can_be_pasted(
    found: str | None, called: str, program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: found)
    monkeypatch.setattr(sys, "argv", [called])
    monkeypatch.setattr(sys, "executable", "/usr/bin/python3")
    assert demo._program() == program
