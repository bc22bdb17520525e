"""Two made-up sounds as a microphone gives them, in frames of 30 ms: build/sounds.h."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

RATE, SAMPLES, FRAMES = 16000, 480, 12
PITCHES = {"500 Hz": 500, "3500 Hz": 3500}
TARGET = Path("build", "sounds.h")


def sound(pitch: int) -> NDArray[np.int16]:
    """A tone that swells, with some noise."""
    time = np.arange(FRAMES * SAMPLES) / RATE
    noise = np.random.RandomState(0).normal(0, 20, time.size)
    tone = 8000 * np.sin(np.pi * time / time[-1]) * np.sin(2 * np.pi * pitch * time)
    frames: NDArray[np.int16] = (tone + noise).astype(np.int16).reshape(FRAMES, SAMPLES)
    return frames


def main() -> None:
    """Both as arrays of C."""
    frames = [["{" + ",".join(map(str, frame)) + "}" for frame in sound(pitch)] for pitch in PITCHES.values()]
    rows = ",\n".join("{\n" + ",\n".join(each) + "}" for each in frames)
    names = ", ".join(f'"{name}"' for name in PITCHES)
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(
        f"#include <stdint.h>\n\nstatic const char *const names[] = {{{names}}};\n"
        f"static int16_t sounds[][{FRAMES}][{SAMPLES}] = {{\n{rows}}};\n"
    )


if __name__ == "__main__":
    main()
