"""Offers depthwise convolutions for Arm Helium, and searches how to cut their output into regions and tiles.

The kernel copies the input under a region of the output into planes, up to 16 channels at a time, one channel a plane.
Windows run over a plane by tiles of eight: four neighbouring ones and four more beside or below them. A gathering load
fetches up to 16 bytes under one, two or four windows at once; VMLADAV then makes the sum of each window with weights
that are zero where the window does not reach. `best_cut` chooses region and tile by an estimate of instructions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from uaccel.kernels.arm_helium_conv import REQUIRES, finish_parameters, helium_kernel
from uaccel.kernels.output_stage import output_stage_of
from uaccel.kernels.registry import DeclinedError, offers
from uaccel.kernels.weight_packing import VECTOR, Channels, channels_of, concat_words, vector_words
from uaccel.model import TensorInfo
from uaccel.ops.conv import Conv2dAttrs, DepthwiseConv2d
from uaccel.ops.kernel import Constant, Input, Kernel, Output, ParameterValue, Scratch
from uaccel.ops.operator import Site
from uaccel.ops.storage import windows_behind
from uaccel.ops.windows import SlidingWindow, plane_fields, sides

GROUP: Final = 16  # Channels that are copied to planes at once.
LARGEST_LANE: Final = 255  # A gathering load takes offsets of 8 bits.
LARGEST_RESULT: Final = 65535  # Stores take offsets of 16 bits: to results, and to a pixel's bytes in 16 planes.
SMALL: Final = 2048  # Bytes of scratch memory that hardly ever matter.
PLACE: Final = 12  # Bytes of struct uaccel_helium_place.
FOURS: Final = ((1, 4), (2, 2), (4, 1))  # Shapes of four windows.
LOADS: Final = (1, 2, 4)  # Loads for four windows.
RUN: Final = 0  # Stands for the number of loads where each window is a run of bytes, read where it lies.
BEYOND_RUNS: Final = 32  # Bytes that are read behind the last plane then.
# Instructions, about: for eight windows, by loads for four; for each further part of them; for an output channel of a
# region; for a plane with several output channels; and for a pixel that is put into a plane.
PER_EIGHT: Final = {RUN: 33, 1: 36, 2: 32, 4: 36}
PER_PART: Final = 20
PER_CHANNEL: Final = 22
PER_PLANE: Final = 45
PER_PIXEL: Final = 0.5
MOST_PARTS: Final = 7  # Parts of a window for which the kernel has loops.

Pair = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class DepthwiseWindow(SlidingWindow):
    """Describes the window of an output pixel, and how many output pixels and channels there are.

    A window of more than 16 taps is read in parts, each by a load: some of its rows, or some of its columns.
    """

    output: Pair
    multiplier: int = 1

    @property
    def is_run(self) -> bool:
        """Says whether windows are runs of bytes, each one byte behind the one before."""
        one_row = self.kernel[0] == self.output[0] == 1
        return one_row and self.strides[1] == self.dilation[1] == 1 and self.kernel[1] <= VECTOR

    @cached_property
    def part(self) -> Pair:
        """Returns the rows and columns that a load takes: all, some rows or some columns, by the fewest parts."""
        height, width = self.kernel
        if height * width <= VECTOR:
            return height, width
        rows, columns = (VECTOR // width, width), (height, VECTOR // height)
        return min((part for part in (rows, columns) if all(part)), key=self._count, default=(1, 1))

    def _count(self, part: Pair) -> int:
        return -(-self.kernel[0] // part[0]) * -(-self.kernel[1] // part[1])

    @cached_property
    def parts(self) -> int:
        return self._count(self.part)

    def part_step(self, pitch: int) -> int:
        """Returns the bytes from part to part in a plane."""
        rows, columns = (part * dilation for part, dilation in zip(self.part, self.dilation, strict=True))
        return rows * pitch if self.part[1] == self.kernel[1] else columns

    def beyond(self, pitch: int) -> int:
        """Returns how many bytes behind the window the last part reaches, which may not be a whole one."""
        rows, columns = (
            -extent % part * dilation
            for extent, part, dilation in zip(self.kernel, self.part, self.dilation, strict=True)
        )
        return rows * pitch + columns

    def under(self, outputs: Pair) -> Pair:
        """Returns how many rows and columns of the input are under so many windows."""
        return self.extent(0, outputs[0]), self.extent(1, outputs[1])

    def places(self, pixel: Pair, pitch: int) -> list[int]:
        """Returns where in a plane the bytes under a pixel's window are, or under its first part, row by row."""
        top, left = pixel[0] * self.strides[0], pixel[1] * self.strides[1]
        return [
            (top + ky * self.dilation[0]) * pitch + left + kx * self.dilation[1]
            for ky in range(self.part[0])
            for kx in range(self.part[1])
        ]


