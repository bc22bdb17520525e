"""SVDF and LSTM in float."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from support.models.tflite_writer import ModelBuilder, OptionValue, Tensor


@dataclass(frozen=True)
class FloatSvdf:
    batch: int = 2
    depth: int = 5
    filters: int = 6
    rank: int = 2
    memory: int = 4
    activation: str = "NONE"

    def build(self) -> bytes:
        generator = np.random.RandomState(3)
        model = ModelBuilder()
        units = self.filters // self.rank

        def drawn(name: str, *shape: int) -> Tensor:
            return model.constant(name, generator.uniform(-1, 1, shape).astype(np.float32))

        arguments = [
            model.input("x", (self.batch, self.depth), "float32"),
            drawn("features", self.filters, self.depth),
            drawn("times", self.filters, self.memory),
            drawn("bias", units),
            model.variable("state", (self.batch, self.filters * self.memory), "float32"),
        ]
        y = model.tensor("y", (self.batch, units), "float32")
        model.op("SVDF", arguments, [y], {"rank": self.rank, "fused_activation": self.activation})
        model.output(y)
        return model.build()


@dataclass(frozen=True)
class FloatLstm:
    time_major: bool = False
    batch: int = 2
    steps: int = 3
    depth: int = 4
    units: int = 5
    clip: float = 0.0

    def build(self) -> bytes:
        generator = np.random.RandomState(5)
        model = ModelBuilder()
        outer = (self.steps, self.batch) if self.time_major else (self.batch, self.steps)
        arguments: list[Tensor | None] = [None] * 24
        arguments[0] = model.input("x", (*outer, self.depth), "float32")
        shapes = {1: (self.units, self.depth), 5: (self.units, self.units), 12: (self.units,)}
        for first, shape in shapes.items():
            for gate in range(4):
                values = generator.uniform(-0.4, 0.4, shape).astype(np.float32)
                arguments[first + gate] = model.constant(f"{first + gate}", values)
        arguments[18] = model.variable("hidden", (self.batch, self.units), "float32")
        arguments[19] = model.variable("cell", (self.batch, self.units), "float32")
        y = model.tensor("y", (*outer, self.units), "float32")
        options: dict[str, OptionValue] = {
            "fused_activation": "TANH",
            "time_major": self.time_major,
            "cell_clip": self.clip,
        }
        model.op("UNIDIRECTIONAL_SEQUENCE_LSTM", arguments, [y], options)
        model.output(y)
        return model.build()
