"""Networks on npu's family against the CPU alone: measure, print a table, and compare with the stored result.

    python benchmarks/npu.py            measure and compare
    python benchmarks/npu.py --write    measure and store

Counted on an emulated Cortex-M4, so that every figure is exact: instructions of the CPU, cycles of the accelerator,
bytes that it moves. Time is one cycle for an instruction, and the accelerator's. scripts/stock_tvm.py measures what
TVM's own lowering takes.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from run import models, uaccel

BOARD = "mps2_an386"
RESULTS = Path(__file__).with_name("npu.json")
TFLM = Path(__file__).with_name("tflm.json")
MICROTVM = Path(__file__).with_name("microtvm.json")
STOCK = Path(__file__).with_name("stock_tvm.json")
ARRAY = {"npu": 256, "npu_small": 64}
"""Multiply-accumulates in a cycle."""
EXACT = ("cycles", "moved", "macs")
NEARLY = ("alone", "instructions")
"""They depend on the compiler."""
SLACK = 0.05


def measure(path: Path, accelerator: str, alone: int) -> dict[str, Any]:
    """On the accelerator; ``alone``: instructions of the CPU without it."""
    report = uaccel("run", str(path), "--board", BOARD, "-a", accelerator, "--verify")
    macs = sum(layer["macs"] for layer in report["layers"] if layer["engine"] == accelerator)
    cycles, instructions = report["accelerator_cycles"], report["instructions"]
    others = {
        "tvm": json.loads(STOCK.read_text())["models"],
        "microtvm": json.loads(MICROTVM.read_text())["models"],
        "tflm": json.loads(TFLM.read_text())["boards"][BOARD],
    }
    taken = {name: rows.get(path.stem, {}).get("instructions") for name, rows in others.items()}
    return {
        "bit_exact": report["verify"]["bit_exact"],
        "alone": alone,
        "instructions": instructions,
        "cycles": cycles,
        "moved": moved(path, accelerator),
        "macs": macs,
        "utilisation": round(macs / (ARRAY[accelerator] * cycles), 4),
        "left": round(instructions / alone, 5),
        "faster": round(alone / (instructions + cycles), 2),
        **{
            f"faster_than_{name}": None if count is None else round(count / (instructions + cycles), 2)
            for name, count in taken.items()
        },
    }


def moved(path: Path, accelerator: str) -> int:
    """Bytes between memory and chip, as the listings of the streams tell."""
    with tempfile.TemporaryDirectory() as folder:
        dump = Path(folder) / "dump"
        uaccel("compile", str(path), "-a", accelerator, "--dump", str(dump), "-o", str(Path(folder) / "out.tar"))
        listings = [file.read_text().splitlines()[1] for file in sorted(dump.glob("regions/*/stream.txt"))]
    return sum(int(line.rsplit(", ", 1)[1].split()[0]) for line in listings)


def show(results: dict[str, dict[str, dict[str, Any]]]) -> None:
    columns = ("alone", "instructions", "cycles", "moved", "utilisation", "left", "faster")
    columns += tuple(f"faster_than_{name}" for name in ("microtvm", "tflm", "tvm"))
    print(f"{'accelerator':<12}{'model':<10}" + "".join(f"{name:>21}" for name in columns))
    for accelerator, rows in results.items():
        for model, row in rows.items():
            cells = "".join(f"{'' if row[name] is None else format(row[name], ','):>21}" for name in columns)
            print(f"{accelerator:<12}{model:<10}{cells}")


def differences(results: dict[str, Any], stored: dict[str, Any]) -> list[str]:
    found = []
    for accelerator, rows in results.items():
        for model, row in rows.items():
            before = stored.get(accelerator, {}).get(model)
            if before is None:
                continue
            wrong = [name for name in EXACT if row[name] != before[name]]
            wrong += [name for name in NEARLY if abs(row[name] - before[name]) > SLACK * before[name]]
            found += [f"{model} on {accelerator}: {name} was {before[name]}, is {row[name]}" for name in wrong]
            found += [] if row["bit_exact"] else [f"{model} on {accelerator} is not exact"]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help="store the result")
    parser.add_argument("names", nargs="*", metavar="MODEL", help="these models alone")
    given = parser.parse_args()
    paths = [path for path in models() if path.stem != "int16" and (not given.names or path.stem in given.names)]
    alone = {path.stem: uaccel("run", str(path), "--board", BOARD)["instructions"] for path in paths}
    results = {
        accelerator: {path.stem: measure(path, accelerator, alone[path.stem]) for path in paths}
        for accelerator in ARRAY
    }
    show(results)
    if given.write:
        RESULTS.write_text(json.dumps({"board": BOARD, "accelerators": results}, indent=2) + "\n")
        return 0
    changed = differences(results, json.loads(RESULTS.read_text())["accelerators"])
    for line in changed:
        print(f"differs from {RESULTS.name}: {line}", file=sys.stderr)
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