@dataclass(frozen=True)
class OutputRegion:
    """Describes a region of the output, cut into tiles of eight: four pixels, and four more beside or below them.

    ``four`` is the shape of the first four, and ``second`` the step from these to the others.
    """

    window: DepthwiseWindow
    region: Pair
    four: Pair
    second: Pair

    @property
    def tile(self) -> Pair:
        return self.four[0] + self.second[0], self.four[1] + self.second[1]

    @property
    def plane(self) -> Pair:
        return self.window.under(self.region)

    @property
    def tiles(self) -> int:
        return -(-self.region[0] // self.tile[0]) * -(-self.region[1] // self.tile[1])

    @property
    def pixels(self) -> list[Pair]:
        """Lists the first four pixels; where there are fewer, the last one is repeated."""
        rows, columns = self.four
        found = [(y, x) for y in range(rows) for x in range(columns)]
        return [found[min(i, len(found) - 1)] for i in range(4)]

    def lanes(self, loads: int) -> list[list[int]] | None:
        """Returns, for each load for four windows, where its bytes come from; None where that is impossible. The
        windows of a load may touch 16 bytes at most, none too far. All loads need the same pattern, as they share their
        weights. Windows of several parts take a load each."""
        if self.window.parts > 1 and loads < 4:
            return None
        share = 4 // loads
        taps = [self.window.places(pixel, self.plane[1]) for pixel in self.pixels]
        groups = [sorted(set().union(*taps[i : i + share])) for i in range(0, 4, share)]
        alike = all([tap - group[0] for tap in group] == [tap - groups[0][0] for tap in groups[0]] for group in groups)
        fits = max(len(group) for group in groups) <= VECTOR and max(map(max, groups)) <= LARGEST_LANE
        return groups if alike and fits else None

    def loads(self) -> int | None:
        """Returns the fewest loads for four windows; None where there is no way."""
        if self.window.is_run:
            return RUN
        return next((loads for loads in LOADS if self.lanes(loads) is not None), None)

    def cost(self, loads: int) -> float:
        """Estimates the instructions of a channel."""
        regions = -(-self.window.output[0] // self.region[0]) * -(-self.window.output[1] // self.region[1])
        times, parts = self.window.multiplier, self.window.parts
        per_eight = PER_EIGHT[loads] + (parts - 1) * PER_PART + 9 * (parts > 1)
        per_plane = self.plane[0] * self.plane[1] * PER_PIXEL + PER_PLANE * (times > 1)
        return regions * (times * (self.tiles * per_eight + PER_CHANNEL) + per_plane)

    def scratch(self, channels: int) -> int:
        """Returns bytes for the tiles' places, the planes, and what is read behind the last plane."""
        height, width = self.plane
        if self.window.is_run:
            return height * width * min(channels, GROUP) + BEYOND_RUNS
        return (self.tiles + 1) * PLACE + height * width * min(channels, GROUP) + self.window.beyond(width)


def _cuts(window: DepthwiseWindow, regions: list[Pair]) -> Iterator[OutputRegion]:
    for region in regions:
        for shape in FOURS:
            four = min(shape[0], region[0]), min(shape[1], region[1])
            if four[0] * four[1] not in (1, 2, 4):
                continue
            for beside in (True, False):
                more = (0, min(four[1], region[1] - four[1])) if beside else (min(four[0], region[0] - four[0]), 0)
                yield OutputRegion(window, region, four, more)


@lru_cache(maxsize=256)
def best_cut(window: DepthwiseWindow, channels: int, limit: int, whole_only: bool) -> OutputRegion | None:
    """Searches the cut of fewest instructions within ``limit`` bytes of scratch memory, else the one nearest to it.
    Tries every height of a region with a few widths; with ``whole_only`` the whole output is the region, as it must be
    where the output replaces the input. A cut is excluded where the last of 16 planes lies beyond a store's offsets."""
    height, width = window.output
    widths = sorted({min(width, part) for part in (width, -(-width // 2), -(-width // 4), 32, 16, 8)})
    regions = [(height, width)] if whole_only else [(rows, part) for rows in range(1, height + 1) for part in widths]
    best: tuple[tuple[float, float], OutputRegion] | None = None
    for cut in _cuts(window, regions):
        scratch = cut.scratch(channels)
        loads = cut.loads() if best is None or scratch <= limit or scratch < best[0][0] else None
        if loads is None or cut.plane[0] * cut.plane[1] * (GROUP - 1) > LARGEST_RESULT:
            continue
        rank = (max(0, scratch - limit), cut.cost(loads))
        if best is None or rank < best[0]:
            best = rank, cut
    return None if best is None else best[1]


def _stream(channels: Channels, cut: OutputRegion, loads: int) -> NDArray[np.int32]:
    """Packs a row a channel: a vector of weights for each window under a load, or each part, and the constants. A
    window's weights stand at the lanes of its taps; all other lanes are zero."""
    constants = np.stack([channels.bias, channels.multiplier, -channels.right], axis=1)
    if loads == RUN:
        last = np.zeros((1, VECTOR // 4 + 3), np.int64)  # A channel that is read ahead and not used.
        known = concat_words(vector_words(channels.weights, 1), constants)
        return np.concatenate([known, last.astype(np.int32)])
    (lanes, *_), count, window = cut.lanes(loads) or [[]], len(channels.bias), cut.window
    (height, width), (rows, columns) = window.kernel, window.part
    pads = (0, 0), (0, -height % rows), (0, -width % columns)
    whole = np.pad(channels.weights.reshape(count, height, width), pads)
    parts = whole.reshape(count, -1, rows, whole.shape[2] // columns, columns).transpose(0, 1, 3, 2, 4)
    parts = parts.reshape(count, window.parts, -1)
    pixels = cut.pixels[: 4 // loads]
    vectors = np.zeros((count, len(pixels) * window.parts, VECTOR), np.int8)
    for i, pixel in enumerate(pixels):
        for tap, place in enumerate(window.places(pixel, cut.plane[1])):
            vectors[:, i : i + window.parts, lanes.index(place)] = parts[:, :, tap]
    words = vectors.view("<i4").reshape(count, -1).astype(np.int64)
    return concat_words(words, constants)


def _lies_over_itself(window: DepthwiseWindow, site: Site[Conv2dAttrs]) -> bool:
    """Says whether each channel of the output may replace that of the input, once it is in a plane."""
    return window.multiplier == 1 and site.output.size <= site.operands[0].info.size


@offers(DepthwiseConv2d, REQUIRES, float32=("fpu",), rank=110)
def depthwise_conv2d(site: Site[Conv2dAttrs]) -> Kernel | None:
    """Copies channels to planes and computes eight windows of one at a time. The output replaces the input where the
    whole is one region and its planes take no more than the output saves."""
    attrs, data, weights = site.attrs, site.operands[0].info, site.operands[1].value
    kernel, results = weights.shape[:2], weights.shape[2]
    rows = weights.reshape(-1, results).T
    stage = output_stage_of(site, rows, rests=True)
    batch, in_height, in_width, count = data.shape
    lies, output = [kernel, attrs.strides, attrs.dilation, attrs.padding[:2]], site.output.shape[1:3]
    if in_width == kernel[1] == output[1] == 1 and not attrs.padding[1]:
        # One column is turned to one row.
        in_height, in_width, *lies, output = in_width, in_height, *(pair[::-1] for pair in (*lies, output))
    window = DepthwiseWindow(*lies, output=(output[0], output[1]), multiplier=results // count)
    if window.parts > MOST_PARTS:
        window_size = "x".join(map(str, window.kernel))
        raise DeclinedError(f"its window of {window_size} is too large", "take smaller windows, one after the other")
    whole = best_cut(window, count, 0, True) if _lies_over_itself(window, site) else None
    inplace = whole is not None and whole.scratch(count) <= max(SMALL, site.output.size)
    cut = whole if inplace else best_cut(window, count, max(SMALL, data.size // 8), False)
    channels = channels_of(rows, stage, attrs.output_zero_point)
    parameters: dict[str, ParameterValue] = {
        **plane_fields((batch, in_height, in_width, count), (batch, *output)),
        "multiplier": window.multiplier,
        **sides("stride", window.strides),
        "pad_top": window.padding[0],
        "pad_left": window.padding[1],
        "input_zero_point": attrs.input_zero_point,
        **finish_parameters(attrs.output_zero_point, stage.way, attrs.clamp_min, attrs.clamp_max),
    }
    shapes = TensorInfo((batch, in_height, in_width, count), "int8"), TensorInfo((batch, *output, results), "int8")
    common = _Common(window, parameters, channels, shapes)
    made = None if cut is None else common.kernel(cut)
    if cut is None or made is None:
        raise DeclinedError(
            "windows or results of its channels lie too far apart", "give it fewer channels or less dilation"
        )
    return replace(made, inplace=(0,) if inplace else (), leaner=partial(common.leaner, cut))


@dataclass(frozen=True)
class _Common:
    """Holds what kernels for all cuts have in common, and makes the kernel for a cut."""

    window: DepthwiseWindow
    parameters: dict[str, ParameterValue]
    channels: Channels
    shapes: tuple[TensorInfo, TensorInfo]

    def kernel(self, cut: OutputRegion) -> Kernel | None:
        (data, output), loads = self.shapes, cut.loads()
        results, strides = output.shape[3], self.window.strides
        reach = 8 if loads == RUN else (output.shape[2] * cut.tile[0]) + cut.tile[1]
        if loads is None or reach * results > LARGEST_RESULT:
            return None
        stream = _stream(self.channels, cut, loads)
        parameters = self.parameters | {
            **sides("region", cut.region),
            "rows": cut.plane[0],
            "pitch": cut.plane[1],
            **sides("tile", cut.tile),
            "second": cut.second[0] * strides[0] * cut.plane[1] + cut.second[1] * strides[1],
            "loads": loads * self.window.parts,
            "part": (cut.region[1] - 1) % 8 + 1 if loads == RUN else self.window.part_step(cut.plane[1]),
            "count": -(-cut.region[1] // 8) if loads == RUN else cut.tiles,
            "channel_words": stream.shape[1],
            "results": tuple(results * x for x in range(8)) if loads == RUN else _results(cut, results),
            "lanes": (0,) * 64 if loads == RUN else _lanes(cut, loads),
        }
        arguments = (Input(0), Constant("stream", stream), Output(0), Scratch())
        one_row = output.shape[1] == 1
        band, run = (cut.region[1], output.shape[2]) if one_row else (cut.region[0] * output.shape[2], 0)
        behind = {0: windows_behind(data, output, strides, self.window.padding, band, run=run, back=True)}
        return helium_kernel("depthwise_conv2d", parameters, arguments, cut.scratch(data.shape[3]), behind=behind)

    def leaner(self, cut: OutputRegion) -> Iterator[tuple[Kernel, float]]:
        """Yields kernels with half of the scratch memory, a quarter, and so on, and the instructions each adds."""
        data = self.shapes[0]
        count, least = data.shape[3], cut.scratch(data.shape[3])
        for part in (2, 4, 8, 16):
            less = best_cut(self.window, count, cut.scratch(count) // part, False)
            kernel = None if less is None or less.scratch(count) >= least else self.kernel(less)
            if less is not None and kernel is not None:
                least = less.scratch(count)
                yield kernel, data.shape[0] * count * (less.cost(less.loads() or 1) - cut.cost(cut.loads() or 1))


def _results(cut: OutputRegion, channels: int) -> tuple[int, ...]:
    """Returns where the eight results go: those of the first and of the second four in turn."""
    pixels = [(y + dy, x + dx) for y, x in cut.pixels for dy, dx in ((0, 0), cut.second)]
    return tuple((y * cut.window.output[1] + x) * channels for y, x in pixels)


def _lanes(cut: OutputRegion, loads: int) -> tuple[int, ...]:
    """Returns the lanes of each load, filled up with that of its first byte."""
    groups = cut.lanes(loads) or []
    filled = [lane for group in groups for lane in (*group, *[group[0]] * (VECTOR - len(group)))]
    return tuple(filled + [0] * (64 - len(filled)))
