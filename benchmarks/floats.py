"""Float networks on the CPU alone, from each front end: measure, print a table, and compare with the stored result.

    python benchmarks/floats.py            measure and compare
    python benchmarks/floats.py --write    measure and store

Counted on emulated boards: instructions of one inference, and bytes of the arena. "before" is what the same networks
took when each of their operators was a layer, and of half precision when other instructions widened weights: that is
kept, not measured. tests/support/models/float_networks.py states the networks: a DS-CNN for keywords at its published
size, and a MobileNet V2 of 32x32 pixels with few channels.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from run import uaccel

from support.models.float_networks import NETWORKS, FloatNetwork, written

RESULTS = Path(__file__).with_name("floats.json")
BOARDS = ("mps2_an386", "mps3_an547")
FORM = "tflite"
SLACK = 0.02
HALF = ", half precision"


def network_of(row: str) -> FloatNetwork:
    """By the name of its row."""
    return replace(NETWORKS[row.removesuffix(HALF)](), half=row.endswith(HALF))


def measure(path: Path, board: str) -> dict[str, Any]:
    report = uaccel("run", str(path), "--board", board, "--verify")
    if not report["verify"]["bit_exact"]:
        raise SystemExit(f"{path} on {board} is not what the model means")
    return {
        "instructions": report["instructions"],
        "cycles_estimated": report["cycles_estimated"],
        "arena": report["ram"]["arena"],
        "code": report["flash"]["code"],
        "weights": report["flash"]["weights"],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help="store what was measured")
    write = parser.parse_args().write
    stored: dict[str, Any] = json.loads(RESULTS.read_text())
    bad = 0
    for name in stored:
        with tempfile.TemporaryDirectory() as folder:
            path = written(network_of(name), FORM, Path(folder))
            for board in BOARDS:
                entry = stored[name][board]
                found = measure(path, board)
                print(f"{name:<28}{board:<12}{found}")
                bad += _is_worse(found, entry["now"])
                entry["now"] = found if write else entry["now"]
    if write:
        RESULTS.write_text(json.dumps(stored, indent=2) + "\n")
    return 1 if bad and not write else 0


def _is_worse(found: dict[str, Any], stored: dict[str, Any]) -> bool:
    worse = [key for key, value in found.items() if value > stored.get(key, value) * (1 + SLACK)]
    for key in worse:
        print(f"  {key} is {found[key]}, stored are {stored[key]}")
    return bool(worse)


if __name__ == "__main__":
    sys.exit(main())
