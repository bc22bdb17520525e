"""A front end, and with a layer behind it that tells low tones from high ones.

``python -m models.hearing`` in ``tests`` writes both."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from support.models.audio import FrontEnd
from support.models.tflite_writer import ModelBuilder

ROOT = Path(__file__).resolve().parents[2]

PLACE = ROOT / "examples" / "microphone-to-word" / "hearing.tflite"
ALONE = ROOT / "examples" / "streaming-pytorch" / "features.tflite"
LOW = 8
"""Channels below some 1,600 Hz."""


def build() -> bytes:
    model, front = ModelBuilder(), FrontEnd()
    frame = model.input("samples", (front.samples,), "int16")
    logs, _ = front.features(model, frame, 1 / 1600)
    row = model.tensor("row", (1, front.channels), "int8", scale=1 / 16, zero_point=-128)
    flat = model.tensor("flat", (1, front.channels), "int16", scale=1 / 1600)
    shape = model.constant("shape", np.array([1, front.channels], np.int32))
    model.op("RESHAPE", [logs, shape], [flat], {"new_shape": (1, front.channels)})
    model.op("QUANTIZE", [flat], [row])
    low = np.where(np.arange(front.channels) < LOW, front.channels - LOW, -LOW)
    weights = model.constant("weights", np.stack([low, -low]).astype(np.int8), scale=1 / 32)
    scores = model.tensor("scores", (1, 2), "int8", scale=1.0)
    model.op("FULLY_CONNECTED", [row, weights, None], [scores], {"fused_activation": "NONE"})
    return model.build(scores)


def alone() -> bytes:
    """The front end, whose features are floats."""
    model, front = ModelBuilder(), FrontEnd()
    logs, _ = front.features(model, model.input("samples", (front.samples,), "int16"), 1 / 1600)
    row = model.tensor("row", (front.channels,), "float32")
    model.op("DEQUANTIZE", [logs], [row])
    model.output(row)
    return model.build()


if __name__ == "__main__":
    ALONE.write_bytes(alone())
    PLACE.write_bytes(build())
