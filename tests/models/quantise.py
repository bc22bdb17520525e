"""Post-training quantisation: the numbers that map floats to integers, as TFLite wants them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Quantisation:
    """real = scale * (integer - zero_point); the scale is a float32, as the file holds it."""

    scale: float
    zero_point: int
    dtype: str


def float32(value: float) -> float:
    """The nearest float32, which is what a reader of the file will compute with."""
    return float(np.float32(value))


def activation_range(samples: Array, dtype: str) -> Quantisation:
    """Parameters that cover the samples and zero: asymmetric for int8, symmetric for int16."""
    low, high = min(0.0, float(samples.min())), max(0.0, float(samples.max()))
    if dtype == "int16":
        return Quantisation(float32(max(-low, high) / 32767), 0, dtype)
    scale = float32((high - low) / 255)
    return Quantisation(scale, int(np.clip(np.rint(-128 - low / scale), -128, 127)), dtype)


def weights_per_channel(weights: Array, axis: int, bias: Array, input_scale: float) -> tuple[Array, list[float]]:
    """Symmetric int8 weights in [-127, 127] and the scale of each slice along `axis`.

    Training all but switches channels off. As with TensorFlow's converter, a scale is large enough for the bias to fit.
    """
    others = tuple(k for k in range(weights.ndim) if k != axis)
    peaks = np.abs(weights).max(axis=others)
    least = np.abs(bias) / (input_scale * 2.0**30) if len(peaks) > 1 else np.abs(bias).max() / (input_scale * 2.0**30)
    scales = [float32(max(peak / 127, low)) if peak > 0 else 1.0 for peak, low in np.broadcast(peaks, least)]
    spread = np.array(scales, weights.dtype).reshape([-1 if k == axis else 1 for k in range(weights.ndim)])
    return np.clip(np.rint(weights / spread), -127, 127).astype(np.int8), scales


def bias_scales(input_scale: float, weight_scales: list[float]) -> list[float]:
    """A bias counts in units of the accumulator: input scale times weight scale."""
    return [float32(input_scale * scale) for scale in weight_scales]


def bias_integers(bias: Array, input_scale: float, weight_scales: list[float], dtype: str) -> Array:
    """The bias in the accumulator's units."""
    return np.rint(bias / (input_scale * np.array(weight_scales))).astype(dtype)
