"""What DMA is told moves exactly the box, byte for byte."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uaccel.accelerator.streams.machine import Move, move_of
from uaccel.streams import Box, Placed, Shape, Window, dense, inside


def part(draw: st.DrawFn, whole: int) -> range:
    begin = draw(st.integers(0, whole - 1))
    return range(begin, draw(st.integers(begin + 1, whole)))


@st.composite
def boxes(draw: st.DrawFn) -> tuple[Shape, Box]:
    shape = Shape(*(draw(st.integers(1, 5)) for _ in range(4)))
    box = Box(
        draw(st.integers(0, shape.images - 1)),
        part(draw, shape.rows),
        part(draw, shape.columns),
        part(draw, shape.channels),
    )
    return shape, box


def moved(move: Move, memory: bytes, offset: int, chip: bytearray, address: int) -> None:
    for plane in range(move.planes):
        for run in range(move.runs):
            source = offset + plane * move.strides[1] + run * move.strides[0]
            target = address + plane * move.pitches[1] + run * move.pitches[0]
            chip[target : target + move.run] = memory[source : source + move.run]


@given(boxes(), st.booleans())
def test_a_move_carries_the_box(case: tuple[Shape, Box], whole: bool) -> None:
    shape, box = case
    tensor = np.random.default_rng(0).integers(1, 256, (shape.images, shape.rows, shape.columns, shape.channels))
    memory = tensor.astype(np.uint8).tobytes()
    placed = inside(7, shape, box) if whole else dense(7, box)
    chip = bytearray(7 + shape.bytes)
    moved(move_of(shape, placed), memory, shape.offset(box), chip, placed.address)
    expected = tensor[box.image, box.rows.start : box.rows.stop, box.columns.start : box.columns.stop]
    expected = expected[..., box.channels.start : box.channels.stop]
    rows, columns, channels = np.meshgrid(*(np.arange(n) for n in expected.shape), indexing="ij")
    at = placed.address + rows * placed.row_pitch + columns * placed.pixel_pitch + channels
    assert (np.frombuffer(bytes(chip), np.uint8)[at] == expected).all()
    assert sum(byte != 0 for byte in chip) == box.bytes
    assert placed.end == at.max() + 1
    assert move_of(shape, placed).bytes == box.bytes


@pytest.mark.parametrize(
    ("box", "expected"),
    [
        (Box(0, range(4), range(6), range(8)), Move(192)),
        (Box(0, range(1, 3), range(6), range(8)), Move(96)),
        (Box(0, range(1, 3), range(2, 5), range(8)), Move(24, 2, 1, (48, 0), (24, 0))),
        (Box(0, range(1, 3), range(2, 5), range(4)), Move(4, 3, 2, (8, 48), (4, 12))),
        (Box(0, range(1, 2), range(2, 5), range(4)), Move(4, 3, 1, (8, 0), (4, 0))),
        (Box(0, range(4), range(2, 3), range(8)), Move(8, 4, 1, (48, 0), (8, 0))),
    ],
)
def test_runs_that_continue_each_other_are_one(box: Box, expected: Move) -> None:
    assert move_of(Shape(1, 4, 6, 8), dense(0, box)) == expected


def test_a_placed_box_ends_behind_its_last_byte() -> None:
    assert Placed(10, 100, 20, Box(0, range(2), range(3), range(5))).end == 10 + 100 + 40 + 5


@given(st.integers(1, 5), st.integers(1, 4), st.integers(1, 3), st.integers(0, 6), st.integers(1, 9), st.integers(0, 8))
def test_a_window_covers_what_its_taps_read(
    kernel: int, stride: int, dilation: int, padding: int, extent: int, start: int
) -> None:
    window = Window((kernel, 1), (stride, 1), (dilation, 1), (padding, 0))
    outputs = range(start, start + 3)
    taps = {o * stride - padding + tap * dilation for o in outputs for tap in range(kernel)}
    read = {row for row in taps if 0 <= row < extent}
    covered = window.covered(0, outputs, extent)
    assert 0 <= covered.start < covered.stop <= extent
    assert read <= set(covered)
    if read and window.dilation[0] == 1 and stride <= kernel:
        assert read == set(covered)
