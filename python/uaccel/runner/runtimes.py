"""Asks the runtime of a model's own format what the outputs should be, on the file as it was given.

A runtime shares nothing with the compiler: neither the import, nor the arithmetic, nor the process. Where it cannot
answer, it says why, and the report passes that on: silence would look like agreement.
"""

from __future__ import annotations

import atexit
import importlib.metadata
import importlib.util
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, Any, Final

import numpy as np

from uaccel.build.children import start, temporary_file
from uaccel.build.doctor import PYTHON_PACKAGES, how_to_get
from uaccel.errors import UaccelError
from uaccel.frontend.torch.sandbox import FrameError, read_frame, write_frame
from uaccel.model import Array, ImportedModel
from uaccel.runner.compare import LAYERS_ROUND, Move, moved
from uaccel.runner.differences import fault
from uaccel.runner.runtime_worker import MOST

Samples = Sequence[Sequence[Array]]
_Rows = list["list[Array] | str"]  # For each sample its outputs, or why there are none.
DRAWS: Final = 5  # How often a runtime is asked for moved inputs.
_SECONDS: Final = 600  # Most time for an answer.
_LONGEST: Final = 400  # Characters of a reason.
_WORKER: Final = "import sys; sys.path[:] = sys.argv[1:]; from uaccel.runner.runtime_worker import main; main()"


@dataclass(frozen=True)
class Runtime:
    """Names a runtime: ``name`` in reports, ``title`` for people, and its Python package."""

    name: str
    title: str
    package: str

    @property
    def version(self) -> str | None:
        """The installed version; None where the package is not installed."""
        try:
            return importlib.metadata.version(self.package)
        except importlib.metadata.PackageNotFoundError:
            return None

    @property
    def how_to_get(self) -> str:
        """The command that installs it."""
        return how_to_get(next(package for package in PYTHON_PACKAGES if package.name == self.package))


TFLM: Final = Runtime("tflite-micro", "TensorFlow Lite Micro", "tflite-micro")
LITERT: Final = Runtime("litert", "LiteRT", "ai-edge-litert")
ONNX_RUNTIME: Final = Runtime("onnxruntime", "ONNX Runtime", "onnxruntime")
TORCH: Final = Runtime("torch", "PyTorch", "torch")
# The runtimes of each format; the next one is asked where one gives no opinion.
RUNTIMES: Final[dict[str, tuple[Runtime, ...]]] = {
    "tflite": (TFLM, LITERT),
    "onnx": (ONNX_RUNTIME,),
    "torch.export": (TORCH,),
}


@dataclass(frozen=True)
class Silence:
    """Says why a runtime gave no opinion, on a model or (``sample``) on one sample of it."""

    runtime: Runtime
    why: str
    sample: int | None = None

    def to_json(self) -> dict[str, Any]:
        return {"runtime": self.runtime.name, "sample": self.sample, "why": self.why}


@dataclass(frozen=True)
class Said:
    """Holds what a runtime computes for each sample; None for a sample that it refuses.

    ``half``: whether it computes some of it in half precision."""

    runtime: Runtime
    version: str
    outputs: list[list[Array] | None]
    half: bool = False


def installed() -> list[list[str]]:
    """Lists what verdicts may rest on: the runtimes with version, place and time of installation."""
    found = []
    for runtime in chain(*RUNTIMES.values()):
        module = next(package.module for package in PYTHON_PACKAGES if package.name == runtime.package)
        spec = importlib.util.find_spec(module)
        place = Path(spec.origin) if spec is not None and spec.origin else None
        changed = str(place.stat().st_mtime_ns) if place is not None and place.exists() else ""
        found.append([runtime.name, runtime.version or "", str(place or ""), changed])
    return found


