"""RTL that ends the simulation, never settles, never answers, prints, or has no room for its waveform: the process goes
on, says so in a line, and what the registers read is no result."""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from uaccel.build.rtl.build import Variant, device_library
from uaccel.errors import ToolError
from uaccel.runner.request import is_cut_short
from uaccel.testing import DeviceLibrary

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("verilator") is None, reason="verilator is not installed"),
]
ENDER = """
module ender (
    input  wire        clk, reset, psel, penable, pwrite,
    input  wire [3:0]  paddr,
    input  wire [31:0] pwdata,
    output wire [31:0] prdata,
    output wire        pready
);
    reg [31:0] order;
    wire a, b;
    assign a = order == 4 && !b;
    assign b = a;
    assign prdata = order + {31'd0, a};
    assign pready = order != 5;
    always @(posedge clk) begin
        if (psel && penable && pwrite) order <= pwdata;
        if (!reset) case (order)
            1: $finish;
            2: $stop;
            3: $fatal(1, "the vendor's words");
            6: $display("what the RTL tells");
            default: ;
        endcase
        if (reset) order <= 0;
    end
endmodule
"""
RTL = 'top = "ender"\nreset = "reset"\n[registers]\nbus = "apb"\nwindow = 16\nstart = 8\n'
NO_RESULT = 0xFFFFFFFF


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ender")
    (folder / "rtl").mkdir()
    (folder / "rtl" / "ender.v").write_text(ENDER)
    (folder / "rtl" / "rtl.toml").write_text(RTL)
    return folder


@pytest.fixture(scope="module")
def device(folder: Path) -> DeviceLibrary:
    return DeviceLibrary.of_rtl("ender", folder)


def test_what_it_prints_is_no_output(device: DeviceLibrary, capfd: pytest.CaptureFixture[str]) -> None:
    """Standard output may be the line of a session, or one object of JSON."""
    device.reset()
    device.write(8, 6)
    device.tick(2)
    assert device.read(0) == 6
    told = capfd.readouterr()
    assert (told.out, told.err.splitlines()[0]) == ("", "what the RTL tells")


@pytest.fixture(scope="module", params=["vcd", "fst"])
def traced(request: pytest.FixtureRequest, folder: Path) -> Path:
    return device_library("ender", folder, Variant(request.param))


ENDS = {
    1: "the RTL ends the simulation ($finish) (",
    2: "the RTL stops the simulation (",
    3: "the RTL stops the simulation (",
    5: "an access of a register never ends",
    4: "did not converge",
}
"""The last leaves nothing that a reset could mend: the RTL has no state."""


@pytest.mark.parametrize("order", ENDS)
def test_the_process_outlives_it(order: int, device: DeviceLibrary, capfd: pytest.CaptureFixture[str]) -> None:
    """Twice: Verilator ends a process, as if all were well, at the second $finish."""
    for _ in range(1 if order == 4 else 2):
        device.reset()
        assert device.read(0) == 0
        device.write(8, order)
        device.tick(10)
        assert device.read(0) == NO_RESULT
        told = capfd.readouterr()
        assert told.out == ""
        assert ENDS[order] in told.err
        assert [line[:13] for line in told.err.splitlines()].count("ender: cycle ") == 1
    assert ("the vendor's words" in told.err) == (order == 3)


PROGRAM = """
import sys
from pathlib import Path
from uaccel.testing import DeviceLibrary
import uaccel.testing.device_library as device_library
device_library.device_library = lambda name, folder: Path(sys.argv[1])
device = DeviceLibrary.of_rtl("ender", Path())
device.tick(100_000)
device.model.close(device.model.state)
print(device.read(0))
"""


@pytest.mark.parametrize("room", [None, 1000])
def test_a_waveform_that_there_is_no_room_for(
    room: int | None, traced: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    kind = request.node.callspec.params["traced"]
    waves = tmp_path / f"x.{kind}"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(traced)],
        env={"PATH": "/bin:/usr/bin", "PYTHONPATH": ":".join(sys.path), "UACCEL_DEVICE_WAVES": f"ender={waves}"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room or resource.RLIM_INFINITY,) * 2),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    if room is None:
        assert (done.stdout, done.stderr) == ("0\n", "")
        assert kind == "vcd" or not is_cut_short(waves)
    elif kind == "vcd":
        assert done.stdout == f"{NO_RESULT}\n"
        assert "File too large" in done.stderr
    else:
        assert is_cut_short(waves), "its writer says nothing"


def test_verilog_that_does_not_compile(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "rtl", tmp_path / "rtl")
    (tmp_path / "rtl" / "ender.v").write_text(ENDER.replace("reg [31:0] order;", "reg [31:0] order"))
    with pytest.raises(ToolError, match=r"^the RTL of ender in .*: Verilator failed: %Error: .*ender.v:10:\d+: syntax"):
        device_library("ender", tmp_path)
