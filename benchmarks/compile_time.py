"""Layers against seconds: what the compiler takes for chains of growing length and for networks of the field.

    python benchmarks/compile_time.py            measure, and check that time grows in proportion
    python benchmarks/compile_time.py --write    measure and store

Seconds of this process's CPU time, stage by stage; they differ between computers, so the stored ones are there to be
looked at, and what is checked is growth: four times the layers may take so many times as long, not more. A chain is
blocks of two convolutions and an addition, as in a residual network.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from models.field import field
from support.models.chains import chain
from uaccel.runner.job import Job

RESULTS = Path(__file__).with_name("compile_time.json")
LENGTHS = (25, 100, 400)
ENGINES = ("cpu", "matrix8", "nuc_fpga", "npu")
NETWORKS = ("mobilenet_v2", "resnet50", "inception_v3", "efficientnet_b0", "vgg16")
ALONE = ("cpu", "nuc_fpga")
"""On what the networks are compiled here."""
MOST_GROWTH = 6.0
"""Times the seconds for four times the layers."""


def measure(data: bytes, engine: str) -> dict[str, Any]:
    """Layers, and seconds by stage."""
    accelerators = [] if engine == "cpu" else [engine]
    steps: list[tuple[str, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.tflite"
        path.write_bytes(data)
        job = Job.of(path, accelerators=accelerators)
        compiled = job.compiled(lambda step: steps.append((step, time.process_time())))
    steps.append(("", time.process_time()))
    stages = {step: round(end - begin, 3) for (step, begin), (_, end) in pairwise(steps)}
    return {
        "layers": len(compiled.partitioned.decisions),
        "seconds": round(steps[-1][1] - steps[0][1], 3),
        "stages": stages,
    }


def growths(chains: dict[str, dict[str, Any]]) -> list[str]:
    """Where four times the layers took too long."""
    found = []
    for engine, rows in chains.items():
        for short, long in pairwise(LENGTHS):
            growth = rows[str(long)]["seconds"] / rows[str(short)]["seconds"]
            if growth > MOST_GROWTH:
                found.append(f"{engine}: {long} layers took {growth:.1f} times as long as {short}")
    return found


def show(what: str, rows: dict[str, dict[str, Any]]) -> None:
    stages = list(next(iter(rows.values()))["stages"])
    print(f"{what:<16}{'':<10}{'layers':>8}{'seconds':>10}{'ms/layer':>10}" + "".join(f"{s:>13}" for s in stages))
    for name, row in rows.items():
        each = 1000 * row["seconds"] / row["layers"]
        cells = "".join(f"{row['stages'][stage]:>13.3f}" for stage in stages)
        print(f"{'':<16}{name:<16}{row['layers']:>2}{row['seconds']:>10.2f}{each:>10.1f}{cells}")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help="store the result")
    given = parser.parse_args()
    measure(chain(LENGTHS[0]), "cpu")  # imports are not what is measured
    chains = {engine: {str(n): measure(chain(n), engine) for n in LENGTHS} for engine in ENGINES}
    networks: dict[str, dict[str, Any]] = {engine: {} for engine in ALONE}
    for name in NETWORKS:
        data = field(name).build()
        for engine in ALONE:
            networks[engine][name] = measure(data, engine)
    for what, tables in (("chain", chains), ("network", networks)):
        for engine, rows in tables.items():
            show(f"{what} on {engine}", rows)
    found = growths(chains)
    for line in found:
        print(line, file=sys.stderr)
    if given.write:
        RESULTS.write_text(json.dumps({"chains": chains, "networks": networks}, indent=2) + "\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
