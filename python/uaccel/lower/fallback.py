"""Operators without a kernel of ours: TVM lowers them, and its C becomes part of the generated source."""

from __future__ import annotations

from typing import Any

from uaccel.cprinter import compile_call
from uaccel.ops.base import Operand, operand_arguments
from uaccel.ops.kernel import Definition, Kernel, KernelCall, Output, Scratch


def fallback_layer(call: Any, operands: tuple[Operand, ...], symbol: str) -> tuple[Kernel, Definition]:
    """The kernel that calls the generated function ``symbol``, and that function."""
    function = compile_call(call, symbol)
    arguments = operand_arguments(operands, [f"constant{index}" for index in range(len(operands))])
    arguments.extend(Output(index) for index in range(len(function.outputs)))
    if function.scratch_bytes:
        arguments.append(Scratch())
    kernel_call = KernelCall(symbol, "", "", {}, tuple(arguments))
    kernel = Kernel("tir", (kernel_call,), scratch=function.scratch_bytes)
    return kernel, Definition(symbol, function.source, function.headers)
