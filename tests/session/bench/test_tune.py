"""``uaccel tune`` on a board that is flashed: a stand-in at a serial port."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.models.networks import OWN
from support.run.command import Call, call_in
from uaccel.session.emulated_board import Desk
from uaccel.util.cache import Cache


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str]) -> Call:
    return call_in(capfd)


@pytest.mark.slow
def test_each_candidate_is_flashed_and_timed(
    desk: Desk, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UACCEL_CACHE", str(tmp_path / "cache"))
    records = tmp_path / "records.json"
    done = call("tune", OWN / "gesture.tflite", "--board", desk.board_file, "-o", records, "--all", "--json")
    assert done.status == 0, done.err
    report = done.report
    assert report["unit"] in ("instructions", "nanoseconds")
    assert report["layers"]
    for layer in report["layers"]:
        costs = {candidate["kernel"]: candidate["cost"] for candidate in layer["candidates"]}
        assert costs[layer["picked"]] == min(costs.values()) > 0
    flashed = done.err.count(": flash")
    assert flashed == report["measured"] >= max(len(layer["candidates"]) for layer in report["layers"])
    kinds = {entry.kind for entry in Cache(tmp_path / "cache" / "kept").kept()}
    assert kinds == {"firmware", "object", "recipe"}, "what a real board took is measured each time"


@pytest.mark.slow
def test_an_unplugged_board_is_said(desk: Desk, tmp_path: Path, call: Call) -> None:
    desk.order("unplug")
    done = call("tune", OWN / "gesture.tflite", "--board", desk.board_file, "-o", tmp_path / "records.json")
    assert done.status == 4
    assert "the cable is out" in done.complaint
    assert not (tmp_path / "records.json").exists()
