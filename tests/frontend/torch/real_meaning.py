"""What a quantised PyTorch program means: real numbers in float64, rounded where it says that it quantises."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from support.models.exported import Array, torch


def _along(part: Any, axis: int | None, like: Any) -> Any:
    part = torch.as_tensor(part, dtype=torch.float64)
    if axis is None:
        return part.reshape(-1)[0] if part.dim() else part
    return part.reshape([-1 if place == axis else 1 for place in range(like.dim())])


def _quantised(x: Any, scale: Any, zero: Any, axis: int | None, low: int, high: int) -> Any:
    steps = torch.round(x / _along(scale, axis, x)) + _along(zero, axis, x)
    return steps.clamp(low, high)


def _real(x: Any, scale: Any, zero: Any, axis: int | None) -> Any:
    return (x.to(torch.float64) - _along(zero, axis, x)) * _along(scale, axis, x)


def _evaluator(program: Any) -> Any:
    class Evaluator(torch.fx.Interpreter):  # type: ignore[misc]
        def get_attr(self, target: str, args: Any, kwargs: Any) -> Any:
            value = super().get_attr(target, args, kwargs)
            return value.double() if torch.is_tensor(value) and value.is_floating_point() else value

        def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
            name = str(target)
            if name.startswith("quantized_decomposed.quantize_per_channel"):
                x, scale, zero, axis, low, high = args[:6]
                return _quantised(x, scale, zero, axis, low, high)
            if name.startswith("quantized_decomposed.quantize_per_tensor"):
                x, scale, zero, low, high = args[:5]
                return _quantised(x, scale, zero, None, low, high)
            if name.startswith("quantized_decomposed.dequantize_per_channel"):
                return _real(args[0], args[1], args[2], args[3])
            if name.startswith("quantized_decomposed.dequantize_per_tensor"):
                return _real(args[0], args[1], args[2], None)
            return super().call_function(target, args, kwargs)

    return Evaluator(program.module(check_guards=False))


def evaluated(program: Any, inputs: Sequence[Any]) -> list[Array]:
    """Every output, in float64."""
    with torch.no_grad():
        result = _evaluator(program).run(*(value.double() for value in inputs))
    return [np.asarray(value) for value in (result if isinstance(result, (tuple, list)) else (result,))]
