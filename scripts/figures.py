"""Write the stored benchmarks' figures into the tables of the documentation: ``python scripts/figures.py``.

benchmarks/cpu.json, layers.json, npu.json, chip.json and area.json are measured by the scripts beside them. ``--check``
writes nothing, and tells which pages differ.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
NETWORKS: Final = ("ad", "kws", "ic", "vww", "mobilenet", "sww")
BOARDS: Final = ("mps2_an386", "mps3_an547")
FIRST: Final = {
    "ad": "anomaly detection",
    "kws": "keyword spotting",
    "ic": "image classification",
    "vww": "visual wake words",
    "sww": "streaming wake word",
}
"""What README.md shows, and how it calls them."""
NPU: Final = ("ic", "vww", "kws", "sww", "ad")
NETWORK: Final = "network: "
"""Begins the rows of layers.json that are whole networks."""

ALONE: Final = "core alone"
PART: Final = "ecp5-85k"
HAS: Final = {"lut": 83640, "bram": 208, "dsp": 156}
"""What there is of each in the part."""


def stored(name: str) -> dict[str, Any]:
    values: dict[str, Any] = json.loads((ROOT / "benchmarks" / f"{name}.json").read_text(encoding="utf-8"))
    return values


def line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def filled(page: str, mark: str, rows: list[str]) -> str:
    """With these rows in the table whose head begins so, the first one behind ``mark``."""
    marker, _, head = mark.rpartition("\n")
    start = page.index(head, page.index(marker) if marker else 0)
    first = page.index("\n", page.index("\n", start) + 1) + 1
    end = page.find("\n\n", first)
    return page[:first] + "\n".join(rows) + page[end:]


def beside(row: dict[str, Any], *names: str) -> list[str]:
    """Our figures, each with its part of TensorFlow Lite Micro's."""
    return [cell for name in names for cell in (f"{row[name]:,}", f"{row['of_tflm'][name]:.2f}")]


def time_of(row: dict[str, Any], model: str) -> str:
    counted, part = beside(row, "instructions")
    cells = [model, counted, f"{row['per_mac']:.2f}", part, *beside(row, "cycles_estimated"), str(row["stack"])]
    return line(cells)


def bytes_of(row: dict[str, Any], model: str) -> str:
    return line([model, *beside(row, "ram", "flash", "whole")])


def of_favours(boards: dict[str, Any], favours: dict[str, Any], model: str) -> str:
    rows = [boards[BOARDS[0]][model], favours["speed"][model], favours["size"][model]]
    cells = [f"{row['of_tflm'][name]:.2f}" for name in ("cycles_estimated", "whole") for row in rows]
    return line([model, *cells])


def kernels(page: str) -> str:
    cpu, layers = stored("cpu"), stored("layers")["boards"]
    for board in BOARDS:
        for what, told in (("time", time_of), ("bytes", bytes_of)):
            rows = [told(cpu["boards"][board][model], model) for model in NETWORKS]
            page = filled(page, f"<!-- {what} on {board} -->\n| network |", rows)
    kinds = [kind for kind in layers[BOARDS[0]] if not kind.startswith(NETWORK)]
    both = [[f"{layers[b][kind][value]:.2f}" for b in layers for value in ("median", "worst")] for kind in kinds]
    page = filled(page, "| layers | M4", [line([kind, *cells]) for kind, cells in zip(kinds, both, strict=True)])
    drawn = [kind for kind in layers[BOARDS[0]] if kind.startswith(NETWORK)]
    whole = [line([kind.removeprefix(NETWORK), *(f"{layers[b][kind]['worst']:.2f}" for b in layers)]) for kind in drawn]
    return filled(page, "| network | M4 | M55 |", whole)


def performance(page: str) -> str:
    cpu = stored("cpu")
    favoured = [of_favours(cpu["boards"], cpu["favours"], model) for model in NETWORKS]
    return filled(page, "| network | cycles", favoured)


