"""Borders of zero points become the padding of the convolutions that read them, and no others do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from support.models.tflite_writer import ModelBuilder, Tensor
from support.oracle.exactness import assert_exact_random
from uaccel.ops.operator import name_of
from uaccel.tvm_api import is_call, main_bindings

KEPT = ("relax.nn.pad", "CONVOLVED")
SIDES = ((0, 0), (0, 1), (0, 1), (0, 0))


@dataclass(frozen=True)
class Case:
    """A PAD, then what reads it; ``value``: of PADV2."""

    widths: tuple[tuple[int, int], ...] = SIDES
    padding: str = "VALID"
    dtype: str = "int8"
    value: int | None = None
    shown: bool = False  # The padded image is an output as well.
    twice: bool = False  # Two convolutions read it.
    left: tuple[str, ...] = ("CONVOLVED",)


CASES = {
    "behind": Case(),
    "around": Case(((0, 0), (2, 1), (1, 2), (0, 0))),
    "before more of its own": Case(((0, 0), (1, 0), (0, 1), (0, 0)), "SAME"),
    "of 16 bits": Case(dtype="int16"),
    "its zero point by number": Case(value=3),
    "for two": Case(twice=True, left=("CONVOLVED", "CONVOLVED")),
    "another number": Case(value=4, left=KEPT),
    "channels, too": Case(((0, 0), (0, 1), (0, 1), (0, 2)), left=KEPT),
    "images, too": Case(((0, 1), (0, 1), (0, 1), (0, 0)), left=KEPT),
    "windows beside the image": Case(((0, 0), (0, 3), (0, 1), (0, 0)), left=KEPT),
    "shown": Case(shown=True, left=KEPT),
}


def model(case: Case, operator: str) -> bytes:
    random, made = np.random.RandomState(3), ModelBuilder()
    point = 3 if case.dtype == "int8" else 0
    shape = [extent + sum(ends) for extent, ends in zip((1, 9, 9, 4), case.widths, strict=True)]
    image = made.input("image", (1, 9, 9, 4), case.dtype, scale=0.05, zero_point=point)
    padded = made.tensor("padded", tuple(shape), case.dtype, scale=0.05, zero_point=point)
    widths = made.constant("widths", np.array(case.widths, np.int32))
    if case.value is None:
        made.op("PAD", [image, widths], [padded], {})
    else:
        value = made.constant("value", np.array(case.value, case.dtype), scale=0.05, zero_point=point)
        made.op("PADV2", [image, widths, value], [padded], {})
    for number in range(1 + case.twice):
        convolve(made, case, operator, padded, shape, number, random)
    if case.shown:
        made.output(padded)
    return made.build()


def convolve(
    made: ModelBuilder,
    case: Case,
    operator: str,
    padded: Tensor,
    shape: list[int],
    number: int,
    random: np.random.RandomState,
) -> None:
    deep = operator == "CONV_2D"
    weights = random.randint(-127, 128, (6, 3, 3, shape[3]) if deep else (1, 3, 3, shape[3])).astype(np.int8)
    channels = 6 if deep else shape[3]
    bias = random.randint(-500, 500, channels).astype("int64" if case.dtype == "int16" else "int32")
    extents = [-(-extent // 2) if case.padding == "SAME" else (extent - 3) // 2 + 1 for extent in shape[1:3]]
    result = made.tensor(f"result_{number}", (shape[0], *extents, channels), case.dtype, scale=0.1, zero_point=0)
    options: dict[str, int | str] = {"padding": case.padding, "stride_w": 2, "stride_h": 2}
    options |= {} if deep else {"depth_multiplier": 1}
    inputs = [padded, made.constant(f"weights_{number}", weights, scale=0.01), made.constant(f"bias_{number}", bias)]
    made.op(operator, inputs, [result], options)
    made.output(result)


@pytest.mark.sample(14)
@pytest.mark.parametrize("operator", ["CONV_2D", "DEPTHWISE_CONV_2D"])
@pytest.mark.parametrize("name", CASES)
def test_borders(name: str, operator: str) -> None:
    compiled = assert_exact_random(model(CASES[name], operator), runs=4)
    calls = [name_of(expr) for _, expr in main_bindings(compiled.stages["simplify"])[1] if is_call(expr)]
    own = f"uaccel.{operator.lower().replace('_2d', '2d')}"
    wanted = [each.replace("CONVOLVED", own) for each in CASES[name].left]
    assert calls == wanted
