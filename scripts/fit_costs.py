"""Measure kernels over many random layers, fit what they cost, and count their bytes: costs.json of uaccel/kernels.

    python scripts/fit_costs.py [--seeds N] [--recurrent] [BOARD ...]

Of each kernel function a line is fitted through its instructions: so much for a multiply-accumulate, for an output, and
for a call. Where the core's timings are known, the same line times the cycles that its instructions take on average
stands beside it: small layers, which a line of cycles of its own fits badly, keep their order. Boards that are not
named keep their figures; with ``--recurrent`` SVDF and LSTM alone are measured, and the others keep theirs.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from support.models.kernel_zoo import samples_of, zoo_of
from support.models.relax_modules import compiled_module
from support.models.stateful import Lstm, Svdf
from uaccel.board import Board, load_board
from uaccel.kernels import Turn
from uaccel.kernels.choice import FORMS, Selection, target_of
from uaccel.lower.kernel_swaps import ALONE
from uaccel.model import Array
from uaccel.pipeline import Compiled, compile_model
from uaccel.runner.compiled import run_compiled
from uaccel.runner.execute import Looks
from uaccel.util.favour import Favour

ROOT = Path(__file__).resolve().parents[1]
COSTS = ROOT / "python/uaccel/kernels/costs.json"
BOARDS = ("mps2_an386", "mps3_an547", "mps2_an385", "qemu_riscv32", "qemu_riscv32v")
KERNELS = ROOT / "firmware/kernels"
MOST_TURNS = 4
Network = tuple[Compiled, list[list[Array]]]
"""And a sample of its inputs."""
Maker = Callable[[Board, int, Selection], Network]
Points = dict[str, list[tuple[int, int, int, int | None]]]
"""By function: (multiply-accumulates, outputs, instructions, estimated cycles) of each layer."""


def zoo(board: Board, seed: int, selection: Selection) -> Network:
    infos, module = zoo_of(seed, larger=True)
    return compiled_module(module, selection=selection), samples_of(seed, infos, 1)


def recurrent(board: Board, seed: int, selection: Selection) -> Network:
    """One layer of SVDF or LSTM."""
    random = np.random.default_rng(seed)
    depth, units, steps = (int(2 ** random.uniform(*ends)) for ends in ((2, 7), (2, 6), (2, 5)))
    kinds: tuple[Svdf | Lstm, ...] = (
        Svdf(depth=depth, filters=2 * units, memory=steps),
        Svdf("int8", depth=depth, filters=2 * units, memory=steps),
        Lstm(batch=1, steps=steps, depth=depth, units=units),
        Lstm("int16", batch=1, steps=steps, depth=depth, units=units),
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "layer.tflite"
        path.write_bytes(kinds[seed % len(kinds)].build())
        compiled = compile_model(path, board=board.name, selection=selection)
    return compiled, samples_of(seed, [spec.info for spec in compiled.model.signature.inputs], 1)


def measure(board: Board, seeds: int, make: Maker) -> tuple[Points, dict[str, str]]:
    """And by function the header of those that layers share."""
    points, headers = defaultdict(list), dict[str, str]()
    for seed in range(1000, 1000 + seeds):
        for favour, turn in itertools.product((Favour.speed, Favour.size), range(MOST_TURNS)):
            compiled, sample = make(board, seed, Selection(target_of(board), Turn(turn), favour))
            layers = compiled.program.layers
            used = {
                c.function: c.header for layer in layers for c in layer.kernel.calls if layer.kernel.family != ALONE
            }
            headers |= used
            if favour is Favour.size and not any("small" in function for function in used):
                continue  # speed has measured the others
            with tempfile.TemporaryDirectory() as folder:
                run = run_compiled(
                    compiled, board, sample, Path(folder) / "p", lambda _: None, looks=Looks(profile=True)
                )
            taken = {time.layer: (time.instructions or 0, time.cycles_estimated) for time in run.layers}
            for layer in layers:
                functions = {call.function for call in layer.kernel.calls}
                if layer.choice and len(functions) == 1 and turn < len(layer.choice.options):
                    outputs = layer.outputs[0].info.elements
                    points[functions.pop()].append(
                        (round(layer.macs * layer.kernel.effort), outputs, *taken[layer.index])
                    )
        print(f"{board.name}: {seed - 999} of {seeds}", file=sys.stderr)
    return points, headers


def code(board: Board, headers: dict[str, str]) -> dict[str, dict[str, int]]:
    """Bytes of each function and of those that it calls, as a compiler makes them of the headers."""
    cpu = board.cpu
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder, "used.c"), Path(folder, "used.o")
        for function, header in sorted(headers.items()):
            source.write_text(f'#include "{header}"\nconst void *const used = (const void *){function};\n')
            compiler = [f"{cpu.toolchain}-gcc", *cpu.flags, "-O2", "-std=c99", f"-I{KERNELS}", "-c"]
            subprocess.run([*compiler, str(source), "-o", str(made)], check=True)
            listed = subprocess.run(
                [f"{cpu.toolchain}-nm", "-S", str(made)], check=True, capture_output=True, text=True
            )
            symbols = [line.split() for line in listed.stdout.splitlines()]
            found[function] = {row[3]: int(row[1], 16) for row in symbols if len(row) == 4 and row[2] in "tT"}
    return found


def fit(points: list[tuple[int, int, int]]) -> dict[str, float]:
    """Least squares of errors relative to the work; what would be negative is left out."""
    table = np.array(points, dtype=np.float64)
    matrix, instructions = np.column_stack([table[:, :2], np.ones(len(table))]), table[:, 2]
    weight = 1 / (table[:, 0] + table[:, 1])
    used = [column for column in range(3) if matrix[:, column].any()]
    while True:
        found, *_ = np.linalg.lstsq(matrix[:, used] * weight[:, None], instructions * weight, rcond=None)
        if found.min() >= 0 or len(used) == 1:
            break
        used.pop(int(found.argmin()))
    values = dict.fromkeys(range(3), 0.0) | dict(zip(used, found.tolist(), strict=True))
    return {name: round(values[number], 3) for number, name in enumerate(("mac", "output", "call"))}


def cycles_each(rows: list[tuple[int, int, int, int | None]]) -> float:
    """That an instruction takes on average, of all layers together."""
    return sum(row[3] or 0 for row in rows) / max(1, sum(row[2] for row in rows))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10, help="so many networks of a dozen layers")
    parser.add_argument("--recurrent", action="store_true", help="SVDF and LSTM alone")
    parser.add_argument("boards", nargs="*", default=BOARDS, metavar="BOARD")
    given = parser.parse_args()
    costs = json.loads(COSTS.read_text()) if COSTS.is_file() else {}
    for board in map(load_board, given.boards):
        points, headers = measure(board, given.seeds, recurrent if given.recurrent else zoo)
        for function in [function for function in points if function.endswith(FORMS)]:
            del points[function]  # nobody asks for these
        lines = {function: fit([row[:3] for row in points[function]]) for function in sorted(points)}
        found: dict[str, dict[str, Any]] = {"cpus": lines, "code": code(board, headers)}
        if all(row[3] is not None for rows in points.values() for row in rows):
            found["cycles"] = {
                function: {name: round(value * cycles_each(points[function]), 3) for name, value in line.items()}
                for function, line in lines.items()
            }
        for unit, rows in found.items():
            kept = costs.get(unit, {}).get(board.cpu.name, {}) if given.recurrent else {}
            costs.setdefault(unit, {})[board.cpu.name] = kept | rows
        COSTS.write_text(json.dumps(costs, indent=1, sort_keys=True) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
