"""AXI-Stream through the bundled DMA: an engine between two streams, and bugs in it that random layers must find."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import uaccel
from uaccel.testing import DeviceLibrary, check_accelerator

FOLDER = Path(__file__).with_name("stream_dots")
pytestmark = pytest.mark.skipif(shutil.which("verilator") is None, reason="verilator is not installed")
SOURCE, SEND, TARGET, RECEIVE, RECEIVED, STATUS = 0x0C, 0x10, 0x14, 0x18, 0x1C, 0x08
MORE = 1 << 31


@pytest.mark.slow
@pytest.mark.parametrize("stalls", [None, 1])
def test_model_and_rtl_are_what_it_means(stalls: int | None) -> None:
    report = check_accelerator(FOLDER, layers=10, stalls=stalls)
    (row,) = report.operations
    assert row.cycles["rtl"] >= row.cycles["model"] * 0.9 > 0


BUGS = {
    "a lost back pressure": ("s_axis_tready = !m_axis_tvalid || m_axis_tready", "s_axis_tready = 1'b1", 1),
    "a dropped last beat": ("m_axis_tvalid <= 1;", "m_axis_tvalid <= !s_axis_tlast;", None),
    "a last beat that is not marked": ("m_axis_tlast <= s_axis_tlast;", "m_axis_tlast <= 0;", None),
    "a beat that is withdrawn": ("if (m_axis_tready)", "if (1'b1)", 1),
}


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS)
def test_bugs_are_found(bug: str, tmp_path: Path) -> None:
    right, wrong, stalls = BUGS[bug]
    folder = shutil.copytree(FOLDER, tmp_path / "stream_dots")
    file = folder / "rtl" / "stream_dots.v"
    text = file.read_text()
    assert text.count(right) == 1
    file.write_text(text.replace(right, wrong))
    with pytest.raises(uaccel.UaccelError) as raised:
        check_accelerator(folder, layers=10, stalls=stalls)
    assert "stream_dots is wrong: operation multiply, fully_connected (" in str(raised.value)
    assert "on the rtl: " in str(raised.value)


@pytest.mark.slow
def test_the_dma_by_its_registers() -> None:
    device = DeviceLibrary.of_rtl("stream_dots", FOLDER)
    x, sums = bytearray(range(8)), bytearray(8)
    device.memory.pieces = {0x1000: x, 0x2000: sums}
    assert (device.read(0), device.read(4)) == (0x414D4453, 1)
    device.write(TARGET, 0x2000)
    device.write(RECEIVE, 4)
    for offset, send in ((0, 4 | MORE), (4, 4)):  # one packet of two transfers
        device.write(SOURCE, 0x1000 + offset)
        device.write(SEND, send)
        device.tick(20)
        assert device.read(STATUS) == 2, "sent, and it waits for a sum"
    device.write(SOURCE, 0x1000)
    device.write(SEND, 8)
    device.tick(20)
    assert (device.read(STATUS), device.read(RECEIVED)) == (0, 4)
    assert int.from_bytes(sums[:4], "little") == sum(value * value for value in x)
    device.write(RECEIVE, 0)
    device.write(SOURCE, 0x3000)
    device.write(SEND, 4)
    device.tick(20)
    assert device.read(STATUS) == 4, "there is no memory"
    device.write(STATUS, 0)
    assert device.read(STATUS) == 0
    device.write(RECEIVE, 0)
    for _ in range(2):
        device.write(SOURCE, 0x1000)
        device.write(SEND, 4)
        device.tick(20)
    assert device.read(STATUS) == 8, "the packet is longer than the room"
