"""How a layer is cut into pieces: their largest extents, the order of the loops, and which sizes are worth trying."""

from __future__ import annotations

from dataclasses import dataclass

from uaccel.basics.numbers import pieces
from uaccel.machines.geometry import Shape


@dataclass(frozen=True)
class Tiling:
    """The largest piece: output rows and columns, ``blocks`` of output channels, and ``steps`` of the sums.

    ``weights_stay``: all pixels pass by one piece of the weights before the next one comes; else all weights by one
    piece of the image. ``buffered``: the activations of one piece come or go while another is computed.
    """

    rows: int
    columns: int
    blocks: int
    steps: int
    weights_stay: bool
    buffered: bool = True

    def pixel_pieces(self, shape: Shape) -> int:
        """Of an output of this shape, all channels in one."""
        return shape.images * pieces(shape.rows, self.rows) * pieces(shape.columns, self.columns)


def extents(whole: int, *, sparsely: bool = False) -> list[int]:
    """Sizes to try, largest first, of pieces as equal as can be: ever more of them, by one each time or, sparsely, by
    half of their number."""
    sizes = [whole]
    count = 1
    while sizes[-1] > 1:
        count += max(1, count // 2) if sparsely else 1
        size = pieces(whole, count)
        if size < sizes[-1]:
            sizes.append(size)
    return sizes
