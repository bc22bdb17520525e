"""Networks of the toy machine's layers: random ones, and plain chains."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import strategies as st

from accelerator.streams.toy import BLOCK, Mix
from uaccel.streams import Network, Shape, Window

BOTH = st.booleans()
UP_TO_3 = st.integers(1, 3)


@st.composite
def windows(draw: st.DrawFn, steps: st.SearchStrategy[int] = UP_TO_3) -> Window:
    kernel, strides = draw(st.tuples(UP_TO_3, UP_TO_3)), draw(st.tuples(steps, steps))
    return Window(kernel, strides, (1, 1), (draw(st.integers(0, kernel[0] - 1)), draw(st.integers(0, kernel[1] - 1))))


def following(shape: Shape, window: Window, channels: int, pad_after: int) -> Shape | None:
    extents = []
    for axis, extent in enumerate((shape.rows, shape.columns)):
        after = min(pad_after, window.kernel[axis] - 1)
        extents.append((extent + window.padding[axis] + after - window.kernel[axis]) // window.strides[axis] + 1)
    return None if min(extents) < 1 else Shape(shape.images, extents[0], extents[1], channels)


@st.composite
def networks(draw: st.DrawFn) -> Network:
    """A chain, now and then with something added that came before."""
    shape = Shape(draw(st.integers(1, 2)), draw(st.integers(1, 7)), draw(st.integers(1, 7)), draw(st.integers(1, 4)))
    layers = grown(draw, shape, draw(st.integers(1, 4)), windows())
    read = {tensor for layer in layers for tensor in layer.inputs}
    made = [layer.output for layer in layers]
    outputs = [tensor for tensor in made if tensor not in read or draw(BOTH)]
    return Network(tuple(layers), ("x",), tuple(outputs))


@st.composite
def linked_networks(draw: st.DrawFn, most: int = 4) -> Network:
    """Of one image, and only the last result leaves it: rows can pass."""
    shape = Shape(1, draw(st.integers(4, 12)), draw(st.integers(1, 5)), draw(st.integers(1, 4)))
    layers = grown(draw, shape, draw(st.integers(2, most)), windows(st.sampled_from([1, 1, 1, 2])))
    return Network(tuple(layers), ("x",), tuple(layer.output for layer in layers[-1:]))


def grown(draw: st.DrawFn, shape: Shape, count: int, window: st.SearchStrategy[Window]) -> list[Mix]:
    """Layers one behind the other, as long as something is left."""
    tensors: dict[str, Shape] = {"x": shape}
    layers: list[Mix] = []
    name = "x"
    for number in range(count):
        some = draw(window)
        made = following(tensors[name], some, draw(st.integers(1, 8)), draw(st.integers(0, 1)))
        if made is None:
            break
        inputs: tuple[str, ...] = (name,)
        shapes: tuple[Shape, ...] = (tensors[name],)
        same = [other for other, extents in tensors.items() if extents == made]
        other = draw(st.sampled_from(["", *same]))
        if other:
            inputs, shapes = (*inputs, other), (*shapes, made)
        blocks, steps = -(-made.channels // BLOCK), draw(st.integers(1, 9))
        name = f"t{number}"
        layers.append(Mix(f"layer {number}", inputs, shapes, name, made, blocks, steps, some))
        tensors[name] = made
    return layers


def random_input(network: Network) -> np.ndarray:
    size = network.layers[0].shapes[0]
    extents = (size.images, size.rows, size.columns, size.channels)
    return np.random.default_rng(1).integers(0, 256, extents).astype(np.uint8)


def chain(*channels: int, rows: int = 8, images: int = 1) -> Network:
    shapes = [Shape(images, rows, 1, count) for count in channels]
    layers = [
        Mix(f"layer {n}", (f"t{n}",), (given,), f"t{n + 1}", made, -(-made.channels // BLOCK), 1)
        for n, (given, made) in enumerate(pairwise(shapes))
    ]
    return Network(tuple(layers), ("t0",), (f"t{len(layers)}",))
