"""A small keyword spotter that is given one frame at a time: two SVDF layers remember what they need of others."""

from __future__ import annotations

import numpy as np

from models.grid import draw
from support.models.tflite_writer import ModelBuilder, Tensor

FRAME, CLASSES = 16, 4
UNIT = 2.0**-7
"""The scale of most weights, and of the frames."""


def build() -> bytes:
    model = ModelBuilder("uaccel stream: a state between inferences")
    seeded = _Seeded(model)
    frame = model.input("frame", (1, FRAME), "int8", scale=UNIT, zero_point=0)
    wide = seeded.svdf("first", frame, units=8, rank=2, memory=6, state="int16", state_scale=2.0**-13)
    narrow = seeded.svdf("second", wide, units=8, rank=1, memory=4, state="int8", state_scale=2.0**-5)
    logits = model.tensor("logits", (1, CLASSES), "int8", scale=2.0**-4, zero_point=3)
    weights = seeded.constant("weights", (CLASSES, 8), "int8", 2.0**-6)
    model.op("FULLY_CONNECTED", [narrow, weights, None], [logits])
    keyword = model.tensor("keyword", (1, CLASSES), "int8", scale=2.0**-8, zero_point=-128)
    model.op("SOFTMAX", [logits], [keyword], {"beta": 1.0})
    return model.build(keyword, logits)


class _Seeded:
    """Layers whose weights are drawn one after the other."""

    def __init__(self, model: ModelBuilder) -> None:
        self.model = model
        self._generator = draw(51)

    def constant(self, name: str, shape: tuple[int, ...], dtype: str, scale: float) -> Tensor:
        limit = np.iinfo(dtype).max
        return self.model.constant(name, self._generator.randint(-limit, limit + 1, shape).astype(dtype), scale=scale)

    def svdf(
        self, name: str, source: Tensor, *, units: int, rank: int, memory: int, state: str, state_scale: float
    ) -> Tensor:
        """With ReLU, which the output's zero point means."""
        model, filters = self.model, units * rank
        features = self.constant(f"{name}_features", (filters, source.shape[1]), "int8", UNIT / 2)
        time_scale = 2.0**-15 if state == "int16" else UNIT
        times = self.constant(f"{name}_times", (filters, memory), state, time_scale)
        bias = self._generator.randint(-99, 100, units).astype(np.int32)
        biases = model.constant(f"{name}_bias", bias, scale=state_scale * time_scale)
        kept = model.variable(f"{name}_state", (1, filters * memory), state, scale=state_scale)
        output = model.tensor(name, (1, units), "int8", scale=2.0**-6, zero_point=-128)
        arguments = [source, features, times, biases, kept]
        model.op("SVDF", arguments, [output], {"rank": rank, "fused_activation": "RELU"})
        return output
