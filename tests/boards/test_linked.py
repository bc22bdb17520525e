"""Boards that nothing here can run: their memories are those of the data sheets, and firmware links within them. More
is not claimed: the page's table says so."""

from __future__ import annotations

import re
import struct
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

from boards.linked import check_linked, link
from support.device.boards import EMULATED, board_with_tools
from support.run.scripts import script_of
from uaccel.board import available_boards, load_board

SHEETS = {
    "disco_f407vg": (1024, 192),
    "disco_l475vg_iot01": (1024, 128),
    "microbit_v2": (512, 128),
    "nano_33_ble": (1024, 256),
    "nrf52840_dk": (1024, 256),
    "nucleo_f401re": (512, 96),
    "nucleo_f411re": (512, 128),
    "nucleo_f446re": (512, 128),
    "nucleo_f746zg": (1024, 320),
    "nucleo_h743zi": (2048, 640),
    "nucleo_l476rg": (1024, 128),
    "pico": (2048, 264),
    "ulx3s": (128, 64),
}
"""KiB of flash and of RAM that code can use."""
SEEN_ELSEWHERE = {"microbit", "sifive_e"}
"""By test_debuggers.py; all other emulated ones by the tests of every port."""


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", SHEETS)
def test_firmware_links_within_the_boards_memories(name: str, tmp_path: Path) -> None:
    board = board_with_tools(name)
    check_linked(board, link(board, tmp_path / "project"))


@pytest.mark.parametrize("name", SHEETS)
def test_the_memories_are_those_of_the_data_sheet(name: str) -> None:
    memories = load_board(name).memories
    flash = sum(memory.length for memory in memories if memory.kind == "flash")
    ram = sum(memory.length for memory in memories if memory.kind != "flash")
    assert (flash >> 10, ram >> 10) == SHEETS[name]


def test_nothing_is_called_more_than_it_was_seen_to_be() -> None:
    proven = {board.name: board.proven for board in available_boards()}
    assert {name for name, how in proven.items() if how == "emulated"} == {*EMULATED, *SEEN_ELSEWHERE}
    assert {name for name, how in proven.items() if how == "linked"} == set(SHEETS)
    assert {name for name, how in proven.items() if how == "here"} == {"host"}


FIXED = """
[[fixed]]
address = 0x400
words = [0xFFFF_FFFF, 0xFFFF_FFFF, 0xFFFF_FFFF, 0xFFFF_FFFE]
"""
PORT = {
    "port.toml": 'description = "."\narch = ["armv7em"]\nshared = ["rtt", "cortex_m", "common"]\nconsole = ["rtt"]\n',
    "watchdog.c": '#include "core.h"\nvoid uaccel_port_early_init(void) { *(volatile uint16_t *)64 = 9; }\n',
}


def test_fixed_words_and_what_a_port_does_first(tmp_path: Path) -> None:
    """As a Kinetis wants it: other words lock its flash, and its watchdog runs from reset on."""
    (tmp_path / "watched").mkdir()
    for name, text in PORT.items():
        (tmp_path / "watched" / name).write_text(text)
    text = load_board("nrf52840_dk").file.read_text().replace('port = "rtt"\n', 'port = "./watched"\n')
    (tmp_path / "mine.toml").write_text(text + FIXED)
    board = board_with_tools(str(tmp_path / "mine.toml"))
    elf = link(board, tmp_path / "project")
    check_linked(board, elf)
    subprocess.run(["arm-none-eabi-objcopy", "-O", "binary", elf, tmp_path / "image"], check=True)
    words = struct.unpack_from("<4I", (tmp_path / "image").read_bytes(), 0x400)
    assert words == (0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFE)
    code = subprocess.run(["arm-none-eabi-objdump", "-d", elf], check=True, capture_output=True, text=True).stdout
    reset, hook = (code.partition(f"<{name}>:")[2] for name in ("uaccel_reset", "uaccel_port_early_init"))
    assert re.findall(r"\tbl\t\w+ <(\w+)>", reset)[0] == "uaccel_port_early_init"
    assert "strh" in hook.partition("\n\n")[0]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return script_of("scripts/boards_table.py")


def test_the_pages_table_is_up_to_date(script: ModuleType) -> None:
    assert script.BEGIN in script.PAGE.read_text(encoding="utf-8")
    assert script.PAGE.read_text(encoding="utf-8") == script.page(), "write it anew: python scripts/boards_table.py"
