"""A whole chip in simulation: networks on a VexRiscv core that is RTL, alone and with each accelerator.

    python benchmarks/chip.py                    measure and compare with the stored result
    python benchmarks/chip.py --write            measure and store
    python benchmarks/chip.py --write ic:dot4    these rows alone

Cycles are the core's own, of one inference, and the same in each run. The area is that of benchmarks/area.json.
On two cores that do nothing else all rows take a quarter of an hour, most of it for ic on the core alone.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from run import models, uaccel

BOARD = "rtl_vexriscv"
RESULTS = Path(__file__).with_name("chip.json")
NETWORKS = ("kws", "ic")
ALONE = "core alone"
CHIPS = {
    ALONE: ((), "RTL"),
    "dot4": (("-a", "dot4"), "RTL"),
    "nuc_fpga": (("-a", "nuc_fpga", "--device", "rtl"), "RTL"),
    "matrix8": (("-a", "matrix8", "--device", "rtl"), "RTL"),
    "npu_tiny": (("-a", "npu_tiny", "--device", "rtl"), "RTL"),
    "npu_small": (("-a", "npu_small", "--device", "rtl"), "RTL"),
    "npu": (("-a", "npu", "--device", "rtl"), "RTL"),
    "npu model": (("-a", "npu"), "model"),
}
"""The options of each, and what the accelerator is."""
EXACT = ("bit_exact", "cycles", "waited", "instructions")


def measure(path: Path, chip: str) -> dict[str, Any]:
    options, accelerator = CHIPS[chip]
    report = uaccel("run", str(path), "--board", BOARD, *options, "--verify", "--samples", "1")
    return {
        "bit_exact": report["verify"]["bit_exact"],
        "accelerator": accelerator,
        "cycles": report["cycles"],
        "waited": report["waited"],
        "instructions": report["instructions"],
        "cycles_estimated": report["cycles_estimated"],
    }


def asked(names: list[str]) -> list[tuple[str, str]]:
    """Networks and chips; all of them where none is named."""
    known = [(network, chip) for network in NETWORKS for chip in CHIPS]
    wrong = set(names) - {f"{network}:{chip}" for network, chip in known}
    if wrong:
        raise SystemExit(f"no such row: {', '.join(sorted(wrong))}; a row is NETWORK:CHIP, such as kws:dot4")
    return [(network, chip) for network, chip in known if not names or f"{network}:{chip}" in names]


def show(network: str, chip: str, row: dict[str, Any]) -> None:
    figures = (row["cycles"], *row["waited"].values(), row["instructions"])
    print(f"{network:6}{chip:12}" + "".join(f"{value:>14,}" for value in figures), row["bit_exact"], flush=True)


def differences(network: str, chip: str, row: dict[str, Any], stored: dict[str, Any]) -> list[str]:
    before = stored.get(network, {}).get(chip, {})
    wrong = [name for name in EXACT if row[name] != before.get(name)]
    return [f"{network} on {chip}: {name} was {before.get(name)}, is {row[name]}" for name in wrong]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help="store the result")
    parser.add_argument("names", nargs="*", metavar="NETWORK:CHIP", help="these rows alone")
    given = parser.parse_args()
    paths = {path.stem: path for path in models()}
    stored: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    changed = []
    for network, chip in asked(given.names):
        row = measure(paths[network], chip)
        show(network, chip, row)
        changed += differences(network, chip, row, stored)
        if given.write:
            rows = {**stored.get(network, {}), chip: row}
            stored[network] = {name: rows[name] for name in CHIPS if name in rows}
            RESULTS.write_text(json.dumps(stored, indent=2) + "\n")
    for line in [] if given.write else changed:
        print(f"differs from {RESULTS.name}: {line}", file=sys.stderr)
    return int(bool(changed) and not given.write)


if __name__ == "__main__":
    sys.exit(main())
