"""Writes ``matrix8.v`` into the folder that it is started in."""

from __future__ import annotations

from pathlib import Path

from amaranth.back import verilog

from matrix8_rtl.top import Matrix8


def main() -> None:
    unit = Matrix8()
    text = verilog.convert(unit.module, name="matrix8", ports=unit.ports, emit_src=False)
    Path("matrix8.v").write_text(text, encoding="utf-8")


main()
