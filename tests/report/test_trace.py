"""Traces: what device models tell, put beside what the CPU counted."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from uaccel.report.latency import jobs_by_layer
from uaccel.report.trace import SCALE, UNCOUNTED, trace_of
from uaccel.session.description import Account, LayerTime
from uaccel.session.monitor import VARIABLE, CommandSpan, EngineJob, Recorder, read_jobs, recorded


def taken(instructions: int | None) -> LayerTime:
    return LayerTime(0, "", None, instructions)


def account(cycles: int) -> Account:
    return Account(1, cycles)


def layer(index: int, engine: str = "cpu", **more: Any) -> dict[str, Any]:
    return {"index": index, "name": f"layer_{index}", "op": "op", "engine": engine, **more}


def traced(
    layers: list[dict[str, Any]],
    times: dict[int, LayerTime],
    accounts: dict[int, Account],
    jobs: list[EngineJob],
) -> dict[str, Any]:
    return trace_of("t", layers, times, jobs_by_layer(layers, accounts, jobs))


def spans(document: dict[str, Any], track: str) -> list[tuple[str, int, int]]:
    names = {e["args"]["name"]: e["tid"] for e in document["traceEvents"] if e["name"] == "thread_name"}
    return [
        (event["name"], event["ts"], event["ts"] + event["dur"])
        for event in document["traceEvents"]
        if event["ph"] == "X" and event["tid"] == names[track]
    ]


def test_jobs_come_with_their_spans() -> None:
    lines = ["a span load 0 5 9", "b job 0 7", "a span compute 1 9 12", "a job 0 12", "a job 12 20"]
    assert list(read_jobs(lines)) == [
        EngineJob("b", 0, 7, ()),
        EngineJob("a", 0, 12, (CommandSpan("load", 0, 5, 9), CommandSpan("compute", 1, 9, 12))),
        EngineJob("a", 12, 20, ()),
    ]


@pytest.mark.parametrize(("cycles", "jobs"), [(0, 0), (1, 1), (12, 1), (13, 2), (99, 2)])
def test_the_first_jobs_are_those_of_so_many_cycles(cycles: int, jobs: int) -> None:
    with recorded(True) as first:
        Path(os.environ[VARIABLE]).write_text("a span load 0 5 9\na job 0 12\na job 12 20\n")
        assert (
            first(cycles) == (EngineJob("a", 0, 12, (CommandSpan("load", 0, 5, 9),)), EngineJob("a", 12, 20, ()))[:jobs]
        )
    with recorded(False) as first:
        assert VARIABLE not in os.environ
        assert first(9) == ()


def test_cpu_and_engines_follow_each_other() -> None:
    jobs = [EngineJob("npu", 100, 130, (CommandSpan("load", 0, 103, 110), CommandSpan("compute", 1, 105, 130)))]
    layers = [layer(0), layer(1, "npu", commands=["first: load", "first: compute"]), layer(2)]
    document = traced(layers, {0: taken(50), 1: taken(7), 2: taken(20)}, {1: account(30)}, jobs)
    assert spans(document, "cpu") == [("layer_0", 0, 50), ("layer_1: driver of npu", 50, 57), ("layer_2", 87, 107)]
    assert spans(document, "npu load") == [("first: load", 60, 67)]
    assert spans(document, "npu compute") == [("first: compute", 62, 87)]


def test_cycles_are_drawn_where_they_are_known() -> None:
    """Estimated ones, and a core's own without those in which it waits for the accelerator."""
    estimated, counted = replace(taken(50), cycles_estimated=70), replace(taken(7), core_cycles=42)
    document = traced([layer(0), layer(1, "x")], {0: estimated, 1: counted}, {1: account(30)}, [])
    assert spans(document, "cpu") == [("layer_0", 0, 70), ("layer_1: driver of x", 70, 82)]
    assert spans(document, "x work") == [("layer_1", 82, 112)]
    assert document["otherData"]["note"] == SCALE


def test_a_layer_has_as_many_jobs_as_it_took_cycles() -> None:
    """Two jobs of the first layer, one of the second; those of further inferences are left out."""
    jobs = [EngineJob("x", begin, end, ()) for begin, end in ((0, 10), (10, 25), (25, 30), (30, 40), (40, 55))]
    layers = [layer(0, "x"), layer(1, "x")]
    document = traced(layers, {}, {0: account(25), 1: account(5)}, jobs)
    assert spans(document, "x work") == [("layer_0", 0, 10), ("layer_0", 10, 25), ("layer_1", 25, 30)]


def test_without_a_device_model_a_layer_is_one_span() -> None:
    document = traced([layer(0, "x")], {0: taken(5)}, {0: account(40)}, [])
    assert spans(document, "x work") == [("layer_0", 5, 45)]


def test_a_layer_that_the_cpu_stood_in_for_has_no_span() -> None:
    document = traced([layer(0, "x")], {0: taken(500)}, {}, [])
    assert [event["name"] for event in document["traceEvents"] if event["ph"] == "X"] == ["layer_0: driver of x"]


def test_a_command_without_a_label_has_its_number() -> None:
    document = traced([layer(0, "x")], {}, {0: account(4)}, [EngineJob("x", 0, 4, (CommandSpan("belt", 3, 0, 4),))])
    assert spans(document, "x belt") == [("layer_0: command 3", 0, 4)]


@pytest.mark.parametrize(("instructions", "told"), [(None, True), (5, False)])
def test_a_board_that_does_not_count_is_told_of(instructions: int | None, told: bool) -> None:
    document = traced([layer(0)], {0: taken(instructions)}, {}, [])
    assert (UNCOUNTED in document["otherData"]["note"]) == told


@pytest.mark.parametrize("before", [None, "somebody's"])
def test_a_recorder_leaves_the_environment_as_it_was(before: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if before is None:
        monkeypatch.delenv(VARIABLE, raising=False)
    else:
        monkeypatch.setenv(VARIABLE, before)
    with Recorder() as recorder:
        path = Path(os.environ[VARIABLE])
        path.write_text("a job 0 5\n")
    assert recorder.jobs == [EngineJob("a", 0, 5, ())]
    assert os.environ.get(VARIABLE) == before
    assert not path.exists()
