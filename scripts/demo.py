"""The main job from end to end: a network of the project's own, partly on an accelerator, proven equal to the last bit.

The accelerator is only emulated: a model of the device in the firmware's own process, behind the driver that would
drive the silicon. The firmware is built, run over the session, and held against the model's exact meaning, and against
TensorFlow Lite Micro, a second opinion that shares no code with uaccel (``make setup`` installs it).
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

MODELS = Path(__file__).resolve().parents[1] / "tests" / "models"
ACCELERATOR = "matrix8"
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


def run_firmware(model: Path, inputs: Path, outputs: Path) -> tuple[int, dict[str, Any]]:
    """The exit status of ``uaccel run``, and its report."""
    command = [sys.executable, "-m", "uaccel", "run", str(model), "--board", "host", "--accelerator", ACCELERATOR]
    files = ["--inputs", str(inputs), "--outputs", str(outputs)]
    done = subprocess.run([*command, *files, "--verify", "--json"], stdout=subprocess.PIPE, text=True, check=False)
    return done.returncode, json.loads(done.stdout) if done.stdout else {}


def show(report: dict[str, Any]) -> None:
    """Which layer ran where, how often the driver called its device for it, and why."""
    table = Table(box=SIMPLE_HEAD, collapse_padding=True)
    for title in ("Layer", "Engine"):
        table.add_column(title, no_wrap=True)
    for title in ("MACs", "Calls", "Cycles"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("Why", overflow="fold")
    for layer in report["layers"]:
        device = layer if layer["engine"] != "cpu" else {}
        numbers = (layer["macs"], device.get("calls"), device.get("cycles"))
        why = layer["reason"].partition("; driver function")[0].removeprefix("CPU kernel uaccel_")
        table.add_row(layer["name"], layer["engine"], *(f"{number:,}" if number else "" for number in numbers), why)
    console = Console()
    console.print(table)
    for engine in (ACCELERATOR, "cpu"):
        macs = sum(layer["macs"] for layer in report["layers"] if layer["engine"] == engine)
        console.print(f"  {engine}: {macs:,} multiply-accumulates in one inference")
    calls = sum(layer["calls"] for layer in report["layers"] if layer["engine"] == ACCELERATOR)
    console.print(f"  {ACCELERATOR}'s driver counted {calls:,} calls in {report['runs']} inferences")


def main() -> int:
    model, inputs = MODELS / "gesture.tflite", MODELS / "gesture_samples.npz"
    labels = (MODELS / "gesture_labels.txt").read_text().split()
    print(f"The gesture model for board host, with {ACCELERATOR}, whose device is a model of it in C:")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.npz"
        status, report = run_firmware(model, inputs, out)
        if "layers" in report:
            show(report)
        if status != 0:
            return status
        (got,) = np.load(out).values()
    (samples,) = np.load(inputs).values()
    expected = tflite_micro_outputs(model, samples)
    for label, row in zip(labels, got, strict=True):
        print(f"  sample of '{label}': the firmware says '{labels[int(np.argmax(row))]}'")
    print(f"  Verified: every output of all {report['runs']} runs equals the exact meaning, bit for bit.")
    if got.tobytes() != expected.tobytes():
        print("  NOT equal to TensorFlow Lite Micro", file=sys.stderr)
        return 3
    print(f"  Equal to TensorFlow Lite Micro, byte for byte: {got.size} outputs of {len(got)} inferences.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
