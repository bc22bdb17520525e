"""Measure, print one table, and compare with the stored, reviewed result.

    python benchmarks/run.py            measure and compare
    python benchmarks/run.py --write    measure and store

Bytes are exact; compile times are not, and only shown. Flash depends on the compiler, whose version is stored.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = Path(__file__).with_name("results.json")
OWN = ("gesture", "residual", "branches", "int16", "mixed")
REFERENCE = ("ad", "kws", "ic", "vww", "sww")
EXACT = ("arena", "arena_lower_bound", "io", "weights", "macs")
TIMED_RUNS = 5


def models() -> list[Path]:
    """The project's own, and MLPerf Tiny's."""
    folder = os.environ.get("UACCEL_MODELS")
    if not folder:
        raise SystemExit("UACCEL_MODELS names no folder of reference models; see docs/reference/reference-models.md")
    paths = [ROOT / "tests" / "models" / f"{name}.tflite" for name in OWN]
    return [*paths, *(Path(folder) / f"{name}.tflite" for name in REFERENCE)]


def uaccel(*arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "uaccel", *arguments, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def measure(path: Path) -> dict[str, Any]:
    report = uaccel("run", str(path), "--board", "host", "--no-workspace-io")
    ram, flash = report["ram"], report["flash"]
    return {
        "arena": ram["arena"],
        "arena_lower_bound": ram["arena_lower_bound"],
        "io": ram["io"],
        "weights": flash["weights"],
        "code": flash["code"],
        "stack": ram["stack"],
        "layers": len(report["layers"]),
        "macs": sum(layer["macs"] for layer in report["layers"]),
    }


def median_seconds(command: list[str]) -> float:
    times = []
    for _ in range(TIMED_RUNS + 1):
        begun = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        times.append(time.perf_counter() - begun)
    return statistics.median(times[1:])


def compile_times(paths: list[Path]) -> dict[str, float]:
    """Seconds of the whole command, in units of ``python -c "import tvm"``."""
    base = median_seconds([sys.executable, "-c", "import tvm"])
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder) / "out.tar")
        return {
            path.stem: median_seconds([sys.executable, "-m", "uaccel", "compile", str(path), "-o", out]) / base
            for path in paths
        }


def show(results: dict[str, dict[str, Any]], times: dict[str, float]) -> None:
    columns = ("arena", "arena_lower_bound", "io", "weights", "code", "stack", "layers", "macs")
    print(f"{'model':<10}" + "".join(f"{name:>19}" for name in columns) + f"{'compile/import tvm':>20}")
    for model, row in results.items():
        cells = "".join(f"{row[name]:>19,}" for name in columns)
        print(f"{model:<10}{cells}{times.get(model, float('nan')):>20.2f}")


def differences(results: dict[str, dict[str, Any]], stored: dict[str, Any]) -> list[str]:
    return [
        f"{model}: {name} was {stored[model][name]}, is {row[name]}"
        for model, row in results.items()
        if model in stored
        for name in EXACT
        if row[name] != stored[model][name]
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="store the result")
    arguments = parser.parse_args()
    paths = models()
    results = {path.stem: measure(path) for path in paths}
    show(results, compile_times([path for path in paths if path.stem in ("gesture", "kws", "vww")]))
    if arguments.write:
        compiler = subprocess.run(["gcc", "--version"], capture_output=True, text=True, check=True).stdout
        document = {"compiler": compiler.splitlines()[0], "board": "host", "models": results}
        RESULTS.write_text(json.dumps(document, indent=2) + "\n")
        return 0
    changed = differences(results, json.loads(RESULTS.read_text())["models"])
    for line in changed:
        print(f"differs from {RESULTS.name}: {line}", file=sys.stderr)
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
