"""The command line on a stand-in for a real board: what is flashed is what runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.models.networks import OWN
from support.run.command import Call, Done, call_in, is_exact
from uaccel.bench import hold
from uaccel.session.emulated_board import Desk


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str]) -> Call:
    return call_in(capfd)


def good(done: Done) -> Done:
    assert done.status == 0, done.err
    return done


def refused(done: Done) -> str:
    assert done.status == 4
    return done.complaint


@pytest.mark.slow
def test_from_a_model_to_a_flashed_board(
    desk: Desk, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = OWN / "gesture.tflite"
    monkeypatch.chdir(tmp_path)
    good(call("compile", model, "--board", desk.board_file, "-o", "gesture.tar"))
    good(call("create", "gesture.tar", "project", "--board", desk.board_file))
    good(call("build", "project"))
    assert "no answer from" in refused(call("run", "project")), "it is not flashed yet"
    assert good(call("flash", "project", "--json")).report["flashed"] is True
    of_host = good(call("run", model, "--json")).report["outputs"]
    near = Path(desk.port).relative_to(tmp_path)
    for words in (("project",), ("project", "--port", near), (model, "--board", desk.board_file)):
        assert good(call("run", *words, "--json")).report["outputs"] == of_host
    desk.order("unplug")
    assert "uaccel.bench: error: no debug probe found: the cable is out" in refused(call("flash", "project"))
    assert refused(call("run", "project", "--port", near)) == (
        f"cannot open port {desk.port}: there is none of that name; is the board plugged in?"
    )


@pytest.mark.slow
def test_a_board_that_is_in_use_is_neither_flashed_nor_run(
    desk: Desk, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By whatever name its port is found: here the board file says it."""
    model = OWN / "gesture.tflite"
    monkeypatch.chdir(tmp_path)
    good(call("compile", model, "--board", desk.board_file, "-o", "gesture.tar"))
    good(call("create", "gesture.tar", "project", "--board", desk.board_file))
    good(call("build", "project"))
    with hold(desk.port, user="somebody"):
        for words in (("flash", "project"), ("run", "project"), ("run", model, "--board", desk.board_file)):
            said = refused(call(*words))
            assert said.startswith(f"the board at {desk.port} is in use by process "), words
            assert "(somebody)" in said
    good(call("flash", "project"))
    complaint = call("run", "project", "--profile")
    assert complaint.status == 1
    assert complaint.complaint.startswith("--profile: the firmware that runs there does not show its layers: ")
    good(call("build", "project", "--observe"))
    good(call("flash", "project", "--option", "observe=yes"))
    layers = good(call("run", "project", "--profile", "--json")).report["layers"]
    assert layers[0]["seconds"] > 0


@pytest.mark.slow
def test_a_board_with_another_models_firmware_is_refused(desk: Desk, tmp_path: Path, call: Call) -> None:
    for name in ("gesture", "int16"):
        tar, project = tmp_path / f"{name}.tar", tmp_path / name
        good(call("compile", OWN / f"{name}.tflite", "--board", desk.board_file, "-o", tar))
        good(call("create", tar, project, "--board", desk.board_file))
        good(call("build", project))
    good(call("flash", tmp_path / "gesture"))
    assert "runs another model: gesture " in refused(call("run", tmp_path / "int16"))
    other = OWN / "int16.tflite"
    told = refused(call("run", other, "--board", desk.board_file, "--no-flash"))
    assert "runs another model: gesture " in told
    assert is_exact(good(call("run", other, "--board", desk.board_file, "--verify", "--json")).report)
