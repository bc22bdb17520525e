"""Buses whose rules RTL breaks, one at a time: the bench says which, and registers read all ones from then on."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.device.planted import build_quickly
from uaccel.testing import DeviceLibrary

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("verilator") is None, reason="verilator is not installed"),
]
FOLDER = Path(__file__).with_name("rules")
MASTERS = """
top = "masters"
busy = "busy"
interrupt = "irq"
[registers]
bus = "apb"
window = 16
start = 8
[[memory]]
bus = "axi4"
[[memory]]
bus = "wishbone"
prefix = "w_"
[[memory]]
bus = "port"
prefix = "p_"
"""
SLAVE = 'top = "slave"\n[registers]\nbus = "axi4-lite"\nwindow = 16\nstart = 8\n'
BUG, START, STATUS = 4, 8, 12
NO_RESULT = 0xFFFFFFFF
SEEDS = (0, 1, 2)


def built(name: str, description: str, folder: Path) -> DeviceLibrary:
    (folder / "rtl").mkdir()
    shutil.copy(FOLDER / f"{name}.v", folder / "rtl")
    (folder / "rtl" / "rtl.toml").write_text(description)
    return DeviceLibrary.of_rtl(name, folder)


@pytest.fixture(scope="module", params=SEEDS)
def seed(request: pytest.FixtureRequest) -> Iterator[int]:
    with pytest.MonkeyPatch.context() as patch:
        build_quickly(patch)
        if request.param:
            patch.setenv("UACCEL_DEVICE_STALLS", str(request.param))
        yield request.param


@pytest.fixture(scope="module")
def masters(seed: int, tmp_path_factory: pytest.TempPathFactory) -> DeviceLibrary:
    return built("masters", MASTERS, tmp_path_factory.mktemp("masters"))


@pytest.fixture(scope="module")
def slave(seed: int, tmp_path_factory: pytest.TempPathFactory) -> DeviceLibrary:
    return built("slave", SLAVE, tmp_path_factory.mktemp("slave"))


def copies(device: DeviceLibrary, bug: int, jobs: int = 30) -> list[int]:
    """What the jobs end with."""
    device.reset()
    device.memory.pieces = {0x1000: bytearray(range(1, 9)) * 512, 0x2000: bytearray(0x1000)}
    device.write(BUG, bug)
    ended = []
    for _ in range(jobs):
        device.write(START, 1)
        device.tick(2000)
        ended.append(device.read(STATUS))
    return ended


def test_who_keeps_the_rules_is_left_alone(masters: DeviceLibrary, slave: DeviceLibrary) -> None:
    assert copies(masters, 0) == [1] * 30
    assert masters.memory.pieces[0x2000][:8] == bytes(range(1, 9))
    for number in range(30):
        slave.write(4, number)
        slave.write(8, ~number)
        assert (slave.read(4), slave.read(8)) == (number, ~number & NO_RESULT)


MASTER_RULES = {
    1: "what ARVALID offers changes before it was taken",
    2: "ARVALID falls before what it offers was taken",
    3: "what AWVALID offers changes before it was taken",
    4: "AWVALID falls before what it offers was taken",
    5: "what WVALID offers changes before it was taken",
    6: "WVALID falls before what it offers was taken",
    7: "what WVALID offers changes before it was taken",
    8: "the last beat of a write is not marked",
    9: "a write ends before its last beat",
    10: "a burst crosses a border of 4 KiB",
    11: "a burst is not of the bus's full width, or does not increment",
    12: "a burst is not of the bus's full width, or does not increment",
    13: "a write has bytes before its address",
    14: "ARVALID is 1 in reset",
    15: "ARVALID follows ARREADY within a cycle",
    16: "RREADY follows RID within a cycle",
    17: "data of a write waits until its address is taken",
    18: "what ARVALID offers changes before it was taken",
    19: "BREADY follows BVALID within a cycle",
    20: "what stb offers changes before it was taken",
    21: "stb falls before what it offers was taken",
    22: "stb is 1 without cyc",
    23: "what stb offers changes before it was taken",
    24: "it rests, or interrupts, before memory has answered to what it wrote",
    30: "what valid offers changes before it was taken",
    31: "valid falls before what it offers was taken",
    32: "what valid offers changes before it was taken",
    33: "valid follows ready within a cycle",
}
SLAVE_RULES = {
    1: "BVALID falls before what it offers was taken",
    2: "what BVALID offers changes before it was taken",
    3: "RVALID falls before what it offers was taken",
    4: "what RVALID offers changes before it was taken",
    5: "BVALID answers before address and data of a write were taken",
    6: "RVALID answers before the address of a read was taken",
    7: "AWREADY follows WVALID within a cycle",
    9: "EXOKAY is no answer of AXI4-Lite",
    10: "ARREADY follows ARVALID within a cycle",
    11: "EXOKAY is no answer of AXI4-Lite",
}


@pytest.mark.parametrize("seed", [1, 2], indirect=True)
@pytest.mark.parametrize("bug", MASTER_RULES)
def test_a_master(bug: int, masters: DeviceLibrary, capfd: pytest.CaptureFixture[str]) -> None:
    copies(masters, bug)
    if bug == 14:
        masters.reset()  # the number stays
    if bug == 17:
        masters.tick(100_000)
    assert masters.read(STATUS) == NO_RESULT
    assert MASTER_RULES[bug] in capfd.readouterr().err


@pytest.mark.parametrize("seed", [1, 2], indirect=True)
@pytest.mark.parametrize("bug", SLAVE_RULES)
def test_a_slave(bug: int, slave: DeviceLibrary, capfd: pytest.CaptureFixture[str]) -> None:
    slave.reset()
    slave.write(0, bug)
    for number in range(30):
        slave.write(4, number)
        slave.read(4)
    assert slave.read(8) == NO_RESULT
    assert SLAVE_RULES[bug] in capfd.readouterr().err


@pytest.mark.parametrize(("fault", "seen"), [(0, 0b1010), (2, 0b0101)], ids=["nothing is there", "memory refuses"])
def test_both_errors_are_answered(masters: DeviceLibrary, seed: int, fault: int, seen: int) -> None:
    """Without a seed DECERR where there is no memory and SLVERR where it refuses; with one, either."""
    copies(masters, 0, 0)
    if fault:
        masters.model.inject(masters.model.state, fault)
    else:
        masters.memory.pieces = {}
    for _ in range(30):
        masters.write(START, 1)
        masters.tick(2000)
    assert masters.read(STATUS) == (0b1111 if seed else seen) << 2 | 3


def test_an_interrupt_is_told_where_no_register_is_accessed(masters: DeviceLibrary) -> None:
    """It comes a cycle behind the end, from which on time is skipped."""
    copies(masters, 0, 0)
    masters.interrupts.clear()
    masters.write(START, 1)
    masters.tick(3000)
    assert masters.interrupts == [1]
