"""Models of one operator: a test states the operator's inputs, outputs and options, and gets the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from support.models.tflite_writer import ModelBuilder, OptionValue, Tensor

__all__ = ["Activation", "Constant", "argument", "single_op"]


@dataclass(frozen=True)
class Activation:
    """An input or output of the model."""

    shape: tuple[int, ...]
    dtype: str = "int8"
    scale: float | None = None
    zero_point: int = 0


@dataclass(frozen=True)
class Constant:
    """A constant input of the operator: one scale for the whole, or several along `axis`; `bits` of int8 values."""

    values: npt.NDArray[Any]
    scales: tuple[float, ...] = ()
    zero_points: tuple[int, ...] | None = None
    axis: int = 0
    bits: int = 8


def single_op(
    operator: str,
    inputs: Sequence[Activation | Constant | None],
    outputs: Sequence[Activation],
    options: Mapping[str, OptionValue] | None = None,
) -> bytes:
    """The file; activations are the model's inputs in order, None is an optional input that is absent."""
    model = ModelBuilder()
    arguments = [argument(model, f"input_{number}", given) for number, given in enumerate(inputs)]
    results = [
        model.tensor(f"output_{number}", out.shape, out.dtype, scale=out.scale, zero_point=out.zero_point)
        for number, out in enumerate(outputs)
    ]
    model.op(operator, arguments, results, options)
    return model.build(*results)


def argument(model: ModelBuilder, name: str, given: Activation | Constant | None) -> Tensor | None:
    if given is None:
        return None
    if isinstance(given, Constant):
        points, axis, bits = given.zero_points, given.axis, given.bits
        return model.constant(name, given.values, scales=given.scales, zero_points=points, axis=axis, bits=bits)
    return model.input(name, given.shape, given.dtype, scale=given.scale, zero_point=given.zero_point)
