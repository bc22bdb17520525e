"""One device for all tests of a process: building it takes a second."""

from __future__ import annotations

import pytest

from support.device.device import Device


@pytest.fixture(scope="session")
def device() -> Device:
    return Device()
