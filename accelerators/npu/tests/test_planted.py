"""Bugs of npu's RTL that layers do not show: on the bus, between jobs, behind errors. Random jobs find each of them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from support.device.npu_both import jobs
from support.device.planted import Bug
from uaccel.accelerator import load_accelerator
from uaccel.testing import DeviceLibrary

NPU = Path(__file__).resolve().parents[1]
SEEDS, JOBS = 4, 60

OF_JOBS = {
    "an address that changes while it waits": (
        "top",
        "fetches = Mux(waits, was, fetch.bursts.valid)",
        "fetches = fetch.bursts.valid",
    ),
    "an address that is taken back": (
        "loader",
        "allowed.eq(waits < AHEAD)",
        "allowed.eq((waits < AHEAD) & ~memories.load_valid)",
    ),
    "an address without its high bits": (
        "bus",
        "self.address.eq(at << shift)",
        "self.address.eq(((at << shift) & 0xFFFFFF) | (runs.there & 0xFF000000))",
    ),
    "a burst across a page": (
        "bus",
        "self.length.eq(self.beats - 1)",
        "self.length.eq(Mux(beats > behind, behind, beats) - 1)",
    ),
    "a last beat that is not told": ("storer", " | (page_of(beat, machine) == PAGE // bus - 1)", ""),
    "all bytes of a beat": ("storer", "self.strobes.eq(Cat(*inside))", "self.strobes.eq(-1)"),
    "an end before all is answered": ("storer", "& ~sent.active & (waits == 0)", "& ~sent.active"),
    "an error that sticks": ("storer", "[self.active.eq(1), failed.eq(0)]", "self.active.eq(1)"),
    "a store to nowhere": ("storer", "self.answered & (self.response != 0)", "self.answered & (self.response == 2)"),
    "a load from nowhere": (
        "loader",
        "failed.eq(failed | (self.response != 0))",
        "failed.eq(failed | (self.response == 2))",
    ),
    "a restart while beats still come": ("top", "~self._judges & ~fetch.active", "~self._judges"),
    "half of the memories cleared": ("top", "at != rows - 1", "at != rows // 2 - 1"),
    "counters of the wrong engines": ("top", "self._registers.worked[number]", "self._registers.worked[2 - number]"),
    "half of the places": ("top", "self._held[1][:6]", "self._held[1][:5]"),
    "a full queue that waits for ever": ("top", "& ~self._holds) | full)", "& ~self._holds))"),
    "the last error counts": ("top", "with m.If(self._works & ~self._fails):", "with m.If(self._works):"),
    "an error of the next command": ("top", "check.error, self._checked)", "check.error, self._number)"),
    "a start that a reset forgets": ("top", "later.eq(1)", "later.eq(0)"),
    "an error that a reset keeps": ("registers", "[error.eq(OK), error_at.eq(NOBODY), enabled.eq(0)", "[enabled.eq(0)"),
    "an end that a reset keeps": (
        "registers",
        "self._writes[STATUS] | self.starts | self.resets",
        "self._writes[STATUS] | self.starts",
    ),
    "a length that changes": ("fetch", "C(0), held, C(0x10001", "C(0), self.bytes, C(0x10001"),
    "no room between commands": ("fetch", "self.bursts.allowed.eq(self._room >= BURST)", "self.bursts.allowed.eq(1)"),
    "a word too many of a stream": ("fetch", "length > left + count", "length > left + count + 1"),
    "an old place in a queue": ("queues", "[count.eq(0), first.eq(0), last.eq(0)]", "[count.eq(0), first.eq(0)]"),
    "the other place": ("queues", "[count.eq(0), first.eq(0), last.eq(0)]", "[count.eq(0), last.eq(0)]"),
    "a queue that overflows": ("queues", "self.full[engine].eq(count == depth)", "self.full[engine].eq(0)"),
    "a token lost that comes as one goes": (
        "queues",
        "tokens + sum(pushes[1:], C(0)) -",
        "tokens + Mux(sum(takes[1:], C(0)) != 0, 0, sum(pushes[1:], C(0))) -",
    ),
    "tokens of the job before": ("queues", "Mux(self.begin, 0, tokens", "Mux(self.begin & 0, 0, tokens"),
    "any token will do": (
        "queues",
        "~head.words[bit] | (self._tokens[fifo] != 0)",
        "~head.words[bit] | (self._tokens[fifo ^ 2] != 0)",
    ),
    "no wait for a memory": ("memories", "Mux(self.load_weights, self.pack_mask == 0, self.write_mask == 0)", "1"),
    "a residual from another place": (
        "memories",
        "self.residual_ready.eq(~self._stores | (self._residual_port != machine.ports - 1))",
        "self.residual_ready.eq(1)",
    ),
    "a plane from where its run began": ("bus", "plane_here + words[9]", "self.here + words[9]"),
    "planes by the distance of runs": ("bus", "begin(plane_there + words[7]", "begin(plane_there + words[6]"),
    "255 runs": ("bus", "run, plane = Signal(16), Signal(16)", "run, plane = Signal(8), Signal(16)"),
    "255 planes": ("bus", "run, plane = Signal(16), Signal(16)", "run, plane = Signal(16), Signal(8)"),
    "255 columns": (
        "places",
        "rows, columns, left = Signal(16), Signal(16)",
        "rows, columns, left = Signal(16), Signal(8)",
    ),
    "255 rows of pixels": (
        "windows",
        "rows, columns = Signal(16), Signal(16)",
        "rows, columns = Signal(8), Signal(16)",
    ),
    "a mean over 255 taps": (
        "pool",
        "count, held, digit = Signal(16), Signal(16)",
        "count, held, digit = Signal(8), Signal(16)",
    ),
    "a mean rounded down": ("pool", "size + (count >> 1)", "size + ((count - 1) >> 1)"),
    "a pool without its clamp": (
        "pool",
        "found > self.greatest, self.greatest, found",
        "found > 127, self.greatest, found",
    ),
    "one packed row too many": ("elements", "self.active.eq(left != 1)", "self.active.eq(left != Mux(packs, 0, 1))"),
    "255 elements": ("elements", "offset, left = Signal(ADDRESS), Signal(32)", "offset, left = Signal(8), Signal(32)"),
    "255 rows of elements": (
        "elements",
        "offset, left = Signal(ADDRESS), Signal(32)",
        "offset, left = Signal(ADDRESS), Signal(8)",
    ),
    "a small zero point of weights": ("array", "correction = Signal(signed(24))", "correction = Signal(signed(16))"),
    "a sum of 31 bits": ("output", '"total", signed(32)', '"total", signed(31)'),
    "single precision without its sign": ("output", "below = Mux(single, negative, full < 0)", "below = full < 0"),
    "a shift that is cut": ("output", "Mux(down > 31, 31, down)", "down[:5]"),
    "halves downwards": ("addition", "(product + (1 << 30)) >> 31", "(product + (1 << 30) - 1) >> 31"),
    "a tolerance below": ("addition", "rest <= tolerance << 1", "rest < tolerance << 1"),
    "parameters of lanes that nobody uses": (
        "prepare",
        "self._wrong(parameters) & lanes_below(channels, machine.width)",
        "self._wrong(parameters)",
    ),
    "a table without its last part": (
        "prepare",
        "ADDITION_WORDS, 8 * TABLE_BYTES",
        "ADDITION_WORDS, 8 * TABLE_BYTES - read",
    ),
}


def planted(bug: str, above: Path) -> Path:
    """The smallest machine, upon an npu with the bug."""
    name, right, wrong = OF_JOBS[bug]
    Bug(f"npu_rtl/{name}.py", right, wrong, "").plant(NPU, above)
    shutil.copytree(NPU.parent / "npu_tiny", above / "npu_tiny")
    return above / "npu_tiny"


@pytest.mark.parametrize("bug", OF_JOBS)
def test_each_can_still_be_planted(bug: str, tmp_path: Path) -> None:
    assert load_accelerator(str(planted(bug, tmp_path))).name == "npu_tiny"


@pytest.mark.long
@pytest.mark.parametrize("bug", OF_JOBS)
def test_jobs_find_it(bug: str, player: Any, needs_rtl: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = planted(bug, tmp_path)
    model = DeviceLibrary("npu_tiny", load_accelerator(str(folder)).devices, tmp_path / "model")
    rtl = DeviceLibrary.of_rtl("npu_tiny", folder)

    def finds(seed: int) -> bool:
        if seed:
            monkeypatch.setenv("UACCEL_DEVICE_STALLS", str(seed))
        try:
            jobs(player.formats, model, rtl, seed, JOBS)
        except AssertionError:
            return True
        return False

    assert any(map(finds, range(SEEDS)))
