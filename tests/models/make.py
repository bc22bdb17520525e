"""Build the project's own models: `python tests/models/make.py [DIRECTORY]`, by default next to this file.

NumPy and the TFLite schema alone, every draw seeded: the files are the same bytes each time.
"""

from __future__ import annotations

import io
import sys
import zipfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from models import branches, gesture, int16, mixed, motion, residual, stream

_LONG_AGO = (1980, 1, 1, 0, 0, 0)
_SEEDED = {"residual": residual, "branches": branches, "int16": int16, "mixed": mixed, "stream": stream}


def archive(arrays: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """An .npz file without the clock that NumPy's own writer may put into it."""
    result = io.BytesIO()
    with zipfile.ZipFile(result, "w", zipfile.ZIP_STORED) as npz:
        for name, array in arrays.items():
            content = io.BytesIO()
            np.lib.format.write_array(content, array)
            npz.writestr(zipfile.ZipInfo(f"{name}.npy", _LONG_AGO), content.getvalue())
    return result.getvalue()


def files() -> dict[str, bytes]:
    """Every file that is committed next to this script, by name."""
    trained = gesture.build()
    print(f"gesture: {100 * trained.float_accuracy:.1f} % of unseen gestures right in float")
    made = {
        "gesture.tflite": trained.data,
        "gesture_samples.npz": archive(gesture.samples()),
        "gesture_labels.txt": "".join(f"{name}\n" for name in motion.GESTURES).encode(),
    }
    return made | {f"{name}.tflite": module.build() for name, module in _SEEDED.items()}


def int8_accuracy(data: bytes) -> float | None:
    """The gesture model's share of right answers on TFLite Micro, where that is installed."""
    if not all(map(find_spec, ("pytest", "tflite_micro"))):
        return None
    from support.oracle.oracle import Tflm

    interpreter = Tflm(data)
    inputs, truth = gesture.test_set()
    guesses = np.array([interpreter.run([x])[0].argmax() for x in inputs])
    return float((guesses == truth).mean())


def main() -> None:
    directory = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent
    directory.mkdir(parents=True, exist_ok=True)
    made = files()
    accuracy = int8_accuracy(made["gesture.tflite"])
    if accuracy is not None:
        print(f"gesture: {100 * accuracy:.1f} % right in int8, on TFLite Micro")
    for name, content in made.items():
        (directory / name).write_bytes(content)
        print(f"{name}: {len(content)} bytes")


if __name__ == "__main__":
    main()
