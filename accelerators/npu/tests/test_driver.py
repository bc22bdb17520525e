"""The driver over the model: what it plays, what it refuses, and what it says when the device fails."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from uaccel.accelerator import Accelerator
from uaccel.testing import DriverUnderTest

OK, TIMEOUT, ERROR, GONE, IDENTITY, VERSION, BUS, STREAM, ARGUMENT = range(9)
CONFIG = 16 | 16 << 8 | 4 << 16 | 32 << 24
MACHINE = (CONFIG, 65536, 49152, 16384)


@pytest.fixture(scope="module")
def built(npu: Accelerator) -> DriverUnderTest:
    return DriverUnderTest(npu)


@pytest.fixture
def driver(built: DriverUnderTest) -> DriverUnderTest:
    built.reset()
    assert (built.activate(), built.open()) == (OK, OK)
    return built


def stream_of(
    body: bytes, machine: tuple[int, ...] = MACHINE, magic: bytes = b"NPUS", version: int = 1
) -> NDArray[Any]:
    header = struct.pack("<4s7I", magic, version, 32 + len(body), *machine, 1000)
    array = np.frombuffer(header + body, np.uint8)
    array.flags.writeable = False
    return array


def copying(player: Any) -> bytes:
    """64 bytes from place 0 to place 1."""
    whole = {"run": 64, "runs": 1, "planes": 1}
    commands = [("load", whole, ">N"), ("sync", {}, "<P>N"), ("store", {"place": 1, **whole}, "<P")]
    return b"".join(player.packed(*command) for command in commands)


def play(driver: DriverUnderTest, stream: NDArray[Any]) -> int:
    return driver.call("npu_play", stream, stream.size, 3)


def test_a_stream_is_played(driver: DriverUnderTest, player: Any) -> None:
    """Place 0 is memory that the device cannot write to; it reads the stream itself through it."""
    stream = stream_of(b"".join(player.packed("sync", {}) for _ in range(5)))
    assert play(driver, stream) == OK
    assert (driver.calls, driver.cycles) == (3, driver.busy)
    assert driver.busy == 3 + 3 + 1 + 5 * 4 + 2, "until the first word is there, a check each, and the last command"


@pytest.mark.parametrize(
    ("change", "failure"),
    [
        ({"magic": b"NPUT"}, "there is no command stream"),
        ({"version": 2}, "the command stream is of another format"),
        (
            {"machine": (CONFIG + 1, *MACHINE[1:])},
            "the command stream is for a machine of another size",
        ),
        (
            {"machine": (*MACHINE[:3], 1)},
            "the command stream is for a machine of another size",
        ),
    ],
)
def test_a_stream_that_is_not_for_this_machine(
    driver: DriverUnderTest, player: Any, change: dict[str, Any], failure: str
) -> None:
    assert play(driver, stream_of(player.packed("sync", {}), **change)) == STREAM
    assert driver.failure == failure
    assert driver.busy == 0


@pytest.mark.parametrize("size", [0, 4, 31, 32, 35])
def test_a_stream_that_is_cut_off(driver: DriverUnderTest, player: Any, size: int) -> None:
    stream = stream_of(player.packed("sync", {}))
    assert driver.call("npu_play", stream, size, 3) == STREAM
    assert driver.failure == "the command stream is truncated"


@pytest.mark.parametrize(
    ("commands", "status", "failure"),
    [
        ([("sync", {}), ("sync", {}, "<P")], ERROR, "command 1: it waits for a token that nobody pushes"),
        ([("load", {"run": 8, "runs": 1, "planes": 1})], ERROR, "command 0: it reaches beyond its place or a memory"),
        ([("load", {"runs": 1, "planes": 1})], ERROR, "command 0: a shape that the device cannot do"),
        (
            [("load", {"run": 1, "runs": 1, "planes": 1}, "<P")],
            ERROR,
            "command 0: a token for an engine that is not there",
        ),
    ],
)
def test_what_is_wrong_with_a_command(
    driver: DriverUnderTest, player: Any, commands: list[Any], status: int, failure: str
) -> None:
    assert play(driver, stream_of(b"".join(player.packed(*command) for command in commands))) == status
    assert driver.failure == failure


@pytest.mark.parametrize(
    ("body", "failure"),
    [
        (b"\x63\0\0\0", "command 0: no such command"),
        (b"\x01\0\0\0", "command 0: the stream's length is wrong, or a command is cut off"),
    ],
)
def test_what_is_no_command(driver: DriverUnderTest, body: bytes, failure: str) -> None:
    assert play(driver, stream_of(body)) in (ERROR, STREAM)
    assert driver.failure == failure


@pytest.mark.parametrize(("number", "written"), [(64, 0), (1000, 1)])
def test_there_are_64_places(driver: DriverUnderTest, number: int, written: int) -> None:
    memory = np.zeros(16, np.int8)
    assert driver.call("npu_place", number, memory, memory.size, written) == ARGUMENT
    assert driver.failure == f"place {number} is one more than the driver can do"


def test_16_places_may_be_written(driver: DriverUnderTest) -> None:
    memory = np.zeros(16, np.int8)
    for number in range(16):
        assert driver.call("npu_place", number, memory, memory.size, 1) == OK
    assert driver.call("npu_place", 16, memory, memory.size, 1) == ARGUMENT
    assert driver.open() == OK
    assert driver.call("npu_place", 16, memory, memory.size, 1) == OK


def test_a_place_that_the_device_does_not_reach(driver: DriverUnderTest) -> None:
    elsewhere = ctypes.c_void_p(4096)
    assert driver.call("npu_place", 3, elsewhere, 16, 0) == BUS
    assert driver.failure == "place 3 lies where the device does not reach"


@pytest.mark.parametrize(
    ("fault", "status", "failure"),
    [
        ("hang", TIMEOUT, None),
        ("error", ERROR, "command 4294967295: something broke inside the device"),
        ("vanish", GONE, None),
        ("dma@1", BUS, "command 0: the device was refused access to memory"),
    ],
)
def test_faults(built: DriverUnderTest, player: Any, fault: str, status: int, failure: str | None) -> None:
    built.reset()
    assert (built.activate(), built.open()) == (OK, OK)
    built.let_fail(fault)
    got = play(built, stream_of(player.packed("sync", {})))
    if fault == "vanish":
        assert got in (GONE, STREAM)
    else:
        assert got == status
    if failure is not None:
        assert built.failure == failure


@pytest.mark.parametrize(("fault", "status"), [("vanish", GONE), ("version", VERSION)])
def test_activation_finds_out(built: DriverUnderTest, fault: str, status: int) -> None:
    built.let_fail(fault)
    assert built.activate() == status
    built.reset()
