"""What accelerators read and write: where it lies, and what a board lacks that has no place for it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from support.device.board_files import REAL, changed, load
from support.device.board_files import complaint as load_complaint
from uaccel.board import Board, load_board
from uaccel.build.archive_reader import hal_folders
from uaccel.build.linker_script import WINDOW, Layout, MemoryNeeds, lay_out, needs_of
from uaccel.build.project import board_files, board_overlay
from uaccel.errors import BoardError, UaccelError

K = 1024
DEVICE = '[[device]]\nname = "fast"\nbase = 0x6000_0000\nirq = 70\n\n'
REACHED = '\n[[memory]]\nname = "reached"\nkind = "ram"\norigin = 0x2005_0000\nlength = "64K"\naccelerator = true\n'
LOADABLE = '\n[[memory]]\nname = "xip"\nkind = "flash"\norigin = 0x9000_0000\nlength = "32K"\naccelerator = true\n'


def board(folder: Path, *sections: str) -> Board:
    return load(folder, changed(REAL, "[console]", "".join(sections) + "\n[console]"))


def needs(arena: int = 10 * K, io: int = 1 * K, constants: int = 8 * K, **more: int) -> MemoryNeeds:
    return MemoryNeeds("m", arena, io, more.get("weights", 0), ("fast",), constants)


def names(layout: Layout) -> tuple[str | None, ...]:
    parts = (layout.arena, layout.io, layout.shared, layout.device_constants, layout.device_load)
    return tuple(part.name if part else None for part in parts)


@pytest.mark.parametrize(
    ("sections", "wanted", "places"),
    [
        ([REACHED], needs(), ("reached", "reached", "reached", "reached", "flash")),
        ([REACHED, LOADABLE], needs(), ("reached", "reached", "reached", "xip", None)),
        ([REACHED, LOADABLE], needs(constants=33 * K), ("reached", "reached", "reached", "reached", "flash")),
    ],
)
def test_all_of_it_lies_where_accelerators_reach(
    tmp_path: Path, sections: list[str], wanted: MemoryNeeds, places: tuple[str | None, ...]
) -> None:
    assert names(lay_out(board(tmp_path, DEVICE, *sections), wanted)) == places


def test_without_accelerators_nothing_does(tmp_path: Path) -> None:
    layout = lay_out(board(tmp_path, DEVICE, REACHED), MemoryNeeds("m", 10 * K, K, 0))
    assert names(layout) == ("sram", "sram", "reached", None, None)


def complaint(board: Board, wanted: MemoryNeeds) -> str:
    with pytest.raises(BoardError) as caught:
        lay_out(board, wanted)
    return str(caught.value).replace(str(board.file), "FILE")


def test_a_board_without_such_a_memory_is_refused(tmp_path: Path) -> None:
    assert complaint(board(tmp_path, DEVICE), needs()) == (
        "model m needs accelerator fast, and no accelerator reaches any memory of board bench; write "
        "'accelerator = true' to a [[memory]] of kind ram, tcm or external in FILE whose bytes the accelerator reads "
        "and writes"
    )


def test_flash_alone_will_not_do(tmp_path: Path) -> None:
    assert "no accelerator reaches any memory" in complaint(board(tmp_path, DEVICE, LOADABLE), needs())


def test_a_board_without_the_device_is_refused(tmp_path: Path) -> None:
    other = DEVICE.replace("fast", "slow")
    assert complaint(board(tmp_path, other, REACHED), needs()) == (
        "model m needs accelerator fast, and board bench has none; write a [[device]] with name = \"fast\" and 'base', "
        "where its registers lie, to FILE"
    )


def test_hardware_of_a_board_that_qemu_also_runs_reaches_what_it_may(tmp_path: Path) -> None:
    """QEMU has no memory there to share with models, and needs none."""
    text = load_board("netduino_plus_2").file.read_text()
    text = changed(text, 'length = "128K"', 'length = "128K"\naccelerator = true')
    assert "lies outside QEMU's shared RAM (no ram_origin given)" in load_complaint(tmp_path, text)
    layout = lay_out(load(tmp_path, changed(text, "[console]", DEVICE + "[console]")), needs())
    assert names(layout) == ("sram", "sram", "sram", "sram", "flash")


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (
            needs(arena=60 * K, io=8 * K),
            f"its arena with inputs and outputs is {68 * K + WINDOW:,} bytes, 4,352 more than any memory has left "
            "for that (reached 65,536); choose a board with more, or describe a further [[memory]] with "
            "'accelerator = true' in FILE",
        ),
        (
            needs(constants=60 * K),
            f"its constants for accelerators are 61,440 bytes, 7,424 more than any memory has left for that "
            f"(reached {53 * K - WINDOW:,}); choose a "
            "board with more, or describe a further [[memory]] with 'accelerator = true' in FILE",
        ),
        (
            needs(weights=1010 * K),
            "its constants are 8,192 bytes, 6,144 more than any memory has left for that (flash 2,048); choose a "
            "board with more, or describe a further [[memory]] of kind flash in FILE",
        ),
    ],
)
def test_what_does_not_fit_is_said_in_words(tmp_path: Path, wanted: MemoryNeeds, message: str) -> None:
    said = complaint(board(tmp_path, DEVICE, REACHED), wanted)
    assert said == f"model m does not fit on board bench: {message}"


def test_the_script_says_where_and_what_start_up_copies(tmp_path: Path) -> None:
    script = board_files(board(tmp_path, DEVICE, REACHED), needs())["board/memory.ld"]
    places = dict(re.findall(r"^  (\.uaccel_\w+)(?:.|\n)*?\} > (\w+(?: AT> \w+)?)", script, re.MULTILINE))
    assert places[".uaccel_shared"] == "reached"
    assert places[".uaccel_device_constants"] == "reached AT> flash"
    assert ".uaccel_arena" not in places
    assert " *   constants that an accelerator reads: reached" in script
    direct = board_files(board(tmp_path, DEVICE, REACHED, LOADABLE), needs())["board/memory.ld"]
    assert re.search(r"^  \.uaccel_device_constants :(?:.|\n)*?\} > xip\n", direct, re.MULTILINE)


def test_the_project_gets_its_devices_and_the_way_to_them(tmp_path: Path) -> None:
    real = board(tmp_path, DEVICE, REACHED)
    files = {name: data.decode() for name, data in board_overlay(real, needs()).items()}
    assert '    {"fast", 0x60000000u, 70},\n' in files["board/devices.c"]
    assert 'set(BOARD_HAL "hal_common" "hal_cortex_m" "hal_board" "hal_mmio")' in files["board/board.cmake"]
    assert "firmware/ports/hal_mmio/hal.c" in files
    assert not any(name.startswith("firmware/ports/hal_qemu") for name in files)
    plain = board_overlay(real, MemoryNeeds("m", 0, 0, 0))
    assert not any("hal_" in name or "devices" in name for name in plain)
    assert "BOARD_HAL" not in plain["board/board.cmake"].decode()


@pytest.mark.parametrize(
    ("name", "folders"),
    [
        ("host", ["hal_common", "hal_plain", "hal_host", "device_rack", "device_library"]),
        ("mps2_an386", ["hal_common", "hal_cortex_m", "hal_board", "hal_qemu"]),
        ("qemu_riscv32", ["hal_common", "hal_plain", "hal_board", "hal_qemu"]),
        ("netduino_plus_2", ["hal_common", "hal_cortex_m", "hal_board", "hal_mmio"]),
    ],
)
def test_each_board_has_a_way_of_its_own(name: str, folders: list[str]) -> None:
    found = hal_folders(load_board(name))
    assert [folder.name for folder in found] == folders
    assert all(list(folder.glob("*.c")) for folder in found)


def test_what_the_archive_says_of_accelerators() -> None:
    main = {"workspace_size_bytes": 1, "io_size_bytes": 2, "constants_size_bytes": 30}
    document = {"modules": {"m": {"memory": {"functions": {"main": [main]}}}}}
    own = {"uaccel": {"device_constants": 4, "accelerators": [{"name": "fast"}, {"name": "slow"}]}}
    assert needs_of({"metadata.json": json.dumps(document | own).encode()}) == MemoryNeeds(
        "m", 1, 2, 26, ("fast", "slow"), 4
    )


@pytest.mark.parametrize(
    ("model", "accelerator", "words"),
    [
        ("m */ INPUT(/etc/passwd) /*", "fast", "the model 'm */ INPUT(/etc/passwd) /*'"),
        ("m\n", "fast", r"the model 'm\n'"),
        ("", "fast", "the model ''"),
        ("m", 'fast"}, {"', """an accelerator 'fast"}, {"'"""),
        ("m", "../../fast", "an accelerator '../../fast'"),
    ],
)
def test_an_archive_cannot_write_what_it_likes_into_c_or_the_linker_script(
    model: str, accelerator: str, words: str
) -> None:
    main = {"workspace_size_bytes": 1, "io_size_bytes": 2, "constants_size_bytes": 3}
    document = {"modules": {model: {"memory": {"functions": {"main": [main]}}}}}
    own = {"uaccel": {"accelerators": [{"name": accelerator}]}}
    with pytest.raises(UaccelError) as caught:
        needs_of({"metadata.json": json.dumps(document | own).encode()})
    assert str(caught.value) == (
        f"metadata.json of the archive calls {words}; wanted letters, digits and underscores: "
        "make the archive anew with 'uaccel compile'"
    )
