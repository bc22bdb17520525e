"""Writes ``npu.v`` into the folder that it is started in. Arguments are the machine's numbers, ``NAME=NUMBER``."""

from __future__ import annotations

import sys
from pathlib import Path

from amaranth.back import verilog

from npu_rtl.numbers import machine_of
from npu_rtl.top import Npu


def main() -> None:
    unit = Npu(machine_of(sys.argv[1:]))
    text = verilog.convert(unit.module, name="npu", ports=unit.ports, emit_src=False)
    Path("npu.v").write_text(text, encoding="utf-8")


main()
