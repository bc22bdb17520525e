"""Networks on the CPU alone against TensorFlow Lite Micro with CMSIS-NN: measure, print a table, and compare with the
stored result.

    python benchmarks/cpu.py            measure and compare
    python benchmarks/cpu.py --write    measure and store

Counted on emulated boards, so that every figure is exact for one compiler: instructions of one inference; RAM without
the stack, inputs and outputs included; flash is code and start-up code without the weights; "whole" has the weights,
too, beside TensorFlow Lite Micro's application with its start-up code and the model file; no session server is in it.
Cycles are estimated. tflm.json holds what TensorFlow Lite Micro takes, and how that was measured. On one board models
are also compiled with --favour.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from run import REFERENCE, models, uaccel

RESULTS = Path(__file__).with_name("cpu.json")
BASELINE = Path(__file__).with_name("tflm.json")
BOARDS = ("mps2_an386", "mps3_an547", "mps2_an385", "qemu_riscv32", "qemu_riscv32v")
NEARLY = ("instructions", "cycles_estimated", "ram", "flash", "whole", "stack")
FRAME = 104  # Bytes that an interrupt lays on the stack: on a busy computer one comes where it is deepest.
"""They depend on the compiler."""
SLACK = 0.02
FAVOURS = ("speed", "size")
FAVOURED = "mps2_an386"
UNPRUNED = "mobilenet"
"""MobileNet V1 a quarter as wide, of 96x96 pixels and two classes: the layers of vww with none of its channels dead."""
SAME_LAYERS = {UNPRUNED: "vww"}
"""TensorFlow Lite Micro computes all channels of either, and takes as long."""
Rows = dict[str, dict[str, Any]]


def measure(path: Path, board: str, favour: str = "balanced") -> dict[str, Any]:
    report = uaccel("run", str(path), "--board", board, "--verify", "--favour", favour)
    ram, flash = report["ram"], report["flash"]
    macs = sum(layer["macs"] for layer in report["layers"])
    code = flash["code"] + (flash.get("startup") or 0)
    return {
        "bit_exact": report["verify"]["bit_exact"],
        "instructions": report["instructions"],
        "cycles_estimated": report["cycles_estimated"],
        "macs": macs,
        "per_mac": round(report["instructions"] / max(1, macs), 3),
        "ram": ram["arena"] + ram["io"] + ram["static"],
        "stack": ram["stack"],
        "flash": code,
        "weights": flash["weights"],
        "whole": code + flash["weights"],
    }


def unpruned(folder: Path) -> Path:
    from models.field import field

    path = folder / f"{UNPRUNED}.tflite"
    path.write_bytes(field("mobilenet_v1").build(96, 2, 0.25))
    return path


def ratios(row: dict[str, Any], baseline: dict[str, Any], model_file: int) -> dict[str, float]:
    """Of what the baseline takes, where that is known."""
    whole = None if baseline.get("flash") is None else baseline["flash"] + model_file
    taken = baseline | {"whole": whole}
    return {name: round(row[name] / taken[name], 3) for name in PARTS if taken.get(name) is not None}


def show(results: dict[str, Rows]) -> None:
    columns = ("instructions", "cycles_estimated", "per_mac", "ram", "stack", "flash", "whole")
    head = "".join(f"{name.removesuffix('_estimated'):>14}" for name in (*columns, *RATIOS))
    print(f"{'board':<14}{'model':<10}{head}")
    for board, rows in results.items():
        for model, row in rows.items():
            cells = "".join(f"{'' if row[name] is None else format(row[name], ','):>14}" for name in columns)
            parts = "".join(f"{row['of_tflm'].get(name, ''):>14}" for name in PARTS)
            print(f"{board:<14}{model:<10}{cells}{parts}")


PARTS = ("instructions", "cycles_estimated", "ram", "flash", "whole")
RATIOS = ("instr of TFLM", "cyc. of TFLM", "RAM of TFLM", "flash of TFLM", "whole of TFLM")


def measured(paths: list[Path], board: str, favour: str = "balanced") -> Rows:
    baseline = json.loads(BASELINE.read_text())["boards"].get(board, {})
    rows = {path.stem: measure(path, board, favour) for path in paths}
    for path in paths:
        taken = baseline.get(SAME_LAYERS.get(path.stem, path.stem), {})
        rows[path.stem]["of_tflm"] = ratios(rows[path.stem], taken, path.stat().st_size)
    return rows


def differences(results: dict[str, Any], stored: dict[str, Any]) -> list[str]:
    found = []
    for board, rows in results.items():
        for model, row in rows.items():
            before = stored.get(board, {}).get(model)
            if before is None:
                continue
            known = [name for name in NEARLY if row[name] is not None and before.get(name) is not None]
            room = {name: SLACK * before[name] + (FRAME if name == "stack" else 0) for name in known}
            changed = [name for name in known if abs(row[name] - before[name]) > room[name]]
            found += [f"{model} on {board}: {name} was {before[name]}, is {row[name]}" for name in changed]
            found += [] if row["bit_exact"] else [f"{model} on {board} is not exact"]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help="store the result")
    parser.add_argument("--board", action="append", choices=BOARDS, help="this board alone")
    parser.add_argument("names", nargs="*", metavar="MODEL", help="these models alone")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        every = [*models(), unpruned(Path(folder))]
        return conclude(given, [path for path in every if not given.names or path.stem in given.names])


def conclude(given: argparse.Namespace, paths: list[Path]) -> int:
    """Measure, show, and store or compare."""
    results = {board: measured(paths, board) for board in given.board or BOARDS}
    referred = [path for path in paths if path.stem in (*REFERENCE, UNPRUNED)]
    favoured = given.board is None or FAVOURED in given.board
    wished = {favour: measured(referred, FAVOURED, favour) for favour in FAVOURS if favoured}
    show(results)
    show(wished)
    stored = json.loads(RESULTS.read_text()) if RESULTS.is_file() else {}
    if given.write:
        for name, tables in (("boards", results), ("favours", wished)):
            for key, rows in tables.items():
                known = stored.setdefault(name, {})
                known[key] = {**known.get(key, {}), **rows}
        RESULTS.write_text(json.dumps(stored, indent=1) + "\n")
        return 0
    changed = differences(results, stored["boards"]) + differences(wished, stored["favours"])
    for line in changed:
        print(f"differs from {RESULTS.name}: {line}", file=sys.stderr)
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
