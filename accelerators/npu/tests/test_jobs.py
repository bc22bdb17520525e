"""Random jobs on the model and on the RTL: errors and work behind them, restarts, memory that waits, interrupts."""

from __future__ import annotations

from typing import Any

import pytest

from support.device.npu_both import jobs
from support.device.npu_jobs import FAULTS
from uaccel.accelerator import Accelerator
from uaccel.testing import DeviceLibrary


@pytest.mark.slow
@pytest.mark.parametrize("stalls", range(4))
def test_random_jobs(
    npu: Accelerator, player: Any, needs_rtl: None, stalls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing stalls, memory answers at once."""
    if stalls:
        monkeypatch.setenv("UACCEL_DEVICE_STALLS", str(stalls))
    rtl = DeviceLibrary.of_rtl("npu", npu.folder)
    assert jobs(player.formats, player.device, rtl, stalls, 60) == {"none", *FAULTS}
