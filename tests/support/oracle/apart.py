"""Runs TFLite models on both runtimes in a process of their own, since models with odd options make them abort.

Its parent writes pickled ``(model, inputs)`` and reads what each runtime made of them.
"""

from __future__ import annotations

import os
import pickle
import resource
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
MEMORY, SECONDS = 8 << 30, 60
Runs = list[list[Array] | None]
"""The outputs of each run; None for one that the runtime ended with an error."""


@dataclass(frozen=True)
class Answer:
    """Holds shapes and types of the outputs as LiteRT works them out, and each runtime's runs; None: it has none."""

    outputs: list[tuple[tuple[int, ...], str]] | None = None
    tflm: Runs | None = None
    litert: Runs | None = None


class Apart:
    """Asks the process, and starts it anew where it ended."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, model: bytes, inputs: Sequence[Sequence[Array]], runtime: str) -> Answer:
        """``runtime``: ``tflm`` or ``litert``; an answer of nothing where it aborts."""
        if self._process is None or self._process.poll() is not None:
            command = [sys.executable, "-c", "from support.oracle import apart; apart.serve()"]
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            pickle.dump((model, inputs, runtime), self._process.stdin)
            self._process.stdin.flush()
            answer: Answer = pickle.load(self._process.stdout)
        except (EOFError, BrokenPipeError, pickle.UnpicklingError):
            self.close()
            return Answer()
        return answer

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def serve() -> None:
    """Answers until its input ends; nothing else may write to its standard output."""

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))  # odd extents make a runtime ask for all that there is
    given, taken = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while True:
        try:
            model, inputs, runtime = pickle.load(given)
        except EOFError:
            return
        signal.alarm(SECONDS)  # some models have it loop for ever; this ends the process
        pickle.dump((_litert if runtime == "litert" else _tflm)(model, inputs), taken)
        taken.flush()
        signal.alarm(0)


def _runs(run: Any, inputs: Sequence[Sequence[Array]]) -> Runs:
    results: Runs = []
    for values in inputs:
        try:
            results.append(run(values))
        except (RuntimeError, ValueError):
            results.append(None)
    return results


def _litert(model: bytes, inputs: Sequence[Sequence[Array]]) -> Answer:
    from support.oracle.oracle import LiteRt

    try:
        runtime = LiteRt(model)
    except (RuntimeError, ValueError):
        return Answer()
    details = [runtime._interpreter._get_tensor_details(index, 0) for index in runtime.view.output_indices]
    outputs = [(tuple(map(int, entry["shape"])), np.dtype(entry["dtype"]).name) for entry in details]
    return Answer(outputs, litert=_runs(runtime.run, inputs))


def _tflm(model: bytes, inputs: Sequence[Sequence[Array]]) -> Answer:
    from support.oracle.oracle import Tflm

    try:
        runtime = Tflm(model)
    except (RuntimeError, ValueError):
        return Answer()
    return Answer(tflm=_runs(runtime.run, inputs))
