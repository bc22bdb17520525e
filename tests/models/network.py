"""A quantised network under construction: each layer is calibrated and written in one step.

A value carries its float samples, one per calibration input. A layer computes the samples of its result,
takes the quantisation from their range, and appends its operator to the file. So there is no graph to walk
twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from models.quantise import Quantisation, activation_range
from support.models.tflite_writer import ModelBuilder, OptionValue, Tensor

Array = npt.NDArray[Any]
Options = Mapping[str, OptionValue]


@dataclass(frozen=True)
class Value:
    """A tensor of the network: where it is in the file, what it held for each sample, how it is quantised."""

    tensor: Tensor
    samples: Array
    quantisation: Quantisation | None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.tensor.shape

    @property
    def scale(self) -> float:
        return self.known.scale

    @property
    def known(self) -> Quantisation:
        """The quantisation of a value that must have one."""
        if self.quantisation is None:
            raise ValueError(f"{self.tensor.name} is not quantised")
        return self.quantisation


class Network:
    """A model whose activations are of one integer type, `int8` or `int16`."""

    def __init__(self, description: str, dtype: str = "int8") -> None:
        self.dtype = dtype
        self.builder = ModelBuilder(description)
        self._used: dict[str, int] = {}

    def input(self, name: str, samples: Array, quantisation: Quantisation | None = None) -> Value:
        """An input, calibrated on the samples unless it comes with its quantisation."""
        known = quantisation or activation_range(samples, self.dtype)
        shape = (1, *samples.shape[1:])
        tensor = self.builder.input(name, shape, known.dtype, scale=known.scale, zero_point=known.zero_point)
        return Value(tensor, samples, known)

    def float_input(self, name: str, samples: Array) -> Value:
        return Value(self.builder.input(name, (1, *samples.shape[1:]), "float32"), samples, None)

    def layer(
        self,
        operator: str,
        inputs: Sequence[Tensor | None],
        samples: Array,
        quantisation: Quantisation | None = None,
        options: Options | None = None,
    ) -> Value:
        """Append an operator with one quantised result, calibrated unless it comes with its quantisation."""
        (result,) = self.layers(operator, inputs, [samples], quantisation, options)
        return result

    def layers(
        self,
        operator: str,
        inputs: Sequence[Tensor | None],
        samples: Sequence[Array],
        quantisation: Quantisation | None = None,
        options: Options | None = None,
    ) -> list[Value]:
        """Append an operator with several results that share their quantisation."""
        known = quantisation or activation_range(np.concatenate([part.ravel() for part in samples]), self.dtype)
        results = [
            Value(
                self.builder.tensor(
                    self.name(operator),
                    (1, *part.shape[1:]),
                    known.dtype,
                    scale=known.scale,
                    zero_point=known.zero_point,
                ),
                part,
                known,
            )
            for part in samples
        ]
        self.builder.op(operator, inputs, [result.tensor for result in results], options)
        return results

    def unquantised_layer(
        self,
        operator: str,
        inputs: Sequence[Tensor | None],
        samples: Array,
        dtype: str = "float32",
        options: Options | None = None,
    ) -> Value:
        """Append an operator whose result is a float, or an integer that counts things."""
        tensor = self.builder.tensor(self.name(operator), (1, *samples.shape[1:]), dtype)
        self.builder.op(operator, inputs, [tensor], options)
        return Value(tensor, samples, None)

    def recalibrated(self, value: Value, quantisation: Quantisation) -> Value:
        """The same with another quantisation: of a value that its layer rescales, and that nothing has read yet."""
        tensor = self.builder.requantised(value.tensor, quantisation.scale, quantisation.zero_point)
        return Value(tensor, value.samples, quantisation)

    def integers(self, what: str, values: Sequence[Any] | int) -> Tensor:
        """An int32 constant: axes, sizes, offsets."""
        return self.builder.constant(self.name(what), np.array(values, np.int32))

    def output(self, value: Value) -> None:
        self.builder.output(value.tensor)

    def build(self, *outputs: Value) -> bytes:
        return self.builder.build(*(value.tensor for value in outputs))

    def name(self, what: str) -> str:
        """A name that is new, and says what it names."""
        count = self._used.get(what, 0) + 1
        self._used[what] = count
        return f"{what.lower()}_{count}"
