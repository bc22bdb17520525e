"""Networks on the CPU alone against TensorFlow Lite Micro with CMSIS-NN: measure, print a table, and compare with the
stored result.

    python benchmarks/cpu.py            measure and compare
    python benchmarks/cpu.py --write    measure and store

Counted on emulated boards, so that every figure is exact for one compiler: instructions of one inference; RAM without
the stack, inputs and outputs included; flash without the weights and without the session server. Cycles are estimated.
tflm.json holds what TensorFlow Lite Micro takes, and how that was measured.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from run import models, uaccel

RESULTS = Path(__file__).with_name("cpu.json")
BASELINE = Path(__file__).with_name("tflm.json")
BOARDS = ("mps2_an386", "mps3_an547", "mps2_an385", "qemu_riscv32", "qemu_riscv32v")
NEARLY = ("instructions", "cycles_estimated", "ram", "flash", "stack")
"""They depend on the compiler."""
SLACK = 0.02


def measure(path: Path, board: str) -> dict[str, Any]:
    report = uaccel("run", str(path), "--board", board, "--verify")
    ram, flash = report["ram"], report["flash"]
    macs = sum(layer["macs"] for layer in report["layers"])
    return {
        "bit_exact": report["verify"]["bit_exact"],
        "instructions": report["instructions"],
        "cycles_estimated": report["cycles_estimated"],
        "macs": macs,
        "per_mac": round(report["instructions"] / max(1, macs), 3),
        "ram": ram["arena"] + ram["io"] + ram["static"],
        "stack": ram["stack"],
        "flash": flash["code"] + (flash.get("startup") or 0),
        "weights": flash["weights"],
    }


def ratios(row: dict[str, Any], baseline: dict[str, Any]) -> dict[str, float]:
    """Of what the baseline takes, where that is known."""
    return {name: round(row[name] / baseline[name], 3) for name in PARTS if baseline.get(name) is not None}


def show(results: dict[str, dict[str, dict[str, Any]]]) -> None:
    columns = ("instructions", "cycles_estimated", "per_mac", "ram", "stack", "flash", "weights")
    head = "".join(f"{name.removesuffix('_estimated'):>14}" for name in (*columns, *RATIOS))
    print(f"{'board':<14}{'model':<10}{head}")
    for board, rows in results.items():
        for model, row in rows.items():
            cells = "".join(f"{'' if row[name] is None else format(row[name], ','):>14}" for name in columns)
            parts = "".join(f"{row['of_tflm'].get(name, ''):>14}" for name in PARTS)
            print(f"{board:<14}{model:<10}{cells}{parts}")


PARTS = ("instructions", "cycles_estimated", "ram", "flash")
RATIOS = ("instr of TFLM", "cyc. of TFLM", "RAM of TFLM", "flash of TFLM")


def differences(results: dict[str, Any], stored: dict[str, Any]) -> list[str]:
    found = []
    for board, rows in results.items():
        for model, row in rows.items():
            before = stored.get(board, {}).get(model)
            if before is None:
                continue
            known = [name for name in NEARLY if row[name] is not None and before.get(name) is not None]
            changed = [name for name in known if abs(row[name] - before[name]) > SLACK * before[name]]
            found += [f"{model} on {board}: {name} was {before[name]}, is {row[name]}" for name in changed]
            found += [] if row["bit_exact"] else [f"{model} on {board} is not exact"]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help="store the result")
    parser.add_argument("--board", action="append", choices=BOARDS, help="this board alone")
    parser.add_argument("names", nargs="*", metavar="MODEL", help="these models alone")
    given = parser.parse_args()
    baseline = json.loads(BASELINE.read_text())["boards"]
    paths = [path for path in models() if not given.names or path.stem in given.names]
    results: dict[str, dict[str, dict[str, Any]]] = {}
    for board in given.board or BOARDS:
        results[board] = {path.stem: measure(path, board) for path in paths}
        for model, row in results[board].items():
            row["of_tflm"] = ratios(row, baseline.get(board, {}).get(model, {}))
    show(results)
    if given.write:
        stored = json.loads(RESULTS.read_text())["boards"] if RESULTS.is_file() else {}
        for board, rows in results.items():
            stored[board] = {**stored.get(board, {}), **rows}
        RESULTS.write_text(json.dumps({"boards": stored}, indent=1) + "\n")
        return 0
    changed = differences(results, json.loads(RESULTS.read_text())["boards"])
    for line in changed:
        print(f"differs from {RESULTS.name}: {line}", file=sys.stderr)
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
