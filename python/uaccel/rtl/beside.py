"""Verilog that puts an accelerator's RTL beside a core (examples/ulx3s): APB registers, and an AXI4 master in words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from uaccel.errors import UaccelError
from uaccel.rtl.adapters import MEMORY, REGISTERS, Adapter
from uaccel.rtl.description import Bus, Rtl

MODULE: Final = "uaccel_device"
WORDS: Final = ("asks", "we", "adr", "given", "sel", "ack", "refused", "word")
"""Ports of the module that reach memory."""
_PORT: Final = r"\b(?:input|output)(?:\s+(?:wire|reg|logic))?\s*(?:\[(\d+):0\])?\s*{}\b"


def width_of(text: str, port: str) -> int:
    """Bits of a port that this Verilog declares on its own; 0 where there is none."""
    found = re.search(_PORT.format(port), text)
    return int(found[1] or 0) + 1 if found else 0


def device_module(rtl: Rtl, sources: Sequence[Path]) -> str:
    """The module's text, around the top module, which one of the sources holds."""
    text = next(text for text in map(Path.read_text, sources) if re.search(rf"\bmodule\s+{rtl.top}\b", text))
    buses = [*([] if rtl.registers is None else [rtl.registers]), *rtl.memories]
    if [bus.bus for bus in buses] != ["apb", "axi4"]:
        seen = " and ".join(bus.bus for bus in buses) or "none"
        raise UaccelError(f"{rtl.folder}: the buses are {seen}; the chip has room for one apb and one axi4")
    registers, memory = _ports(rtl, text, buses[0], REGISTERS["apb"]), _ports(rtl, text, buses[1], MEMORY["axi4"])
    width = width_of(text, memory["rdata"])
    inside = {"arsize": "", "arburst": "", "awsize": "", "awburst": "", "wlast": ""}
    words = {signal: inside.get(signal, signal) for signal in memory}
    own = {rtl.clock: "clk", rtl.reset: "reset" if rtl.reset_active else "~reset"}
    own |= {port: signal for signal, port in registers.items()}
    own |= {port: words[signal] for signal, port in memory.items()}
    kept = [signal for signal in memory if signal not in inside]
    wires = "".join(f"    wire [{width_of(text, memory[signal]) - 1}:0] {signal};\n" for signal in kept)
    missing = "".join(f", .{signal}({value})" for signal, value in _missing(memory, width).items())
    other = ("clk", "reset", *kept, *WORDS)
    ready = "" if "pready" in registers else "    assign pready = 1;\n"
    numbers = ", ".join(f".{key}({value})" for key, value in rtl.parameters.items())
    return (
        f"/* Written by uaccel: {rtl.top} beside the core. */\n"
        f"module {MODULE} (input clk, reset, psel, penable, pwrite, input [15:0] paddr, input [31:0] pwdata,\n"
        "    output [31:0] prdata, output pready, output asks, we, output [29:0] adr, output [31:0] given,\n"
        "    output [3:0] sel, input ack, refused, input [31:0] word);\n"
        f"{wires}{ready}"
        f"    {rtl.top} {f'#({numbers}) ' if numbers else ''}device ({_connected(own)});\n"
        f"    axi4_words #({width // 8}) memory ({_connected({name: name for name in other})}{missing});\n"
        "endmodule\n"
    )


def _ports(rtl: Rtl, text: str, bus: Bus, adapter: Adapter) -> dict[str, str]:
    """Those of the bus that the module has, by the bus's own names."""
    ports = {signal: bus.ports.get(signal, bus.prefix + signal) for signal in adapter.all}
    there = {signal: port for signal, port in ports.items() if width_of(text, port)}
    for signal in adapter.signals:
        if signal not in there:
            raise UaccelError(
                f"{rtl.folder}: {rtl.top} declares no port {ports[signal]}, which is {signal} of its {bus.bus}; "
                "wanted one declaration a port; correct 'prefix' or 'ports' in rtl.toml"
            )
    return there


def _missing(memory: dict[str, str], width: int) -> dict[str, str]:
    """What the other side is told in place of signals that the master does not have."""
    values = {"arid": "8'd0", "awid": "8'd0", "wstrb": f"{{{width // 8}{{1'b1}}}}"}
    return {signal: value for signal, value in values.items() if signal not in memory}


def _connected(ports: dict[str, str]) -> str:
    return ", ".join(f".{port}({signal})" for port, signal in ports.items())
