"""Products of two matrices that are computed at run time: one of them is packed into the memory of weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from uaccel.streams import Box, Compute, Part, Places, Results

from . import times
from .commands import FORMATS
from .layers import Convolution

LARGEST: Final = 127
"""Of the numbers that the array multiplies."""


@dataclass(frozen=True, eq=False)
class Product(Convolution):
    """Pixels are rows of the left side, channels columns of the right one, ``filters`` are none but their shape counts.

    ``turned``: a row of the right side in memory has a number of each channel. Its zero point is the command's
    business. The left one's, times the sums of the channels' weights, is where the sums of all pixels begin."""

    turned: bool = field(kw_only=True)
    zero_points: tuple[int, int] = field(kw_only=True)
    alike_by = (*Convolution.alike_by, "turned", "beginnings")

    def needs(self, index: int, part: Part) -> Box:
        if self.shapes[index].images == 1:
            part = replace(part, image=0)
        if index == 0:
            return super().needs(0, part)
        depth, channels = range(self.window.taps * self.run), self.channels(part.blocks)
        columns, inner = (depth, channels) if self.turned else (channels, depth)
        return Box(part.image, range(1), columns, inner)

    def weight_bytes(self, blocks: range, steps: range) -> int:
        """All steps are there at once: sums of some cannot wait where those lie that all pixels begin with."""
        return super().weight_bytes(blocks, range(self.steps))

    def made_bytes(self, blocks: range, steps: range) -> int:
        return self.step_bytes(steps) * len(blocks)

    def packed_weights(self, block: int, steps: range) -> bytes:
        return b""

    def cycles(self, part: Part) -> int:
        return super().cycles(part) + times.PACKED + self._packing(part) + len(self.beginnings) * self._beginning(part)

    def _packing(self, part: Part) -> int:
        """A run a cycle."""
        depth, channels = self.window.taps * self.run, self.channels(part.blocks)
        return depth * len(part.blocks) if self.turned else len(channels) * self.steps

    def _beginning(self, part: Part) -> int:
        """A step of each block a cycle."""
        return times.FED - times.UNFINISHED + len(part.blocks) * self.steps

    @property
    def beginnings(self) -> tuple[int, ...]:
        """What each weight is multiplied by; 128 is none of the array's numbers."""
        factor = -self.zero_points[0]
        return (factor // 2,) * 2 if factor > LARGEST else (factor,) if factor else ()

    def commands(self, part: Part, places: Places) -> Sequence[Compute]:
        matrix, channels = places.inputs[1], self.channels(part.blocks)
        depth, beginnings = self.window.taps * self.run, self.beginnings
        packed = {"source": matrix.address, "source_row": matrix.pixel_pitch, "turned": int(self.turned)}
        packed |= {"depth": depth, "channels": len(channels), "weights": places.weights}
        runs, (product,) = self._packing(part), super().commands(part, places)
        results = Results(times.WEIGHTS, runs, behind=times.BEHIND)
        common = {"weight_zero_point": self.zero_points[1], "sums": places.sums}
        goes_on = dict.fromkeys(("continue", "shared"), int(bool(beginnings)))
        first = {name: product.fields[name] for name in ("input", "channels", "weights", "steps")}
        first |= dict.fromkeys(("input_rows", "input_columns", "kernel_rows", "kernel_columns", "rows", "columns"), 1)
        first |= dict.fromkeys(("stride_y", "stride_x", "dilation_y", "dilation_x", "keep"), 1)
        first |= {"run": depth, "input_pixel": depth, "first_row": -1, **common}  # the only tap lies outside
        return [
            Compute("pack", packed, times.PACKED + runs, FORMATS["pack"].bytes, results),
            *(
                replace(
                    product,
                    fields=first | {"input_zero_point": factor, "continue": int(number > 0)},
                    cycles=self._beginning(part),
                    results=None,
                )
                for number, factor in enumerate(beginnings)
            ),
            replace(product, fields={**product.fields, **common, **goes_on}),
        ]
