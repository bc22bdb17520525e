"""How much of a serial line carries payload: the session protocol on a simulated line, exact and the same every time.

    python benchmarks/throughput.py            measure and compare with the stored result
    python benchmarks/throughput.py --write    measure and store

The line is 8N1 in both directions at once, with the latency and the grain of a USB adapter; the server is the C one
with its default buffers, and computes in no time. The share is payload bytes over what one direction of the line could
carry meanwhile. A board neither receives while it sends nor computes: where inputs and outputs are equally large they
take turns.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.device.device import Device, VirtualLine, known_inputs, known_outputs, tokens
from uaccel.session.session import Session

RESULTS = Path(__file__).with_name("throughput.json")
BAUDS = (115200, 921600)
ADAPTERS = {"direct": (0.0, 0.0), "USB, 1 ms": (0.0005, 0.001), "USB, 4 ms": (0.002, 0.004)}
LOADS = {
    "large inputs": (27_648, 8),
    "large outputs": (8, 27_648),
    "both large": (27_648, 27_648),
    "490 bytes in, 12 out": (484, 12),
    "640 bytes in and out": (634, 628),
}
"""Bytes of the first input and of the first output; 6 and 12 come with the others. 27,648 bytes are 96 x 96 pixels in
colour; the small ones are MLPerf Tiny's keyword spotting and anomaly detection."""
SAMPLES = 8


def share(device: Device, wave: int, mask: int, baud: int, latency: float, grain: float) -> dict[str, float]:
    """Of one batch: the share of payload on each direction of the line, and together."""
    line = VirtualLine(device, baud=baud, latency=latency, grain=grain)
    fresh = tokens()
    samples = [known_inputs(seed, wave) for seed in range(SAMPLES)]
    with Session(line, new_token=lambda: next(fresh)) as session:
        begun = line.now
        for result, inputs in zip(session.stream(samples), samples, strict=True):
            np.testing.assert_array_equal(result.outputs["sums"], known_outputs(inputs)["sums"])
        capacity = (line.now - begun) * baud / 10
        sent = SAMPLES * sum(tensor.size for tensor in session.model.inputs)
        received = SAMPLES * sum(tensor.size for tensor in session.model.outputs)
    return {
        "to_device": round(sent / capacity, 4),
        "to_host": round(received / capacity, 4),
        "together": round((sent + received) / capacity, 4),
    }


def measure() -> dict[str, Any]:
    """By load, baud rate and adapter."""
    results: dict[str, Any] = {}
    for load, (wave, mask) in LOADS.items():
        device = Device(f"WAVE={wave}", f"MASK={mask}")
        for baud in BAUDS:
            for adapter, (latency, grain) in ADAPTERS.items():
                results[f"{load} at {baud}, {adapter}"] = share(device, wave, mask, baud, latency, grain)
    return results


def show(results: dict[str, Any]) -> None:
    print(f"{'load':40} {'to device':>10} {'to host':>10} {'together':>10}")
    for name, row in results.items():
        print(f"{name:40} {row['to_device']:>10.1%} {row['to_host']:>10.1%} {row['together']:>10.1%}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="store what was measured")
    arguments = parser.parse_args()
    results = measure()
    show(results)
    if arguments.write:
        RESULTS.write_text(json.dumps(results, indent=2) + "\n")
        return 0
    stored = json.loads(RESULTS.read_text())
    changed = [name for name in {**stored, **results} if stored.get(name) != results.get(name)]
    for name in changed:
        print(f"differs from the stored result: {name}: {stored.get(name)}")
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