def ask(
    model: ImportedModel, path: Path, samples: Samples, *, continues: bool = False
) -> tuple[Said | None, list[Silence]]:
    """Returns what the first runtime says that has an opinion, and why others, or it on single samples, have none.

    With ``continues`` the samples are frames: the model keeps its state from each to the next."""
    silent: list[Silence] = []
    for runtime in RUNTIMES.get(model.source_format, ()):
        if runtime.version is None:
            silent.append(Silence(runtime, f"it is not installed; to get it: {runtime.how_to_get}"))
            continue
        wrong = fault(model, runtime.name) or (_other_state(model) if runtime is LITERT else "")
        if wrong:
            silent.append(Silence(runtime, f"it is not asked: {wrong}"))
            continue
        try:
            rows, half = _rows(runtime, model, path, samples, continues)
        except _NoOpinionError as error:
            silent.append(Silence(runtime, _shortened(str(error))))
            continue
        refused = [(number, row) for number, row in enumerate(rows) if isinstance(row, str)]
        if len(refused) == len(rows):
            silent.append(Silence(runtime, _shortened(refused[0][1])))
            continue
        silent += [Silence(runtime, _shortened(why), number) for number, why in refused]
        outputs = [None if isinstance(row, str) else row for row in rows]
        return Said(runtime, runtime.version, outputs, half or _any_half(outputs)), silent
    return None, silent


def own_moves(model: ImportedModel, path: Path, samples: Samples, *, continues: bool = False) -> list[list[Move]]:
    """Measures for each output of each sample how far the runtime's own answer moves where inputs round otherwise.

    Inputs move by ``LAYERS_ROUND`` roundings at once, and not by one of which the effect is multiplied: a decision then
    falls otherwise as often as behind so many layers, and its step is as large as it is. Integer inputs do not move.
    Zeros move as the largest number that any sample has there: the sums behind them round by what biases add."""
    said = ask(model, path, samples, continues=continues)[0]
    found = [[Move()] * len(row or ()) for row in said.outputs] if said is not None else []
    peaks = [max(map(_peak, values)) for values in zip(*samples, strict=True)]
    for seed in range(DRAWS):
        rng = np.random.default_rng(seed)
        drawn = {
            id(sample): [moved(value, rng, LAYERS_ROUND, zero) for value, zero in zip(sample, peaks, strict=True)]
            for sample in samples
        }
        other = ask(model, path, [drawn[id(sample)] for sample in samples], continues=continues)[0]
        if said is None or other is None:
            return []
        found = [
            [move | Move.between(*pair) for move, *pair in zip(moves, one or (), two or (), strict=False)]
            for moves, one, two in zip(found, said.outputs, other.outputs, strict=True)
        ]
    return found


def _peak(value: Array) -> float:
    return float(np.abs(value[np.isfinite(value)].astype(np.float64)).max(initial=0.0))


def _other_state(model: ImportedModel) -> str:
    """Says that LiteRT keeps a state of integers otherwise than TensorFlow Lite Micro; floats it keeps alike."""
    floats = all(entry.initial.dtype == np.float32 for entry in model.state)
    return "" if floats else "it keeps another state"


def _any_half(outputs: Sequence[Sequence[Array] | None]) -> bool:
    return any(value.dtype == np.float16 for row in outputs if row is not None for value in row)


class _NoOpinionError(Exception):
    """Is raised with the reason where a runtime cannot run a model at all."""


def _rows(runtime: Runtime, model: ImportedModel, path: Path, samples: Samples, continues: bool) -> tuple[_Rows, bool]:
    """Returns for each sample the outputs or why there are none, and whether halves were computed with.

    Samples that are the same object run once."""
    if continues:
        return _run(runtime, model, path, samples, False)
    order: dict[int, int] = {}
    numbers = [order.setdefault(id(sample), len(order)) for sample in samples]
    once = [samples[numbers.index(number)] for number in range(len(order))]
    rows, half = _run(runtime, model, path, once, bool(model.state))
    return [rows[number] for number in numbers], half


