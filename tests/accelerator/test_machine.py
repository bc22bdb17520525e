"""What machines with memories share: sizes to try, the promising first, engines in time, what windows reach."""

from __future__ import annotations

import pytest

from uaccel.accelerator.machine import BusySpan, Dma, Engines, Shape, SlidingWindow, Tiling, extents, promising
from uaccel.util.text import pieces, round_up


@pytest.mark.parametrize("whole", [1, 2, 7, 12, 96, 1000])
def test_all_sizes_of_equal_pieces(whole: int) -> None:
    assert extents(whole) == sorted({pieces(whole, count) for count in range(1, whole + 1)}, reverse=True)


def test_few_sizes_of_equal_pieces() -> None:
    assert extents(100, sparsely=True) == [100, 50, 34, 25, 17, 12, 8, 6, 4, 3, 2, 1]
    assert set(extents(1000, sparsely=True)) < set(extents(1000))


def test_pieces_of_an_output() -> None:
    assert Tiling(4, 5, 1, 1, True).pixel_pieces(Shape(2, 9, 10, 3)) == 2 * 3 * 2
    assert (round_up(9, 4), round_up(8, 4), pieces(9, 4)) == (12, 8, 3)


def test_the_cheapest_that_can_be_placed_come_first_and_no_other_is_placed() -> None:
    asked: list[int] = []

    def place(option: int) -> str | None:
        asked.append(option)
        return None if option == 1 else f"at {option}"

    found = promising([3, 1, 5, 2], lambda option: option * 10, place)
    assert next(found) == (20, "at 2")
    assert asked == [1, 2]
    assert list(found) == [(30, "at 3"), (50, "at 5")]


def test_engines_keep_their_order_and_wait_for_what_they_are_told() -> None:
    engines = Engines()
    loaded = engines.run("load", 10, ())
    assert engines.run("load", 5, ()) == BusySpan(10, 15)
    computed = engines.run("compute", 20, (loaded.end, 12))
    assert engines.run("store", 1, (computed.end,)) == BusySpan(32, 33)
    timeline = engines.timeline
    assert (timeline.total, timeline.commands) == (33, 4)
    assert timeline.busy == {"load": 15, "compute": 20, "store": 1}


def test_a_transfer_takes_its_start_and_whole_cycles_for_every_row() -> None:
    assert Dma(bytes_per_cycle=4, start_up=20).cycles(9, 3) == 20 + 3 * 3


def test_what_outputs_depend_on_with_and_without_padding() -> None:
    window = SlidingWindow((3, 3), strides=(2, 1), dilation=(2, 1), padding=(2, 0))
    assert window.extent(0, 3) == 2 * 2 + 2 * 2 + 1
    assert window.covered(0, range(3), 20) == range(7)
    assert window.covered(1, range(2, 4), 20) == range(2, 6)


@pytest.mark.parametrize(
    ("extent", "kernel", "stride", "dilation", "same"),
    [(5, 3, 2, 1, (1, 1)), (4, 3, 2, 1, (0, 1)), (5, 1, 3, 1, (0, 0)), (6, 3, 1, 2, (2, 2)), (1, 4, 1, 1, (1, 2))],
)
def test_same_padding_gives_a_window_for_each_stride(
    extent: int, kernel: int, stride: int, dilation: int, same: tuple[int, int]
) -> None:
    """The numbers are worked out by hand: there are as many windows as strides begin inside."""
    window = SlidingWindow((kernel,), (stride,), (dilation,), same)
    assert window.same([extent]) == same
    assert window.counts([extent]) == [len(range(0, extent, stride))]
    last = (len(range(0, extent, stride)) - 1) * stride + (kernel - 1) * dilation - same[0]
    assert window.place(0, window.counts([extent])[0] - 1, kernel - 1) == last
