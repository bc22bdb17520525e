"""Constants as a code: read back bit by bit as its description says, and as long as was said."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from uaccel.accelerator.streams.machine import code_of, packed


def unpacked(code: bytes, count: int) -> bytes:
    bits = (byte >> bit & 1 for byte in code for bit in range(8))
    found: list[int] = []
    while len(found) < count:
        kind = number(bits, 3)
        for _ in range(min(32, count - len(found))):
            if kind == 7:
                found.append(number(bits, 8))
                continue
            high = 0
            while next(bits):
                high += 1
            whole = high * 2**kind + number(bits, kind)
            found.append((whole // 2 if whole % 2 == 0 else -(whole + 1) // 2) % 256)
    assert sum(bits) == 0
    return bytes(found)


def number(bits: Iterator[int], count: int) -> int:
    return sum(next(bits) << bit for bit in range(count))


@settings(max_examples=40, deadline=None)
@given(st.binary(min_size=1, max_size=200))
def test_any_bytes_come_back(data: bytes) -> None:
    code = packed(data)
    assert unpacked(code, len(data)) == data
    assert len(code) == code_of(data, 64).size


@pytest.mark.parametrize(("spread", "most"), [(1, 0.32), (8, 0.68), (40, 0.97), (1000, 1.02)])
def test_small_numbers_take_less(spread: float, most: float) -> None:
    """A random byte never takes more than 3 bits in 32 bytes beside itself."""
    drawn = np.random.default_rng(1).normal(0, spread, 4096).round().astype(np.int64)
    data = (drawn % 256).astype(np.uint8).tobytes()
    assert code_of(data, 64).size <= most * len(data)
