"""Random chains of layers that can run by rows, and programs of which chosen layers do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from models import layers
from models.network import Network
from models.seeded import Seeded
from uaccel.codegen.generate import generate
from uaccel.lower.placement import place
from uaccel.lower.rows.layer import Parts, RowGroup, apply
from uaccel.lower.rows.schedule import Chains
from uaccel.pipeline import Compiled

SHAPES = {"offset": (6, 6, 6), "image": (24, 24, 3)}


class Drawn:
    """A network of layers that are drawn from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.seeded = Seeded(seed)
        self.net = Network(f"uaccel rows {seed}")
        height, width = self.random.integers(9, 20, 2)
        channels = int(self.random.integers(1, 6))
        self.last = self.net.input("image", self.seeded.inputs((height, width, channels), 3))

    def one_of(self, *options: int) -> int:
        return int(self.random.choice(options))

    def window(self) -> dict[str, Any]:
        """Strides, padding and dilation that leave something of the rows that there are."""
        small = min(self.last.shape[1:3]) < 7
        stride = 1 if small else self.one_of(1, 1, 2, 3)
        dilation = 2 if stride == 1 and not small and self.one_of(0, 0, 1) else 1
        padding = "SAME" if small or self.one_of(0, 0, 1) == 0 else "VALID"
        return {"stride": (stride, stride), "dilation": (dilation, dilation), "padding": padding}

    def convolution(self) -> None:
        kernel = (self.one_of(1, 2, 3, 5), self.one_of(1, 3))
        weights = self.seeded.conv(self.one_of(3, 4, 8), kernel, self.last.shape[3])
        self.last = layers.conv2d(self.net, self.last, *weights, activation="RELU", **self.fitting(kernel))

    def depthwise(self) -> None:
        kernel = (self.one_of(2, 3, 5), 3)
        weights = self.seeded.depthwise(kernel, self.last.shape[3])
        self.last = layers.depthwise_conv2d(self.net, self.last, *weights, **self.fitting(kernel))

    def fitting(self, kernel: tuple[int, int]) -> dict[str, Any]:
        window = self.window()
        reach = max((size - 1) * window["dilation"][0] + 1 for size in kernel)
        return window if reach < min(self.last.shape[1:3]) else {"padding": "SAME"}

    def pool(self) -> None:
        pool = (layers.max_pool, layers.average_pool)[self.one_of(0, 1)]
        size, stride = self.one_of(2, 3), self.one_of(1, 2)
        if min(self.last.shape[1:3]) > 6:
            padding = ("SAME", "VALID")[self.one_of(0, 1)]
            self.last = pool(self.net, self.last, (size, size), (stride, stride), padding)

    def frame(self) -> None:
        """Rows of padding alone, too: windows of one row."""
        rows, columns = ((self.one_of(0, 1, 2, 3), self.one_of(0, 1, 2, 3)) for _ in range(2))
        self.last = layers.pad(self.net, self.last, rows, columns)

    def beside(self) -> None:
        """What goes past a convolution and its result; sometimes three, one of them twice."""
        start = self.last
        self._plain(self.one_of(1, 3, 4), (self.one_of(1, 3), 3))
        parts = layers.alike(self.net, [start, self.last])
        self.last = layers.concatenate(self.net, [*parts, *parts[: self.one_of(0, 1)]], 3)

    def residual(self) -> None:
        """An inverted residual block, or an addition of what goes past one convolution."""
        start, channels = self.last, self.last.shape[3]
        if self.one_of(0, 1):
            self._plain(2 * channels, (1, 1))
            self.last = layers.depthwise_conv2d(self.net, self.last, *self.seeded.depthwise((3, 3), 2 * channels))
        self._plain(channels, (self.one_of(1, 3), 3))
        self.last = layers.add(self.net, start, self.last)

    def resized(self) -> None:
        """To twice or half as many rows, or to any number of them."""
        rows, columns = self.last.shape[1:3]
        size = (self.one_of(2 * rows, 2 * rows, 3 * rows, rows // 2, rows + 3), columns + self.one_of(0, 1))
        resize = (layers.resize_nearest, layers.resize_bilinear)[self.one_of(0, 1)]
        options = ({}, {"half_pixel_centers": True}, {"align_corners": True})[self.one_of(0, 1, 2)]
        if rows < 16:
            self.last = resize(self.net, self.last, size, **options)

    def transposed(self) -> None:
        """Windows that overlap, touch or leave rows out."""
        kernel, stride = (self.one_of(1, 2, 3, 4), self.one_of(2, 3)), (self.one_of(1, 2, 2, 3), self.one_of(1, 2))
        weights = self.seeded.conv(self.one_of(3, 4), kernel, self.last.shape[3])
        if max(self.last.shape[1:3]) < 16:
            padding = ("SAME", "VALID")[self.one_of(0, 1)]
            self.last = layers.transpose_conv2d(self.net, self.last, *weights, stride, padding)

    def _plain(self, channels: int, kernel: tuple[int, int]) -> None:
        weights = self.seeded.conv(channels, kernel, self.last.shape[3])
        self.last = layers.conv2d(self.net, self.last, *weights)


def random_chain(seed: int, count: int = 6) -> bytes:
    """A TFLite file; sometimes a tensor in the middle is an output, too."""
    drawn = Drawn(seed)
    kinds = [drawn.convolution, drawn.depthwise, drawn.pool, drawn.residual, drawn.frame, drawn.beside]
    kinds += [drawn.resized, drawn.transposed]
    drawn.convolution()
    for number in range(count):
        kinds[drawn.one_of(0, 0, 1, 1, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7)]()
        if number == count // 2 and drawn.one_of(0, 0, 1):
            drawn.net.output(drawn.last)
    drawn.convolution()
    return drawn.net.build(drawn.last)


def tall() -> bytes:
    """A network whose first tensors are large: 24 rows, then 12, then 6."""
    seeded, net = Seeded(5), Network("uaccel tall")
    last = net.input("image", seeded.inputs((24, 24, 3), 3))
    for channels, stride in ((8, 1), (8, 2), (8, 1), (12, 2)):
        weights = seeded.conv(channels, (3, 3), last.shape[3])
        last = layers.conv2d(net, last, *weights, stride=(stride, stride), activation="RELU")
    return net.build(last)


def growing() -> bytes:
    """The half of a U-Net behind its middle: 10 rows, then 20, 40, 80 and 160, by each way to have more of them."""
    seeded, net = Seeded(6), Network("uaccel growing")
    last = net.input("image", seeded.inputs((10, 10, 4), 3))
    last = layers.transpose_conv2d(net, last, *seeded.conv(4, (3, 3), 4), (2, 2), "SAME")
    last = layers.conv2d(net, last, *seeded.conv(4, (3, 3), 4), activation="RELU")
    last = layers.resize_nearest(net, last, (40, 40))
    last = layers.transpose_conv2d(net, last, *seeded.conv(4, (2, 2), 4))
    last = layers.conv2d(net, last, *seeded.conv(3, (3, 3), 4))
    last = layers.resize_bilinear(net, last, (160, 160), half_pixel_centers=True)
    last = layers.conv2d(net, last, *seeded.conv(2, (3, 3), 3), stride=(8, 8))
    return net.build(last)


def two_inputs(order: Sequence[int]) -> bytes:
    """An offset is added to the last rows of an image; ``order`` says which of the two inputs is the first."""
    seeded, net = Seeded(8), Network("uaccel two inputs")
    inputs = {name: net.input(name, seeded.inputs(SHAPES[name], 3)) for name in (list(SHAPES)[i] for i in order)}
    offset, image = inputs["offset"], inputs["image"]
    last = layers.conv2d(net, image, *seeded.conv(6, (3, 3), 3), stride=(2, 2), activation="RELU")
    last = layers.depthwise_conv2d(net, last, *seeded.depthwise((3, 3), 6))
    last = layers.max_pool(net, last, (2, 2), (2, 2), "SAME")
    return net.build(layers.add(net, last, offset))


def random_groups(compiled: Compiled, seed: int) -> list[RowGroup]:
    """Chains of all layers that can, cut at random."""
    random, chains = np.random.default_rng(seed), Chains(compiled.program)
    groups, first, count = [], 0, len(compiled.program.layers)
    while first < count:
        last = min(count - 1, first + int(random.integers(1, count)))
        while last > first and chains.of(first, last) is None:
            last -= 1
        if last > first:
            groups.append(RowGroup(first, last, int(random.choice([1, 1, 2, 3, 4, 8]))))
        first = last + 1
    return groups


def by_groups(compiled: Compiled, groups: Sequence[RowGroup], *, feed: bool = False) -> Compiled:
    """The same with some layers by rows."""
    program = apply(compiled.program, groups, Parts(compiled.selection), feed=feed)
    options = replace(compiled.options, feed=feed)
    placement = place(program, workspace_io=options.workspace_io)
    return replace(compiled, generated=generate(program, placement, options, compiled.board))
