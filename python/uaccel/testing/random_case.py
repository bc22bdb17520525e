"""Draws random layers as a few numbers each, from which a layer is made again and made smaller.

All arrays of a layer follow from its numbers and its seed. So a report that prints these is enough to repeat it, and a
smaller layer is the same case with smaller numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from uaccel.errors import AcceleratorError
from uaccel.model import Array
from uaccel.ops.binary import AddAttrs
from uaccel.ops.conv import Conv2d, Conv2dAttrs, DepthwiseConv2d
from uaccel.ops.exact import ROUNDINGS, TFLITE
from uaccel.ops.fixedpoint import quantize_multiplier
from uaccel.ops.matmul import FullyConnected, FullyConnectedAttrs
from uaccel.ops.operator import NAMESPACE, REGISTRY, constant, get
from uaccel.ops.pool import PoolAttrs

# A layer as numbers: its shapes, its inputs, its call, and the cases that are smaller.

Draw = Callable[[np.random.Generator], "Case"]


@dataclass(frozen=True)
class Case:
    """Describes a layer by numbers, each of which can be made smaller down to its least (``LEAST``, else 1).

    ``seed`` fills tensors; number ``fill`` says with what: 0 anything, 1 the ends of the range, 2 only the most
    negative value, 3 small values. ``clamped``, ``biased`` and ``shifted`` are 0 or 1."""

    op: str
    numbers: Mapping[str, int]
    seed: int
    rounding: str = TFLITE

    def __getitem__(self, name: str) -> int:
        return self.numbers[name]

    @property
    def input_shape(self) -> tuple[int, ...]:
        if self.op == "fully_connected":
            return (self["batch"], self["depth"])
        return (self["batch"], self["height"], self["width"], self["channels"])

    @property
    def size(self) -> int:
        """The sum of all numbers, which shrinking makes less; zero points count without their sign."""
        return sum(value if name not in SIGNED else abs(value) for name, value in self.numbers.items())

    def smaller(self) -> Iterator[Case]:
        """Yields cases with smaller numbers; not all of them are layers.

        First several numbers go to their least together, which takes off what has nothing to do with a fault in one
        step. A window's numbers must go together, as one alone often leaves no layer. Then each number goes to its
        least, half the way there, and one down: large steps save rounds, the small one finds an exact bound."""
        for names in TOGETHER:
            yield replace(self, numbers={**self.numbers, **{n: LEAST.get(n, 1) for n in names if n in self.numbers}})
        for name, value in self.numbers.items():
            least = LEAST.get(name, 1)
            for wanted in dict.fromkeys((least, (value + least) // 2, value - 1 if value > least else value)):
                if wanted != value:
                    yield replace(self, numbers={**self.numbers, name: wanted})

    @property
    def is_layer(self) -> bool:
        """Whether the numbers are a layer: groups are of equal size, and the window fits into the padded input.

        A window of a pooling must also meet an element, so that its padding is smaller than it."""
        if "kernel_height" not in self.numbers:
            return True
        groups = self.numbers.get("groups", 1)
        divides = self["channels"] % groups == 0 and self.numbers.get("filters", groups) % groups == 0
        return divides and self._fits("height", "top", "bottom") and self._fits("width", "left", "right")

    def _fits(self, axis: str, before: str, after: str) -> bool:
        window = (self[f"kernel_{axis}"] - 1) * self.numbers.get(f"dilation_{axis}", 1) + 1
        if self.op not in WINDOWED and max(self[before], self[after]) >= self[f"kernel_{axis}"]:
            return False
        return self[axis] + self[before] + self[after] >= window

    def inputs(self) -> list[Array]:
        """Makes an array for each input of the layer."""
        random = np.random.default_rng([self.seed, 1])
        count = 2 if self.op in ("add", "sub") else 1
        return [_filled(random, self.input_shape, self["fill"]) for _ in range(count)]

    def __str__(self) -> str:
        shown = ", ".join(f"{name} {value}" for name, value in self.numbers.items())
        rounding = "" if self.rounding == TFLITE else f", {self.rounding}"
        return f"{self.op} ({shown}, seed {self.seed}{rounding})"

    @classmethod
    def of(cls, words: str) -> Case:
        """Reads what ``str`` of a case wrote."""
        found = re.fullmatch(r"(\w+) \(((?:\w+ -?\d{1,9}, )+)seed (\d{1,10})(?:, (\w+))?\)", words.strip())
        op, shown, seed, rounding = found.groups(TFLITE) if found is not None else ("", "", "0", "")
        numbers = {name: int(value) for name, value in map(str.split, shown.split(", ")[:-1])}
        known = op in FAMILIES and rounding in ROUNDINGS
        named = known and numbers.keys() == drawn(op, np.random.default_rng(0)).numbers.keys()
        least = {name: -MOST if name in SIGNED else LEAST.get(name, 1) for name in numbers}
        if not named or not all(least[name] <= numbers[name] <= MOST for name in numbers):
            raise AcceleratorError(f"{words!r} is no layer; wanted one in the words of a failed 'uaccel check'")
        return cls(op, numbers, int(seed), rounding)


SIGNED: Final = ("zero_in", "zero_out")
MOST: Final = 200  # No number that is drawn is larger.
LEAST: Final = dict.fromkeys(
    ("top", "left", "bottom", "right", "zero_in", "zero_out", "fill", "clamped", "biased", "shifted"), 0
)
# Numbers that are made least together: those that often have nothing to do with a fault, then each axis of a window.
TOGETHER: Final = (
    ("batch", "channels", "filters", "depth", "groups", "fill", "clamped", "biased", "shifted", "zero_in", "zero_out"),
    ("batch", "fill", "clamped", "biased", "shifted", "zero_out"),
    ("kernel_height", "stride_height", "top", "bottom", "height", "dilation_height"),
    ("kernel_width", "stride_width", "left", "right", "width", "dilation_width"),
)
# The operators of which layers can be drawn.
FAMILIES: Final = ("conv2d", "depthwise_conv2d", "fully_connected", "add", "sub", "average_pool2d", "max_pool2d")
WINDOWED: Final = ("conv2d", "depthwise_conv2d")


def _filled(random: np.random.Generator, shape: tuple[int, ...], fill: int) -> Array:
    if fill == 1:
        return random.choice(np.array([-128, 127], np.int8), shape)
    if fill == 2:
        return np.full(shape, -128, np.int8)
    low, high = (-2, 3) if fill == 3 else (-128, 128)
    return random.integers(low, high, shape).astype(np.int8)


def call_of(case: Case, *inputs: Any) -> Any:
    """Makes the layer as a call of its operator; the same case always has the same constants."""
    random = np.random.default_rng([case.seed, 2])
    if case.op in WINDOWED:
        return _window(case, random, inputs[0])
    if case.op == "fully_connected":
        attrs = FullyConnectedAttrs(case["zero_in"], case["zero_out"], *_clamps(case, random), case.rounding)
        shape = (case["filters"], case["depth"])
        return get(FullyConnected)(
            inputs[0], *_weights(case, random, shape, case["filters"], case["depth"]), attrs=attrs
        )
    if case.op in ("add", "sub"):
        return _sum(case, random, inputs)
    pool = PoolAttrs(
        (case["kernel_height"], case["kernel_width"]),
        (case["stride_height"], case["stride_width"]),
        (case["top"], case["left"], case["bottom"], case["right"]),
        *_clamps(case, random),
    )
    return REGISTRY[f"{NAMESPACE}{case.op}"](inputs[0], attrs=pool)


def _window(case: Case, random: np.random.Generator, x: Any) -> Any:
    depthwise = case.op == "depthwise_conv2d"
    channels, kernel = case["channels"], (case["kernel_height"], case["kernel_width"])
    groups = channels if depthwise else case["groups"]
    filters = channels * case["filters"] if depthwise else case["filters"]
    attrs = Conv2dAttrs(
        (case["stride_height"], case["stride_width"]),
        (case["top"], case["left"], case["bottom"], case["right"]),
        (case["dilation_height"], case["dilation_width"]),
        groups,
        case["zero_in"],
        case["zero_out"],
        *_clamps(case, random),
        case.rounding,
    )
    depth = 1 if depthwise else channels // groups
    shape = (*kernel, filters) if depthwise else (filters, *kernel, depth)
    weights = _weights(case, random, shape, filters, kernel[0] * kernel[1] * depth)
    return get(DepthwiseConv2d if depthwise else Conv2d)(x, *weights, attrs=attrs)


def _weights(case: Case, random: np.random.Generator, shape: tuple[int, ...], channels: int, terms: int) -> list[Any]:
    """Makes weights, bias, multipliers and shifts such that results spread over the type.

    The product of two random int8 has a standard deviation of about 128**2 / 3 = 2**12.4, and a sum of n such products
    sqrt(n) times that. A factor of 2**-7 / sqrt(n) so gives results with a deviation of about 2**5.4 = 43: they fill
    -128..127, and some saturate. It is varied by up to a factor of two. The bias is at most 4000 a term, about the mean
    size of a product, 64 * 64.

    With ``shifted``, rounding is tested: weights and bias are multiples of 64 and the multiplier is exactly a half, so
    that a sum of few digits is divided by a power of two. Many results then lie in the middle between two integers."""
    weights = _filled(random, shape, case["fill"])
    spread = terms * 4000 if case["biased"] else 0
    bias = random.integers(-spread, spread + 1, channels).astype(np.int32)
    typical = 2.0 ** (-7 - np.floor(np.log2(terms) / 2))
    scales = [quantize_multiplier(typical * float(random.uniform(0.5, 2.0))) for _ in range(channels)]
    multiplier = np.array([scale[0] for scale in scales], np.int32)
    shift = np.array([scale[1] for scale in scales], np.int32)
    if case["shifted"]:
        multiplier[:] = 1 << 30
        weights, bias = weights & np.int8(-64), bias & np.int32(-64)
    return [constant(array) for array in (weights, bias, multiplier, shift)]


def _sum(case: Case, random: np.random.Generator, inputs: tuple[Any, ...]) -> Any:
    """Makes an addition or subtraction, whose operands are made 2**20 times finer, scaled below 1, and added.

    An operand less its zero point has at most 256 steps, so that the sum stays below 2 * 2**8 * 2**20 = 2**29.

    With ``shifted`` all three scales are one, as TFLite writes that: an adder without an output stage takes those."""
    scales = [quantize_multiplier(float(random.uniform(0.25, 0.99))) for _ in range(2)]
    result = quantize_multiplier(2.0**-20 * float(random.uniform(0.5, 2.0)))
    if case["shifted"]:
        scales, result = [quantize_multiplier(0.5)] * 2, quantize_multiplier(2.0**-19)
    zeros = (case["zero_in"], min(127, -case["zero_in"]), case["zero_out"])
    clamps = _clamps(case, random)
    attrs = AddAttrs(20, zeros[0], *scales[0], zeros[1], *scales[1], zeros[2], *result, *clamps)
    return REGISTRY[f"{NAMESPACE}{case.op}"](*inputs, attrs=attrs)


def _clamps(case: Case, random: np.random.Generator) -> tuple[int, int]:
    low = int(random.integers(-128, 0)) if case["clamped"] else -128
    return low, int(random.integers(1, 128)) if case["clamped"] else 127


# Drawing: layers such as networks have them, and unusual ones.


def drawn(op: str, random: np.random.Generator, rounding: str = TFLITE) -> Case:
    """Draws a case of this operator; it need not be a layer (``Case.is_layer``)."""
    numbers = {"batch": 1 if random.random() < 0.8 else int(random.integers(2, 4))}
    if op == "fully_connected":
        numbers |= {"depth": _extent(random, 200), "filters": _extent(random, 40)}
    else:
        numbers |= {"height": _extent(random, 20), "width": _extent(random, 20), "channels": _extent(random, 24)}
    if op in WINDOWED:
        numbers |= _groups(op, random, numbers["channels"])
    if op in WINDOWED or op.endswith("pool2d"):
        numbers |= _windows(random, numbers["height"], numbers["width"], dilates=op in WINDOWED)
    numbers |= {"fill": int(random.choice([0, 0, 0, 1, 2, 3])), "clamped": int(random.random() < 0.3)}
    if not op.endswith("pool2d"):
        numbers |= {"zero_in": int(random.integers(-128, 128)) if random.random() < 0.5 else 0}
        numbers |= {"zero_out": int(random.integers(-128, 128)), "biased": int(random.random() < 0.7)}
        numbers |= {"shifted": int(random.random() < 0.3)}
    return Case(op, numbers, int(random.integers(0, 1 << 30)), rounding)


def _extent(random: np.random.Generator, most: int) -> int:
    """Draws an extent from 1 to ``most``: 1 to 2 is as likely as 16 to 32, and powers of two are more likely."""
    value = round(float(most ** random.random()))
    return 1 << (value.bit_length() - 1) if random.random() < 0.25 else value


def _groups(op: str, random: np.random.Generator, channels: int) -> dict[str, int]:
    if op == "depthwise_conv2d":
        return {"filters": 1 if random.random() < 0.7 else int(random.integers(2, 4))}
    groups = (
        1 if random.random() < 0.85 else int(random.choice([n for n in range(1, channels + 1) if channels % n == 0]))
    )
    return {"filters": groups * max(1, _extent(random, 24) // groups), "groups": groups}


def _windows(random: np.random.Generator, height: int, width: int, *, dilates: bool) -> dict[str, int]:
    kernel = [int(random.choice([1, 2, 3, 3, 5, 7])) for _ in range(2)]
    numbers: dict[str, int] = {}
    same = random.random() < 0.5
    for axis, name, extent in ((0, "height", height), (1, "width", width)):
        before, after = ("top", "bottom") if axis == 0 else ("left", "right")
        numbers[f"kernel_{name}"] = kernel[axis]
        numbers[f"stride_{name}"] = int(random.choice([1, 1, 1, 2, 2, 3]))
        border = (kernel[axis] - 1) // 2
        numbers[before] = border if same else int(random.integers(0, kernel[axis]))
        numbers[after] = border if same else int(random.integers(0, kernel[axis]))
        while extent + numbers[before] + numbers[after] < kernel[axis]:
            numbers[before] += 1
        if dilates:
            numbers[f"dilation_{name}"] = 1 if random.random() < 0.9 else 2
    return numbers
