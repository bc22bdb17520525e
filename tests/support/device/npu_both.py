"""Random jobs for npu's family on its model and on RTL, one behind the other as a driver gives them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from support.device.npu_jobs import FAULTS, Drawer, Job
from uaccel.testing import DeviceLibrary

CONTROL, STATUS, ERROR, ERROR_COMMAND, COMMANDS, LENGTH = 0x18, 0x1C, 0x20, 0x24, 0x28, 0x2C
CYCLES, BUSY_LOAD, BUSY_STORE, INTERRUPT, PLACE, BASE, LIMIT = 0x30, 0x38, 0x40, 0x44, 0x48, 0x4C, 0x50
NOBODY = 0xFFFFFFFF
START, RESET, ENABLE, CLEAR, STATUS_BUSY = 1, 2, 1, 2, 4
LONGEST = 2000
"""Of a job, in thousands of cycles."""
ENOUGH = 20_000
"""Cycles until a reset is over, and what was on its way has come."""


class Both:
    """The same jobs on two devices. ``random`` decides what happens to the RTL besides: nothing of it may be seen in a
    result."""

    def __init__(
        self, formats: Mapping[str, Any], model: DeviceLibrary, rtl: DeviceLibrary, seed: int, waits: bool
    ) -> None:
        self.model, self.rtl = model, rtl
        memories = [model.read(offset) for offset in (0x0C, 0x10, 0x14)]
        self.drawer = Drawer(formats, model.read(0x08) & 0xFF, memories, seed)
        self.random = np.random.default_rng(seed)
        self.memory: dict[int, bytearray] = {}
        self.waits, self.steps, self.given_up = waits, 0, False
        self.counted: dict[int, list[int]] = {}
        for device in (model, rtl):
            device.reset()

    def below(self, most: int) -> int:
        return int(self.random.integers(0, most))

    def step(self) -> str:
        """A job, every second one with a fault; now and then one before it that is given up. What it ended with."""
        self.steps += 1
        fault = FAULTS[self.steps // 2 % len(FAULTS)] if self.steps % 2 else ""
        self.given_up = self.below(4) == 0
        self.memory = self._give_up(self.drawer.job()) if self.given_up else {}
        job = self.drawer.job(fault, clear=self.given_up, beside=self.memory)
        wanted = self._play(self.model, job)
        cycles = self._cycles(self.model)
        if fault == "bits" and not wanted[0]:  # it reads what nobody knows
            self.rtl.tick(ENOUGH)
            self._cycles(self.rtl)
            return fault
        found = self._play(self.rtl, job)
        took = self._cycles(self.rtl)
        assert found[:2] == wanted[:2], (fault, found[:2], wanted[:2], job.text)
        if wanted[0]:
            return fault
        if not self.waits and not self.given_up:
            assert all(abs(a - b) <= 200 + b / 3 for a, b in zip(took, cycles, strict=True)), (took, cycles, job.text)
        for base, data in wanted[2].items():
            assert found[2][base] == data, (fault, hex(base), job.text)
        return "none"

    def _cycles(self, device: Any) -> list[int]:
        """Returns what the job and two engines took since the last time. The third engine waits for its ports, unlike
        the model's."""
        now = [device.read(offset) for offset in (CYCLES, BUSY_LOAD, BUSY_STORE)]
        before = self.counted.get(id(device), [0, 0, 0])
        self.counted[id(device)] = now
        return [a - b for a, b in zip(now, before, strict=True)]

    def _tell(self, device: Any, job: Job, keep: dict[int, bytearray]) -> None:
        device.memory.pieces = keep | {base: bytearray(data) for base, data in job.pieces.items()}
        for number, (base, limit) in job.places.items():
            for register, value in ((PLACE, number), (BASE, base), (LIMIT, limit)):
                device.write(register, value)
        device.write(COMMANDS, job.at)
        device.write(LENGTH, len(job.stream))

    def _play(self, device: Any, job: Job) -> tuple[int, int, dict[int, bytes]]:
        """Error, command, and memory."""
        is_rtl, tells = device is self.rtl, self.below(2) if device is self.rtl else 0
        self._tell(device, job, self.memory if is_rtl else {})
        device.write(INTERRUPT, tells * ENABLE | CLEAR)
        device.interrupts.clear()
        device.write(CONTROL, START)
        if is_rtl:
            self._wait(device, bool(tells))
        error, command = device.read(ERROR), device.read(ERROR_COMMAND)
        assert device.read(STATUS) == (3 if error else 1), job.text
        assert device.read(INTERRUPT) == (3 if tells else 2)
        device.write(STATUS, 0)
        assert device.read(STATUS) == 0
        return error, command, {base: bytes(device.memory.pieces[base]) for base in job.pieces}

    def _wait(self, device: Any, tells: bool) -> None:
        for _ in range(LONGEST):
            status = STATUS_BUSY if tells else device.read(STATUS)
            if status & 1 or device.interrupts[-1:] == [1]:
                return
            assert status == STATUS_BUSY or self.given_up
            device.tick(1000 if tells else self.below(1000))
        raise AssertionError(f"it never ends, or does not tell so: {device.interrupts}")

    def _give_up(self, job: Job) -> dict[int, bytearray]:
        """The RTL begins with a job, and gets a reset in the middle of it, or behind it. Returns its memory, which
        stays, as what is on its way comes to it. Now and then all comes before another job begins."""
        device = self.rtl
        self._tell(device, job, {})
        device.write(CONTROL, START)
        device.tick(self.below(1 << self.below(18)))
        device.write(COMMANDS, 4)
        device.write(LENGTH, 4)
        device.write(CONTROL, RESET)
        self.model.write(CONTROL, RESET)
        assert (device.read(ERROR), device.read(ERROR_COMMAND)) == (0, NOBODY), job.text
        if self.below(2):
            device.tick(ENOUGH)
            assert device.read(STATUS) == 0, (hex(device.read(STATUS)), job.text)
        return device.memory.pieces


def jobs(formats: Mapping[str, Any], model: DeviceLibrary, rtl: DeviceLibrary, seed: int, count: int) -> set[str]:
    """What they ended with."""
    both = Both(formats, model, rtl, seed, seed != 0)
    return {both.step() for _ in range(count)}
