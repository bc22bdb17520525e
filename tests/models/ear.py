"""Three small models that hear together: features, an embedding of some rows of these, and a classifier of embeddings.

As a program, ``python -m models.ear`` in ``tests``, it writes the example's models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from support.models.audio import FrontEnd
from support.models.tflite_writer import ModelBuilder

ROOT = Path(__file__).resolve().parents[2]

PLACE = ROOT / "examples" / "several-models"
ROWS, EMBEDDINGS = 4, 3
"""Rows of features in an embedding, and embeddings in a decision."""
CHANNELS, BANDS, LOW = 40, 8, 2
"""Channels of a row, bands of an embedding, and how many of those lie below some 1,600 Hz."""
ROW: dict[str, Any] = {"scale": 1 / 16, "zero_point": -128}


def features() -> bytes:
    """A frame of samples becomes a row of logarithms; the noise's estimate is its state."""
    model, front = ModelBuilder(), FrontEnd(channels=CHANNELS)
    frame = model.input("samples", (front.samples,), "int16")
    logs, _ = front.features(model, frame, 1 / 1600)
    flat = model.tensor("flat", (1, CHANNELS), "int16", scale=1 / 1600)
    shape = model.constant("shape", np.array([1, CHANNELS], np.int32))
    model.op("RESHAPE", [logs, shape], [flat], {"new_shape": (1, CHANNELS)})
    row = model.tensor("row", (1, CHANNELS), "int8", **ROW)
    model.op("QUANTIZE", [flat], [row])
    model.output(row)
    return model.build()


def embedding() -> bytes:
    """Each of its numbers is the mean of a band of channels over all rows."""
    band = np.arange(ROWS * CHANNELS) % CHANNELS // (CHANNELS // BANDS)
    weights = np.where(band == np.arange(BANDS)[:, np.newaxis], 64, 0).astype(np.int8)
    return _connected("rows", (1, ROWS * CHANNELS), weights, 1 / (64 * ROWS * CHANNELS / BANDS), "bands")


def classifier() -> bytes:
    """Two scores: whether low bands are louder than high ones, and the other way round."""
    low = np.where(np.arange(EMBEDDINGS * BANDS) % BANDS < LOW, BANDS - LOW, -LOW).astype(np.int8)
    return _connected("embeddings", (1, EMBEDDINGS * BANDS), np.stack([low, -low]), 1 / 8, "scores", scale=1.0)


def _connected(
    given: str, shape: tuple[int, int], weights: NDArray[np.int8], of_weights: float, made: str, scale: float = 0.0
) -> bytes:
    model = ModelBuilder()
    x = model.input(given, shape, "int8", **ROW)
    kept = model.constant("weights", weights, scale=of_weights)
    y = model.tensor(made, (1, len(weights)), "int8", **(ROW | ({"scale": scale, "zero_point": 0} if scale else {})))
    model.op("FULLY_CONNECTED", [x, kept, None], [y], {"fused_activation": "NONE"})
    model.output(y)
    return model.build()


MODELS = {"features": features, "embedding": embedding, "classifier": classifier}

if __name__ == "__main__":
    for name, build in MODELS.items():
        (PLACE / f"{name}.tflite").write_bytes(build())
