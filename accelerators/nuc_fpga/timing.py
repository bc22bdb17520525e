"""How long the engine takes for what ``lower`` gets: line by line the multipliers or the bus, whichever is slower."""

from uaccel.accelerator import Region

ABREAST = 8
"""Filters, and columns."""
BUS_BYTES = 8
START_UP = 200
LINE = 1024
WEIGHTS = 32768


def of_convolution(region: Region) -> int:
    attrs, (batch, _, height, width) = region.attrs, region.operands[0].info.shape
    filters, depth, *window = region.operands[1].info.shape
    rows, columns = region.output.shape[2:]
    held = WEIGHTS // (ABREAST * window[0] * window[1]) >= depth
    total = 0
    for count, blocks in _blocks(filters // attrs.groups):
        for y in range(rows):
            top = y * attrs.strides[0] - attrs.padding[0]
            lines = depth * sum(0 <= top + ky < height for ky in range(window[0]))
            weights = 0 if held and y else count * depth * window[0] * window[1]
            moved = lines * width + weights + 4 * count * columns
            total += blocks * max(-(-moved // BUS_BYTES), lines * window[1] * -(-columns // ABREAST))
    return START_UP + int(batch * attrs.groups) * total


def of_matrices(region: Region) -> int:
    (rows, depth), total, stored = region.operands[0].info.shape, START_UP, 0
    products = sum(-(-min(LINE, depth - first) // ABREAST) for first in range(0, depth, LINE))
    for count, blocks in _blocks(region.output.shape[1]) * rows:
        for _ in range(blocks):
            total += max(-(-(depth * (1 + count) + stored) // BUS_BYTES), products)
            stored = 4 * count
    return total + -(-stored // BUS_BYTES)


def _blocks(filters: int) -> list[tuple[int, int]]:
    """Filters that are worked on together, and how often so many are."""
    return [(count, blocks) for count, blocks in ((ABREAST, filters // ABREAST), (filters % ABREAST, 1)) if count]
