"""An accelerator's RTL beside a core in an FPGA: what the module around it connects, and what it refuses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from uaccel.build.rtl.description import read_rtl
from uaccel.build.rtl.wrapper import device_module, width_of
from uaccel.errors import UaccelError
from uaccel.util.files import data_dir

TOML = """
top = "dots"
reset = "rst_n"
[registers]
bus = "apb"
prefix = "s_"
window = 0x2C
start = 0x08
[memory]
bus = "axi4"
prefix = "m_"
ports = {rdata = "m_read"}
"""
REGISTERS = ("psel", "penable", "pwrite", "paddr", "pwdata", "prdata")
READS = ("arvalid", "arready", "araddr", "arlen", "rvalid", "rready", "rlast")
WRITES = ("awvalid", "awready", "awaddr", "awlen", "wvalid", "wready", "wdata", "wlast", "bvalid", "bready")
PORTS = ["clk", "rst_n", *(f"s_{name}" for name in REGISTERS), *(f"m_{name}" for name in (*READS, *WRITES))]
VERILOG = f"module dots ({', '.join(f'input {port}' for port in PORTS)}, input wire [15:0] m_read);\nendmodule\n"


def module_of(folder: Path, toml: str = TOML, verilog: str = VERILOG) -> str:
    (folder / "rtl").mkdir()
    (folder / "rtl" / "rtl.toml").write_text(toml)
    (folder / "rtl" / "dots.v").write_text(verilog)
    return device_module(read_rtl(folder), [folder / "rtl" / "dots.v"])


def test_ports_are_connected_by_their_names(tmp_path: Path) -> None:
    text = module_of(tmp_path)
    for connection in ("clk(clk)", "rst_n(~reset)", "s_prdata(prdata)", "m_read(rdata)", "m_wlast()"):
        assert f".{connection}" in text
    assert "axi4_words #(2) memory" in text
    assert "wire [15:0] rdata;" in text
    assert "assign pready = 1;" in text
    assert ".arid(8'd0), .awid(8'd0), .wstrb({2{1'b1}})" in text


def test_a_port_that_the_module_does_not_declare(tmp_path: Path) -> None:
    with pytest.raises(UaccelError) as caught:
        module_of(tmp_path, verilog=VERILOG.replace("m_arlen", "arlen"))
    assert str(caught.value) == (
        f"{tmp_path}/rtl: dots declares no port m_arlen, which is arlen of its axi4; "
        "wanted one declaration a port; correct 'prefix' or 'ports' in rtl.toml"
    )


def test_buses_for_which_the_chip_has_no_room(tmp_path: Path) -> None:
    with pytest.raises(UaccelError) as caught:
        module_of(tmp_path, TOML.replace('"apb"', '"wishbone"'))
    assert str(caught.value) == (
        f"{tmp_path}/rtl: the buses are wishbone and axi4; the chip has room for one apb and one axi4"
    )


def test_widths() -> None:
    text = "module a (input wire clk, output reg [7:0] b, c); input [31:0] \\d ; input e;"
    assert [width_of(text, port) for port in ("clk", "b", "c", "e", "f")] == [1, 8, 0, 1, 0]


def test_the_module_has_the_ports_of_the_chip_without_one() -> None:
    example = data_dir("accelerators").parent / "examples" / "ulx3s"
    connected = (example / "chip.v").read_text().partition("uaccel_device accelerator (")[2].partition(");")[0]
    names = re.findall(r"\.(\w+)\(", connected)
    stub = (example / "no_device.v").read_text()
    assert names
    assert all(width_of(stub, name) or re.search(rf", {name}\b", stub) for name in names)
