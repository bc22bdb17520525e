"""The linker's map: what is left of each object file."""

from __future__ import annotations

from pathlib import Path

import pytest

from uaccel.build.elf import Piece, read_map
from uaccel.errors import ToolError

MAP = """Archive member included to satisfy reference by file (symbol)

Discarded input sections

 .text.unused   0x00000000       0x20 libmodel.a(model.c.obj)

Linker script and memory map

LOAD libmodel.a

.text           0x00008000      0x100
 *(.text .text.*)
 .text.layer    0x00008010       0x1c libmodel.a(model.c.obj)
                0x00008010                layer
 .text.a_name_that_is_long
                0x00008000       0x10 CMakeFiles/firmware.dir/a folder/server.c.obj
 *fill*         0x0000802c        0x4
 .rodata.str1.4
                0x00008030        0x5 /usr/lib/libc.a(lib_a-memcpy.o)
                                  0x9 (size before relaxing)
 .text          0x00008035        0x0 libmodel.a(model.c.obj)

/DISCARD/
OUTPUT(firmware.elf elf32-littlearm)

.comment        0x00000000       0x26
 .comment       0x00000000       0x26 libmodel.a(model.c.obj)
"""


def test_what_is_left_is_read_in_order(tmp_path: Path) -> None:
    (tmp_path / "firmware.map").write_text(MAP)
    assert read_map(tmp_path / "firmware.map") == [
        Piece(".text.a_name_that_is_long", 0x8000, 0x10, "CMakeFiles/firmware.dir/a folder/server.c.obj", ""),
        Piece(".text.layer", 0x8010, 0x1C, "libmodel.a", "model.c.obj"),
        Piece(".rodata.str1.4", 0x8030, 5, "/usr/lib/libc.a", "lib_a-memcpy.o"),
    ]


def test_what_is_no_map_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "firmware.map"
    with pytest.raises(ToolError, match=r"cannot read .*: No such file or directory; build the firmware anew"):
        read_map(file)
    file.write_text("something else\n")
    with pytest.raises(ToolError, match="is no map of GNU ld; build the firmware anew"):
        read_map(file)
