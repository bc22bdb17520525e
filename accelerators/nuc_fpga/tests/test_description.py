"""What the description claims, refuses and asks the driver for."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from uaccel.accelerator import Constant, Input, OpCall, Operand, Output, Region, Tensor, TensorInfo, load_accelerator
from uaccel.testing import operator

FOLDER = Path(__file__).resolve().parents[1]
ACCELERATOR = load_accelerator(str(FOLDER))
CONV2D, DEPTHWISE, DENSE = ACCELERATOR.operations
PLAIN = operator("conv2d").attributes((1, 1), (1, 1, 1, 1), (1, 1), 1, 0, 0, -128, 127)


def region(op: str, attrs: Any, operands: list[Operand], output: TensorInfo) -> Region:
    call = OpCall("layer", op, attrs, tuple(operands), (output,), ("x",), ("y",), macs=1000)
    return Region((call,), (Tensor("x", operands[0].info),), (Tensor("y", output),))


def known(*shape: int, dtype: str = "int8") -> Operand:
    return Operand(TensorInfo(shape, dtype), np.zeros(shape, dtype))


def convolution(attrs: Any = PLAIN, *, kernel: tuple[int, int] = (3, 3), width: int = 8, dtype: str = "int8") -> Region:
    """``uaccel.conv2d`` of 4 channels to 6, of the same size."""
    data = TensorInfo((1, 8, width, 4), dtype)
    operands = [Operand(data), known(6, *kernel, 4), known(6, dtype="int64" if dtype == "int16" else "int32")]
    return region("uaccel.conv2d", attrs, operands, TensorInfo((1, 8, width, 6), dtype))


def test_the_description_is_short() -> None:
    """Under 60 lines without imports, comments and blank ones."""
    source = (FOLDER / "accelerator.py").read_text()
    docstring, *statements = ast.parse(source).body
    apart = [docstring, *(node for node in statements if isinstance(node, ast.Import | ast.ImportFrom))]
    uncounted = {line for node in apart for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    lines = enumerate(source.splitlines(), 1)
    counted = [line for number, line in lines if number not in uncounted and line.strip() and line.lstrip()[0] != "#"]
    assert counted[0] == "MULTIPLIERS = 64"
    assert counted[-1] == ")"
    assert len(counted) < 60


def test_what_it_can_do_it_claims() -> None:
    assert CONV2D.check(convolution()) is None
    assert CONV2D.check(convolution(replace(PLAIN, dilation=(2, 7)))) is None
    assert DEPTHWISE.check(replace_call(convolution(), "uaccel.depthwise_conv2d", known(3, 3, 4))) is None
    dense = region(
        "uaccel.fully_connected",
        None,
        [Operand(TensorInfo((1, 9), "int8")), known(5, 9), known(5, dtype="int32")],
        TensorInfo((1, 5), "int8"),
    )
    assert DENSE.check(dense) is None


def replace_call(original: Region, op: str, weights: Operand) -> Region:
    operands = (original.operands[0], weights, *original.operands[2:])
    return replace(original, calls=(replace(original.root, op=op, operands=operands),))


REFUSALS = {
    "lines of 1023 with padding (1, 1, 1, 1), and the engine's line buffer holds 1024": convolution(width=1023),
    "kernel 17x1, and the engine's largest is 16x16": convolution(kernel=(17, 1)),
    "kernel 3x17, and the engine's largest is 16x16": convolution(replace(PLAIN, dilation=(1, 8))),
    "its input is int16, wanted int8": convolution(dtype="int16"),
    "its weights are computed at run time, wanted constants": replace_call(
        convolution(), "uaccel.conv2d", Operand(TensorInfo((6, 3, 3, 4), "int8"))
    ),
}


@pytest.mark.parametrize("reason", REFUSALS)
def test_what_it_cannot_do_it_refuses_with_a_reason(reason: str) -> None:
    assert CONV2D.check(REFUSALS[reason]) == reason


def test_the_call_has_the_drivers_arguments() -> None:
    attrs = operator("conv2d_sums").attributes((2, 3), (1, 0, 1, 0), (1, 1), 2, "NCHW")
    operands = [Operand(TensorInfo((1, 4, 9, 10), "int8")), known(6, 2, 3, 5)]
    lowered = ACCELERATOR.lower(
        CONV2D, region("uaccel.conv2d_sums", attrs, operands, TensorInfo((1, 6, 5, 2), "int32"))
    )
    (call,) = lowered.calls
    assert call.function == "nuc_fpga_conv2d"
    x, kernel, out, *numbers = call.arguments
    assert (x, out, type(kernel)) == (Input(0), Output(0), Constant)
    assert numbers == [1, 4, 9, 10, 6, 2, 1, 0, 3, 5, 2, 3]


def test_work_costs_and_moving_bytes_costs() -> None:
    assert CONV2D.cost is not None
    small, large = convolution(), convolution(width=800)
    assert CONV2D.cost(large) - CONV2D.cost(small) == pytest.approx((800 - 8) * 8 * (4 + 6) / 8)
    calculated = replace(small, calls=(replace(small.root, macs=64_000_000),))
    assert CONV2D.cost(calculated) == pytest.approx(1_000_200)


def test_a_dilated_kernel_costs_what_it_is_spread_to() -> None:
    assert CONV2D.cost is not None
    plain, dilated = (
        replace(made, calls=(replace(made.root, macs=9_000_000),))
        for made in (convolution(), convolution(replace(PLAIN, dilation=(2, 2))))
    )
    assert (CONV2D.cost(dilated) - 200) / (CONV2D.cost(plain) - 200) == pytest.approx(25 / 9)
