"""Verilated devices at work: a bus that no bundled device speaks, waveforms, coverage, devices that fail."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.run.command import Call
from uaccel.runner.request import is_cut_short
from uaccel.testing import DeviceLibrary
from uaccel.util.files import models

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("verilator") is None, reason="verilator is not installed"),
]
STREAM = Path(__file__).with_name("stream_dots")
DOUBLER = """
module doubler (
    input  wire        clk, rst,
    input  wire        s_cyc, s_stb, s_we,
    input  wire [2:0]  s_adr,
    input  wire [31:0] s_dat_w,
    output reg  [31:0] s_dat_r,
    output reg         s_ack,
    output wire        m_cyc, m_stb, m_we,
    output wire [29:0] m_adr,
    output wire [31:0] m_dat_w,
    input  wire [31:0] wb_dat_i,
    input  wire        m_ack, m_err,
    output wire        irq
);
    reg [31:0] at, word, status;
    reg [1:0]  state;
    assign m_cyc = state != 0;
    assign m_stb = m_cyc;
    assign m_we = state == 2;
    assign m_adr = at[31:2];
    assign m_dat_w = 2 * word;
    assign irq = status != 0;
    always @(posedge clk) begin
        s_ack <= s_cyc && s_stb && !s_ack;
        s_dat_r <= s_adr == 0 ? 32'h444F5542 : s_adr == 3 ? status : at;
        if (s_cyc && s_stb && s_we && !s_ack) case (s_adr)
            2: {state, status} <= {2'd1, 32'd0};
            4: at <= s_dat_w;
            default: ;
        endcase
        if (m_ack && state == 1) {word, state} <= {wb_dat_i, 2'd2};
        if (m_ack && state == 2) {state, status} <= {2'd0, 32'd1};
        if (m_err) {state, status} <= {2'd0, 32'd5};
        if (rst) {state, status, s_ack} <= 0;
    end
endmodule
"""
RTL = """
top = "doubler"
interrupt = "irq"
[registers]
bus = "wishbone"
prefix = "s_"
words = true
window = 0x14
start = 0x08
[memory]
bus = "wishbone"
prefix = "m_"
words = true
ports = {dat_r = "wb_dat_i"}
"""


GRANTS = ctypes.CFUNCTYPE(
    ctypes.c_bool, ctypes.c_void_p, *(ctypes.c_void_p, *[ctypes.c_uint32] * 2, ctypes.c_bool, ctypes.c_uint64)
)


def doubler(folder: Path) -> DeviceLibrary:
    (folder / "rtl").mkdir()
    (folder / "rtl" / "doubler.v").write_text(DOUBLER)
    (folder / "rtl" / "rtl.toml").write_text(RTL)
    return DeviceLibrary.of_rtl("doubler", folder)


def test_where_memory_is_shared_a_beat_waits_until_it_is_granted(tmp_path: Path) -> None:
    device, asked = doubler(tmp_path), []

    def grants(_context: int, _master: int, address: int, count: int, last: bool, _ahead: int) -> bool:
        asked.append((address, count, last))
        return len(asked) % 5 == 0

    kept = GRANTS(grants)
    device.bus.grants = ctypes.cast(kept, ctypes.c_void_p)
    memory = bytearray((21, 0, 0, 0))
    device.memory.pieces = {0x1000: memory}
    device.write(0x10, 0x1000)
    device.write(0x08, 1)
    device.tick(9)
    assert (device.read(0x0C), memory[0]) == (0, 21)
    device.tick(30)
    assert (device.read(0x0C), memory[0]) == (1, 42)
    assert asked == [(0x1000, 4, True)] * 10


@pytest.mark.parametrize("seed", [None, 3])
def test_wishbone(tmp_path: Path, seed: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if seed is not None:
        monkeypatch.setenv("UACCEL_DEVICE_STALLS", str(seed))
    device = doubler(tmp_path)
    assert device.read(0) == 0x444F5542
    memory = bytearray((7, 0, 0, 0, 21, 0, 0, 0))
    device.memory.pieces = {0x1000: memory}
    for address, wanted in ((0x1004, 1), (0x2000, 5)):
        device.write(0x10, address)
        device.write(0x08, 1)
        assert device.read(0x0C) == 0
        device.tick(200)
        assert device.read(0x0C) == wanted
    assert (memory[0], memory[4]) == (7, 42)
    assert device.interrupts == [1, 0, 1]


def test_a_waveform_ends_well_where_the_run_fails(tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UACCEL_DEVICE_FAULT", "nuc_fpga:hang@2")
    waves = tmp_path / "broken.vcd"
    done = call("run", models()["gesture"], "-a", "nuc_fpga", "--device", "rtl", "--waves", waves)
    assert done.status == 4
    assert "the device did not finish" in done.err
    lines = waves.read_text().splitlines()
    assert "$enddefinitions $end" in lines
    assert sum(line.startswith("#") for line in lines) > 1000


@pytest.mark.parametrize(("number", "to_all"), [(signal.SIGINT, True), (signal.SIGTERM, False)])
def test_a_waveform_ends_well_where_the_run_is_interrupted(number: int, to_all: bool, tmp_path: Path) -> None:
    """By Control-C, which all processes get, and by who ends uaccel alone."""
    waves = tmp_path / "waves.fst"
    command = [sys.executable, "-m", "uaccel", "run", str(models()["gesture"]), "-a", str(STREAM), "--repeat", "999999"]
    with subprocess.Popen(
        [*command, "--device", "rtl", "--waves", str(waves)], start_new_session=True, stderr=subprocess.PIPE, text=True
    ) as run:
        while not waves.exists() and run.poll() is None:
            time.sleep(0.1)
        time.sleep(1)
        (os.killpg if to_all else os.kill)(run.pid, number)
        assert run.stderr is not None
        said = run.stderr.read()
    assert run.returncode == 128 + number, said
    assert not is_cut_short(waves)
    assert [file.name for file in tmp_path.iterdir()] == [waves.name]


@pytest.mark.parametrize("text", ["soon", "-1", "4294967296"])
def test_a_seed_of_stalls_that_is_none(text: str, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UACCEL_DEVICE_STALLS", text)
    done = call("run", models()["gesture"], "-a", STREAM, "--device", "rtl")
    assert done.status == 4
    assert f"stream_dots: UACCEL_DEVICE_STALLS is '{text}'; wanted a seed from 0 to 999999999" in done.err


def test_a_layer_from_the_trace_to_the_waveform(tmp_path: Path, call: Call) -> None:
    waves, trace = tmp_path / "layer.vcd", tmp_path / "trace.json"
    options = ["--device", "rtl", "--waves", waves, "--waves-layer", "fully_connected_7", "--trace", trace]
    done = call("run", models()["gesture"], "-a", "nuc_fpga", *options)
    assert done.status == 0, done.err
    events = json.loads(trace.read_text())["traceEvents"]
    (job,) = [e["args"] for e in events if e.get("cat") == "fully_connected_7" and "from" in e["args"]]
    times = [int(line[1:]) for line in waves.read_text().splitlines() if line.startswith("#")]
    assert times[0] // 1000 <= job["from"] < job["to"] <= times[-1] // 1000
    assert times[0] // 1000 > job["from"] - 400, "the layers before it are left out"


def test_a_layer_that_is_not_there(tmp_path: Path, call: Call) -> None:
    options = ["--device", "rtl", "--waves", tmp_path / "x.vcd", "--waves-layer", "fully_connected"]
    done = call("run", models()["gesture"], "-a", "nuc_fpga", *options)
    assert done.status == 1
    assert "--waves-layer fully_connected: no layer is called so; did you mean 'fully_connected_7'?" in done.err


def test_coverage(tmp_path: Path, call: Call) -> None:
    done = call("run", models()["gesture"], "-a", "nuc_fpga", "--device", "rtl", "--coverage", tmp_path / "seen")
    assert done.status == 0, done.err
    files = [*(tmp_path / "seen").glob("nuc_fpga-*.dat")]
    assert files
    assert "nuc_engine.v" in files[0].read_text()


def test_an_accelerator_without_rtl(call: Call) -> None:
    done = call("run", models()["gesture"], "-a", "vanilla", "--device", "rtl", "--allow-none")
    assert done.status == 1
    assert "vanilla has no RTL: no rtl/rtl.toml in its folder; leave --device rtl away (" in done.err
