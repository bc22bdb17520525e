"""Reading symbols from an ELF file, and refusing what is none."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from support.device.boards import CROSS, board_with_tools, build_bare
from uaccel.build.elf import Sizes, object_sizes, symbols
from uaccel.errors import ToolError

EMPTY = '#include "uaccel_port.h"\nint main(void) { uaccel_port_init(); return 0; }\n'


@pytest.mark.parametrize("name", ["mps2_an385", "qemu_riscv32"])
def test_symbols_are_those_that_nm_lists(name: str, tmp_path: Path) -> None:
    board = board_with_tools(name)
    source = tmp_path / "empty.c"
    source.write_text(EMPTY)
    elf = build_bare(board, [source], tmp_path)
    listed = subprocess.run([f"{board.cpu.toolchain}-nm", elf], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in listed.splitlines()]
    wanted = {row[2]: int(row[0], 16) for row in rows if row[1] in "TDBR"}
    found = symbols(elf)
    thumb = {key: value & ~1 for key, value in found.items()} if board.cpu.arch != "rv32" else found
    assert len(wanted) > 20
    assert {key: thumb[key] for key in wanted} == wanted


def test_what_is_no_firmware_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"cannot read .*: No such file or directory; build the firmware first"):
        symbols(tmp_path / "none.elf")
    with pytest.raises(ToolError, match="is no ELF file for a 32-bit little-endian processor"):
        symbols(Path("/proc/self/exe"))


def test_a_file_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    board = board_with_tools(CROSS[0])
    source = tmp_path / "empty.c"
    source.write_text(EMPTY)
    data = build_bare(board, [source], tmp_path).read_bytes()
    cut = tmp_path / "cut.elf"
    for size in (8, 40, len(data) // 2, len(data) - 200):
        cut.write_bytes(data[:size])
        with pytest.raises(ToolError, match="is a damaged ELF file"):
            symbols(cut)


@pytest.mark.parametrize("section", ["uaccel_arena", "uaccel_io"])
def test_memory_that_models_of_devices_reach_is_ram(section: str, tmp_path: Path) -> None:
    """In a process it has sections of their own names, which are no ``.bss``."""
    source, made = tmp_path / "reached.c", tmp_path / "reached.o"
    source.write_text(f'unsigned char reached[4096] __attribute__((section("{section}")));\n')
    subprocess.run(["cc", "-c", source, "-o", made], check=True)
    assert object_sizes([made]) == Sizes(0, 4096)
