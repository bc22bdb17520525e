"""One figure of latency: its parts and its layers add up, in the report, on the page and by the core's own count."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from report.looked_at import opened
from support.models.networks import OWN
from support.run.command import process
from uaccel.report.latency import copying, engine_cycles, jobs_by_layer, latency
from uaccel.report.page_time import DrawnSpan, stalls_of
from uaccel.report.run_json import layer_reports
from uaccel.session.description import Account, LayerTime
from uaccel.session.monitor import CommandSpan, EngineJob

if TYPE_CHECKING:
    from playwright.sync_api import Browser

JOB = EngineJob(
    "npu", 0, 100, (CommandSpan("load", 0, 10, 40), CommandSpan("compute", 1, 30, 80), CommandSpan("store", 2, 80, 90))
)


def region(*commands: str, names: tuple[str, ...] = ("a", "b")) -> dict[str, Any]:
    covers = [{"name": name} for name in names]
    return {"index": 0, "name": "r", "engine": "npu", "commands": list(commands), "covers": covers}


@pytest.mark.parametrize(
    ("commands", "wanted"),
    [
        (("a: load", "a: convolve", "b: store"), {"a": 80, "b": 20}),  # b: its store, and what nobody comes behind
        (("a: load", "b rows 0:1: convolve", "b: store"), {"a": 30, "b": 70}),  # a load beside a computation is free
        (("a: load", "c: convolve", "b: store"), None),
        (("a: load", "b: convolve"), None),
    ],
)
def test_each_cycle_belongs_to_one_operator(commands: tuple[str, ...], wanted: dict[str, int] | None) -> None:
    assert engine_cycles(region(*commands), Account(1, 100), [JOB]) == wanted
    assert copying({0: [JOB]}) == 30


def test_a_device_that_tells_nothing() -> None:
    silent = EngineJob("npu", 0, 100, ())
    assert engine_cycles(region(), Account(1, 100), [silent]) is None
    assert engine_cycles(region(names=("a",)), Account(1, 100), [silent]) == {"a": 100}
    assert copying({0: [silent]}) is None


def test_another_number_of_cycles_than_the_driver_counted() -> None:
    """A job of the inference before says nothing about this one."""
    assert engine_cycles(region("a: load", "a: convolve", "b: store"), Account(1, 101), [JOB]) is None


@pytest.mark.parametrize(
    ("told", "measured", "taken", "wanted"),
    [
        # An emulated board: the accelerator's cycles come on top of the CPU's.
        ({"cycles_estimated": 500}, False, {"cycles_estimated": 40}, (600, 6.0, True, (460, 40, 30, 70))),
        # A core that counts: they are among its own.
        ({"cycles": 500}, False, {"core_cycles": 120}, (500, 5.0, False, (380, 20, 30, 70))),
        # A real board tells seconds; nothing divides them.
        ({"seconds": 0.004}, True, {}, (400, 4.0, False, None)),
        ({"seconds": 0.004}, False, {}, (None, None, None, None)),
        # Layers that were not looked at: what starts the accelerator counts for the CPU.
        ({"cycles_estimated": 500}, False, {}, (600, 6.0, True, (500, None, 30, 70))),
    ],
)
def test_parts(told: dict[str, Any], measured: bool, taken: dict[str, Any], wanted: tuple[Any, ...]) -> None:
    layers, accounts = [region("a: load", "a: convolve", "b: store")], {0: Account(1, 100)}
    times = {0: LayerTime(0, "r", None, None, **taken)}
    jobs = jobs_by_layer(layers, accounts, [JOB])
    report = {"accelerator_cycles": 100, "seconds": None, **told}
    found = latency(report, layers, times, accounts, jobs, 100_000, measured=measured)
    parts = found["parts"] and tuple(found["parts"].get(key) for key in ("cpu", "start", "copies", "waiting"))
    assert (found["cycles"], found["ms"], found["estimated"], parts) == wanted
    assert found["parts"] is None or sum(found["parts"].values()) == found["cycles"]
    assert (found["missing"] is None) == (found["cycles"] is not None)


JOBS = {0: [JOB]}
SILENT = {0: [EngineJob("npu", 0, 100, ())]}


@pytest.mark.parametrize(
    ("jobs", "taken", "wanted"),
    [
        (JOBS, {"cycles_estimated": 40}, [120, 20]),  # the driver stands in the first row
        (JOBS, {"core_cycles": 140}, [120, 20]),  # a core's own count has the waits in it
        (SILENT, {"cycles_estimated": 40}, [140, None]),
        (JOBS, {}, [None, None]),
    ],
)
def test_what_each_operator_has_of_it(jobs: Any, taken: dict[str, Any], wanted: list[int | None]) -> None:
    facts = region("a: load", "a: convolve", "b: store") | dict.fromkeys(("op", "reason", "operator", "tensor"), "x")
    covered = {"op": "x", "operator": 0, "tensor": "t", "macs": 0, "shape": [1]}
    facts |= {"macs": 0, "outputs": [], "variant": "", "covers": [{"name": name, **covered} for name in "ab"]}
    rows = layer_reports([facts], 1, {0: LayerTime(0, "r", None, None, **taken)}, {0: Account(1, 100)}, jobs)
    assert [row["latency"] for row in rows] == wanted
    assert [row["engine_cycles"] for row in rows] == ([80, 20] if jobs is JOBS else [None, None])


MODEL, BOARD = OWN / "gesture.tflite", ("-b", "mps2_an386", "--json")


@pytest.fixture(scope="module")
def npu() -> dict[str, Any]:
    """A network of which a part runs on npu, with all that pages want."""
    if shutil.which("qemu-system-arm") is None:
        pytest.skip("qemu-system-arm is not there to run the board")
    return process("run", MODEL, *BOARD, "-a", "npu", "--details").report


def test_a_run_adds_up(npu: dict[str, Any]) -> None:
    told, layers = npu["latency"], npu["layers"]
    assert told["cycles"] == npu["cycles_estimated"] + npu["accelerator_cycles"] == sum(told["parts"].values())
    assert told["ms"] == pytest.approx(1e3 * told["cycles"] / 25e6)
    assert min(told["parts"].values()) > 0
    assert sum(layer["engine_cycles"] for layer in layers) == npu["accelerator_cycles"]
    assert 0 <= told["cycles"] - sum(layer["latency"] or 0 for layer in layers) < 0.05 * told["cycles"]
    events = [event for event in npu["trace"]["traceEvents"] if event["ph"] == "X"]
    assert max(event["ts"] + event["dur"] for event in events) == sum(layer["latency"] or 0 for layer in layers)


def test_the_cpu_alone_is_estimated_well_enough(npu: dict[str, Any]) -> None:
    """Within a third or so of what a run without the accelerator finds, whose layers are tiny here."""
    alone = process("run", MODEL, *BOARD).report["latency"]
    assert npu["latency"]["cpu_alone"] == pytest.approx(alone["cycles"], rel=0.35)
    assert alone["cpu_alone"] is None
    assert alone["parts"]["cpu"] == alone["cycles"]


def test_memories_on_chip_are_never_fuller_than_they_are(npu: dict[str, Any]) -> None:
    sizes = next(engine["memories"] for engine in npu["engines"] if engine["name"] == "npu")
    tiles = [tile for layer in npu["graph"]["layers"] for tile in layer.get("on_chip", ())]
    assert {tile[0] for tile in tiles} == {"activations", "weights"}
    for memory, begin, end, first, last in tiles:
        assert 0 <= begin < end <= sizes[memory]
        assert first < last


def numbers(text: str) -> list[int]:
    return [int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", text)]


def test_the_page_adds_up(browser: Browser, npu: dict[str, Any], tmp_path: Path) -> None:
    total = npu["latency"]["cycles"]
    with opened(browser, tmp_path, [npu]) as shown:
        assert f"One inference takes {total:,} estimated cycles" in (shown.text_content("#times") or "")
        cells = shown.locator("#times table.bars tbody tr td:nth-child(4)").all_text_contents()
        assert sum(numbers(cell)[0] for cell in cells) == total
        parts = shown.locator("#times figure.parts figcaption > span").all_text_contents()
        assert sum(numbers(part)[0] for part in parts) == total
        assert f"{total:,} cycles" in (shown.text_content("#summary") or "")
        assert shown.locator("#timeline .filled").count() == 2


def test_why_an_engine_does_not_compute() -> None:
    tracks = {
        "cpu": [DrawnSpan("", "", 0, 5)],
        "npu load": [DrawnSpan("", "", 10, 40)],
        "npu compute": [DrawnSpan("", "", 30, 80), DrawnSpan("", "", 85, 87)],
        "npu store": [DrawnSpan("", "", 80, 90)],
        "other work": [DrawnSpan("", "", 0, 9)],
    }
    assert stalls_of("npu", tracks) == [
        ("it computes", 52),
        ("it waits for loads", 20),
        ("it waits for stores", 8),
    ]
    assert stalls_of("other", tracks) == stalls_of("cpu", tracks) == []
