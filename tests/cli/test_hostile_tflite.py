"""TFLite files that ask for too much: one line says what is wrong, and no memory was taken for it."""

from __future__ import annotations

import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.models.tflite_writer import ModelBuilder
from support.run.command import Call

MEMORY = 64 << 20
MANY = (
    "import of m.tflite would make more than 268435456 bytes of constants that are not in the file; "
    "firmware has no room for them"
)
ONE = 'cannot import m.tflite: 1 unsupported: operator 0 {} ("y"): ' + MANY


def computed(op: str, shape: tuple[int, ...], *constants: Any) -> bytes:
    """What is computed of constants, at import."""
    builder = ModelBuilder()
    held = [
        builder.constant(f"c{number}", value, scale=0.5 if value.dtype == np.int8 else None)
        for number, value in enumerate(map(np.asarray, constants))
    ]
    y = builder.tensor("y", shape, "int8", scale=0.5)
    builder.op(op, held, [y])
    return builder.build(y)


def relu(*shape: int, count: int = 1) -> bytes:
    builder = ModelBuilder()
    last = builder.input("x", shape, "int8", scale=0.5)
    for number in range(count):
        source, last = last, builder.tensor(f"y{number}", shape, "int8", scale=0.5)
        builder.op("RELU", [source], [last])
    return builder.build(last)


def claiming(data: bytes, entries: bytes, count: int, *, size: int) -> bytes:
    """The vector of these bytes says that it has another length."""
    before = struct.pack("<I", len(entries) // size) + entries
    assert data.count(before) >= 1
    return data.replace(before, struct.pack("<I", count) + entries)


SHAPE = (1, 23, 29)
ENTRIES = np.asarray(SHAPE, np.int32).tobytes()
WEIGHTS = bytes(range(100, 112))
SIZES = np.asarray([1 << 14, 1 << 14], np.int32)
SMALL = np.ones((1, 1), np.int8)
HUGE = (1 << 14, 1 << 14)


def added() -> bytes:
    builder = ModelBuilder()
    x = builder.input("x", (12,), "int8", scale=0.5)
    w = builder.constant("w", np.frombuffer(WEIGHTS, np.int8), scale=0.5)
    y = builder.tensor("y", (12,), "int8", scale=0.5)
    builder.op("ADD", [x, w], [y])
    return builder.build(y)


CASES: dict[str, tuple[Callable[[], bytes], str]] = {
    "tiles": (lambda: computed("TILE", HUGE, SMALL, SIZES), ONE.format("TILE")),
    "a broadcast": (lambda: computed("BROADCAST_TO", HUGE, SMALL, SIZES), ONE.format("BROADCAST_TO")),
    "a filled tensor": (lambda: computed("FILL", HUGE, SIZES, np.int8(1)), ONE.format("FILL")),
    "an outer sum": (
        lambda: computed("ADD", (20_000, 20_000), np.ones((20_000, 1), np.int8), np.ones((1, 20_000), np.int8)),
        ONE.format("ADD"),
    ),
    "many axes": (
        lambda: relu(*[1] * 40),
        'm.tflite is damaged or truncated ({} bytes): tensor "x" has 40 dimensions, and at most 32 are read; '
        "copy or convert the model again",
    ),
    "many operators": (
        lambda: relu(1, 4, count=10_001),
        "m.tflite has more than 10000 nodes, those of a function counted at each call of it; "
        "cut the model, or compile its parts",
    ),
    "a shape longer than the file": (
        lambda: claiming(relu(*SHAPE), ENTRIES, (1 << 31) - 1, size=4),
        "m.tflite is damaged or truncated ({} bytes): a vector claims 2147483647 entries; "
        "copy or convert the model again",
    ),
    "a buffer longer than the file": (
        lambda: claiming(added(), WEIGHTS, (1 << 31) - 1, size=1),
        "m.tflite is damaged or truncated ({} bytes): a vector claims 2147483647 entries; "
        "copy or convert the model again",
    ),
    "elements beyond 32 bits": (
        lambda: relu(1 << 16, 1 << 16, 1 << 16),
        'm.tflite: tensor "x" (int8 [65536,65536,65536]) has 281474976710656 bytes; at most 2147483647 can be compiled',
    ),
}


SLOW = {"many operators"}
each_case = [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in CASES]


@pytest.mark.parametrize("name", each_case)
def test_what_asks_for_too_much(name: str, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    make, words = CASES[name]
    data = make()
    monkeypatch.chdir(tmp_path)
    Path("m.tflite").write_bytes(data)
    call("compile", "m.tflite", "-o", "out.tar")  # what is imported meanwhile does not count
    tracemalloc.start()
    try:
        done = call("compile", "m.tflite", "-o", "out.tar")
        assert tracemalloc.get_traced_memory()[1] < MEMORY
    finally:
        tracemalloc.stop()
    assert (done.status, done.complaint) == (1, words.format(len(data)))
