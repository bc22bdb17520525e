"""Rectangles whose areas are as given, as square as can be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Box:
    x: float
    y: float
    width: float
    height: float

    @property
    def area(self) -> float:
        return self.width * self.height


def treemap(sizes: Sequence[float], box: Box) -> list[Box]:
    """A box for each size, in their order; the largest first gives the best ones. Sizes are above 0."""
    total = sum(sizes)
    if not sizes or total <= 0:
        return []
    scale = box.area / total
    found: list[Box] = []
    rest, areas = box, [size * scale for size in sizes]
    while areas:
        side = min(rest.width, rest.height)
        taken = 1
        while taken < len(areas) and _worst(areas[: taken + 1], side) <= _worst(areas[:taken], side):
            taken += 1
        row, areas = areas[:taken], areas[taken:]
        boxes, rest = _row(row, rest)
        found += boxes
    return found


def _worst(row: Sequence[float], side: float) -> float:
    """How far from a square the worst one is, where the row lies along a side."""
    total = sum(row)
    if not side or not total:
        return float("inf")
    return max(side * side * max(row) / (total * total), total * total / (side * side * min(row)))


def _row(row: Sequence[float], box: Box) -> tuple[list[Box], Box]:
    """The row along the shorter side, and what it leaves."""
    total = sum(row)
    if box.width >= box.height:
        depth = total / box.height if box.height else 0.0
        found, y = [], box.y
        for area in row:
            height = area / depth if depth else 0.0
            found.append(Box(box.x, y, depth, height))
            y += height
        return found, Box(box.x + depth, box.y, max(0.0, box.width - depth), box.height)
    depth = total / box.width
    found, x = [], box.x
    for area in row:
        width = area / depth
        found.append(Box(x, box.y, width, depth))
        x += width
    return found, Box(box.x, box.y + depth, box.width, max(0.0, box.height - depth))
