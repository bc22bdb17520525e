"""Which memory holds what, the linker script that says it, and what a model hears that does not fit."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from uaccel.board import Board, load_board
from uaccel.build.linker_script import Layout, MemoryNeeds, constant_rooms, lay_out, needs_of, workspace_memories
from uaccel.build.project import board_files
from uaccel.errors import BoardError, UaccelError
from uaccel.memory import Pool

SMALL = """\
description = "A board with little memory"
port = "mps"
stack = "4K"

[cpu]
name = "cortex-m4"
arch = "armv7em"
toolchain = "arm-none-eabi"
flags = ["-mcpu=cortex-m4", "-Wa,-mimplicit-it=thumb"]
link_flags = ["--specs=nano.specs"]
features = ["dsp"]

[[memory]]
name = "flash"
kind = "flash"
origin = 0
length = "128K"

[[memory]]
name = "qspi"
kind = "flash"
origin = 0x9000_0000
length = "8M"

[[memory]]
name = "sram"
kind = "ram"
origin = 0x2000_0000
length = "64K"

[[memory]]
name = "ccm"
kind = "tcm"
origin = 0x1000_0000
length = "32K"
EXTERNAL
[console]
kind = "uart"
base = 0x4000_4000
baud = 115200
irq = 33

[timer]
kind = "systick"
hz = 25_000_000

