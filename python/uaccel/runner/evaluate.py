"""Accuracy over a set of samples."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

import numpy as np

from uaccel.bench import hold_if_known
from uaccel.errors import InputError, UaccelError
from uaccel.model import Array
from uaccel.runner.execute import Bench, Maker
from uaccel.runner.perform import prepared_to_run
from uaccel.runner.prepare import Prepared
from uaccel.runner.request import RunRequest, Steps
from uaccel.runner.samples import Grid, Labelled, grid_of, read_labelled
from uaccel.util.cache import Cache
from uaccel.util.files import parse_json, write_atomically

# How good a model is over a set: how often its largest output is the label, and the area under the ROC curve.


def correct(scores: Array, labels: Array) -> int | None:
    """How many samples have their label as the largest output; the first of equal ones. None of a single score."""
    return int((scores.argmax(axis=1) == labels).sum()) if scores.shape[1] > 1 else None


def area(scores: Array, labels: Array) -> float | None:
    """Under the ROC curve. Of several classes: each against the rest, their mean. None where a class has no sample, or
    all of them."""
    if scores.shape[1] == 1:
        return _area(scores[:, 0], labels == 1)
    if scores.shape[1] == 2:
        return _area(scores[:, 1] - scores[:, 0], labels == 1)
    areas = [_area(scores[:, i], labels == i) for i in range(scores.shape[1])]
    known = [found for found in areas if found is not None]
    return float(np.mean(known)) if len(known) == len(areas) else None


def _area(scores: Array, positive: Array) -> float | None:
    """How often a positive sample has the greater score of two; half for a tie."""
    many, others = int(positive.sum()), int((~positive).sum())
    if not many or not others:
        return None
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ends = counts.cumsum()
    ranks = (ends - (counts - 1) / 2)[inverse]  # the mean of the ranks of equal ones
    return float((ranks[positive].sum() - many * (many + 1) / 2) / (many * others))


# How good a model is on the device, over a set of samples with labels: one by one, kept as they come.

RECONSTRUCTION: Final = "reconstruction"
CLASSES: Final = "classes"


@dataclass(frozen=True)
class Evaluation:
    """``request`` is of a run; its inputs are these. ``kept``: where each result lies as soon as it is there."""

    request: RunRequest
    data: Path
    labels: Path
    kept: Path
    limit: int | None = None


@dataclass(frozen=True)
class Judge:
    """Scores of one sample: an element for each class; of a model that gives its input back how far that is off."""

    kind: str
    given: Grid
    made: Grid

    def scores(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> list[float]:
        if self.kind == CLASSES:
            return [float(value) for value in outputs[0].reshape(-1)]
        off = _real(outputs[0], self.made) - _real(inputs[0], self.given)
        return [float(np.mean(off**2))]


def _real(values: Array, grid: Grid) -> Array:
    found: Array = (values.astype(np.float64).reshape(-1) - grid.zero_point) * (grid.scale or 1.0)
    return found


def evaluate(wanted: Evaluation, step: Steps, cache: Cache | None) -> dict[str, Any]:
    """The report. What an earlier evaluation of the same left behind is not run again."""
    prepared = prepared_to_run(wanted.request, step, cache)
    told, firmware = prepared.told["report"], prepared.firmware
    given, made = (list(told[side].values()) for side in ("inputs", "outputs"))
    labelled = read_labelled(wanted.data, wanted.labels, firmware.inputs, [grid_of(row) for row in given])
    count = min(len(labelled.samples), wanted.limit or len(labelled.samples))
    alike = len(given) == 1 and given[0]["shape"] == made[0]["shape"]
    judge = Judge(RECONSTRUCTION if alike else CLASSES, grid_of(given[0]), grid_of(made[0]))
    classes = 2 if alike else max(2, int(np.prod(made[0]["shape"])))
    labels = labelled.labels[:count]
    strange = labels[(labels < 0) | (labels >= classes)]
    if strange.size:
        raise InputError(f"--labels {wanted.labels} has label {strange[0]}; the model has {classes} classes, from 0")
    with ResultsFile(wanted.kept, _identity(prepared, wanted, labelled)) as kept:
        before = sum(i < count for i in kept.scores)
        rest = [i for i in range(count) if i not in kept.scores]
        if rest:
            _run(wanted, prepared, Work(labelled, rest, count, judge), kept, step, cache)
        scores = np.array([kept.scores[i] for i in range(count)], np.float64).reshape(count, -1)
    right = correct(scores, labels)
    return {
        "model": told["model"],
        "board": wanted.request.board.name,
        "accelerators": told["accelerators"],
        "samples": count,
        "resumed": before,
        "scores": judge.kind,
        "correct": right,
        "top1": None if right is None or not count else right / count,
        "auc": area(scores, labels),
        "kept": str(wanted.kept),
    }


@dataclass(frozen=True)
class Work:
    """What is left to be run: samples by their number, of so many."""

    labelled: Labelled
    rest: list[int]
    count: int
    judge: Judge


def _run(
    wanted: Evaluation, prepared: Prepared, work: Work, kept: ResultsFile, step: Steps, cache: Cache | None
) -> None:
    request, firmware = wanted.request, prepared.firmware
    names, results = [tensor.name for tensor in firmware.inputs], [tensor.name for tensor in firmware.outputs]
    with tempfile.TemporaryDirectory(prefix="uaccel-") as temporary:
        maker = Maker(firmware, request.board, Path(temporary) / "project", step, cache)
        bench = Bench(firmware, request.board, maker, step, request.wishes.port, request.wishes.flashes)
        with hold_if_known(bench.line), closing(maker):
            bench.build()
            with bench.session(bench.built, on_log=step.log) as session:
                done = work.count - len(work.rest)
                step(f"evaluate {len(work.rest)} samples")
                step.count(done, work.count)
                samples = (dict(zip(names, work.labelled.samples[i], strict=True)) for i in work.rest)
                for i, result in zip(work.rest, session.stream(samples), strict=True):
                    outputs = [result.outputs[name] for name in results]
                    kept.add(i, work.judge.scores(work.labelled.samples[i], outputs))
                    done += 1
                    step.count(done, work.count)


def _identity(prepared: Prepared, wanted: Evaluation, labelled: Labelled) -> str:
    """Of all that results depend on but for labels, which may be corrected."""
    digest = hashlib.sha256(json.dumps(prepared.firmware.to_json(), sort_keys=True).encode())
    digest.update(wanted.request.board.name.encode())
    for sample in labelled.samples:
        for array in sample:
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


class ResultsFile:
    """A file that begins with what it is of, and has a line for each sample; entered, it is open for more."""

    def __init__(self, path: Path, identity: str) -> None:
        self.scores: dict[int, list[float]] = {}
        self._path, self._identity = path, identity
        self._stream: IO[str] | None = None

    def __enter__(self) -> ResultsFile:
        try:
            lines = list(self._read()) if self._path.exists() else []
            if lines and lines[0].get("evaluation") != self._identity:
                raise InputError(
                    f"{self._path} has results of another model, board or data; remove it, or name another with -o"
                )
            self.scores = {int(line["sample"]): list(line["scores"]) for line in lines[1:]}
            write_atomically(self._path, self._write_all, "-o")  # what was cut off goes
            self._stream = self._path.open("a", encoding="utf-8")
        except OSError as error:
            raise UaccelError(f"cannot write {self._path}: {error.strerror}; choose another place with -o") from error
        return self

    def __exit__(self, *_: object) -> None:
        if self._stream is not None:
            self._stream.close()

    def add(self, sample: int, scores: list[float]) -> None:
        """It is with the operating system before the next one begins."""
        assert self._stream is not None
        self.scores[sample] = scores
        try:
            self._stream.write(json.dumps({"sample": sample, "scores": scores}) + "\n")
            self._stream.flush()
        except OSError as error:
            raise UaccelError(f"cannot write {self._path}: {error.strerror}; choose another place with -o") from error

    def _write_all(self, stream: IO[bytes]) -> None:
        rows = [{"evaluation": self._identity}, *({"sample": i, "scores": s} for i, s in self.scores.items())]
        stream.writelines(json.dumps(row).encode() + b"\n" for row in rows)

    def _read(self) -> Iterator[dict[str, Any]]:
        for number, line in enumerate(self._path.read_text(encoding="utf-8", errors="replace").splitlines()):
            try:
                found = parse_json(line)
            except ValueError:
                if number:
                    return  # cut off
                found = {}
            if not isinstance(found, dict) or (number and not {"sample", "scores"} <= set(found)):
                return
            yield found
