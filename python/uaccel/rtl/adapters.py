"""The buses that the bench speaks: which signals each has, and the C++ class that plays the other side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True)
class Adapter:
    """``optional``: signals that a module may leave out, and what they count as then. ``data``: the signal whose width
    is the bus's; of registers, all are 32 bits wide."""

    header: str
    template: str
    signals: tuple[str, ...]
    optional: Mapping[str, str] = field(default_factory=dict)
    data: str = ""
    arguments: tuple[str, ...] = ()
    """Of the template behind the ports: ``bytes``, ``latency``, ``shift``, or ``first`` and ``next`` of a flash."""

    @property
    def all(self) -> tuple[str, ...]:
        return (*self.signals, *self.optional)


_AXI4_READ = ("arvalid", "arready", "araddr", "arlen", "rvalid", "rready", "rdata", "rlast")
_AXI4_WRITE = ("awvalid", "awready", "awaddr", "awlen", "wvalid", "wready", "wdata", "wlast", "bvalid", "bready")
_AXI4_REST = {
    "arid": "0",
    "arsize": "SIZE",
    "arburst": "1",
    "rid": "0",
    "rresp": "0",
    "awid": "0",
    "awsize": "SIZE",
    "awburst": "1",
    "wstrb": "~0ull",
    "bid": "0",
    "bresp": "0",
}
_LITE = ("awvalid", "awready", "awaddr", "wvalid", "wready", "wdata", "bvalid", "bready")
_LITE_READ = ("arvalid", "arready", "araddr", "rvalid", "rready", "rdata")
_WISHBONE = ("cyc", "stb", "we", "adr", "dat_w", "dat_r", "ack")
_STREAM = ("tvalid", "tready", "tdata", "tlast")

REGISTERS: Final[Mapping[str, Adapter]] = {
    "axi4-lite": Adapter(
        "uaccel_rtl_axi4_lite.h",
        "Axi4LiteRegisters",
        (*_LITE, *_LITE_READ),
        {"wstrb": "0", "awprot": "0", "arprot": "0", "bresp": "0", "rresp": "0"},
    ),
    "apb": Adapter(
        "uaccel_rtl_apb.h",
        "ApbRegisters",
        ("psel", "penable", "pwrite", "paddr", "pwdata", "prdata"),
        {"pready": "1", "pslverr": "0"},
    ),
    "wishbone": Adapter(
        "uaccel_rtl_wishbone.h",
        "WishboneRegisters",
        _WISHBONE,
        {"sel": "0", "err": "0"},
        arguments=("shift",),
    ),
    "axi-stream": Adapter(
        "uaccel_rtl_stream.h",
        "StreamRegisters",
        (*(f"s_axis_{signal}" for signal in _STREAM), *(f"m_axis_{signal}" for signal in _STREAM)),
        {"s_axis_tkeep": "0", "m_axis_tkeep": "~0ull"},
        "s_axis_tdata",
        ("bytes",),
    ),
}
INSTRUCTIONS: Final = "instructions"
UNIT: Final = Adapter(
    "uaccel_rtl_unit.h",
    "UnitRegisters",
    (
        "cmd_valid",
        "cmd_ready",
        "cmd_payload_function_id",
        "cmd_payload_inputs_0",
        "cmd_payload_inputs_1",
        "rsp_valid",
        "rsp_ready",
        "rsp_payload_outputs_0",
    ),
)
"""Custom instructions, as the port of a core gives and takes them."""
MEMORY: Final[Mapping[str, Adapter]] = {
    "axi4": Adapter(
        "uaccel_rtl_axi4.h",
        "Axi4Memory",
        (*_AXI4_READ, *_AXI4_WRITE),
        _AXI4_REST,
        "rdata",
        ("bytes", "latency", "first", "next"),
    ),
    "wishbone": Adapter(
        "uaccel_rtl_wishbone.h",
        "WishboneMemory",
        _WISHBONE,
        {"sel": "~0ull", "err": "0"},
        "dat_r",
        ("bytes", "latency", "shift"),
    ),
    "port": Adapter(
        "uaccel_rtl_port.h",
        "PortMemory",
        ("valid", "ready", "addr", "rvalid", "rdata"),
        {"write": "0", "wdata": "0", "strobe": "~0ull", "error": "0"},
        "rdata",
        ("bytes", "latency"),
    ),
}
