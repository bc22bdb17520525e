"""The driver: what it refuses before anything runs, and what it returns when the device fails."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from uaccel.testing import Layers, example

OK, TIMEOUT, ERROR, GONE, _, VERSION, BUS, STREAM, ARGUMENT = range(9)


@pytest.fixture(scope="module")
def job(parts: SimpleNamespace) -> Any:
    """Places, stream, constants and inputs of a region with three layers."""
    layers = Layers(3)

    def build(block: Any, x: Any) -> list[Any]:
        a = block.emit(layers.conv2d(x), "a")
        b = block.emit(layers.add(a, a), "b")
        return [block.emit(layers.pool(b, average=True), "c")]

    files = parts.stream.lower_region(example([(1, 4, 4, 2)], build).region).artefacts
    places = parts.packed.unpack(files["stream.bin"]).places
    return places, files["stream.bin"], files["constants.bin"], [layers.int8(1, 4, 4, 2)]


def test_every_damaged_bit_and_every_truncation_is_refused(machine: Any, job: Any) -> None:
    machine.damage(*job)


@pytest.mark.parametrize(
    ("fault", "status", "failure"),
    [
        ("conveyor:hang", TIMEOUT, "did not finish: register 0x0000000c stays at 0x00000000"),
        ("conveyor:error", ERROR, "command 0: something broke inside the device"),
        ("conveyor:vanish", GONE, "does not answer"),
        ("conveyor:vanish@1", GONE, "does not answer: register 0x0000000c"),
        ("conveyor:version", VERSION, "0x00020000"),
        ("conveyor:dma", BUS, "command 0: the device was refused access to memory"),
    ],
)
def test_a_failing_device(machine: Any, job: Any, fault: str, status: int, failure: str) -> None:
    played = machine.play(*job, fault=fault)
    assert (played.status, played.calls) == (status, 0)
    assert failure in played.failure


def test_memory_that_is_refused_at_any_time(machine: Any, job: Any) -> None:
    """Each access of all that there are, one run after the other: the command that makes it is named."""
    seen: list[str] = []
    while True:
        played = machine.play(*job, fault=f"conveyor:dma@{len(seen) + 1}")
        if played.status == OK:
            break
        assert played.status == BUS
        seen.append(played.failure.removesuffix(": the device was refused access to memory"))
    assert seen == sorted(seen)
    assert set(seen) == {"command 0", "command 1", "command 2"}


def test_a_place_that_was_not_told(machine: Any, job: Any) -> None:
    played = machine.play(*job, untold=1)
    assert (played.status, played.failure) == (ARGUMENT, "place 1 of the stream was not told")


def test_work_is_told(parts: SimpleNamespace, machine: Any, job: Any) -> None:
    played = machine.play(*job)
    assert (played.status, played.calls, played.cycles) == (OK, 3, parts.packed.unpack(job[1]).cycles)
