"""Whatever the layer and the machine: commands stay in their memories and tensors, and store each output byte once."""

from __future__ import annotations

from itertools import accumulate, pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from uaccel.accelerator.machine import BusySpan, Shape, SlidingWindow, Tiling, Timeline
from uaccel.accelerator.tensor import Dma, Machine, Memory
from uaccel.accelerator.tensor.lowering import best, candidates, estimate, function_text, is_empty, time_of, uses
from uaccel.accelerator.tensor.machine import TensorLayer, Tiled
from uaccel.accelerator.tensor.schedule import Issued, constants_bytes, run, schedule

KIB = 1024


def machine(size: int = 2 * KIB, banks: int = 2, alignment: int = 1, columns: int = 8, depth: int = 8) -> Machine:
    return Machine(
        "unit",
        columns,
        depth,
        Memory(size, banks, alignment),
        Memory(size, banks, columns * depth),
        Memory(size, banks, 4 * columns),
        Memory(size, banks, 4 * columns),
        Dma(8, 16),
        Dma(8, 16),
        8,
    )


MACHINES = {
    "two banks": machine(),
    "one bank": machine(banks=1),
    "aligned": machine(4 * KIB, 2, 16),
    "wide": machine(8 * KIB, 2, 4, 16, 16),
    "narrow": machine(KIB, 1, 1, 2, 4),
}


@st.composite
def layers(draw: st.DrawFn) -> TensorLayer:
    def pair(low: int, high: int) -> tuple[int, int]:
        return draw(st.integers(low, high)), draw(st.integers(low, high))

    kernel, strides, dilation, padding, extra = pair(1, 4), pair(1, 3), pair(1, 2), pair(0, 3), pair(0, 3)
    outputs = pair(1, 12)
    inside = [(outputs[i] - 1) * strides[i] + (kernel[i] - 1) * dilation[i] + 1 - padding[i] - extra[i] for i in (0, 1)]
    height, width = (max(1, extent) for extent in inside)
    batch, groups, depth, channels = (draw(st.integers(1, high)) for high in (2, 2, 40, 40))
    input_, output = Shape(batch, height, width, groups * depth), Shape(batch, *outputs, groups * channels)
    return TensorLayer(input_, output, SlidingWindow(kernel, strides, dilation, padding), groups)


