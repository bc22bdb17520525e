"""Where a board gives the device an interrupt, the driver sleeps: the line is raised at the end of a job, no later."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.models.networks import OWN
from support.run.command import call_in


@pytest.mark.slow
def test_the_interrupt_is_enabled_before_the_start_and_taken_back_behind_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "trace.txt"
    monkeypatch.setenv("UACCEL_DEVICE_TRACE", str(trace))
    assert call_in(capfd)("run", OWN / "gesture.tflite", "-a", "npu", "--board", "host").status == 0
    writes = [line for line in trace.read_text().splitlines() if line.startswith("npu write ")]
    start = writes.index("npu write 0x0018 = 0x00000001")
    assert writes[start - 1] == "npu write 0x0044 = 0x00000003"
    assert writes[start + 1] == "npu write 0x0044 = 0x00000002"
