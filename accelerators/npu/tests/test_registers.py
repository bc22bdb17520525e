"""What a driver sees: registers, counters, the interrupt line, and what a reset leaves."""

from __future__ import annotations

from typing import Any

import pytest

NOBODY = 0xFFFFFFFF
ONE_LOAD = [("load", {"run": 8, "runs": 1, "planes": 1})]


@pytest.fixture(params=["player", pytest.param("rtl", marks=pytest.mark.slow)])
def machine(request: pytest.FixtureRequest) -> Any:
    """The model, and the RTL."""
    return request.getfixturevalue(request.param)


@pytest.mark.parametrize(
    ("offset", "value"),
    [
        (0x00, 0x4E505531),
        (0x04, 0x00010002),
        (0x08, 16 | 16 << 8 | 4 << 16 | 32 << 24),
        (0x0C, 65536),
        (0x10, 49152),
        (0x14, 16384),
        (0x1C, 0),
        (0x20, 0),
        (0x24, NOBODY),
        (0x30, 0),
        (0x44, 0),
    ],
)
def test_after_a_reset(machine: Any, offset: int, value: int) -> None:
    machine.device.reset()
    assert machine.device.read(offset) == value


@pytest.mark.parametrize("offset", [0x00, 0x04, 0x08, 0x0C, 0x10, 0x14, 0x20, 0x24, 0x30, 0x38])
def test_some_registers_are_read_only(machine: Any, offset: int) -> None:
    machine.device.reset()
    before = machine.device.read(offset)
    machine.device.write(offset, ~before)
    assert machine.device.read(offset) == before


def test_the_machine_is_what_its_header_says(machine: Any, npu: Any) -> None:
    """The compiler reads the same header that the model is compiled with."""
    assert [machine.device.read(offset) for offset in (0x0C, 0x10, 0x14)] == list(npu.memories.values())


def test_every_place_has_a_base_and_a_limit(machine: Any) -> None:
    machine.device.reset()
    for place in range(64):
        machine.tell(place, 1000 + place, 7 * place)
    for place in range(64):
        machine.device.write(0x48, place)
        assert [machine.device.read(offset) for offset in (0x48, 0x4C, 0x50)] == [place, 1000 + place, 7 * place]


def test_counters_add_up_over_jobs(machine: Any) -> None:
    first = machine.play(ONE_LOAD, [bytes(8)])
    cycles = machine.device.read(0x30)
    machine.device.write(0x18, 1)
    assert machine.device.read(0x30) == 2 * cycles
    assert machine.device.read(0x34) == 0
    assert machine.device.read(0x38) == 2 * first.busy[0]


def test_status_says_done_until_something_is_written_to_it(machine: Any) -> None:
    played = machine.play(ONE_LOAD, [bytes(8)])
    assert (played.error, played.command, machine.device.read(0x1C)) == (0, NOBODY, 1)
    machine.device.write(0x1C, 0)
    assert machine.device.read(0x1C) == 0


def test_a_failed_job_is_done_as_well(machine: Any) -> None:
    assert machine.start(b"\xff\0\0\0").error == 2
    assert machine.device.read(0x1C) == 3


def test_the_interrupt_is_raised_where_it_is_enabled(machine: Any) -> None:
    machine.play(ONE_LOAD, [bytes(8)])
    assert 1 not in machine.device.interrupts
    assert machine.device.read(0x44) == 2
    machine.device.write(0x44, 1 | 2)  # enable, and take back what is pending
    assert machine.device.read(0x44) == 1
    machine.device.write(0x18, 1)
    assert (machine.device.read(0x44), machine.device.interrupts[-1]) == (3, 1)
    machine.device.write(0x44, 1 | 2)
    assert (machine.device.read(0x44), machine.device.interrupts[-1]) == (1, 0)


def test_a_soft_reset_forgets_errors_and_memories_but_counts_on(machine: Any) -> None:
    store = ("store", {"place": 1, "run": 8, "runs": 1, "planes": 1})
    machine.play(ONE_LOAD, [b"12345678", bytes(8)])
    cycles = machine.device.read(0x30)
    machine.device.write(0x18, 2)
    assert [machine.device.read(offset) for offset in (0x1C, 0x20, 0x24, 0x44)] == [0, 0, NOBODY, 0]
    assert machine.device.read(0x30) == cycles
    assert machine.play([store], [b"12345678", b"x" * 8]).places[1] == bytes(8)


def test_a_soft_reset_clears_all_of_both_memories(machine: Any) -> None:
    """The rows of weights are seen through tables."""
    activations, weights = (machine.device.read(offset) for offset in (0x0C, 0x10))
    whole = {"runs": 1, "planes": 1}
    places = [bytes([0x5A]) * activations, bytes([0x5A]) * weights]
    loads = [("load", {"run": activations, **whole}), ("load", {"place": 1, "memory": 1, "run": weights, **whole})]
    assert machine.play(loads, places).error == 0
    machine.device.write(0x18, 2)
    assert machine.play([("store", {"run": activations, **whole})], places, resets=False).places[0] == bytes(
        activations
    )
    fields = {"bytes": 256, "rows": 1}
    looks = [("lookup", {**fields, "output": 256 + at, "table": at}) for at in range(0, weights, 256)]
    commands = [
        ("load", {"run": 256, **whole}, ">N"),
        ("sync", {}, "<P"),
        *looks,
        ("sync", {}, ">N"),
        ("store", {"place": 1, "address": 256, "run": weights, **whole}, "<P"),
    ]
    played = machine.play(commands, [bytes(range(256)), places[1]], resets=False)
    assert (played.error, played.places[1]) == (0, bytes(weights))


def test_other_values_in_control_do_nothing(machine: Any) -> None:
    machine.device.reset()
    for value in (0, 3, 4, 0x80000001):
        machine.device.write(0x18, value)
    assert (machine.device.read(0x1C), machine.device.read(0x30)) == (0, 0)
