"""A rough idea of what a layer costs on the CPU, for choosing between engines and for the report."""

from __future__ import annotations

from typing import Final

from uaccel.accelerator.region import OpCall

CYCLES_PER_MAC: Final = 3.0
CYCLES_PER_BYTE: Final = 1.0
"""Of the operands that change and the result: loading, requantising, storing."""


def cpu_cycles(call: OpCall) -> float:
    """Of a small microcontroller with portable kernels; wrong by a factor of two either way."""
    moved = sum(operand.info.size for operand in call.operands if operand.constant is None)
    return call.macs * CYCLES_PER_MAC + (moved + sum(info.size for info in call.outputs)) * CYCLES_PER_BYTE
