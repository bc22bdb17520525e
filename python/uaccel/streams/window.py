"""Windows that slide over an input: what of it a part of the output reads."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Window:
    """Kernel, strides and dilation in rows and columns; padding above and to the left."""

    kernel: tuple[int, int] = (1, 1)
    strides: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    padding: tuple[int, int] = (0, 0)

    @property
    def taps(self) -> int:
        return self.kernel[0] * self.kernel[1]

    def covered(self, axis: int, outputs: range, extent: int) -> range:
        """What these outputs read along an axis, without padding; something at least, where all of it is padding."""
        first = outputs.start * self.strides[axis] - self.padding[axis]
        last = (outputs.stop - 1) * self.strides[axis] - self.padding[axis]
        last += (self.kernel[axis] - 1) * self.dilation[axis]
        begin = min(max(first, 0), extent - 1)
        return range(begin, max(min(last + 1, extent), begin + 1))

    def new_taps(self) -> int:
        """Taps that the window of the next column does not share with the one before."""
        return self.kernel[0] * min(self.strides[1], self.kernel[1]) if self.dilation[1] == 1 else self.taps
