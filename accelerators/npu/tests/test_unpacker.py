"""The unpacker in Amaranth alone, in Amaranth's own simulator: what it gives of a code, and how fast."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("amaranth")

from amaranth.sim import Simulator

from uaccel.streams import packed

RTL = Path(__file__).resolve().parents[1] / "rtl"
NUMBERS = {"width": 16, "ports": 4, "activations": 65536, "weights": 49152, "sums": 16384, "queue": 32, "unpack": 2}
PATIENCE = 50_000


def unpacker(bus: int) -> Any:
    sys.path.insert(0, str(RTL))
    try:
        from npu_rtl.numbers import Machine
        from npu_rtl.unpacker import Unpacker
    finally:
        sys.path.remove(str(RTL))
    return Unpacker(Machine(bus=bus, **NUMBERS))


def unpacked(code: bytes, count: int, bus: int, seed: int | None) -> tuple[bytes, int]:
    """The bytes and the cycles. With a seed beats come, and bytes are taken, now and then."""
    unit, random = unpacker(bus), np.random.default_rng(seed)
    found, taken = bytearray(count), [0]

    async def bench(context: Any) -> None:
        async def cycle(**values: int) -> None:
            for name, value in values.items():
                context.set(getattr(unit, name), value)
            await context.tick()

        await cycle(start=1, count=count, taken=0, beat=0)
        context.set(unit.start, 0)
        at = 0
        for taken[0] in range(1, PATIENCE):
            piece = code[at : at + bus]
            goes = seed is None or random.random() < 0.5
            beat = bool(piece) and bool(context.get(unit.ready)) and goes
            takes = bool(context.get(unit.valid)) and (seed is None or random.random() < 0.7)
            if takes:
                first, mask, given = (context.get(port) for port in (unit.at, unit.mask, unit.bytes))
                for lane in range(NUMBERS["unpack"]):
                    if mask >> lane & 1:
                        found[first + lane] = given >> 8 * lane & 255
            context.set(unit.taken, int(takes))
            done = context.get(unit.done)
            last = int(at + bus >= len(code))
            await cycle(beat=int(beat), data=int.from_bytes(piece, "little"), bits=8 * len(piece), last=last)
            at += bus * beat
            if done:
                return
        raise AssertionError("it never ends")

    simulator = Simulator(unit.module)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return bytes(found), taken[0]


def drawn(size: int, spread: float) -> bytes:
    """With a byte now and then whose number has many ones."""
    values = np.clip(np.random.default_rng(size).normal(0, spread, size).round(), -128, 127).astype(np.int8)
    values[::50] = -128
    return values.tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("seed", [None, 1])
@pytest.mark.parametrize("bus", [2, 4, 8])
@pytest.mark.parametrize(("size", "spread"), [(1, 5), (31, 2), (33, 0.2), (64, 100), (100, 10), (777, 40)])
def test_it_gives_what_was_packed(size: int, spread: float, bus: int, seed: int | None) -> None:
    data = drawn(size, spread)
    assert unpacked(packed(data), size, bus, seed)[0] == data


def test_a_code_that_ends_early_goes_on_with_zeros() -> None:
    assert unpacked(b"\x89", 3, 8, None)[0] == b"\x01\xff\x00"


def test_what_is_behind_the_last_byte_is_left_away() -> None:
    assert unpacked(b"\x89\x03" + bytes(range(100)), 3, 8, None)[0] == b"\x01\xff\x02"


def test_it_gives_two_bytes_a_cycle() -> None:
    data = np.random.default_rng(0).integers(-2, 3, 640).astype(np.int8).tobytes()
    found, cycles = unpacked(packed(data), 640, 8, None)
    assert found == data
    assert 320 <= cycles <= 324
