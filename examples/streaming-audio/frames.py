"""Two made-up words: build/frames.h has both for main.c, build/word_0.npz and build/word_1.npz one each for uaccel."""

from pathlib import Path

import numpy as np

FRAMES, BANDS = 12, 16
BUILD = Path("build")


def main() -> None:
    """A frame is the loudness of 16 bands; a word is a tone that rises, or falls, through them."""
    frame, band = np.arange(FRAMES)[:, None], np.arange(BANDS)
    rising = (100 - 18 * np.abs(band - frame)).clip(-128, 127).astype(np.int8)
    words = (rising, rising[::-1])
    BUILD.mkdir(exist_ok=True)
    for number, word in enumerate(words):
        np.savez(BUILD / f"word_{number}.npz", frame=word)
    text = str(np.stack(words).tolist()).replace("[", "{").replace("]", "}")
    declared = f"static const int8_t words[{len(words)}][{FRAMES}][{BANDS}] ="
    (BUILD / "frames.h").write_text(f"#include <stdint.h>\n\n{declared}\n    {text};\n", encoding="utf-8")


if __name__ == "__main__":
    main()
