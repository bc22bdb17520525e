"""The main job from end to end: a network becomes C, runs, and is proven equal to TensorFlow Lite Micro.

Needs tflite-micro (``make setup`` installs it): the second opinion, which shares no code with uaccel.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

MODELS = Path(__file__).resolve().parents[1] / "tests" / "models"
ARENA_BYTES = 1 << 20


def tflite_micro_outputs(model: Path, samples: NDArray[Any]) -> NDArray[Any]:
    """What TensorFlow Lite Micro's reference kernels make of the same samples."""
    import tflite_micro

    interpreter = tflite_micro.runtime.Interpreter.from_bytes(model.read_bytes(), arena_size=ARENA_BYTES)
    outputs = []
    for sample in samples:
        interpreter.set_input(sample[np.newaxis], 0)
        interpreter.invoke()
        outputs.append(np.array(interpreter.get_output(0)))
    return np.concatenate(outputs)


def main() -> int:
    model, inputs = MODELS / "gesture.tflite", MODELS / "gesture_samples.npz"
    labels = (MODELS / "gesture_labels.txt").read_text().split()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.npz"
        command = [sys.executable, "-m", "uaccel", "run", str(model), "--board", "host", "--verify"]
        status = subprocess.run([*command, "--inputs", str(inputs), "--outputs", str(out)], check=False).returncode
        if status != 0:
            return status
        (got,) = np.load(out).values()
    (samples,) = np.load(inputs).values()
    expected = tflite_micro_outputs(model, samples)
    for label, row in zip(labels, got, strict=True):
        print(f"  sample of '{label}': the firmware says '{labels[int(np.argmax(row))]}'")
    if got.tobytes() != expected.tobytes():
        print("  NOT equal to TensorFlow Lite Micro", file=sys.stderr)
        return 3
    print(f"  Equal to TensorFlow Lite Micro, byte for byte: {got.size} outputs of {len(got)} inferences.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
