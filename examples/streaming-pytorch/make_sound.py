"""Made-up sound in frames of 30 ms: build/lesson.npz to learn from, with build/labels.npy, and build/heard.npz."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

RATE, SAMPLES, WORD = 16000, 480, 10
BUILD = Path("build")
NOTHING, RISING, FALLING = range(3)


def made(seed: int, words: int) -> tuple[list[int], NDArray[np.int16], list[int]]:
    """Tones that rise or fall for ten frames, with noise before them; the last five frames have the tone's label."""
    random = np.random.default_rng(seed)
    kinds = [int(kind) for kind in random.integers(RISING, FALLING + 1, words)]
    sound, labels = [], []
    for kind in kinds:
        low, span = random.uniform((300, 1000), (2000, 2500))
        pitch = np.linspace(low, low + span, WORD * SAMPLES)[:: 1 if kind == RISING else -1]
        tone = 6000 * np.sin(2 * np.pi * np.cumsum(pitch) / RATE)
        silence = int(random.integers(10, 90))
        sound += [np.zeros(silence * SAMPLES), tone]
        labels += [NOTHING] * (silence + WORD - 5) + [kind] * 5
    noisy = np.concatenate(sound) + random.normal(0, 50, SAMPLES * len(labels))
    return kinds, noisy.astype(np.int16).reshape(-1, SAMPLES), labels


def main() -> None:
    BUILD.mkdir(exist_ok=True)
    _, lesson, labels = made(seed=0, words=70)
    np.savez(BUILD / "lesson.npz", samples=lesson)
    np.save(BUILD / "labels.npy", labels)
    kinds, heard, _ = made(seed=1, words=6)
    np.savez(BUILD / "heard.npz", samples=heard)
    print(*(("", "rising", "falling")[kind] for kind in kinds))


if __name__ == "__main__":
    main()
