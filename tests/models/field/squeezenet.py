"""SqueezeNet 1.1 (Iandola et al. 2016): fire modules that squeeze to few channels and expand in two branches."""

from __future__ import annotations

from models.field.blocks import Blocks
from models.network import Value

FIRES = ((16, 64), (16, 64), None, (32, 128), (32, 128), None, (48, 192), (48, 192), (64, 256), (64, 256))
"""Squeezed and expanded channels; None is a pool."""


def lay(b: Blocks) -> None:
    x = b.conv(b.image(), b.channels(64), 3, stride=2, padding="VALID", normalised=False)
    x = b.max_pool(x, 3, 2)
    for fire in FIRES:
        x = b.max_pool(x, 3, 2) if fire is None else _fire(b, x, *fire)
    x = b.conv(x, b.size.classes, 1, normalised=False)
    b.net.output(b.pooled(x))


def _fire(b: Blocks, x: Value, squeezed: int, expanded: int) -> Value:
    x = b.conv(x, b.channels(squeezed), 1, normalised=False)
    return b.joined([b.conv(x, b.channels(expanded), kernel, normalised=False) for kernel in (1, 3)])
