"""What conveyor does not take, and the words in which it says so."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from uaccel.accelerator import Accelerator, constant
from uaccel.testing import example, operator

ADD, CONV2D, MAX_POOL2D = operator("add"), operator("conv2d"), operator("max_pool2d")
SUM = ADD.attributes(20, 0, 2**30, 0, 0, 2**30, 0, 0, 2**30, -18, -128, 127)
NONE = (0, 0, 0, 0)


def convolved(
    x: Any, kernel: tuple[int, ...], padding: tuple[int, ...] = NONE, strides: tuple[int, ...] = (1, 1)
) -> Any:
    attrs = CONV2D.attributes(strides, padding, (1, 1), 1, 0, 0, -128, 127)
    scale = [np.full(1, value, np.int32) for value in (0, 2**30, -7)]
    depth = int(x.ty.shape.values[3])
    weights = constant(np.ones((1, *kernel, depth), np.int8))
    return CONV2D(x, weights, *[constant(array) for array in scale], attrs=attrs)


def largest(x: Any, window: tuple[int, ...]) -> Any:
    return MAX_POOL2D(x, attrs=MAX_POOL2D.attributes(window, (1, 1), NONE, -128, 127))


def added(x: Any, y: Any) -> Any:
    return ADD(x, y, attrs=SUM)


@pytest.mark.parametrize(
    ("shapes", "dtype", "build", "operation", "reason"),
    [
        ([(1, 4, 4, 3)], "int8", lambda x: convolved(x, (3, 3)), "conv2d", None),
        ([(1, 4, 4, 3)], "int16", lambda x: convolved(x, (3, 3)), "conv2d", "its input is int16, wanted int8"),
        (
            [(1, 8, 8, 1100)], "int8", lambda x: convolved(x, (8, 8)), "conv2d",
            "one filter has 70400 bytes, and the filter memory 65536",
        ),
        (
            [(1, 4, 4100, 8)], "int8", lambda x: convolved(x, (2, 2)), "conv2d",
            "a row of its output needs 65600 bytes of its input at once, and the row memory has 65536",
        ),
        (
            [(1, 300, 4, 1)], "int8", lambda x: convolved(x, (256, 1)), "conv2d",
            "its kernel height is 256, and 255 the largest in a command",
        ),
        (
            [(1, 2, 2, 1)], "int8", lambda x: convolved(x, (1, 1), (256, 0, 0, 0)), "conv2d",
            "its pad top is 256, and 255 the largest in a command",
        ),
        ([(1, 65536, 1, 1)], "int8", lambda x: convolved(x, (1, 1)), "conv2d",
         "its in height is 65536, and 65535 the largest in a command"),
        ([(1, 4, 4, 3)], "int8", lambda x: largest(x, (2, 2)), "max_pool2d", None),
        ([(1, 4, 4, 3)], "int16", lambda x: largest(x, (2, 2)), "max_pool2d", "its input is int16, wanted int8"),
        (
            [(1, 9, 8000, 1)], "int8", lambda x: largest(x, (9, 3)), "max_pool2d",
            "a row of its output needs 72000 bytes of its input at once, and the row memory has 65536",
        ),
        ([(1, 4, 4, 3)] * 2, "int8", added, "add", None),
        ([(1, 4, 4, 3)] * 2, "int16", added, "add", "its operand 1 is int16, wanted int8"),
        (
            [(1, 4, 4, 3), (1, 1, 1, 3)], "int8", added, "add",
            "its operand 2, int8 [1,1,1,3], would have to be repeated, and the belt repeats nothing",
        ),
        ([(4, 3)], "int8", lambda x: added(x, constant(np.ones(3, np.int8))), "add", None),
    ],
)  # fmt: skip
def test_checks(
    parts: SimpleNamespace,
    conveyor: Accelerator,
    shapes: Any,
    dtype: str,
    build: Any,
    operation: str,
    reason: str | None,
) -> None:
    made = example(shapes, lambda block, *xs: [block.emit(build(*xs), "layer")], dtype)
    described = {entry.name: entry for entry in conveyor.operations}[operation]
    assert described.check(made.region) == reason


def test_costs_are_what_the_device_counts(parts: SimpleNamespace, conveyor: Accelerator) -> None:
    """3x3 from 64 to 1 channels on 2x2 pixels: 32 + 36 + ((1024 + 4 + 576 + 12) / 8 = 202)."""
    made = example([(1, 4, 4, 64)], lambda block, x: [block.emit(convolved(x, (3, 3)), "layer")])
    (described,) = [entry for entry in conveyor.operations if entry.name == "conv2d"]
    assert described.cost is not None
    assert described.cost(made.region) == 32 + 36 + 202
