"""MobileNet V3 (Howard et al. 2019), large and small: hard swish, and squeeze-and-excite with a hard sigmoid."""

from __future__ import annotations

from dataclasses import dataclass

from models import layers
from models.field.blocks import Blocks
from models.network import Value


@dataclass(frozen=True)
class Row:
    """A row of the paper's table; ``excites``: it has a squeeze-and-excite, ``swishes``: else it rectifies."""

    kernel: int
    expanded: int
    out: int
    excites: bool
    swishes: bool
    stride: int


LARGE = (
    Row(3, 16, 16, False, False, 1),
    Row(3, 64, 24, False, False, 2),
    Row(3, 72, 24, False, False, 1),
    Row(5, 72, 40, True, False, 2),
    Row(5, 120, 40, True, False, 1),
    Row(5, 120, 40, True, False, 1),
    Row(3, 240, 80, False, True, 2),
    Row(3, 200, 80, False, True, 1),
    Row(3, 184, 80, False, True, 1),
    Row(3, 184, 80, False, True, 1),
    Row(3, 480, 112, True, True, 1),
    Row(3, 672, 112, True, True, 1),
    Row(5, 672, 160, True, True, 2),
    Row(5, 960, 160, True, True, 1),
    Row(5, 960, 160, True, True, 1),
)
SMALL = (
    Row(3, 16, 16, True, False, 2),
    Row(3, 72, 24, False, False, 2),
    Row(3, 88, 24, False, False, 1),
    Row(5, 96, 40, True, True, 2),
    Row(5, 240, 40, True, True, 1),
    Row(5, 240, 40, True, True, 1),
    Row(5, 120, 48, True, True, 1),
    Row(5, 144, 48, True, True, 1),
    Row(5, 288, 96, True, True, 2),
    Row(5, 576, 96, True, True, 1),
    Row(5, 576, 96, True, True, 1),
)


def lay_large(b: Blocks) -> None:
    _lay(b, LARGE, 960, 1280)


def lay_small(b: Blocks) -> None:
    _lay(b, SMALL, 576, 1024)


def _lay(b: Blocks, rows: tuple[Row, ...], last: int, hidden: int) -> None:
    x = _activated(b, b.conv(b.image(), b.channels(16), 3, stride=2, activation="NONE"))
    for row in rows:
        x = _bottleneck(b, x, row)
    x = _activated(b, b.conv(x, b.channels(last), 1, activation="NONE"))
    x = layers.hard_swish(b.net, b.dense(b.pooled(x), b.channels(hidden)))
    b.net.output(b.dense(x, b.size.classes))


def _bottleneck(b: Blocks, x: Value, row: Row) -> Value:
    fused = "NONE" if row.swishes else "RELU"
    expanded, out = b.channels(row.expanded), b.channels(row.out)
    y = x
    if expanded != x.shape[3]:
        y = b.conv(y, expanded, 1, activation=fused)
        y = _activated(b, y) if row.swishes else y
    y = b.depthwise(y, row.kernel, stride=row.stride, activation=fused)
    y = _activated(b, y) if row.swishes else y
    y = _excited(b, y) if row.excites else y
    y = b.conv(y, out, 1, activation="NONE")
    return layers.add(b.net, x, y) if row.stride == 1 and x.shape[3] == out else y


def _activated(b: Blocks, x: Value) -> Value:
    return layers.hard_swish(b.net, x)


def _excited(b: Blocks, x: Value) -> Value:
    """The hard sigmoid relu6(x + 3) / 6 as converters write it: an addition that rectifies, and a product."""
    squeezed = max(8, (x.shape[3] // 4 + 4) // 8 * 8)
    if squeezed < 0.9 * x.shape[3] / 4:
        squeezed += 8
    gate = layers.mean(b.net, x, (1, 2), keep_dims=True)
    gate = b.conv(gate, squeezed, 1, normalised=False)
    gate = b.conv(gate, x.shape[3], 1, activation="NONE", normalised=False)
    gate = layers.add(b.net, gate, layers.constant(b.net, 3.0), activation="RELU6")
    gate = layers.mul(b.net, gate, layers.constant(b.net, 1 / 6))
    return layers.mul(b.net, x, gate)
