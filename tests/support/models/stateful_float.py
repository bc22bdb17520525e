"""SVDF, LSTM and simple cells in float."""

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
    in_bytes: bool = False  # The weights, but for the bias.
    asymmetric: bool = False

    def build(self) -> bytes:
        generator = np.random.RandomState(3)
        model = ModelBuilder()
        units = self.filters // self.rank

        def drawn(name: str, *shape: int) -> Tensor:
            values = generator.uniform(-1, 1, shape).astype(np.float32)
            if self.in_bytes and len(shape) > 1:
                return model.constant(name, np.rint(values * 127).astype(np.int8), scale=0.007)
            return model.constant(name, values)

        arguments = [
            model.input("x", (self.batch, self.depth), "float32"),
            drawn("features", self.filters, self.depth),
            drawn("times", self.filters, self.memory),
            drawn("bias", units),
            model.variable("state", (self.batch, self.filters * self.memory), "float32"),
        ]
        y = model.tensor("y", (self.batch, units), "float32")
        options: dict[str, OptionValue] = {"rank": self.rank, "fused_activation": self.activation}
        options |= {"asymmetric_quantize_inputs": True} if self.asymmetric else {}
        model.op("SVDF", arguments, [y], options)
        return model.build(y)


@dataclass(frozen=True)
class FloatLstm:
    time_major: bool = False
    batch: int = 2
    steps: int = 3
    depth: int = 4
    units: int = 5
    clip: float = 0.0
    in_bytes: bool = False  # The weights, but for the biases.
    asymmetric: bool = False

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
                number, stored = first + gate, np.rint(values * 250).astype(np.int8)
                in_bytes = self.in_bytes and len(shape) > 1
                arguments[number] = model.constant(
                    str(number), stored if in_bytes else values, scale=0.003 + 0.0005 * gate if in_bytes else None
                )
        arguments[18] = model.variable("hidden", (self.batch, self.units), "float32")
        arguments[19] = model.variable("cell", (self.batch, self.units), "float32")
        y = model.tensor("y", (*outer, self.units), "float32")
        options: dict[str, OptionValue] = {
            "fused_activation": "TANH",
            "time_major": self.time_major,
            "cell_clip": self.clip,
        }
        options |= {"asymmetric_quantize_inputs": True} if self.asymmetric else {}
        model.op("UNIDIRECTIONAL_SEQUENCE_LSTM", arguments, [y], options)
        return model.build(y)


@dataclass(frozen=True)
class FloatCells:
    """Simple cells over a sequence, forwards alone or both ways."""

    activation: str
    both: bool = False
    merged: bool = False
    time_major: bool = False
    biased: bool = True
    steps: int = 3
    in_bytes: bool = False  # The weights, but for the biases.
    asymmetric: bool = False

    def build(self) -> bytes:
        generator = np.random.RandomState(7)
        model, batch, steps, depth, units = ModelBuilder(), 2, self.steps, 4, 5
        outer = (steps, batch) if self.time_major else (batch, steps)
        arguments: list[Tensor | None] = [model.input("x", (*outer, depth), "float32")]
        for way in ("forth", "back")[: 1 + self.both]:
            for shape in ((units, depth), (units, units), (units,)):
                values = generator.uniform(-0.6, 0.6, shape).astype(np.float32)
                there, in_bytes = len(shape) > 1 or self.biased, self.in_bytes and len(shape) > 1
                stored, scale = (np.rint(values * 160).astype(np.int8), 0.004) if in_bytes else (values, None)
                arguments.append(model.constant(f"{way} {shape}", stored, scale=scale) if there else None)
            arguments.append(model.variable(f"{way} state", (batch, units), "float32"))
        options: dict[str, OptionValue] = {"fused_activation": self.activation, "time_major": self.time_major}
        options |= {"asymmetric_quantize_inputs": True} if self.asymmetric else {}
        if self.both:
            arguments += [None] * 3
            options["merge_outputs"] = self.merged
        width = units * (2 if self.merged else 1)
        count = 2 if self.both and not self.merged else 1
        outputs = [model.tensor(f"y{number}", (*outer, width), "float32") for number in range(count)]
        model.op(f"{'BI' if self.both else 'UNI'}DIRECTIONAL_SEQUENCE_RNN", arguments, outputs, options)
        return model.build(*outputs)
