"""Measure kernels over many random layers, fit what they cost, and count their bytes: costs.json of uaccel/kernels.

    python scripts/fit_costs.py [--seeds N] [--only KIND] [--points FILE] [BOARD ...]

Of each kernel function the cost is fitted as a sum of terms (``kernels/terms.py``): in estimated cycles where the
core's timings are known, else in instructions. The pixels, channels and products that a kernel takes at once are those
with which the terms fit best; a term stays if layers that the others were not fitted to are the worse without it.
Boards and functions that are not measured keep their figures. ``--points`` keeps the measurements, and with
``--seeds 0`` terms are fitted to what the file holds.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from support.models.kernel_zoo import Maker, samples_of, zoo_of
from support.models.relax_modules import compiled_module
from support.models.stateful import Lstm, Svdf
from support.models.usual_layers import FRAMES, OTHERS, USUAL, Usual
from uaccel.board import Board, load_board
from uaccel.kernels import Option, Turn, Work
from uaccel.kernels.choice import FORMS, Selection, target_of
from uaccel.kernels.terms import Sizes, term_of
from uaccel.lower.kernel_swaps import ALONE
from uaccel.lower.program import Layer
from uaccel.model import Array
from uaccel.ops.kernel import KernelCall
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
Network_of = Callable[[Board, int, Selection], Network]
Numbers = NDArray[np.float64]

# Measuring: networks of many layers, in which each kernel has its turn.


class Point(NamedTuple):
    """What a layer took: instructions, and estimated cycles where the core's timings are known."""

    sizes: list[Sizes]
    instructions: int
    cycles: int | None


def usual(makers: Sequence[Maker]) -> Network_of:
    def network(board: Board, seed: int, selection: Selection) -> Network:
        infos, module = zoo_of(seed, makers, Usual)
        return compiled_module(module, selection=selection), samples_of(seed, infos)[1:]

    return network


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


KINDS: dict[str, Network_of] = {
    "usual": usual(6 * USUAL),
    "others": usual(3 * OTHERS),
    "frames": usual(30 * FRAMES),
    "recurrent": recurrent,
}


def measured(board: Board, seeds: int, make: Network_of, headers: dict[str, str]) -> Iterator[dict[str, Any]]:
    """Rows of a file of points. ``headers`` is given that of each function that layers share."""
    for seed in range(1000, 1000 + seeds):
        for favour, turn in itertools.product((Favour.speed, Favour.size), range(MOST_TURNS)):
            compiled, sample = make(board, seed, Selection(target_of(board), Turn(turn), favour))
            layers = compiled.program.layers
            shared = (layer.kernel.calls for layer in layers if layer.kernel.family != ALONE)
            headers |= {call.function: call.header for calls in shared for call in calls}
            fresh = [layer for layer in layers if _is_fresh(layer, favour, turn)]
            if not fresh:
                continue
            with tempfile.TemporaryDirectory() as folder:
                looks = Looks(profile=True)
                run = run_compiled(compiled, board, sample, Path(folder) / "p", lambda _: None, looks=looks)
            taken = {time.layer: (time.instructions or 0, time.cycles_estimated) for time in run.layers}
            yield from (_row(board, layer, taken[layer.index]) for layer in fresh)
        print(f"{board.name}: {seed - 999} of {seeds}", file=sys.stderr)


def _is_fresh(layer: Layer, favour: Favour, turn: int) -> bool:
    """Whether the layer's kernel has not been measured: in its turn, and where size is favoured for its size."""
    small = favour is Favour.speed or any("small" in call.function for call in layer.kernel.calls)
    return small and layer.choice is not None and turn < len(layer.choice.options)


def _row(board: Board, layer: Layer, taken: tuple[int, int | None]) -> dict[str, Any]:
    return {
        "cpu": board.cpu.name,
        "macs": layer.macs,
        "effort": layer.kernel.effort,
        "outputs": layer.outputs[0].info.elements,
        "calls": [(call.function, dict(call.parameters)) for call in layer.kernel.calls],
        "taken": taken,
    }


