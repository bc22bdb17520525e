"""Networks on npu's family against the CPU alone: measure, print a table, and compare with the stored result.

    python benchmarks/npu.py                                  measure and compare
    python benchmarks/npu.py --write                          measure and store
    python benchmarks/npu.py -a npu_flash --write ic kws      these rows alone
    python benchmarks/npu.py --vela /venv/bin/vela --write    what Vela 5 estimates for Ethos-U55-256

Counted on an emulated Cortex-M4, so that every figure is exact: instructions of the CPU, cycles of the accelerator,
bytes that it moves. Time is one cycle for an instruction, and the accelerator's. scripts/stock_tvm.py measures what
TVM's own lowering takes.

``roofline`` is the share of the accelerator's cycles that no machine with this array and this bus could save: all
multiplications at the peak, or every constant, input and output once over the bus without any wait for a first word.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from run import REFERENCE, models, uaccel

BOARD = "mps2_an386"
RESULTS = Path(__file__).with_name("npu.json")
TFLM = Path(__file__).with_name("tflm.json")
MICROTVM = Path(__file__).with_name("microtvm.json")
STOCK = Path(__file__).with_name("stock_tvm.json")
ACCELERATORS = ("npu", "npu_flash", "npu_small")
VELA = ("--accelerator-config", "ethos-u55-256", "--system-config", "Ethos_U55_High_End_Embedded")
VELA += ("--memory-mode", "Shared_Sram", "--config", "Arm/vela.ini")
EXACT = ("cycles", "predicted", "moved", "macs", "roofline")
NEARLY = ("alone", "instructions")
"""They depend on the compiler."""
SLACK = 0.05
FAR = 0.03
"""How far a prediction may be from what was counted."""


def measure(path: Path, accelerator: str, alone: int) -> dict[str, Any]:
    """On the accelerator; ``alone``: instructions of the CPU without it."""
    report = uaccel("run", str(path), "--board", BOARD, "-a", accelerator, "--verify")
    macs = sum(layer["macs"] for layer in report["layers"] if layer["engine"] == accelerator)
    regions = [layer for layer in report["graph"]["layers"] if layer["engine"] == accelerator]
    cycles, instructions = report["accelerator_cycles"], report["instructions"]
    numbers = numbers_of(accelerator)
    peak = numbers["ROWS"] * numbers["COLUMNS"]
    others = {
        "tvm": json.loads(STOCK.read_text())["models"],
        "microtvm": json.loads(MICROTVM.read_text())["models"],
        "tflm": json.loads(TFLM.read_text())["boards"][BOARD],
    }
    taken = {name: rows.get(path.stem, {}).get("instructions") for name, rows in others.items()}
    return {
        "bit_exact": report["verify"]["bit_exact"],
        **({"within_tolerance": True} if report["verify"].get("within_tolerance") else {}),
        "alone": alone,
        "instructions": instructions,
        "cycles": cycles,
        "predicted": sum(region["estimate"]["cycles"] for region in regions),
        "moved": sum(region["moved"] for region in regions),
        "macs": macs,
        "utilisation": round(macs / (peak * cycles), 4),
        "roofline": round(max(macs / peak, least_on_bus(report, regions, numbers)) / cycles, 4),
        "left": round(instructions / alone, 5),
        "faster": round(alone / (instructions + cycles), 2),
        **{
            f"faster_than_{name}": None if count is None else round(count / (instructions + cycles), 2)
            for name, count in taken.items()
        },
    }


def numbers_of(accelerator: str) -> dict[str, int]:
    """Of its header."""
    header = Path(__file__).parents[1] / "accelerators" / accelerator / "device" / "npu_machine.h"
    return {
        name: int(value) for name, value in re.findall(r"^#define NPU_(\w+) (\d+)\b", header.read_text(), re.MULTILINE)
    }


def least_on_bus(report: dict[str, Any], regions: list[dict[str, Any]], numbers: dict[str, int]) -> float:
    """Cycles of every constant, input and output once."""
    names = tuple(f"{region['name']}_constants" for region in regions)
    constants = [row["bytes"] for row in report["constants"] if any(name in row["symbol"] for name in names)]
    tensors = [name for region in regions for name in (*region["inputs"], *region["outputs"])]
    flash = sum(constants)
    ram = sum(report["graph"]["values"][name]["bytes"] for name in tensors)
    return (flash * (1 + numbers["FLASH_NEXT"]) + ram * (1 + numbers["RAM_NEXT"])) / numbers["BUS_BYTES"]


def estimated_by_vela(vela: str, paths: list[Path]) -> dict[str, int]:
    """Cycles of Ethos-U55-256 as its published tool estimates them, whose flash gives a byte a cycle as well."""
    found = {}
    for path in paths:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([vela, str(path), *VELA, "--output-dir", folder], check=True, capture_output=True)
            (summary,) = Path(folder).glob("*_summary_*.csv")
            found[path.stem] = int(next(csv.DictReader(summary.read_text().splitlines()))["cycles_total"])
    return found


def show(results: dict[str, dict[str, dict[str, Any]]]) -> None:
    columns = ("alone", "instructions", "cycles", "predicted", "moved", "utilisation", "roofline", "left", "faster")
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
            wrong = [name for name in EXACT if row[name] != before.get(name)]
            wrong += [name for name in NEARLY if abs(row[name] - before[name]) > SLACK * before[name]]
            found += [f"{model} on {accelerator}: {name} was {before.get(name)}, is {row[name]}" for name in wrong]
            if abs(row["predicted"] - row["cycles"]) > FAR * row["cycles"]:
                found.append(f"{model} on {accelerator}: {row['predicted']} cycles predicted, {row['cycles']} taken")
            exact = row["bit_exact"] or row.get("within_tolerance")  # of results that are floats
            found += [] if exact else [f"{model} on {accelerator} is not exact"]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help="store the result")
    parser.add_argument("-a", "--accelerator", action="append", choices=ACCELERATORS, help="this one alone")
    parser.add_argument("--vela", help="the program, of ethos-u-vela from PyPI")
    parser.add_argument("names", nargs="*", metavar="MODEL", help="these models alone")
    given = parser.parse_args()
    paths = [path for path in models() if path.stem != "int16" and (not given.names or path.stem in given.names)]
    stored = json.loads(RESULTS.read_text())
    if given.vela:
        stored["vela"] = estimated_by_vela(given.vela, [path for path in paths if path.stem in REFERENCE])
        print("\n".join(f"{name:<10}{cycles:>10,}" for name, cycles in stored["vela"].items()))
    results: dict[str, dict[str, dict[str, Any]]] = {}
    if not given.vela or given.accelerator:
        alone = {path.stem: uaccel("run", str(path), "--board", BOARD)["instructions"] for path in paths}
        for accelerator in given.accelerator or ACCELERATORS:
            results[accelerator] = {path.stem: measure(path, accelerator, alone[path.stem]) for path in paths}
        show(results)
    if given.write:
        for accelerator, rows in results.items():
            stored["accelerators"][accelerator] = stored["accelerators"].get(accelerator, {}) | rows
        RESULTS.write_text(json.dumps(stored, indent=2) + "\n")
        return 0
    changed = differences(results, stored["accelerators"])
    for line in changed:
        print(f"differs from {RESULTS.name}: {line}", file=sys.stderr)
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
