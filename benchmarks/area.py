"""What RTL takes of an FPGA, and its clock: VexRiscv, the engine of docs/rtl.md, dot4 and larger accelerators.

    python benchmarks/area.py                       synthesise and compare with the stored result
    python benchmarks/area.py --write               synthesise and store
    python benchmarks/area.py --place [NAME ...]    place and route the large ones, too, or one of them

The small ones take a minute, each large one some minutes, and to place it many more. Other versions of the tools give
other figures; the stored ones have their versions beside them.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Any

from uaccel.build.doctor import CORES, require_package
from uaccel.build.rtl.synthesis import KINDS, SynthesisRequest, part_of, synthesise
from uaccel.util.files import data_dir

RESULTS = Path(__file__).with_name("area.json")
PAGE = Path(__file__).resolve().parents[1] / "docs" / "rtl.md"
SMALL, CORE, UNIT, LARGE = "dots", "vexriscv", "dot4", ("nuc_fpga", "matrix8", "npu_tiny", "npu_small")
VERILOG = "verilog/VexRiscv_FullCfu.v"
AS_A_UNIT = 'top = "VexRiscv"\n[instructions]\nprefix = "CfuPlugin_bus_"\n'
PLACEABLE = LARGE[:-1]
SMALL_PARTS, LARGE_PART = ("ice40-hx8k", "ecp5-85k"), "ecp5-85k"
LIMIT = 4 * 3600


def from_page(folder: Path) -> Path:
    """The engine as docs/rtl.md shows it."""
    text = PAGE.read_text(encoding="utf-8")
    for language, name in (("verilog", "dots.v"), ("toml", "rtl.toml")):
        found = re.search(rf"```{language} mine/rtl/{name}\n(.*?)```", text, re.DOTALL)
        assert found is not None
        (folder / "rtl").mkdir(exist_ok=True)
        (folder / "rtl" / name).write_text(found[1], encoding="utf-8")
    return folder


def core_alone(folder: Path) -> Path:
    """VexRiscv with its caches, as the simulated machine has it, and with nothing at its port for instructions."""
    (folder / "rtl").mkdir(parents=True)
    shutil.copy(require_package(CORES[CORE]) / VERILOG, folder / "rtl")
    (folder / "rtl" / "rtl.toml").write_text(AS_A_UNIT, encoding="utf-8")
    return folder


def measured(name: str, folder: Path, part: str, place: bool) -> dict[str, Any]:
    asked = SynthesisRequest(name, folder, part, part_of(part), place, limit=LIMIT)
    answer = synthesise(asked, lambda step: print(step, file=sys.stderr))
    return {"area": answer.area, "clock_mhz": answer.clock.get("clk"), "tools": answer.tools}


def measure(place: Collection[str]) -> dict[str, Any]:
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        engine = from_page(Path(folder))
        for part in SMALL_PARTS:
            results[f"{SMALL} on {part}"] = measured(SMALL, engine, part, True)
        core = core_alone(Path(folder) / CORE)
        results[f"{CORE} on {LARGE_PART}"] = measured(CORE, core, LARGE_PART, True)
    for name in (UNIT, *LARGE):
        folder_of = data_dir("accelerators") / name
        results[f"{name} on {LARGE_PART}"] = measured(name, folder_of, LARGE_PART, name in (UNIT, *place))
    return results


def show(results: dict[str, Any]) -> None:
    print(f"{'':24}" + "".join(f"{kind.upper():>8}" for kind in KINDS) + f"{'MHz':>8}")
    for name, row in results.items():
        clock = "" if row["clock_mhz"] is None else row["clock_mhz"]
        print(f"{name:24}" + "".join(f"{row['area'][kind]:>8,}" for kind in KINDS) + f"{clock:>8}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="store the figures")
    parser.add_argument("--place", nargs="*", metavar="NAME", choices=PLACEABLE, help="place the large ones, too")
    arguments = parser.parse_args()
    results = measure(() if arguments.place is None else arguments.place or PLACEABLE)
    show(results)
    if arguments.write:
        RESULTS.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
        return 0
    stored = json.loads(RESULTS.read_text(encoding="utf-8"))
    changed = [name for name in {**stored, **results} if stored.get(name) != results.get(name)]
    for name in changed:
        print(f"differs from the stored result: {name}: {stored.get(name)}")
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
