"""Holds one-operator TFLite models against both runtimes: the generated C, and the exact meaning that verifies it."""

from __future__ import annotations

import multiprocessing
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from support.device.hostlib import HostModel, compile_bytes
from support.models.many import Row, many
from support.models.single_op import Activation
from support.models.tflite_campaign import HLO, TYPES, told
from support.oracle.apart import Apart, Array, Runs
from support.oracle.random_inputs import random_inputs
from uaccel.errors import ModelError
from uaccel.tvm_api.executor import Executor

T = TypeVar("T")
GROUP = 40
RUNS = (0, 3, 6, 8)
"""Of the inputs that ``random_inputs`` gives: a ramp, the extremes in turn, noise, noise with extremes."""
NO_ZEROS = ("DIV", "FLOOR_DIV", "FLOOR_MOD", "STABLEHLO_DIVIDE")
SUMS = ("CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV", "FULLY_CONNECTED", "BATCH_MATMUL", "CONV_3D")
"""Of floats, in another order: what they differ by depends on the largest."""
COMPARISONS = ("GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL", "EQUAL", "NOT_EQUAL")


@dataclass(frozen=True)
class Difference:
    """Documents where results may differ, and why: by ``steps``, or by any where it is None, with ``options`` alone."""

    operators: Sequence[str]
    types: Sequence[str]
    reason: str
    steps: int | None = None
    options: tuple[str, Sequence[str]] = ("", ())

    def covers(self, row: Row, dtype: str) -> bool:
        name, values = self.options
        types = {dtype, *(given.dtype for given in row.inputs if isinstance(given, Activation))}  # a mutant's differ
        known = row.operator in self.operators and not types.isdisjoint(self.types)
        return known and (not name or row.options.get(name) in values)


CLAMPS = ("RELU", "RELU6", "RELU_N1_TO_1")
DOCUMENTED = (
    Difference(
        ["LOCAL_RESPONSE_NORMALIZATION"],
        ["float32"],
        "LiteRT's reference kernel leaves the last channel of each window out; its optimised kernel does not",
    ),
    Difference(["DIV"], ["int8", "uint8", "int16"], "the reference shifts by more than 31 bits, undefined in C"),
    Difference(COMPARISONS, ["int16"], "the reference never sets the scales"),
    Difference(
        ["ADD"],
        ["int32"],
        "TFLite Micro leaves the activation out, LiteRT applies it",
        options=("fused_activation_function", CLAMPS),
    ),
    Difference(["CAST"], ["float32", "float16"], "C leaves casts of floats that the type does not hold undefined"),
    Difference(["EXP", "LOG"], ["int16"], "LiteRT interpolates in a table of 513 values, which overflows"),
    Difference(["REDUCE_PROD"], ["int8", "int16"], "LiteRT's integer products overflow where ours, in float, saturate"),
)


@dataclass(frozen=True)
class Verdict:
    """``outcome``: same, refused, differs, documented, unheld (no runtime has it) or broken (an error, no refusal)."""

    outcome: str
    detail: str = ""
    ran: str = ""


@dataclass(frozen=True)
class Case:
    """Holds a row as a model, the inputs of its runs, and what the runtimes make of them."""

    row: Row
    dtype: str
    data: bytes
    inputs: list[list[Array]]
    tflm: Runs | None
    litert: Runs | None

    @property
    def ran(self) -> str:
        given = (("tflm", self.tflm), ("litert", self.litert))
        return " ".join(name for name, runs in given if runs is not None and any(run is not None for run in runs))

    def wanted(self, run: int) -> list[Array] | None:
        """TFLite Micro's outputs, or else LiteRT's."""
        known = (runs[run] for runs in (self.tflm, self.litert) if runs is not None)
        return next((outputs for outputs in known if outputs is not None), None)

    def judged(self, way: str, run: int, got: Sequence[Array]) -> Verdict | None:
        """A verdict where the results differ."""
        wanted = self.wanted(run)
        if wanted is not None and self.row.operator == "FULLY_CONNECTED":  # how rows lie is the file's matter
            wanted = [
                right.reshape(one.shape) for one, right in zip(got, wanted, strict=True) if one.size == right.size
            ]
        sums = self.row.operator in SUMS
        found = [] if wanted is None else list(_differences(got, wanted, sums=sums))
        if not found:
            return None
        steps = max(count for count, _ in found)
        for known in DOCUMENTED:
            if known.covers(self.row, self.dtype) and (known.steps is None or steps <= known.steps):
                return Verdict("documented", known.reason, self.ran)
        return Verdict("differs", f"{way}, run {run}: {'; '.join(text for _, text in found)}", self.ran)


