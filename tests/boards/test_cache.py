"""The data cache of those Cortex-M that have one, where QEMU cannot follow: against a mock of its registers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from support.device.boards import WARNINGS
from uaccel.util.files import data_dir

HERE = Path(__file__).with_name("cortex_m_cache")
ON = 1 << 16
LINES_OF_32 = 3 << 16
"""What the cache type register tells: 2 to the power of 3 words."""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    firmware = data_dir("firmware")
    program = tmp_path_factory.mktemp("cache") / "cache"
    sources = [str(HERE / "main.c"), str(firmware / "ports" / "hal_cortex_m" / "cache.c")]
    includes = [f"-I{HERE}", f"-I{firmware / 'include'}"]
    subprocess.run(["gcc", *WARNINGS, "-fsanitize=undefined", *includes, *sources, "-o", str(program)], check=True)
    return program


def maintain(program: Path, operation: str, address: int, size: int, *, ccr: int = ON, ctr: int = LINES_OF_32) -> str:
    command = [str(program), f"{ccr:x}", f"{ctr:x}", operation, f"{address:x}", f"{size:x}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("operation", ["clean", "invalidate"])
@pytest.mark.parametrize(
    ("address", "size", "lines"),
    [
        (0x20000000, 1, [0x20000000]),
        (0x20000000, 32, [0x20000000]),
        (0x20000000, 33, [0x20000000, 0x20000020]),
        (0x2000001F, 1, [0x20000000]),
        (0x2000001F, 2, [0x20000000, 0x20000020]),
        (0x20000010, 64, [0x20000000, 0x20000020, 0x20000040]),
        (0xFFFFFFE0, 32, [0xFFFFFFE0]),
    ],
)
def test_every_line_of_it_and_no_other(
    program: Path, operation: str, address: int, size: int, lines: list[int]
) -> None:
    done = [f"{operation} {line:08x}" for line in lines]
    assert maintain(program, operation, address, size).splitlines() == ["barrier", *done, "barrier"]


def test_lines_are_as_long_as_the_cpu_says(program: Path) -> None:
    done = maintain(program, "clean", 0x20000000, 64, ctr=4 << 16).splitlines()
    assert done == ["barrier", "clean 20000000", "barrier"]


def test_nothing_happens_without_a_cache_or_without_memory(program: Path) -> None:
    assert maintain(program, "clean", 0x20000000, 64, ccr=0xFFFFFFFF & ~ON) == ""
    assert maintain(program, "invalidate", 0x20000000, 0) == ""
