"""Measures the accuracy of a model on a device over samples with labels, and goes on after an interruption."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, Literal

import numpy as np

from uaccel.errors import InputError
from uaccel.model import Array
from uaccel.runner.execute import FirmwareMaker
from uaccel.runner.firmware import Firmware
from uaccel.runner.perform import NO_STATE, bench_of, prepared_to_run
from uaccel.runner.prepare import Prepared
from uaccel.runner.request import RunRequest, Steps
from uaccel.runner.samples import Grid, Labelled, grid_of, read_labelled
from uaccel.session.session import Result, Session
from uaccel.util import incoming
from uaccel.util.cache import Cache
from uaccel.util.files import parse_json, write_atomically, writing

# Measures of accuracy: how often the largest output is the label, and the area under the ROC curve.


def correct(scores: Array, labels: Array) -> int | None:
    """Counts samples whose largest output, the first of equal ones, is the label; None if there is one output."""
    return int((scores.argmax(axis=1) == labels).sum()) if scores.shape[1] > 1 else None


def by_class(scores: Array, labels: Array, names: Sequence[str]) -> list[dict[str, Any]]:
    """Returns for each class that has samples how many, how many are right, and what most of the others are taken
    for."""
    found, rows = scores.argmax(axis=1), []
    for label in np.unique(labels).tolist():
        taken = Counter(found[labels == label].tolist())
        right = taken.pop(label, 0)
        other = min(taken, key=lambda one: (-taken[one], one), default=None)
        row = {"label": _name(names, label), "samples": right + taken.total(), "correct": right}
        rows.append(row | {"taken_for": None if other is None else _name(names, other)})
    return rows


def _name(names: Sequence[str], label: int) -> str:
    return names[label] if label < len(names) else str(label)


def area(scores: Array, labels: Array) -> float | None:
    """Returns the area under the ROC curve; of several classes the mean of each against the rest.

    It is None where a class has no sample, or all of them."""
    if scores.shape[1] == 1:
        return _area(scores[:, 0], labels == 1)
    if scores.shape[1] == 2:
        return _area(scores[:, 1] - scores[:, 0], labels == 1)
    areas = [_area(scores[:, i], labels == i) for i in range(scores.shape[1])]
    known = [found for found in areas if found is not None]
    return float(np.mean(known)) if len(known) == len(areas) else None


def _area(scores: Array, positive: Array) -> float | None:
    """Returns how often a positive sample has a greater score than another one, where a tie counts half.

    That equals the area (Mann-Whitney). With all n scores ranked from 1, a sample of rank r exceeds r - 1 others. The
    sum of r - 1 over the p positives, less the p * (p - 1) / 2 pairs of two positives, counts the pairs that are won:
    the sum of their ranks less p * (p + 1) / 2. Equal scores share the mean of their ranks."""
    many, others = int(positive.sum()), int((~positive).sum())
    if not many or not others:
        return None
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ends = counts.cumsum()
    ranks = (ends - (counts - 1) / 2)[inverse]  # the mean of the ranks of equal ones
    return float((ranks[positive].sum() - many * (many + 1) / 2) / (many * others))


# The evaluation on a device: samples run one by one, and each result is kept as it comes.

Frames = Literal["last", "mean", "max"]
RECONSTRUCTION: Final = "reconstruction"
CLASSES: Final = "classes"


@dataclass(frozen=True)
class Evaluation:
    """Says what is evaluated. ``request`` is that of a run without inputs; ``kept``: the file of results. ``frames``:
    which scores count, where samples are sequences of frames for a model with a state."""

    request: RunRequest
    data: Path
    labels: Path
    kept: Path
    limit: int | None = None
    frames: Frames | None = None


@dataclass(frozen=True)
class Judge:
    """Turns outputs into scores: one for each class, or for a model that reconstructs its input the mean error."""

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
    """Evaluates and returns the report. Samples that an earlier evaluation of the same finished are not run again."""
    prepared = prepared_to_run(wanted.request, step, cache)
    told, firmware = prepared.told["report"], prepared.firmware
    given, made = (list(told[side].values()) for side in ("inputs", "outputs"))
    if wanted.frames and not firmware.has_state:
        raise InputError(NO_STATE.replace("--sequence", "--frames").format(wanted.request.model.name))
    names = made[0].get("labels", [])
    grids = [grid_of(row) for row in given]
    labelled = read_labelled(
        wanted.data, wanted.labels, firmware.inputs, grids, names, in_frames=wanted.frames is not None
    )
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
            _run(wanted, prepared, EvaluationWork(labelled, rest, count, judge), kept, step, cache)
        scores = np.array([kept.scores[i] for i in range(count)], np.float64).reshape(count, -1)
    right = correct(scores, labels)
    told_classes = {} if right is None or not names else {"classes": by_class(scores, labels, names)}
    notes = {"inputs_made": labelled.notes} if labelled.notes else {}
    return (
        notes
        | told_classes
        | ({"frames": wanted.frames} if wanted.frames else {})
        | {
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
    )


@dataclass(frozen=True)
class EvaluationWork:
    """Says which samples, by number, are left to be run of ``count``."""

    labelled: Labelled
    rest: list[int]
    count: int
    judge: Judge


def _run(
    wanted: Evaluation, prepared: Prepared, work: EvaluationWork, kept: ResultsFile, step: Steps, cache: Cache | None
) -> None:
    request, firmware = wanted.request, prepared.firmware
    with tempfile.TemporaryDirectory(prefix="uaccel-") as temporary:
        maker = FirmwareMaker(firmware, request.board, Path(temporary) / "project", step, cache)
        bench = bench_of(request, maker)
        with bench.ready(), bench.session(on_log=step.log) as session:
            done = work.count - len(work.rest)
            step(f"evaluate {len(work.rest)} samples")
            step.count(done, work.count)
            for i, scores in _scored(session, firmware, work, wanted.frames):
                kept.add(i, scores)
                done += 1
                step.count(done, work.count)


def _scored(
    session: Session, firmware: Firmware, work: EvaluationWork, frames: Frames | None
) -> Iterator[tuple[int, list[float]]]:
    """Yields the scores of each sample as they come. The frames of a sequence are run one after the other."""
    names, results = ([tensor.name for tensor in side] for side in (firmware.inputs, firmware.outputs))

    def fed(frame: list[Array]) -> dict[str, Array]:
        return dict(zip(names, frame, strict=True))

    def judged(frame: list[Array], result: Result) -> list[float]:
        return work.judge.scores(frame, [result.outputs[name] for name in results])

    if frames is None:
        alone = [work.labelled.samples[i][0] for i in work.rest]
        for i, frame, result in zip(work.rest, alone, session.stream(map(fed, alone)), strict=True):
            yield i, judged(frame, result)
        return
    for i in work.rest:
        sequence = work.labelled.samples[i]
        told = [
            judged(frame, result) for frame, result in zip(sequence, session.sequence(map(fed, sequence)), strict=True)
        ]
        yield i, _of_frames(np.array(told), frames).tolist()


def _of_frames(scores: Array, frames: Frames) -> Array:
    """The scores of a sequence, given those of each frame."""
    found: Array = {"last": scores[-1], "mean": scores.mean(axis=0), "max": scores.max(axis=0)}[frames]
    return found


def _identity(prepared: Prepared, wanted: Evaluation, labelled: Labelled) -> str:
    """Returns a digest of all that results depend on. Labels are left out: they may be corrected afterwards."""
    digest = hashlib.sha256(json.dumps(prepared.firmware.to_json(), sort_keys=True).encode())
    digest.update(wanted.request.board.name.encode())
    if wanted.frames:
        digest.update(f"{wanted.frames} {[len(sample) for sample in labelled.samples]}".encode())
    for sample in labelled.samples:
        for array in (array for frame in sample for array in frame):
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


class ResultsFile:
    """Keeps results in a file of JSON lines: first the identity of the evaluation, then a line for each sample.

    On entering, the lines that are whole are written anew, so that a last line that was cut off is gone before more is
    appended."""

    def __init__(self, path: Path, identity: str) -> None:
        self.scores: dict[int, list[float]] = {}
        self._path, self._identity = path, identity
        self._stream: IO[str] | None = None

    def __enter__(self) -> ResultsFile:
        with writing(self._path, "-o"):
            lines = list(self._read()) if self._path.exists() else []
            if lines and lines[0].get("evaluation") != self._identity:
                raise InputError(
                    f"{self._path} has results of another model, board or data; remove it, or name another with -o"
                )
            self.scores = {int(line["sample"]): list(line["scores"]) for line in lines[1:]}
            write_atomically(self._path, self._write_all, "-o")  # without a line that was cut off
            self._stream = self._path.open("a", encoding="utf-8")
        return self

    def __exit__(self, *_: object) -> None:
        if self._stream is not None:
            self._stream.close()

    def add(self, sample: int, scores: list[float]) -> None:
        """Appends a result and flushes, so that a process that is killed loses no finished sample."""
        assert self._stream is not None
        self.scores[sample] = scores
        with writing(self._path, "-o"):
            self._stream.write(json.dumps({"sample": sample, "scores": scores}) + "\n")
            self._stream.flush()

    def _write_all(self, stream: IO[bytes]) -> None:
        rows = [{"evaluation": self._identity}, *({"sample": i, "scores": s} for i, s in self.scores.items())]
        stream.writelines(json.dumps(row).encode() + b"\n" for row in rows)

    def _read(self) -> Iterator[dict[str, Any]]:
        for number, line in enumerate(incoming.read_text(self._path, errors="replace").splitlines()):
            try:
                found = parse_json(line)
            except ValueError:
                if number:
                    return  # cut off
                found = {}
            if not isinstance(found, dict) or (number and not {"sample", "scores"} <= set(found)):
                return
            yield found