[run.serial]
"""

EXTERNAL = """
[[memory]]
name = "sdram"
kind = "external"
origin = 0xC000_0000
length = "8M"
accelerator = true
"""
K = 1024


def small_board(folder: Path, external: str = "") -> Board:
    file = folder / "small.toml"
    file.write_text(SMALL.replace("EXTERNAL", external))
    return load_board(file)


def names(layout: Layout) -> dict[str, str | None]:
    return {part: memory and memory.name for part, memory in vars(layout).items() if part not in ("pools", "constants")}


def test_what_fits_goes_where_the_file_says_first(tmp_path: Path) -> None:
    layout = lay_out(small_board(tmp_path), MemoryNeeds("tiny", arena=10 * K, io=2 * K, weights=50 * K))
    assert names(layout) == {
        "code": "flash",
        "weights": "flash",
        "data": "sram",
        "arena": "sram",
        "io": "sram",
        "shared": None,
        "device_constants": None,
        "device_load": None,
    }


@pytest.mark.parametrize(
    ("arena", "io", "weights", "places"),
    [
        (45 * K, 10 * K, 0, ("flash", "sram", "ccm")),  # what is left after the arena
        (53 * K, 0, 0, ("flash", "sdram", "sram")),
        (30 * K, 30 * K, 0, ("flash", "sram", "ccm")),
        (60 * K, 60 * K, 4 << 20, ("qspi", "sdram", "sdram")),
        (0, 0, 115 * K, ("flash", "sram", "sram")),
        (0, 0, 117 * K, ("qspi", "sram", "sram")),
    ],
)
def test_what_does_not_fit_goes_to_the_next(
    tmp_path: Path, arena: int, io: int, weights: int, places: tuple[str, str, str]
) -> None:
    layout = lay_out(small_board(tmp_path, EXTERNAL), MemoryNeeds("m", arena, io, weights))
    assert (layout.weights.name, layout.arena.name, layout.io.name) == places
    assert layout.shared is not None
    assert layout.shared.name == "sdram"


def test_each_part_of_a_divided_arena_lies_in_the_memory_of_its_name(tmp_path: Path) -> None:
    board = small_board(tmp_path, EXTERNAL)
    parts = (("ccm", 20 * K), ("sdram", 90 * K), ("other", 8 * K))
    needs = MemoryNeeds("m", 118 * K, K, 1, pools=parts)
    assert [(pool, memory.name) for pool, memory in lay_out(board, needs).pools] == [
        ("ccm", "ccm"),
        ("sdram", "sdram"),
        ("other", "sram"),
    ]
    script = board_files(board, needs)["board/memory.ld"]
    for pool, memory in (("ccm", "ccm"), ("sdram", "sdram"), ("other", "sram")):
        assert f".uaccel_pool_{pool} (NOLOAD) : {{ . = ALIGN(16); *(.bss.uaccel_pool.{pool}) }} > {memory}\n" in script


DIVIDED = MemoryNeeds("m", K, K, 1, constants=(("ccm", 2 * K), ("flash", 10 * K), ("qspi", 200 * K)))


def test_each_part_of_constants_lies_in_the_memory_of_its_name(tmp_path: Path) -> None:
    """What lies in RAM is flashed, too, and start-up finds it."""
    board = small_board(tmp_path)
    layout = lay_out(board, DIVIDED)
    assert [(part.pool, part.memory.name, part.load and part.load.name) for part in layout.constants] == [
        ("ccm", "ccm", "flash"),
        ("flash", "flash", None),
        ("qspi", "qspi", None),
    ]
    script = board_files(board, DIVIDED)["board/memory.ld"]
    places = re.findall(
        r"^  \.uaccel_constants_(\w+) :\n  \{\n    . = ALIGN\(16\);\n(.*)\n.*\n  \} > (.*)$", script, re.M
    )
    assert places == [
        ("ccm", "    *(.rodata.uaccel_pool.ccm)", "ccm AT> flash"),
        ("flash", "    *(.rodata.uaccel_pool.flash)", "flash"),
        ("qspi", "    *(.rodata.uaccel_pool.qspi)", "qspi"),
    ]
    assert re.findall(r"LONG\((\w+)\(\.uaccel_constants_(\w+)\)", script) == [
        ("ADDR", "ccm"),
        ("ADDR", "ccm"),
        ("LOADADDR", "ccm"),
    ]
    assert " *   constant pool ccm, copied from flash at start: ccm\n *   constant pool flash: flash\n" in script
    assert script.index(".uaccel_constants_qspi :") < script.index("*(.rodata .rodata.*"), "which would take all"


def test_what_is_free_for_constants(tmp_path: Path) -> None:
    """Beside the arena, inputs and outputs, which lie in the first RAM with room."""
    rooms = constant_rooms(small_board(tmp_path, EXTERNAL))
    assert [(room.name, room.size, room.copied, room.spare) for room in rooms(40 * K, 20 * K, {}, ())] == [
        ("flash", 116 * K - 64, False, False),
        ("qspi", (8 << 20) - 64, False, False),
        ("sram", (53_632 - 40 * K - 64) & -16, True, False),
        ("ccm", 12 * K - 64, True, False),
        ("sdram", (8 << 20) - 64, True, True),
    ]
    assert rooms(9 << 20, 0, {}, ()) == (), "whoever makes a project says that it does not fit"
    assert constant_rooms(load_board("host"))(1, 1, {}, ()) == ()


def test_what_is_free_for_a_workspace(tmp_path: Path) -> None:
    """External memory comes last; stacks and variables lie in the first of the others."""
    assert workspace_memories(small_board(tmp_path, EXTERNAL)) == (
        Pool("sram", 53_632),
        Pool("ccm", 32 * K),
        Pool("sdram", 8 << 20, spare=True),
    )
    assert workspace_memories(load_board("host")) == ()


@pytest.mark.parametrize(
    ("needs", "message"),
    [
        (
            MemoryNeeds("m", 1, 1, 1, constants=(("ccm", 40_000),)),
            "model m does not fit on board small: its constants in pool ccm are 40,000 bytes, "
            "7,232 more than that memory has left for that (ccm 32,768); give the pool less",
        ),
        (
            MemoryNeeds("m", 1, 1, 1, constants=(("nor", 1),)),
            "model m has constants for a memory nor, and board small has none of that name (flash, qspi, sram, ccm); "
            "compile it for this board",
        ),
        (
            MemoryNeeds("m", 80_000, 1, 1, pools=(("ccm", 40_000), ("sram", 40_000))),
            "model m does not fit on board small: its arena pool ccm is 40,000 bytes, "
            "7,232 more than any memory has left for that (ccm 32,768); "
            "choose a board with more, or describe a further [[memory]] of kind ram or external in FILE",
        ),
        (
            MemoryNeeds("vww", arena=55_296, io=27_650, weights=1),
            "model vww does not fit on board small: its arena is 55,296 bytes, "
            "1,664 more than any memory has left for that (sram 53,632, ccm 32,768); "
            "choose a board with more, or describe a further [[memory]] of kind ram or external in FILE",
        ),
        (
            MemoryNeeds("wide", arena=40_000, io=40_000, weights=1),
            "model wide does not fit on board small: its inputs and outputs are 40,000 bytes, "
            "7,232 more than any memory has left for that (sram 13,632, ccm 32,768); "
            "choose a board with more, or describe a further [[memory]] of kind ram or external in FILE",
        ),
        (
            MemoryNeeds("big", arena=1, io=1, weights=9 << 20),
            "model big does not fit on board small: its constants are 9,437,184 bytes, "
            "1,048,576 more than any memory has left for that (flash 118,784, qspi 8,388,608); "
            "choose a board with more, or describe a further [[memory]] of kind flash in FILE",
        ),
    ],
)
def test_what_fits_nowhere_is_said_in_words(tmp_path: Path, needs: MemoryNeeds, message: str) -> None:
    board = small_board(tmp_path)
    with pytest.raises(BoardError) as caught:
        lay_out(board, needs)
    assert str(caught.value) == message.replace("FILE", str(board.file))


@pytest.mark.parametrize(
    ("stack", "line", "message"),
    [
        (
            'stack = "64K"\n',
            3,
            "the stack of 65,536 bytes, with 7,808 for interrupts and the session server, is 7,808 bytes more than "
            "memory 'sram' has; choose a smaller 'stack', or put a larger [[memory]] of kind ram or tcm first",
        ),
        (
            "",
            24,
            "the stack of 8,192 bytes, with 7,808 for interrupts and the session server, is 3,712 bytes more than "
            "memory 'sram' has; choose a smaller 'stack', or put a larger [[memory]] of kind ram or tcm first",
        ),
    ],
)
def test_a_stack_that_does_not_fit_is_the_board_files_fault(
    tmp_path: Path, stack: str, line: int, message: str
) -> None:
    file = tmp_path / "small.toml"
    text = SMALL.replace("EXTERNAL", "").replace('stack = "4K"\n', stack)
    file.write_text(text if stack else text.replace('length = "64K"', "length = 12288"))
    with pytest.raises(BoardError) as caught:
        lay_out(load_board(file), MemoryNeeds("m", 0, 0, 0))
    assert str(caught.value) == f"{file}:{line}: {message}"


def test_the_script_names_every_memory_and_puts_each_part_in_its_own(tmp_path: Path) -> None:
    board = small_board(tmp_path, EXTERNAL)
    script = board_files(board, MemoryNeeds("m", 54 * K, 1 * K, 117 * K))["board/memory.ld"]
    regions = re.findall(r"^  (\w+) \((\w+)\) : ORIGIN = (\w+), LENGTH = (\w+)$", script, re.MULTILINE)
    assert [(name, access, int(origin, 16), int(length, 16)) for name, access, origin, length in regions] == [
        ("flash", "rx", 0, 128 * K),
        ("qspi", "rx", 0x90000000, 8 << 20),
        ("sram", "rwx", 0x20000000, 64 * K),
        ("ccm", "rwx", 0x10000000, 32 * K),
        ("sdram", "rwx", 0xC0000000, 8 << 20),
    ]
    places = dict(re.findall(r"^  (\.\w+)(?:.|\n)*?\} > (\w+)", script, re.MULTILINE))
    assert places == {
        ".uaccel_vectors": "flash",
        ".uaccel_weights": "qspi",
        ".text": "flash",
        ".uaccel_stacks": "sram",
        ".uaccel_arena": "sdram",
        ".uaccel_io": "sram",
        ".uaccel_shared": "sdram",
        ".data": "sram",
        ".tdata": "sram",
        ".tbss": "sram",
        ".uaccel_tls": "sram",
        ".bss": "sram",
    }
    assert ". += 4096;" in script, "the stack that the board file asks for"
    assert ".uaccel_shared" not in board_files(small_board(tmp_path), MemoryNeeds("m", 0, 0, 0))["board/memory.ld"]


FIXED = """
[[fixed]]
address = 0x9000_1000
words = [7]

