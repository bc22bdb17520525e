"""Synthetic accelerometer recordings of hand gestures: 32 samples of three axes, in units of g."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from models.grid import draw, snap

Array = npt.NDArray[Any]

GESTURES = ("still", "tap", "swipe", "shake", "circle", "lift")
STEPS = 32
# A sensor of +-4 g with 8 bits: its integers are the model's input as they are.
SENSOR_SCALE = 1 / 32


def recordings(seed: int, count: int) -> tuple[Array, Array]:
    """`count` recordings [count, 32, 3] in g on the sensor's grid, and the number of each one's gesture."""
    generator = draw(seed)
    labels = np.arange(count) % len(GESTURES)
    curves = np.stack([_recording(GESTURES[label], generator) for label in labels])
    readings = np.clip(np.rint(snap(curves / SENSOR_SCALE)), -128, 127)
    return readings * SENSOR_SCALE, labels


def _recording(gesture: str, generator: np.random.RandomState) -> Array:
    time = np.arange(STEPS) / STEPS
    strength = generator.uniform(0.6, 1.6)
    motion = _motion(gesture, time, generator) * strength
    tilt = generator.uniform(-0.25, 0.25, 3) + np.array([0.0, 0.0, 1.0])
    noise = generator.uniform(-0.15, 0.15, (STEPS, 3)) + generator.uniform(-0.15, 0.15, (STEPS, 3))
    recording: Array = motion + tilt + noise
    return recording


def _motion(gesture: str, time: Array, generator: np.random.RandomState) -> Array:
    """The acceleration of the hand alone; sides, speeds and moments differ from recording to recording."""
    still = np.zeros_like(time)
    side = 1.0 if generator.uniform() < 0.5 else -1.0
    moment = generator.uniform(0.3, 0.7)
    phase = generator.uniform(0, 2 * np.pi)
    if gesture == "tap":
        width = generator.uniform(0.02, 0.04)
        return np.stack([still, still, 2.0 * _bump(time, moment, width)], axis=1)
    if gesture == "swipe":
        width = generator.uniform(0.08, 0.14)
        push = _bump(time, moment - width, width) - _bump(time, moment + width, width)
        return np.stack([side * push, 0.2 * push, still], axis=1)
    if gesture == "shake":
        turns = generator.uniform(5, 7)
        return np.stack([np.sin(2 * np.pi * turns * time + phase), still, still], axis=1)
    if gesture == "circle":
        angle = 2 * np.pi * generator.uniform(1.2, 2.2) * time * side + phase
        return np.stack([np.cos(angle), np.sin(angle), still], axis=1)
    if gesture == "lift":
        width = generator.uniform(0.08, 0.14)
        push = _bump(time, moment - width, width) - _bump(time, moment + width, width)
        return np.stack([still, still, push], axis=1)
    return np.stack([still, still, still], axis=1)


def _bump(time: Array, middle: float, width: float) -> Array:
    return np.exp(-(((time - middle) / width) ** 2))
