"""What a command's check asks of most addresses, proven for all of them: is the end beyond a memory?"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

MISSING = [name for name in ("yosys",) if shutil.which(name) is None]
MISSING += [] if importlib.util.find_spec("amaranth") else ["amaranth"]
needs_tools = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")
RTL = Path(__file__).resolve().parents[1] / "rtl"
UNIT = """
import sys

sys.path.insert(0, sys.argv[1])
from amaranth.back import rtlil
from amaranth.hdl import Cat, Module, Signal
from npu_rtl.check import ENOUGH
from npu_rtl.programs import over

most, least, *scales = map(int, sys.argv[2:])
module, total, address = Module(), Signal(ENOUGH + 1), Signal(32)
lower, limit, wrong = Signal(), Signal(32), Signal(name="wrong")
module.d.comb += limit.eq(most)
with module.If(lower):
    module.d.comb += limit.eq(least)
apart = [over(total, address, limit, most, scale) != (total * scale + address > limit) for scale in scales]
module.d.comb += wrong.eq(Cat(*apart).any())
print(rtlil.convert(module, name="over", ports=[total, address, lower, wrong], emit_src=False))
"""
PROVE = "read_rtlil over.il; hierarchy -top over; proc; flatten; opt -full; sat -prove wrong 0 -verify"
MEMORIES = {"tiny": (16384, 8192), "odd": (12288, 5000), "word": (32768, 32768), "large": (1 << 20, 65536)}
"""The larger memory, which is the limit, and a smaller one that may be the limit instead."""
SCALES = (1, 4, 16, 48, 64, 192, 256)
"""Columns, tiles, parameters of a block."""


def proven(rtl: Path, memory: str, folder: Path) -> bool:
    command = [sys.executable, "-c", UNIT, str(rtl), *map(str, (*MEMORIES[memory], *SCALES))]
    made = subprocess.run(command, capture_output=True, text=True, check=True)
    (folder / "over.il").write_text(made.stdout)
    done = subprocess.run(["yosys", "-p", PROVE], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0 or "proof did fail" in done.stderr, done.stderr
    return done.returncode == 0


@needs_tools
@pytest.mark.parametrize("memory", MEMORIES)
def test_it_is_the_sum_that_is_beyond(memory: str, tmp_path: Path) -> None:
    assert proven(RTL, memory, tmp_path)


@needs_tools
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("bits = most.bit_length()", "bits = most.bit_length() - 1"),
        ("Cat(total[bits:], address[bits:])", "Cat(total[bits:])"),
        ("Cat(total[bits:], address[bits:])", "Cat(address[bits:])"),
        ("product + start > limit)", "product + start >= limit)"),
        ("range(scale.bit_length())", "range(1, scale.bit_length())"),
    ],
)
def test_bugs_are_found(right: str, wrong: str, tmp_path: Path) -> None:
    folder = tmp_path / "rtl"
    shutil.copytree(RTL, folder, ignore=shutil.ignore_patterns("__pycache__"))
    file = folder / "npu_rtl/programs.py"
    text = file.read_text()
    assert text.count(right) == 1
    file.write_text(text.replace(right, wrong))
    assert not proven(folder, "tiny", tmp_path)