def points_of(rows: Sequence[dict[str, Any]]) -> dict[str, list[Point]]:
    """By function; layers that call several say nothing of one, and nobody asks for some forms."""
    points = defaultdict(list)
    for row in rows:
        functions = {function for function, _ in row["calls"]}
        if len(functions) != 1 or not row["taken"][0] or min(functions).endswith(FORMS):
            continue
        (function,) = functions
        calls = tuple(KernelCall(function, "", "", _with_tuples(fields), ()) for _, fields in row["calls"])
        option = Option(function, (function,), effort=row["effort"], calls=calls)
        sizes = option.sizes(function, Work(row["macs"], row["outputs"]))
        points[function].append(Point(sizes, *row["taken"]))
    return points


def _with_tuples(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}


def code(board: Board, headers: dict[str, str]) -> dict[str, dict[str, int]]:
    """Bytes of each function and of those that it calls, as a compiler makes them of the headers."""
    cpu = board.cpu
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder, "used.c"), Path(folder, "used.o")
        for function, header in sorted(headers.items()):
            source.write_text(f'#include "{header}"\nconst void *const used = (const void *){function};\n')
            folders = [f"-I{path}" for path in KERNELS.iterdir() if path.is_dir()]
            compiler = [f"{cpu.toolchain}-gcc", *cpu.flags, "-O2", "-std=c99", *folders, "-c"]
            subprocess.run([*compiler, str(source), "-o", str(made)], check=True)
            listed = subprocess.run(
                [f"{cpu.toolchain}-nm", "-S", str(made)], check=True, capture_output=True, text=True
            )
            symbols = [line.split() for line in listed.stdout.splitlines()]
            found[function] = {row[3]: int(row[1], 16) for row in symbols if len(row) == 4 and row[2] in "tT"}
    return found


# Fitting: least squares of errors relative to what was measured, with no negative coefficient.

PIXELS = ("p", "p2", "p4", "l w2", "l w4", "l w8", "l2 w", "l2 w2")
CHANNELS = ("c", "c2", "c4", "c8", "c16")
PRODUCTS = ("t", "t4", "t8", "t16", "f")
TERMS = (
    "{p} {c} {t},{p} {t},{p} {c},{p},{c},{c} {t},{p} {c} h,{p} h,{p} r,{p} r {t},{p} {t} m,{p} {c} s,{p} {c} z,"
    "l {c},g {c},i {c},i c16,g c16,l {t},e {t},e h,e c,1,l,g,i,i d,l c h,u f,u c,u h,u h n,u h n m"
)
FOLDS = 5
MOST_TERMS = 9
SMALL = 1000  # Errors are relative to so much more than what a layer takes: small layers count less.
BETTER, WORSE = 0.97, 1.03  # The shares of errors that are worth another block, and that a term less may leave.


def terms_of(pixels: str, channels: str, products: str) -> list[str]:
    return list(dict.fromkeys(TERMS.format(p=pixels, c=channels, t=products).split(",")))