[[fixed]]
address = 0x400
words = [0xFFFF_FFFF, 0xFFFF_FFFE]
"""


def test_fixed_words_come_first_in_their_memory_and_take_its_room(tmp_path: Path) -> None:
    board = small_board(tmp_path, FIXED)
    needs = MemoryNeeds("m", 0, 0, 115 * K)
    assert (lay_out(board, needs).weights.name, lay_out(small_board(tmp_path), needs).weights.name) == ("qspi", "flash")
    script = board_files(board, needs)["board/memory.ld"]
    places = re.findall(r"^  \.(\w+)(?: (0x\w+))? :.*?(\w+)$", script[: script.index(".text :")], re.MULTILINE)
    assert places == [
        ("uaccel_vectors", "", "flash"),
        ("uaccel_fixed_400", "0x00000400", "flash"),
        ("uaccel_fixed_90001000", "0x90001000", "qspi"),
        ("uaccel_weights", "", "qspi"),
    ]
    assert "{ LONG(0xffffffff) LONG(0xfffffffe) } > flash\n" in script


def test_what_cmake_and_c_are_told(tmp_path: Path) -> None:
    files = board_files(small_board(tmp_path), MemoryNeeds("m", 0, 0, 0))
    assert set(files) == {"board/board.cmake", "board/small.toml", "board/uaccel_board.h", "board/memory.ld"}
    cmake = files["board/board.cmake"].splitlines()
    assert 'set(BOARD_TOOLCHAIN "arm-none-eabi")' in cmake
    assert 'set(BOARD_FLAGS "-mcpu=cortex-m4" "-Wa,-mimplicit-it=thumb")' in cmake
    assert 'set(BOARD_LINK_FLAGS "--specs=nano.specs")' in cmake
    assert 'set(BOARD_PORTS "mps" "cortex_m" "common")' in cmake
    header = files["board/uaccel_board.h"]
    macros = dict(re.findall(r"^#define UACCEL_BOARD_(\w+) (.+)$", header, re.MULTILINE))
    assert macros == {
        "NAME": '"small"',
        "CONSOLE_BASE": "0x40004000u",
        "CONSOLE_BAUD": "0x1c200u",
        "CONSOLE_IRQ": "33u",
        "CONSOLE_CLOCK_HZ": "0x17d7840u",
        "INTERRUPTS": "64u",
        "TIMER_SYSTICK": "1",
        "TIMER_HZ": "0x17d7840u",
        "HAS_DSP": "1",
    }


def test_the_settings_of_a_port_become_macros() -> None:
    header = board_files(load_board("nucleo_f746zg"), MemoryNeeds("m", 0, 0, 0))["board/uaccel_board.h"]
    for line in ("FAMILY 7u", "HSE_HZ 0x7a1200u", "HSE_BYPASS 1", 'TX "PD8"', 'RX "PD9"'):
        assert f"#define UACCEL_BOARD_{line}\n" in header


def test_a_project_for_this_computer_needs_neither() -> None:
    assert set(board_files(load_board("host"), MemoryNeeds("m", 1 << 40, 0, 0))) == {
        "board/board.cmake",
        "board/host.toml",
    }


def metadata(functions: object) -> dict[str, bytes]:
    return {"metadata.json": json.dumps({"modules": {"m": {"memory": {"functions": functions}}}}).encode()}


def test_needs_come_from_the_archives_metadata() -> None:
    main = {"workspace_size_bytes": 100, "constants_size_bytes": 200, "io_size_bytes": 300}
    assert needs_of(metadata({"main": [main]})) == MemoryNeeds("m", arena=100, io=300, weights=200)
    files = metadata({"main": [main]})
    document = json.loads(files["metadata.json"]) | {"uaccel": {"constant_pools": [{"name": "qspi", "bytes": 150}]}}
    divided = needs_of({"metadata.json": json.dumps(document).encode()})
    assert divided == MemoryNeeds("m", arena=100, io=300, weights=50, constants=(("qspi", 150),))


@pytest.mark.parametrize(
    "files", [{}, {"metadata.json": b"{"}, metadata({}), metadata({"main": []}), metadata({"main": [{}]})]
)
def test_an_archive_that_does_not_tell_is_refused(files: dict[str, bytes]) -> None:
    with pytest.raises(UaccelError, match=r"^metadata\.json of the archive does not say what memory the model takes"):
        needs_of(files)
