"""U-Net (Ronneberger et al. 2015) with padding that keeps the size, as it is used: down, up, and across."""

from __future__ import annotations

from models.field.blocks import Blocks
from models.network import Value

CHANNELS = (64, 128, 256, 512)
BOTTOM = 1024


def lay(b: Blocks) -> None:
    x = b.image()
    kept = []
    for channels in CHANNELS:
        kept.append(_twice(b, x, b.channels(channels)))
        x = b.max_pool(kept[-1], 2, 2)
    x = _twice(b, x, b.channels(BOTTOM))
    for channels, across in zip(reversed(CHANNELS), reversed(kept), strict=True):
        x = b.joined([b.doubled(x, b.channels(channels))], [across])
        x = _twice(b, x, b.channels(channels))
    b.net.output(b.conv(x, b.size.classes, 1, activation="NONE", normalised=False))


def _twice(b: Blocks, x: Value, channels: int) -> Value:
    return b.conv(b.conv(x, channels, 3, normalised=False), channels, 3, normalised=False)