class Fit:
    """Fits the terms of one function."""

    def __init__(self, sizes: Sequence[Sequence[Sizes]], taken: Sequence[float]) -> None:
        self.sizes, self.taken = sizes, np.array(taken, np.float64)
        self.scale = self.taken + SMALL
        self.wanted = self.taken / self.scale
        self.fold = np.arange(len(taken)) % min(FOLDS, len(taken))
        self.columns: dict[str, Numbers] = {}

    def matrix(self, terms: Sequence[str]) -> Numbers:
        """Of each term what a coefficient of 1 contributes to the relative cost of each layer."""
        for term in terms:
            if term not in self.columns:
                found = [sum(term_of(term, each) for each in calls) for calls in self.sizes]
                self.columns[term] = np.array(found) / self.scale
        return np.column_stack([self.columns[term] for term in terms])

    def error(self, terms: Sequence[str]) -> float:
        """The mean relative error, of layers that the coefficients were not fitted to."""
        matrix, errors = self.matrix(terms), self.wanted.copy()
        for number in range(self.fold.max() + 1 if self.fold.max() else 0):
            out = self.fold == number
            errors[out] -= matrix[out] @ not_negative(matrix[~out], self.wanted[~out])
        return float(np.sqrt((np.minimum(np.abs(errors), 1) ** 2).mean()))

    def start(self) -> list[str]:
        """The terms that count with the blocks that fit best."""
        best, chosen = np.inf, []
        for blocks in itertools.product(PIXELS, CHANNELS, PRODUCTS):
            terms = terms_of(*blocks)
            matrix = self.matrix(terms)
            coefficients = not_negative(matrix, self.wanted)
            error = float(np.sqrt(((matrix @ coefficients - self.wanted) ** 2).mean()))
            if error < best * BETTER:
                best, chosen = error, [term for term, value in zip(terms, coefficients, strict=True) if value > 0]
        return chosen

    def result(self) -> dict[str, float]:
        terms = self.start()
        error = self.error(terms)
        while len(terms) > 1:
            tries = [(self.error(terms[:n] + terms[n + 1 :]), n) for n in range(len(terms))]
            least, number = min(tries)
            if least > error * WORSE and len(terms) <= min(MOST_TERMS, max(1, len(self.taken) // 2)):
                break
            terms, error = terms[:number] + terms[number + 1 :], min(error, least)
        values = not_negative(self.matrix(terms), self.wanted).tolist()
        return {term: float(f"{value:.4g}") for term, value in zip(terms, values, strict=True) if value > 0}


def not_negative(matrix: Numbers, target: Numbers) -> Numbers:
    """Coefficients from 0 with which the rows' sums are nearest to the target (Lawson and Hanson's active sets)."""
    square, wanted = matrix.T @ matrix, matrix.T @ target
    found, used = np.zeros(len(wanted)), np.zeros(len(wanted), bool)
    for _ in range(3 * len(wanted)):
        slope = np.where(used, -1.0, wanted - square @ found)
        if slope.max() <= 1e-9 * wanted.max():
            break
        used[slope.argmax()] = True
        while used.any():
            chosen = np.flatnonzero(used)
            solved = np.linalg.lstsq(square[np.ix_(chosen, chosen)], wanted[chosen], rcond=None)[0]
            if solved.min() > 0:
                found[:] = 0
                found[chosen] = solved
                break
            low = solved <= 0
            step = (found[chosen][low] / (found[chosen][low] - solved[low] + 1e-300)).min()
            found[chosen] += step * (solved - found[chosen])
            used[chosen[found[chosen] <= 1e-12]] = False
            found[~used] = 0
    return found


def fitted(points: dict[str, list[Point]]) -> tuple[dict[str, dict[str, float]], dict[str, float]]:
    """Terms by function, and the cycles that its instructions take on average; none where they are not known."""
    costs, paces = {}, {}
    for function, known in sorted(points.items()):
        cycles = [point.cycles for point in known if point.cycles is not None]
        taken = cycles or [point.instructions for point in known]
        costs[function] = Fit([point.sizes for point in known], taken).result()
        if cycles:
            paces[function] = round(sum(cycles) / sum(point.instructions for point in known), 4)
        print(f"{function}: {len(known)} layers, {len(costs[function])} terms", file=sys.stderr)
    return costs, paces


def write(stored: dict[str, Any]) -> None:
    """A line for each function."""
    text = json.dumps(stored, indent=1, sort_keys=True)
    COSTS.write_text(re.sub(r"{[^{}]*}", lambda found: " ".join(found[0].split()), text) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3, help="so many networks of a hundred layers (recurrent: of one)")
    parser.add_argument("--only", choices=KINDS, action="append", help="the layers to measure (default: all)")
    parser.add_argument("--points", type=Path, help="a file that keeps what was measured, and adds to it")
    parser.add_argument("boards", nargs="*", default=BOARDS, metavar="BOARD")
    given = parser.parse_args()
    stored = json.loads(COSTS.read_text())
    rows = [json.loads(line) for line in given.points.open()] if given.points and given.points.is_file() else []
    for board, kind in itertools.product(map(load_board, given.boards), given.only or KINDS):
        headers: dict[str, str] = {}
        for row in measured(board, given.seeds, KINDS[kind], headers):
            rows.append(json.loads(json.dumps(row)))
            if given.points:
                with given.points.open("a") as file:
                    print(json.dumps(row), file=file)
        stored["code"][board.cpu.name] = stored["code"].get(board.cpu.name, {}) | code(board, headers)
    for cpu in sorted({row["cpu"] for row in rows}):
        costs, paces = fitted(points_of([row for row in rows if row["cpu"] == cpu]))
        stored["costs"][cpu] = stored["costs"].get(cpu, {}) | costs
        if paces:
            stored["paces"][cpu] = stored["paces"].get(cpu, {}) | paces
    write(stored)
    return 0


if __name__ == "__main__":
    sys.exit(main())
