"""What the instructions of dot4 mean, on plain numbers."""

from __future__ import annotations


def signed(word: int, bits: int) -> int:
    """The lowest bits of a word as a signed number."""
    half = 1 << bits - 1
    return (word + half) % (2 * half) - half


def lanes(left: int, right: int) -> list[int]:
    """The products of four signed bytes each."""
    return [signed(left >> bit, 8) * signed(right >> bit, 8) for bit in range(0, 32, 8)]


class Unit:
    """Eight sums, and what becomes of them."""

    def __init__(self) -> None:
        self.sums = [0] * 8
        self.zero_point, self.lowest, self.highest = 0, 0, 0

    def begin(self, which: int, left: int, right: int) -> int:
        self.sums[which], self.sums[which + 4] = left, right
        return 0

    def add(self, which: int, left: int, right: int) -> int:
        self.sums[which] = signed(self.sums[which] + sum(lanes(left, right)), 32)
        return self.sums[which]

    def lanes(self, which: int, left: int, right: int) -> int:
        for number, product in enumerate(lanes(left, right), 4 * which):
            self.sums[number] = signed(self.sums[number] + product, 32)
        return 0

    def range(self, _which: int, left: int, right: int) -> int:
        self.zero_point, self.lowest, self.highest = signed(left, 8), signed(right, 8), signed(right >> 8, 8)
        return 0

    def finish(self, which: int, left: int, right: int) -> int:
        """TensorFlow Lite's two roundings: of the product, halves upwards, and of the shift, halves away from zero."""
        far = abs(right) % 32
        scaled = self.sums[which] if right < 0 else signed(self.sums[which] << far, 32)
        high = signed((scaled * left + (1 << 30)) >> 31, 32)
        if right < 0 and far:
            nearest = (abs(high) + (1 << far - 1)) >> far
            high = nearest if high >= 0 else -nearest
        return min(max(signed(high + self.zero_point, 32), self.lowest), self.highest)
