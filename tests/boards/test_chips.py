"""`uaccel new board NAME --target CHIP`: a board file, and firmware links for it, without a line of C."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from boards.linked import check_linked, link
from support.device.boards import board_with_tools
from support.run.command import Call, call_in
from uaccel.board import load_board
from uaccel.board.chips import CORES, find_chip, known_chips

CHIPS = known_chips()


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    monkeypatch.chdir(tmp_path)
    return call_in(capfd)


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", CHIPS)
def test_firmware_links_within_the_chips_memories(name: str, call: Call, tmp_path: Path) -> None:
    done = call("new", "board", "mine", "--target", name, "--json")
    assert (done.status, done.report) == (0, {"board": "mine", "target": name, "files": ["mine.toml"]})
    board = load_board("./mine.toml")
    board_with_tools(str(board.file))
    chip = CHIPS[name]
    seen = [(memory.origin, memory.length) for memory in board.memories]
    assert seen == [chip.code, *chip.ram]
    check_linked(board, link(board, tmp_path / "project"))


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("nrf52840", "nrf52840"),
        ("NRF52840", "nrf52840"),
        ("stm32h743zi", "stm32h743xx"),
        ("stm32h743", "stm32h743xx"),
        ("stm32f407", "stm32f407vg"),
        ("stm32l475vg", "stm32l475xg"),
        ("atsamd51", "atsamd51p20a"),
        ("gd32vf103", "gd32vf103cb"),
        ("nrf", None),
        ("stm32f407xxyy", None),
    ],
)
def test_a_chip_by_the_names_that_it_has(asked: str, found: str | None) -> None:
    chip = find_chip(asked)
    assert (chip.name if chip else None) == found


def test_every_core_is_one_that_chips_have_or_may_have() -> None:
    assert {chip.core for chip in CHIPS.values()} <= set(CORES)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--target", "nrf52"], "target 'nrf52' may be nrf52832 or nrf52833 or nrf52840; name one of them"),
        (["--target", ""], "no chip is called ''; uaccel knows nrf52832, "),
        (["--core", "cortex-m4f"], "--core cortex-m4f is for a chip: name it with --target"),
        (
            ["--target", "nrf52840", "--with-port"],
            "--with-port copies drivers, and a board with --target has none; leave one of them out",
        ),
    ],
)
def test_what_cannot_be_is_said(words: list[str], complaint: str, call: Call) -> None:
    done = call("new", "board", "mine", *words)
    assert (done.status, done.complaint[: len(complaint)]) == (1, complaint)


def test_an_unknown_chip(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyocd.target.builtin", None)
    done = call("new", "board", "mine", "--target", "nrf52841")
    assert done.status == 1
    assert done.complaint.startswith("no chip is called 'nrf52841'; did you mean 'nrf52840'?; uaccel knows nrf52832, ")
    assert done.complaint.endswith(
        "pip install 'uaccel[probe]' adds pyOCD's, with --core for their processor; "
        "--like BOARD begins with a board like it, of which you change memories and clock"
    )


def builtin_targets() -> dict[str, ModuleType]:
    targets: dict[str, ModuleType] = pytest.importorskip("pyocd.target.builtin").BUILTIN_TARGETS
    return targets


@pytest.mark.parametrize("name", [name for name, chip in CHIPS.items() if chip.pyocd == name])
def test_pyocd_says_the_same(name: str) -> None:
    """Where it knows the chip, ours is no more than it has."""
    targets = builtin_targets()
    if name not in targets:
        pytest.skip("pyOCD has it from a pack")
    regions = list(targets[name].MEMORY_MAP)
    for origin, length in (CHIPS[name].code, *CHIPS[name].ram):
        covered = origin
        for region in sorted(regions, key=lambda region: int(region.start)):
            if region.start <= covered < region.start + region.length:
                covered = region.start + region.length
        assert covered >= origin + length or (name, origin) in NOT_TOLD, hex(origin)


NOT_TOLD = {("stm32h743xx", 0x24000000), ("rp2350", 0x20000000)}
"""AXI RAM, which pyOCD leaves to its flash loaders; all but 264 KiB of the RP2350's 520."""


def test_a_chip_that_pyocd_alone_knows(call: Call, tmp_path: Path) -> None:
    builtin_targets()
    asked = ("new", "board", "mine", "--target", "max32625")
    assert call(*asked).complaint == (
        "pyOCD knows max32625, but not its core: say it with --core, as in --core cortex-m4f"
    )
    assert call(*asked, "--core", "m4").complaint.startswith("no core is called 'm4'")
    assert call(*asked, "--core", "cortex-m4f").status == 0
    board = load_board("./mine.toml")
    assert [(memory.origin, memory.length) for memory in board.memories] == [(0, 512 << 10), (0x20000000, 160 << 10)]
    check_linked(board, link(board, tmp_path / "project"))
