"""What layers take on an emulated board is kept, and used where nothing that it depends on has changed."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from support.device.boards import board_with_tools
from support.models.networks import OWN
from uaccel.board import Board, load_board
from uaccel.kernels import Turn
from uaccel.kernels.choice import Selection, target_of
from uaccel.runner.compiled import pack_compiled
from uaccel.runner.firmware import Firmware
from uaccel.runner.job import Job
from uaccel.runner.layer_costs import KIND, TAKEN, LayerCosts, emulated, measure, measured_before
from uaccel.util.cache import MANIFEST, Cache, file_digest

BOARD = "mps2_an386"


def firmware_for(board: Board, number: int = 0) -> Firmware:
    job = Job(OWN / "gesture.tflite", board)
    return pack_compiled(job.compiled(selection=Selection(target_of(board), Turn(number))))


class Kept:
    """A firmware that was measured, and where that is kept."""

    def __init__(self, folder: Path) -> None:
        self.board = board_with_tools(BOARD)
        self.firmware = firmware_for(self.board)
        self.cache = Cache(folder)
        self.steps: list[str] = []
        self.taken = self.measure()

    def measure(self) -> LayerCosts:
        self.steps.clear()
        return measure(self.firmware, self.board, self.steps.append, cache=self.cache)

    def entries(self) -> list[Path]:
        return [self.cache.folder / KIND / entry.digest for entry in self.cache.kept() if entry.kind == KIND]

    def plant(self, text: str, *, as_if_whole: bool) -> None:
        """Another content in the one entry, with a manifest that agrees or not."""
        (folder,) = self.entries()
        path = folder / TAKEN
        path.write_text(text)
        if as_if_whole:
            manifest = json.loads((folder / MANIFEST).read_text())
            manifest["files"][TAKEN] = [path.stat().st_size, file_digest(path)]
            (folder / MANIFEST).write_text(json.dumps(manifest))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    return Kept(tmp_path_factory.mktemp("cache"))


@pytest.fixture
def kept(made: Kept) -> Iterator[Kept]:
    yield made
    made.measure()


@pytest.mark.slow
def test_it_is_measured_once(kept: Kept) -> None:
    assert kept.taken.exact
    assert kept.measure() == kept.taken
    assert (kept.steps, len(kept.entries())) == ([], 1)
    assert measured_before(kept.firmware, kept.board, kept.cache) == kept.taken
    assert measured_before(kept.firmware, kept.board, None) is None
    assert measure(kept.firmware, kept.board, kept.steps.append) == kept.taken, "the same without a cache"
    assert kept.steps[-1] == "measure"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "as_if_whole"),
    [("{", False), ("{", True), ("{}", True), ('{"layers": [{"layer": 0}], "outputs": ""}', True)],
)
def test_an_entry_that_is_damaged_or_of_another_form_is_made_again(kept: Kept, text: str, as_if_whole: bool) -> None:
    kept.plant(text, as_if_whole=as_if_whole)
    assert measured_before(kept.firmware, kept.board, kept.cache) is None
    assert kept.measure() == kept.taken
    assert kept.steps == ["measure"]


@pytest.mark.slow
def test_an_entry_that_is_whole_is_believed(kept: Kept) -> None:
    """Else the tests above would not show that a key differs."""
    wrong = replace(kept.taken, outputs="planted")
    kept.plant(json.dumps(wrong.to_json()), as_if_whole=True)
    assert kept.measure() == wrong
    shutil.rmtree(kept.entries()[0])


@pytest.mark.slow
def test_what_was_kept_of_other_firmware_is_not_taken(kept: Kept) -> None:
    wrong = replace(kept.taken, outputs="stale")
    kept.plant(json.dumps(wrong.to_json()), as_if_whole=True)
    other = firmware_for(kept.board, 1)
    assert measured_before(other, kept.board, kept.cache) is None
    taken = measure(other, kept.board, kept.steps.append, cache=kept.cache)
    assert taken.outputs == kept.taken.outputs != "stale"
    assert taken.layers != kept.taken.layers
    shutil.rmtree(kept.cache.folder / KIND)


@pytest.mark.slow
def test_another_emulator_measures_anew(kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    qemu = shutil.which("qemu-system-arm")
    other = tmp_path / "qemu-system-arm"
    other.write_text(f'#!/bin/sh\nexec {qemu} "$@"\n')
    other.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert measured_before(kept.firmware, kept.board, kept.cache) is None


@pytest.mark.slow
def test_a_time_is_not_kept(tmp_path: Path) -> None:
    """A process of this computer is as fast as the computer happens to be."""
    host, cache = load_board("host"), Cache(tmp_path)
    taken = measure(firmware_for(host), host, lambda _step: None, cache=cache)
    assert not taken.exact
    assert KIND not in {entry.kind for entry in cache.kept()}
    assert not emulated(host, "")
    assert not emulated(load_board(BOARD), "/dev/ttyACM0")
    assert emulated(load_board(BOARD), "")


def test_it_is_read_as_it_was_written() -> None:
    spent = '"layer": 1, "name": "x", "instructions": 5, "cycles": 7, "nanoseconds": null, "device": 3, "own": true'
    data = json.loads('{"layers": [{' + spent + '}], "outputs": "00"}')
    assert LayerCosts.from_json(data).to_json() == data