def asked(apart: Apart, label: str, row: Row, *, telling: bool = True) -> Case:
    """A row, with what the runtimes make of it; ``telling``: LiteRT says what its outputs look like."""
    same = HLO.get(row.operator, (0, ""))[1] or row.operator
    data = many({"row": replace(row, operator=same)})
    found = random_inputs(data, 0, max(RUNS) + 1)
    inputs = [found[number] for number in RUNS]
    if row.operator in NO_ZEROS:
        inputs = [[np.where(value == 0, 1, value).astype(value.dtype) for value in run] for run in inputs]
    litert = apart.ask(data, inputs, "litert")
    if telling and litert.outputs is not None and {dtype for _, dtype in litert.outputs} <= set(TYPES):
        row = told(row, litert.outputs)
        data = many({"row": replace(row, operator=same)})
    dtype = next((part for part in label.split(", ") if part in TYPES), "")
    return Case(row, dtype, many({"row": row}), inputs, apart.ask(data, inputs, "tflm").tflm, litert.litert)


def judged(
    rows: Mapping[str, Row], mutants: Mapping[str, Row] | None = None, *, safely: bool = True
) -> dict[str, Verdict]:
    """What became of each row. A row's label names its type.

    The runtimes do not say what outputs of ``mutants`` look like. ``safely``: the C runs in a process of its own.
    """
    verdicts, taken = {}, {}
    apart = Apart()
    try:
        for label, row in {**rows, **(mutants or {})}.items():
            case = asked(apart, label, row, telling=label in rows)
            try:
                compile_bytes(case.data)
            except ModelError as error:
                verdicts[label] = Verdict("refused", str(error), case.ran)
            except Exception as error:  # whatever it is, users would see a traceback
                verdicts[label] = Verdict("broken", f"compile: {type(error).__name__}: {str(error)[:300]}", case.ran)
            else:
                taken[label] = case
    finally:
        apart.close()
    if not safely:
        return verdicts | ran_together(taken)
    labels = list(taken)
    with Workers() as workers:
        for start in range(0, len(labels), GROUP):
            verdicts |= _grouped(workers, {label: taken[label] for label in labels[start : start + GROUP]})
    return verdicts


class Workers:
    """Runs one call after another in a process of their own, and in a new one where that ended."""

    def __enter__(self) -> Workers:
        self._pool = self._made()
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()

    @staticmethod
    def _made() -> ProcessPoolExecutor:
        return ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))

    def call(self, function: Callable[..., T], *arguments: object) -> T:
        try:
            return self._pool.submit(function, *arguments).result()
        except BrokenProcessPool:
            self._pool = self._made()
            raise


def _grouped(workers: Workers, cases: Mapping[str, Case]) -> dict[str, Verdict]:
    """Runs the cases as one model; where that fails, its halves."""
    try:
        return workers.call(ran_together, cases)
    except Exception as error:  # also that the process crashed
        if len(cases) == 1:
            ((label, case),) = cases.items()
            return {label: Verdict("broken", f"run: {type(error).__name__}: {str(error)[:300]}", case.ran)}
    labels = list(cases)
    half = len(labels) // 2
    first, second = ({label: cases[label] for label in part} for part in (labels[:half], labels[half:]))
    return {**_grouped(workers, first), **_grouped(workers, second)}


def ran_together(cases: Mapping[str, Case]) -> dict[str, Verdict]:
    """Builds one model of the cases, runs it as C and by its exact meaning, and compares."""
    compiled = compile_bytes(many({label: case.row for label, case in cases.items()}))
    model, executor = HostModel(compiled), Executor(compiled.stages["import"])
    verdicts = {label: Verdict("same" if case.ran else "unheld", "", case.ran) for label, case in cases.items()}
    for run in range(len(RUNS)):
        given = [value for case in cases.values() for value in case.inputs[run]]
        for way, results in (("C", iter(model(*given))), ("meaning", iter(executor.run(given)))):
            for label, case in cases.items():
                found = case.judged(way, run, [next(results) for _ in case.row.outputs])
                if found is not None and verdicts[label].outcome in ("same", "documented"):
                    verdicts[label] = found
    return verdicts


def _differences(got: Sequence[Array], wanted: Sequence[Array], *, sums: bool) -> Iterator[tuple[float, str]]:
    """Yields by how much outputs differ, at most, and what to say of it; floats may by rounding."""
    for one, other in zip(got, wanted, strict=True):
        if one.shape != other.shape or one.dtype != other.dtype:
            yield np.inf, f"{one.dtype}{one.shape}, wanted {other.dtype}{other.shape}"
            continue
        same = one == other
        with warnings.catch_warnings(action="ignore"):
            if one.dtype.kind == "f":
                rough = 1e-5 if one.dtype != np.float16 else 1e-3
                largest = np.max(np.abs(other), initial=1.0, where=np.isfinite(other)) if sums else 1.0
                same = np.isclose(one, other, rtol=rough, atol=rough * largest, equal_nan=True)
            most = float(np.max(np.abs(one.astype(np.float64) - other.astype(np.float64)), initial=0.0))
        if not np.all(same):
            place = tuple(np.argwhere(np.atleast_1d(~same))[0])
            values = np.atleast_1d(one)[place], np.atleast_1d(other)[place]
            count = f"{int((~same).sum())} of {one.size} differ"
            yield most, f"{count}, at {[*map(int, place)]} {values[0]}, wanted {values[1]}"
