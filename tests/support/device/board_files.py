"""Board files as texts, to be changed line by line, and what the loader says of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from uaccel.board import Board, load_board
from uaccel.errors import BoardError

EMULATED = """\
description = "Arm MPS2 with a Cortex-M4, under QEMU"
port = "mps"

[cpu]
name = "cortex-m4"
arch = "armv7em"
toolchain = "arm-none-eabi"
flags = ["-mcpu=cortex-m4", "-mthumb"]
features = ["fpu", "dsp"]

[[memory]]
name = "ssram1"
kind = "flash"
origin = 0x0000_0000
length = "4M"

[[memory]]
name = "ssram23"
kind = "ram"
origin = 0x2000_0000
length = 0x40_0000

[[memory]]
name = "psram"
kind = "external"
origin = 0x2100_0000
length = "16M"
accelerator = true

[console]
kind = "uart"
base = 0x4000_4000
baud = 115200
irq = 0

[timer]
kind = "systick"
hz = 25_000_000

[run.qemu]
system = "arm"
machine = "mps2-an386"
ram_origin = 0x2100_0000
ram_length = "16M"
args = ["-semihosting"]
"""

REAL = """\
description = "ST Nucleo with an STM32F746"
port = "stm32"
stack = "16K"

[settings]
family = 7
hse_hz = 8_000_000
tx = "PD8"
rx = "PD9"

[cpu]
name = "cortex-m7"
arch = "armv7em"
toolchain = "arm-none-eabi"
flags = ["-mcpu=cortex-m7"]
link_flags = ["--specs=nano.specs"]

[[memory]]
name = "flash"
kind = "flash"
origin = 0x0800_0000
length = "1M"

[[memory]]
name = "sram"
kind = "ram"
origin = 0x2001_0000
length = "256K"

[console]
kind = "uart"
base = 0x4000_4800
baud = 921600
irq = 39
clock_hz = 54_000_000

[timer]
kind = "systick"
hz = 216_000_000

[run.serial]
usb = "0483:374b"

[flash]
tool = "openocd"
config = ["board/st_nucleo_f7.cfg"]
"""

HOST = """\
description = "This computer"
port = "host"

[cpu]
name = "native"
arch = "native"
toolchain = "native"

[console]
kind = "stdio"

[timer]
kind = "host"

[run.host]
"""


def load(folder: Path, text: str | bytes, name: str = "bench") -> Board:
    file = folder / f"{name}.toml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_board(file)


def complaint(folder: Path, text: str | bytes, name: str = "bench") -> str:
    """What the loader says, with the folder taken off the front."""
    with pytest.raises(BoardError) as caught:
        load(folder, text, name)
    message = str(caught.value)
    assert "\n" not in message
    return message.replace(f"{folder}/", "")


def changed(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1, f"{old!r} must be there once"
    return text.replace(old, new)
