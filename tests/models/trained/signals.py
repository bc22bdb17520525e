"""What the networks are trained on: pictures of shapes, spectra of machines, and spoken words, all synthetic."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from models.grid import draw

Array = npt.NDArray[Any]

SHAPES = ("disc", "ring", "square", "cross", "stripes", "wedge")
SIDE = 16
BINS = 256
WORDS = ("silence", "up", "down", "level", "twice")
FRAMES, FEATURES = 20, 12


def pictures(seed: int, count: int) -> tuple[Array, Array, Array]:
    """Pictures [count, 16, 16, 1] from 0 to 1 with noise, the same without it, and the number of each one's shape."""
    generator = draw(seed)
    labels = np.arange(count) % len(SHAPES)
    clean = np.stack([_picture(SHAPES[label], generator) for label in labels])[..., None]
    noisy = clean + generator.normal(0, 0.12, clean.shape)
    return np.clip(noisy, 0, 1).astype(np.float32), clean.astype(np.float32), labels


def _picture(shape: str, generator: np.random.RandomState) -> Array:
    row, column = np.mgrid[:SIDE, :SIDE] - generator.uniform(5, SIDE - 6, (2, 1, 1))
    size, turn = generator.uniform(2.5, 5), generator.uniform(0, np.pi)
    x, y = column * np.cos(turn) + row * np.sin(turn), row * np.cos(turn) - column * np.sin(turn)
    radius, reach = np.hypot(x, y), np.maximum(abs(x), abs(y))
    inside = {
        "disc": radius < size,
        "ring": abs(radius - size) < 1,
        "square": abs(reach - size) < 1,
        "cross": (np.minimum(abs(x), abs(y)) < 1) & (reach < size + 1),
        "stripes": np.sin(x * 2) > 0,
        "wedge": (y > -size / 2) & (abs(x) < (size - y) / 2),
    }[shape]
    ground, light = generator.uniform(0, 0.3), generator.uniform(0.5, 1)
    return np.where(inside, light, ground)


def spectra(seed: int, count: int) -> Array:
    """Levels [count, 256] of machines that hum: harmonics of one tone above a floor that falls."""
    generator = draw(seed)
    bins = np.arange(BINS)
    levels = []
    for _ in range(count):
        tone, width, fall = generator.uniform(11, 40), generator.uniform(0.6, 2), generator.uniform(0.3, 0.9)
        peaks = [3 * fall**n * np.exp(-(((bins - tone * n) / width) ** 2)) for n in range(1, 20)]
        levels.append(np.sum(peaks, axis=0) - bins / 128 + generator.normal(0, 0.1, BINS))
    return np.array(levels, np.float32)


def words(seed: int, count: int) -> tuple[Array, Array]:
    """Frames [count, 20, 12] of a filter bank from -1 to 1, and the number of each one's word."""
    generator = draw(seed)
    labels = np.arange(count) % len(WORDS)
    return np.stack([_word(WORDS[label], generator) for label in labels]).astype(np.float32), labels


def _word(word: str, generator: np.random.RandomState) -> Array:
    time, place = np.arange(FRAMES)[:, None], np.arange(FEATURES)
    begin, speed = generator.uniform(1, 5), generator.uniform(0.5, 0.8)
    at = time - begin
    pitch = generator.uniform(2, 4) + speed * {"up": at, "down": 8 / speed - at}.get(word, 0 * at + 2)
    spoken = (at > 0) & (at < 12)
    if word == "twice":
        spoken &= abs(at - 6) > 2.5
    loud = generator.uniform(0.8, 1.8) * np.exp(-((place - pitch) ** 2) / 2) * spoken * (word != "silence")
    return np.clip(loud - 0.9 + generator.normal(0, 0.12, (FRAMES, FEATURES)), -1, 1)
