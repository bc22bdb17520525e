"""Inception V3 (Szegedy et al. 2015): branches of all shapes, 1x7 and 7x1 among them, without the auxiliary head."""

from __future__ import annotations

from collections.abc import Sequence

from models import layers
from models.field.blocks import Blocks
from models.floatops import Pair
from models.network import Value

Steps = Sequence[tuple[int, int | Pair]]


def lay(b: Blocks) -> None:
    x = _stem(b)
    for pooled in (32, 64, 64):
        x = _mixed(b, x, [[(64, 1)], [(48, 1), (64, 5)], [(64, 1), (96, 3), (96, 3)]], pooled)
    x = _halving(b, x, [[(384, 3)], [(64, 1), (96, 3), (96, 3)]])
    for inner in (128, 160, 160, 192):
        seven: Steps = [(inner, 1), (inner, (1, 7)), (192, (7, 1))]
        twice: Steps = [(inner, 1), (inner, (7, 1)), (inner, (1, 7)), (inner, (7, 1)), (192, (1, 7))]
        x = _mixed(b, x, [[(192, 1)], seven, twice], 192)
    x = _halving(b, x, [[(192, 1), (320, 3)], [(192, 1), (192, (1, 7)), (192, (7, 1)), (192, 3)]])
    for _ in range(2):
        x = _wide(b, x)
    b.classify(x)


def _stem(b: Blocks) -> Value:
    x = b.conv(b.image(), b.channels(32), 3, stride=2, padding="VALID")
    x = b.conv(x, b.channels(32), 3, padding="VALID")
    x = b.max_pool(b.conv(x, b.channels(64), 3), 3, 2)
    x = b.conv(b.conv(x, b.channels(80), 1), b.channels(192), 3, padding="VALID")
    return b.max_pool(x, 3, 2)


def _branch(b: Blocks, x: Value, steps: Steps) -> Value:
    for out, kernel in steps:
        x = b.conv(x, b.channels(out), kernel)
    return x


def _pooled(b: Blocks, x: Value, out: int) -> Value:
    return b.conv(layers.average_pool(b.net, x, (3, 3), (1, 1), "SAME"), b.channels(out), 1)


def _mixed(b: Blocks, x: Value, branches: Sequence[Steps], pooled: int) -> Value:
    return b.joined([*(_branch(b, x, steps) for steps in branches), _pooled(b, x, pooled)])


def _halving(b: Blocks, x: Value, branches: Sequence[Steps]) -> Value:
    """The last step of each branch has stride 2; the third branch is a pool."""
    ends = []
    for *steps, (out, kernel) in branches:
        inner = _branch(b, x, steps)
        ends.append(b.conv(inner, b.channels(out), kernel, stride=2, padding="VALID"))
    return b.joined(ends, [b.max_pool(x, 3, 2)])


def _wide(b: Blocks, x: Value) -> Value:
    """Two of the branches end in a 1x3 and a 3x1 side by side."""
    ends = [_branch(b, x, [(320, 1)])]
    inners: Sequence[Steps] = ([(384, 1)], [(448, 1), (384, 3)])
    for steps in inners:
        inner = _branch(b, x, steps)
        ends += [_branch(b, inner, [(384, kernel)]) for kernel in ((1, 3), (3, 1))]
    return b.joined([*ends, _pooled(b, x, 192)])