def _run(runtime: Runtime, model: ImportedModel, path: Path, samples: Samples, afresh: bool) -> tuple[_Rows, bool]:
    first = [entry.initial for entry in model.state[: len(model.bound)]]
    how = {
        "samples": len(samples),
        "inputs": len(model.signature.inputs),
        "bound": [[pair.output, pair.input] for pair in model.bound],
        "afresh": afresh,
    }
    if runtime is TORCH:
        return _by_torch(path, how, [first, *samples]), False
    return _worker.ask({"runtime": runtime.name, "path": str(path.resolve())} | how, [first, *samples])


def _by_torch(path: Path, how: dict[str, Any], samples: Samples) -> _Rows:
    """Executes the program in the process that also imports such files, as a file may hold hostile code."""
    from uaccel.frontend.torch.isolated import execute_isolated

    try:
        return list(execute_isolated(path, how, samples)[1])
    except UaccelError as error:
        raise _NoOpinionError(str(error).removeprefix(f"{path} ")) from error


class _Worker:
    """Keeps one process that executes models; it is started when it is first needed, and again after a crash."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0  # A process that was forked off this one must start a worker of its own.
        self._printed: IO[bytes] | None = None
        self._seen = 0  # Bytes of it.
        self._lock = threading.Lock()

    def ask(self, request: dict[str, Any], samples: Samples) -> tuple[_Rows, bool]:
        values = [np.asarray(value) for sample in samples for value in sample]
        with self._lock:
            process = self._started()
            clock = threading.Timer(_SECONDS, process.kill)
            clock.start()
            try:
                assert process.stdin is not None
                assert process.stdout is not None
                write_frame(process.stdin, request, values)
                answer, arrays = read_frame(process.stdout, MOST)
            except (FrameError, OSError) as error:
                late = not clock.is_alive()
                status = self._ended()
                why = f"it took more than {_SECONDS} seconds" if late else f"it crashed with exit status {status}"
                raise _NoOpinionError(why) from error
            finally:
                clock.cancel()
            printed = self._new_words()
        why = printed if request["runtime"] == TFLM.name else ""  # it prints its reasons and does not raise them
        if answer["problem"] is not None:
            raise _NoOpinionError(why or str(answer["problem"]))
        rows = _divided(answer["told"], arrays)
        return [why if why and isinstance(row, str) else row for row in rows], bool(answer["half"])

    def _started(self) -> subprocess.Popen[bytes]:
        if self._owner == os.getpid() and self._process is not None and self._process.poll() is None:
            return self._process
        self.close()
        self._owner, self._seen = os.getpid(), 0
        self._printed = temporary_file()  # it is open as long as the process lives
        command = [sys.executable, "-c", _WORKER, *(entry for entry in sys.path if Path(entry).is_absolute())]
        self._process = start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._printed)
        return self._process

    def _new_words(self) -> str:
        """Returns the last line that the runtime printed since the last answer.

        The process writes where the file's position is, so reading must not move that."""
        assert self._printed is not None
        text = os.pread(self._printed.fileno(), 1 << 16, self._seen)
        self._seen = os.fstat(self._printed.fileno()).st_size
        lines = [line.strip() for line in text.decode(errors="replace").splitlines() if line.strip()]
        return lines[-1] if lines else ""

    def _ended(self) -> int | None:
        assert self._process is not None
        self._process.kill()
        status = self._process.wait()
        self.close()
        return status

    def close(self) -> None:
        """Ends the process."""
        if self._process is not None and self._owner == os.getpid():
            self._process.kill()
            self._process.communicate()
        if self._printed is not None:
            self._printed.close()
        self._process = self._printed = None


_worker = _Worker()
atexit.register(_worker.close)


def _divided(told: list[int | str], arrays: list[Array]) -> _Rows:
    rows: _Rows = []
    first = 0
    for said in told:
        rows.append(said if isinstance(said, str) else arrays[first : first + said])
        first += said if isinstance(said, int) else 0
    return rows


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 3] + "..."