def npu(page: str) -> str:
    cycles, gains = [], []
    for machine, networks in stored("npu")["accelerators"].items():
        for model in NPU:
            row = networks[model]
            cells = [f"{row[name]:,}" for name in ("alone", "instructions", "cycles")]
            cycles.append(line([machine, model, *cells, f"{row['utilisation']:.1%}"]))
            times = ("faster", "faster_than_microtvm", "faster_than_tflm")
            gains.append(line([machine, model, *(f"{row[name]:,.0f} x" for name in times)]))
    page = filled(page, "<!-- cycles of npu -->\n| machine |", cycles)
    return filled(page, "<!-- gains of npu -->\n| machine |", gains)


def readme(page: str) -> str:
    boards, rows = stored("cpu")["boards"], []
    for model, words in FIRST.items():
        parts = [boards[board][model]["of_tflm"] for board in BOARDS]
        cells = [f"{part[name]:.2f}" for part in parts for name in ("instructions", "cycles_estimated", "ram")]
        rows.append(line([words, *cells]))
    return filled(page, "<!-- figures of tflm -->\n| model |", rows)


def with_core(area: dict[str, Any], name: str) -> dict[str, int] | None:
    """What a chip takes of the part; None where no RTL of the accelerator was synthesised."""
    core = area[f"vexriscv on {PART}"]["area"]
    if name == ALONE:
        return dict(core)
    own = area.get(f"{name} on {PART}")
    return None if own is None else {kind: core[kind] + own["area"][kind] for kind in core}


def largest_share(taken: dict[str, int]) -> float:
    """Of what the part has of anything: one through it is how many such chips it holds."""
    return max(taken[kind] / has for kind, has in HAS.items())


def called(name: str) -> str:
    return name if name == ALONE else f"`{name.partition(' ')[0]}`"


def cycles_of(name: str, row: dict[str, Any], alone: dict[str, Any]) -> str:
    waited = row["waited"]
    cells = [called(name), row["accelerator"], f"{row['cycles']:,}"]
    cells += [f"{waited['code'] + waited['data']:,}", f"{waited['devices']:,}"]
    return line([*cells, f"{alone['cycles'] / row['cycles']:,.1f} x"])


def area_of(name: str, row: dict[str, Any], alone: dict[str, Any], area: dict[str, Any]) -> list[str]:
    """A row; none of a chip that was not synthesised."""
    taken, core = with_core(area, name), with_core(area, ALONE)
    if taken is None or core is None:
        return []
    cost = row["cycles"] * largest_share(taken) / (alone["cycles"] * largest_share(core))
    cells = [called(name), *(f"{taken[kind]:,}" for kind in ("lut", "bram", "dsp"))]
    return [line([*cells, f"{largest_share(taken):.1%}", f"{cost:.2f}"])]


def chip(page: str) -> str:
    area = stored("area")
    for network, rows in stored("chip").items():
        alone = rows[ALONE]
        cycles = [cycles_of(name, row, alone) for name, row in rows.items()]
        page = filled(page, f"<!-- cycles of {network} -->\n| chip |", cycles)
        taken = [cells for name, row in rows.items() for cells in area_of(name, row, alone, area)]
        page = filled(page, f"<!-- area for {network} -->\n| chip |", taken)
    return page


PAGES: Final = {
    "docs/kernels.md": performance,
    "docs/reference/kernels.md": kernels,
    "docs/reference/npu.md": npu,
    "docs/reference/chip.md": chip,
    "README.md": readme,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    check, differ = parser.parse_args().check, False
    for name, write in PAGES.items():
        path = ROOT / name
        before = path.read_text(encoding="utf-8")
        after = write(before)
        if check and before != after:
            differ = True
            print(f"{name} has other figures than benchmarks/; run scripts/figures.py", file=sys.stderr)
        elif not check:
            path.write_text(after, encoding="utf-8")
    return int(differ)


if __name__ == "__main__":
    sys.exit(main())