def all_candidates_or_few(machine: Machine, layer: TensorLayer) -> list[Tiled]:
    """Tilings of every kind, not the best one alone."""
    found = list(candidates(machine, layer))
    return found[:: max(1, len(found) // 6)]


@pytest.mark.slow
@pytest.mark.parametrize("name", MACHINES)
@given(layer=layers())
@example(layer=TensorLayer(Shape(1, 1, 1, 16), Shape(1, 1, 1, 2), SlidingWindow(), 2))  # Pixels as wide as the pitch.
@settings(max_examples=15, deadline=None)
def test_commands_stay_in_bounds_and_store_each_byte_once(name: str, layer: TensorLayer) -> None:
    for tiled in all_candidates_or_few(MACHINES[name], layer):
        weights, parameters = constants_bytes(tiled)
        sizes = {"input": layer.input.bytes, "weights": weights, "parameters": parameters}
        stored = np.zeros(layer.output.bytes, np.int32)
        window: dict[str, int] = {}
        for issued in run(schedule(tiled)):
            window = dict(issued.numbers) if issued.intrinsic == "window" else window
            if issued.intrinsic in ("window", "output") or is_empty(issued):
                continue
            assert_on_chip(tiled.machine, issued, window)
            if issued.intrinsic == "load":
                numbers = issued.numbers
                end = numbers["at"] + (numbers["rows"] - 1) * numbers["stride"] + numbers["bytes"]
                assert 0 <= numbers["at"] <= end <= sizes[issued.names["from"]], (tiled.tiling, issued)
            if issued.intrinsic == "store":
                numbers = issued.numbers
                for pixel in range(numbers["pixels"]):
                    at = numbers["at"] + pixel * numbers["stride"]
                    assert 0 <= at <= at + numbers["channels"] <= stored.size
                    stored[at : at + numbers["channels"]] += 1
        assert (stored == 1).all(), tiled.tiling


def assert_on_chip(machine: Machine, issued: Issued, window: dict[str, int]) -> None:
    for use in uses(machine, issued, window):
        memory: Memory = getattr(machine, use.memory)
        assert 0 <= use.offset <= use.offset + use.bytes <= memory.bytes, (issued, use)
        assert issued.intrinsic in ("load", "fill") or use.offset % memory.alignment == 0, (issued, use)


def test_time_by_hand() -> None:
    """Four pixels, eight channels in and out: three loads one after the other, the array, the store."""
    layer = TensorLayer(Shape(1, 1, 4, 8), Shape(1, 1, 4, 8), SlidingWindow())
    tiled = Tiled(machine(), layer, Tiling(1, 4, 1, 1, True))
    begins = list(accumulate((16 + 96 // 8, 16 + 64 // 8, 16 + 32 // 8, 8 + 4, 16 + 4), initial=0))
    load, total = begins[3], begins[5]
    time = time_of(tiled.machine, schedule(tiled))
    spans = tuple(BusySpan(begin, end) for begin, end in pairwise(begins))
    assert time == Timeline(spans, total, {"load": load, "compute": 8 + 4, "store": 16 + 4})


def test_two_banks_hide_transfers_that_one_bank_shows() -> None:
    """64 pixels in four pieces: with two banks all but the first load and the last store overlap with the array."""
    layer = TensorLayer(Shape(1, 1, 64, 64), Shape(1, 1, 64, 8), SlidingWindow())
    tiling = Tiling(1, 16, 1, 8, True)
    two, one = (time_of(m, schedule(Tiled(m, layer, tiling))).total for m in (machine(), machine(banks=1)))
    constants, load, multiply, store = (16 + 12) + (16 + 64), 16 + 16 * 64 // 8, 8 + 16 * 8, 16 + 16
    assert two == constants + 4 * max(load, multiply) + min(load, multiply) + store
    assert one == constants + 4 * (load + multiply) + store


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", MACHINES)
@given(layer=layers())
@settings(max_examples=6, deadline=None)
def test_the_search_finds_nearly_the_best(name: str, layer: TensorLayer) -> None:
    found = best(MACHINES[name], layer)
    times = [time_of(tiled.machine, schedule(tiled)).total for tiled in all_candidates_or_few(MACHINES[name], layer)]
    assert (found is None) == (not times)
    if found is not None:
        assert time_of(found.machine, schedule(found)).total <= 1.1 * min(times) + 50


@pytest.mark.slow
def test_the_estimate_is_near_the_time() -> None:
    layer = TensorLayer(Shape(1, 32, 32, 16), Shape(1, 32, 32, 32), SlidingWindow((3, 3), padding=(1, 1)))
    for tiled in all_candidates_or_few(machine(16 * KIB), layer):
        assert estimate(tiled) == pytest.approx(time_of(tiled.machine, schedule(tiled)).total, rel=0.2)


def test_the_text_of_a_layer() -> None:
    shape, window = Shape(1, 6, 5, 8), SlidingWindow((3, 3), padding=(1, 1))
    layer = TensorLayer(shape, shape, window, input_zero_point=-3, output_zero_point=4)
    tiled = Tiled(machine(), layer, Tiling(4, 5, 1, 1, True))
    assert function_text("unit_layer", tiled, ["In short.", "In two pieces."]) == TEXT


TEXT = """\
/* In short.
 * In two pieces. */
static int32_t unit_layer(const int8_t *input, const int8_t *weights, const int32_t *parameters,
    int8_t *output)
{
    unit_begin();
    unit_share(input, 240);
    unit_share(weights, 576);
    unit_share(parameters, 96);
    unit_share(output, 240);
    int32_t activations_at = 0;
    int32_t accumulators_at = 0;
    unit_output(4, -128, 127);
    unit_window(3, 1, 24, 56, 8, 56, 8);
    unit_load(UNIT_PARAMETERS, 0, 96, parameters, 0, 96, 1, 96);
    unit_load(UNIT_WEIGHTS, 0, 576, weights, 0, 576, 1, 576);
    for (int32_t row = 0; row < 6; row += 4) {
        const int32_t rows = 4 < 6 - row ? 4 : 6 - row;
        const int32_t top = row - 1;
        const int32_t all_in_rows = rows + 2;
        const int32_t first_top = top > 0 ? top : 0;
        const int32_t end_top = top + all_in_rows < 6 ? top + all_in_rows : 6;
        const int32_t in_rows = end_top - first_top > 0 ? end_top - first_top : 0;
        activations_at = 1024 - activations_at; /* the other bank */
        if (in_rows * 5 < all_in_rows * 7) {
            unit_fill(UNIT_ACTIVATIONS, activations_at, all_in_rows * 56, -3);
        }
        unit_load(UNIT_ACTIVATIONS, activations_at + (first_top - top) * 56 + 8, 56, input, first_top * 40,
            40, in_rows, 40);
        accumulators_at = 1024 - accumulators_at; /* the other bank */
        unit_multiply(accumulators_at, activations_at, 0, rows, 5, 1, 0);
        unit_store(output, row * 40, 8, accumulators_at, 0, rows * 5, 8);
    }
    return unit_finish(output, 240);
}
"""


@pytest.mark.parametrize(
    ("bytes_", "banks", "alignment", "words"),
    [(100, 3, 1, "has 3 banks"), (100, 2, 4, "cannot be aligned to 4"), (0, 1, 1, "cannot be aligned")],
)
def test_memories_that_cannot_be(bytes_: int, banks: int, alignment: int, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Memory(bytes_, banks, alignment)


def test_a_machine_whose_units_do_not_fit_its_alignment() -> None:
    with pytest.raises(ValueError, match="unit: weights come in units of 24 bytes, which cannot be aligned to 16"):
        Machine("unit", 3, 8, Memory(64), Memory(64, 1, 16), Memory(96), Memory(96), Dma(8, 1), Dma(8, 1), 1)
