"""Every layer that conveyor computes, on the device model through the driver, against the operators' exact meaning."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from uaccel.testing import Layers, example

EXAMPLES = settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
SHAPES = st.tuples(st.integers(1, 2), st.integers(1, 9), st.integers(1, 9), st.integers(1, 8))
SEEDS = st.integers(0, 2**32 - 1)


def one(parts: SimpleNamespace, run: Any, shapes: list[tuple[int, ...]], seed: int, build: Any) -> Any:
    """A region of one layer; ``build(layers, x0, ...)`` gives its call."""
    layers = Layers(seed)
    made = example(shapes, lambda block, *xs: [block.emit(build(layers, *xs), "layer")])
    return run(made, [layers.int8(*shape) for shape in shapes])


@pytest.mark.slow
@EXAMPLES
@given(SHAPES, SEEDS)
def test_conv2d(parts: SimpleNamespace, run: Any, shape: tuple[int, ...], seed: int) -> None:
    one(parts, run, [shape], seed, lambda layers, x: layers.conv2d(x))


@pytest.mark.slow
@EXAMPLES
@given(SHAPES, st.integers(1, 4), SEEDS)
def test_conv2d_of_groups(parts: SimpleNamespace, run: Any, shape: tuple[int, ...], groups: int, seed: int) -> None:
    shape = (*shape[:3], shape[3] * groups)
    one(parts, run, [shape], seed, lambda layers, x: layers.conv2d(x, groups=groups))


@pytest.mark.slow
@EXAMPLES
@given(SHAPES, SEEDS)
def test_depthwise_conv2d(parts: SimpleNamespace, run: Any, shape: tuple[int, ...], seed: int) -> None:
    one(parts, run, [shape], seed, lambda layers, x: layers.depthwise(x))


@EXAMPLES
@given(st.integers(1, 4), st.integers(1, 300), SEEDS)
def test_fully_connected(parts: SimpleNamespace, run: Any, rows: int, depth: int, seed: int) -> None:
    one(parts, run, [(rows, depth)], seed, lambda layers, x: layers.fully_connected(x))


@EXAMPLES
@given(SHAPES, SEEDS)
def test_add(parts: SimpleNamespace, run: Any, shape: tuple[int, ...], seed: int) -> None:
    one(parts, run, [shape, shape], seed, lambda layers, x, y: layers.add(x, y))


@pytest.mark.slow
@EXAMPLES
@given(SHAPES, SEEDS)
def test_add_of_a_constant(parts: SimpleNamespace, run: Any, shape: tuple[int, ...], seed: int) -> None:
    """One number a channel: repeated ahead of time."""
    one(parts, run, [shape], seed, lambda layers, x: layers.add(x, layers.int8(shape[3])))


@EXAMPLES
@given(SHAPES, st.booleans(), SEEDS)
def test_pool(parts: SimpleNamespace, run: Any, shape: tuple[int, ...], average: bool, seed: int) -> None:
    one(parts, run, [shape], seed, lambda layers, x: layers.pool(x, average))


@pytest.mark.parametrize("channels", [255, 256, 257, 700])
def test_more_channels_than_are_computed_together(parts: SimpleNamespace, run: Any, channels: int) -> None:
    one(parts, run, [(1, 2, 3, 4)], channels, lambda layers, x: layers.conv2d(x, channels=channels))


def test_more_filters_than_the_memory_holds(parts: SimpleNamespace, run: Any) -> None:
    """11 of them fit at a time."""
    one(parts, run, [(1, 6000)], 5, lambda layers, x: layers.fully_connected(x, units=25))


def test_an_addition_longer_than_its_buffer(parts: SimpleNamespace, run: Any) -> None:
    shape = (1, 41, 25, 3)
    one(parts, run, [shape, shape], 7, lambda layers, x, y: layers.add(x, y))


@pytest.mark.slow
@settings(EXAMPLES, max_examples=4)
@given(SEEDS)
def test_a_region_of_many_layers(parts: SimpleNamespace, run: Any, seed: int) -> None:
    """Branches, a view, several outputs, one of which the region itself reads again."""
    layers = Layers(seed)

    def build(block: Any, x: Any, y: Any) -> list[Any]:
        a = block.emit(layers.conv2d(x, channels=4), "a")
        b = block.emit(layers.add(a, a), "b")
        c = block.emit(layers.pool(y, average=True), "c")
        d = block.emit(layers.depthwise(b), "d")
        e = block.emit(layers.add(b, a), "e")
        flat = block.emit(layers.flat(e), "flat")
        f = block.emit(layers.fully_connected(flat), "f")
        g = block.emit(layers.pool(e, average=False), "g")
        return [d, f, e, g, block.emit(layers.conv2d(c), "h")]

    shapes = [(1, 7, 6, 3), (1, 5, 8, 2)]
    stream = run(example(shapes, build), [layers.int8(*shape) for shape in shapes])
    assert [place.kind for place in stream.places] == ["constants", *["input"] * 2, *["output"] * 5, "scratch"]
    assert len(stream.commands) == 8


@pytest.mark.slow
def test_scratch_memory_is_used_again(parts: SimpleNamespace, run: Any) -> None:
    """Five tensors of 320 bytes, of which two are alive at a time."""
    layers = Layers(1)
    shape = (1, 8, 8, 5)

    def build(block: Any, x: Any) -> list[Any]:
        for number in range(6):
            x = block.emit(layers.add(x, x), f"sum{number}")
        return [x]

    stream = run(example([shape], build), [layers.int8(*shape)])
    assert [(place.kind, place.bytes) for place in stream.places] == [("input", 320), ("output", 320), ("scratch", 640)]


def test_a_view_at_the_beginning(parts: SimpleNamespace, run: Any) -> None:
    layers = Layers(2)

    def build(block: Any, x: Any) -> list[Any]:
        return [block.emit(layers.fully_connected(block.emit(layers.flat(x), "view")), "y")]

    stream = run(example([(2, 3, 4, 5)], build), [layers.int8(2, 3, 4, 5)])
    assert len(stream.commands) == 1
