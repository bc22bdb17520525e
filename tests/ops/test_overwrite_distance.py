"""How far behind its reading a kernel writes: the formula against a walk over its loops, byte by byte."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from uaccel.model import TensorInfo
from uaccel.ops.storage import row_overwrite_distance, windows_behind

Shape = tuple[int, int, int, int]
Step = tuple[list[int], list[int]]
"""Bytes that are read and then bytes that are written."""


def walk(
    data: Shape,
    output: Shape,
    kernel: int,
    strides: tuple[int, int],
    padding: tuple[int, int],
    parts: list[list[int]],
    *,
    copied: bool,
) -> Iterator[Step]:
    """Pixels by ``parts`` of an image; those of a part are copied first, or read again before each byte."""
    batch, height, width, channels = data
    _, _, out_width, out_channels = output

    def window(n: int, pixel: int) -> list[int]:
        top, left = (pixel // out_width) * strides[0] - padding[0], (pixel % out_width) * strides[1] - padding[1]
        pixels = [(top + dy, left + dx) for dy in range(kernel) for dx in range(kernel)]
        inside = [(y, x) for y, x in pixels if 0 <= y < height and 0 <= x < width]
        return [((n * height + y) * width + x) * channels + c for y, x in inside for c in range(channels)]

    for n in range(batch):
        for part in parts:
            read = [byte for pixel in part for byte in window(n, pixel)]
            first = n * output[1] * out_width
            written = [(first + pixel) * out_channels + c for pixel in part for c in range(out_channels)]
            if copied:
                yield read, written
            else:
                yield from ((read, [byte]) for byte in written)


def loses(steps: list[Step], distance: int) -> bool:
    """Whether something is read that was overwritten; the output begins ``distance`` bytes before the input."""
    gone: set[int] = set()
    for read, written in steps:
        if gone.intersection(byte + distance for byte in read):
            return True
        gone.update(written)
    return False


@settings(max_examples=150, deadline=None)
@given(values=st.data())
def test_nothing_is_lost_at_the_distance(values: st.DataObject) -> None:
    draw = values.draw
    kernel, strides = draw(st.integers(1, 3)), (draw(st.integers(1, 3)), draw(st.integers(1, 2)))
    padding = (draw(st.integers(0, 2)), draw(st.integers(0, 2)))
    data = (draw(st.integers(1, 2)), draw(st.integers(1, 5)), draw(st.integers(1, 5)), draw(st.integers(1, 4)))
    output = (data[0], draw(st.integers(1, 5)), draw(st.integers(1, 5)), draw(st.integers(1, 4)))
    pixels, together, copied = output[1] * output[2], draw(st.integers(1, 6)), draw(st.booleans())
    run = draw(st.sampled_from((0, output[2])))
    back = draw(st.booleans()) and together <= (run or pixels)
    parts = []
    for start in range(0, pixels, run or pixels):
        end = start + (run or pixels)
        firsts = [min(first, end - together) if back else first for first in range(start, end, together)]
        parts += [list(range(first, min(first + together, end))) for first in firsts]
    infos = TensorInfo(data, "int8"), TensorInfo(output, "int8")
    distance = windows_behind(*infos, strides, padding, together, run=run, copied=copied, back=back)
    steps = list(walk(data, output, kernel, strides, padding, parts, copied=copied))
    assert not loses(steps, distance)


@pytest.mark.parametrize(
    ("kernel", "together", "copied", "distance"),
    [
        pytest.param(1, 1, True, 0, id="pointwise, copied: in place"),
        pytest.param(1, 1, False, 4, id="pointwise: a pixel"),
        pytest.param(3, 2, True, 4 * 9, id="3x3, pairs: a row and a pixel"),
        pytest.param(3, 1, False, 4 * 10, id="3x3, pixel by pixel: one more"),
        pytest.param(3, 8, True, 4 * 8, id="3x3, a row copied: a row"),
        pytest.param(3, 16, False, 4 * 24, id="3x3, bands of two rows: three"),
    ],
)
def test_a_pixel_less_is_too_little(kernel: int, together: int, copied: bool, distance: int) -> None:
    shape, pad = (1, 8, 8, 4), kernel // 2
    info = TensorInfo(shape, "int8")
    assert windows_behind(info, info, (1, 1), (pad, pad), together, copied=copied) == distance
    parts = [list(range(first, min(first + together, 64))) for first in range(0, 64, together)]
    steps = list(walk(shape, shape, kernel, (1, 1), (pad, pad), parts, copied=copied))
    assert not loses(steps, distance)
    assert distance == 0 or loses(steps, distance - 4)


def test_rows_and_wider_elements() -> None:
    """Of 16 bits each; twice as many are written as are read."""
    data, output = TensorInfo((10, 4), "int16"), TensorInfo((10, 8), "int16")
    assert row_overwrite_distance(10, data, output) == 10 * 16 - 9 * 8
    assert row_overwrite_distance(10, data, output, copied=True) == 9 * 16 - 9 * 8
