"""The networks of the field in their published sizes: what they need, and that they are exact.

    python benchmarks/networks.py                measure, and compare with the stored result
    python benchmarks/networks.py --write        measure and store; with names, those alone
    python benchmarks/networks.py resnet50       this one alone

Each is compiled for ``host``, run once on uaccel's ramp, and held against TFLite Micro byte for byte; and compiled for
an accelerator, to tell how many of its layers that takes. Seconds are CPU time of the compiler, and not compared.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
from run import uaccel

from models.field import FIELD, Field
from support.oracle.oracle import Tflm
from uaccel.pipeline import Compiled
from uaccel.runner.job import Job
from uaccel.util.text import CPU

RESULTS = Path(__file__).with_name("networks.json")
ACCELERATORS = {"mlp": "npu", "ds_cnn": "npu", "transformer": "matrix8"}
OTHERWISE = "nuc_fpga"
EXACT = ("layers", "macs", "weights", "arena", "arena_lower_bound", "accelerator", "offloaded")


def measure(network: Field) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{network.name}.tflite"
        path.write_bytes(network.build())
        begun = time.process_time()
        compiled = Job.of(path).compiled()
        seconds = time.process_time() - begun
        accelerator = ACCELERATORS.get(network.name, OTHERWISE)
        partly = Job.of(path, accelerators=[accelerator]).compiled()
        return {
            "title": network.title,
            **needs(compiled),
            "accelerator": accelerator,
            "offloaded": sum(row.engine != CPU for row in partly.partitioned.decisions),
            "exact": is_exact(path, Path(folder) / "outputs.npz"),
            "seconds": round(seconds, 2),
        }


def needs(compiled: Compiled) -> dict[str, int]:
    return {
        "layers": len(compiled.program.layers),
        "macs": sum(layer.macs for layer in compiled.program.layers),
        "weights": compiled.generated.weight_bytes,
        "arena": compiled.placement.arena,
        "arena_lower_bound": compiled.placement.plan.lower_bound,
    }


def is_exact(path: Path, outputs: Path) -> bool:
    """Whether the firmware gives the bytes that TFLite Micro gives, for the same ramp."""
    uaccel("run", str(path), "--board", "host", "--outputs", str(outputs))
    data = path.read_bytes()
    reference = Tflm(data, arena_size=1 << 30)
    (spec,) = reference.view.inputs
    ramp = (7 * np.arange(np.prod(spec.shape)) + 3) % 256 - 128
    wanted = reference.run([ramp.astype(np.int8).reshape(spec.shape)])
    got = list(np.load(outputs).values())
    return all(np.array_equal(one, other.reshape(one.shape)) for one, other in zip(got, wanted, strict=True))


def show(results: dict[str, dict[str, Any]]) -> None:
    columns = (*EXACT, "exact", "seconds")
    print(f"{'network':<20}" + "".join(f"{name:>18}" for name in columns))
    for name, row in results.items():
        cells = (format(row[c], ",") if type(row[c]) is int else str(row[c]) for c in columns)
        print(f"{name:<20}" + "".join(f"{cell:>18}" for cell in cells), flush=True)


def differences(results: dict[str, dict[str, Any]], stored: dict[str, dict[str, Any]]) -> list[str]:
    found = [f"{name}: its bytes are not TensorFlow Lite Micro's" for name, row in results.items() if not row["exact"]]
    return found + [
        f"{name}: {what} was {stored[name][what]}, is {row[what]}"
        for name, row in results.items()
        if name in stored
        for what in EXACT
        if row[what] != stored[name][what]
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help="store the result")
    parser.add_argument("names", nargs="*", metavar="NETWORK", help="these networks alone")
    given = parser.parse_args()
    stored = json.loads(RESULTS.read_text())["networks"] if RESULTS.exists() else {}
    results = {}
    for network in FIELD:
        if not given.names or network.name in given.names:
            results[network.name] = measure(network)
            show({network.name: results[network.name]})
    if given.write:
        merged = {one.name: (stored | results)[one.name] for one in FIELD if one.name in stored | results}
        RESULTS.write_text(json.dumps({"board": "host", "networks": merged}, indent=2) + "\n")
        return 0
    found = differences(results, stored)
    for line in found:
        print(f"differs from {RESULTS.name}: {line}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
