"""Two made-up sounds as a microphone gives them, in frames of 30 ms: build/low.npz and build/high.npz."""

from pathlib import Path

import numpy as np

RATE, SAMPLES, FRAMES = 16000, 480, 10
BUILD = Path("build")


def main() -> None:
    """A tone that swells, with some noise."""
    time = np.arange(FRAMES * SAMPLES) / RATE
    noise = np.random.RandomState(0).normal(0, 20, time.size)
    BUILD.mkdir(exist_ok=True)
    for name, pitch in (("low", 500), ("high", 3500)):
        tone = 8000 * np.sin(np.pi * time / time[-1]) * np.sin(2 * np.pi * pitch * time)
        np.savez(BUILD / f"{name}.npz", samples=(tone + noise).astype(np.int16).reshape(FRAMES, SAMPLES))


if __name__ == "__main__":
    main()
