"""Print recordings.h: the recorded gestures and the names of the classes, as C arrays for main.c."""

import sys
from pathlib import Path

import numpy as np


def header(samples: Path, labels: Path) -> str:
    names = ", ".join(f'"{name}"' for name in labels.read_text(encoding="utf-8").split())
    recordings = np.load(samples)["motion"].reshape(-1, 96)  # 32 times x, y, z from the accelerometer
    rows = ",\n".join("    {" + ", ".join(str(value) for value in recording) + "}" for recording in recordings)
    return f"#include <stdint.h>\n\nstatic const char *const labels[] = {{{names}}};\n" + (
        f"static const int8_t recordings[][96] = {{\n{rows}}};\n"
    )


if __name__ == "__main__":
    print(header(Path(sys.argv[1]), Path(sys.argv[2])), end="")
