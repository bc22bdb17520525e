"""Runs in a process of its own and answers requests: it executes a model file with the runtime of the file's format.

The runtimes are native code, which a file may crash, or keep busy for good. They also print, where nobody wants it.
Nothing of the compiler is used here, so that a fault of the compiler cannot repeat itself.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, Final

import numpy as np

from uaccel.frontend.checks import read_file
from uaccel.frontend.torch.sandbox import FrameError, read_frame, write_frame
from uaccel.model import Array, Bound, Fed

MOST: Final = 1 << 33  # Bytes of a request or an answer.
# Bytes that TensorFlow Lite Micro may take for tensors; the next number is tried where one is too small.
_ARENAS: Final = (16 << 20, 256 << 20, 1 << 30)
Run = Callable[[list[Array]], list[Array]]


class _Tflm:
    """Executes the reference kernels of TensorFlow Lite Micro."""

    half = False

    def __init__(self, path: Path) -> None:
        self._package: Any = importlib.import_module("tflite_micro")
        self._data, self._arenas = read_file(path), list(_ARENAS)

    def start(self) -> Run:
        """Makes an interpreter, whose variables have their initial values."""
        while True:
            arena = self._arenas[0] + 2 * len(self._data)
            try:
                return self._run_of(self._package.runtime.Interpreter.from_bytes(self._data, arena_size=arena))
            except RuntimeError:
                if len(self._arenas) == 1:
                    raise
                del self._arenas[0]

    def _run_of(self, interpreter: Any) -> Run:
        def run(inputs: list[Array]) -> list[Array]:
            for index, value in enumerate(inputs):
                interpreter.set_input(value, index)
            interpreter.invoke()
            return [np.array(interpreter.get_output(index)) for index in range(_outputs(self._data))]

        return run


class _LiteRt:
    """Executes the reference kernels of LiteRT, without a delegate."""

    half = False

    def __init__(self, path: Path) -> None:
        self._package: Any = importlib.import_module("ai_edge_litert.interpreter")
        self._data = read_file(path)

    def start(self) -> Run:
        """Makes an interpreter, whose variables have their initial values."""
        kernels = self._package.OpResolverType.BUILTIN_REF
        interpreter = self._package.Interpreter(
            model_content=self._data, num_threads=1, experimental_op_resolver_type=kernels
        )
        places = interpreter.get_input_details()
        allocated = False  # A file that leaves shapes open may have some that do not fit before inputs are resized.

        def run(inputs: list[Array]) -> list[Array]:
            nonlocal allocated
            changed = [(place, value) for place, value in zip(places, inputs, strict=True) if _other(place, value)]
            for place, value in changed:
                interpreter.resize_tensor_input(place["index"], value.shape)
                place["shape"] = np.asarray(value.shape)
            if changed or not allocated:
                interpreter.allocate_tensors()
                allocated = True
            for place, value in zip(places, inputs, strict=True):
                interpreter.set_tensor(place["index"], value.astype(place["dtype"]))
            interpreter.invoke()
            return [np.array(interpreter.get_tensor(place["index"])) for place in interpreter.get_output_details()]

        return run


def _other(place: dict[str, Any], value: Array) -> bool:
    return tuple(place["shape"]) != value.shape


def _outputs(data: bytes) -> int:
    """Returns how many outputs the first subgraph has, which TensorFlow Lite Micro's package does not tell."""
    model = importlib.import_module("tflite").Model.GetRootAsModel(data, 0)
    return int(model.Subgraphs(0).OutputsLength())


class _OnnxRuntime:
    """Executes ONNX Runtime without graph optimisation."""

    def __init__(self, path: Path) -> None:
        self._module: Any = importlib.import_module("uaccel.runner.onnx_runtime")
        self._session = self._module.session_of(path)
        self.half = self._module.computes_in_half(path)

    def start(self) -> Run:
        """Returns a run of the model; ONNX files keep no state."""
        session = self._session

        def run(inputs: list[Array]) -> list[Array]:
            results = session.run(None, self._module.given(session.get_inputs(), inputs))
            return [self._module.as_array(value) for value in results]

        return run


RUNTIMES: Final[dict[str, Callable[[Path], Any]]] = {
    "tflite-micro": _Tflm,
    "litert": _LiteRt,
    "onnxruntime": _OnnxRuntime,
}


def main() -> None:
    """Answers requests until standard input ends."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what runtimes print would break the frames of answers
    while True:
        try:
            request, arrays = read_frame(sys.stdin.buffer, MOST)
        except FrameError:
            return
        _answer(answers, request, arrays)


def _answer(answers: IO[bytes], request: dict[str, Any], arrays: list[Array]) -> None:
    """Writes for each sample how many outputs it has, or why it has none, and all outputs."""
    told: list[int | str] = []
    values: list[Array] = []
    problem, half = None, False
    try:
        runtime = RUNTIMES[request["runtime"]](Path(request["path"]))
        half = runtime.half
        for said in _said(runtime, request, arrays):
            told.append(said if isinstance(said, str) else len(said))
            values += [] if isinstance(said, str) else said
    except Exception as error:
        problem = _words(error)
    write_frame(answers, {"told": told, "problem": problem, "half": half}, values)


def _said(runtime: Any, request: dict[str, Any], arrays: list[Array]) -> Iterator[list[Array] | str]:
    """Yields the outputs of each sample, or why the runtime refuses it. A model that cannot be run at all raises."""
    count, bound = request["inputs"], [Bound(*pair) for pair in request["bound"]]
    first, given = arrays[: len(bound)], arrays[len(bound) :]
    run = Fed(runtime.start(), bound, first)
    for number in range(request["samples"]):
        if request["afresh"] and number:
            run = Fed(runtime.start(), bound, first)
        try:
            yield _plain(run(given[number * count : (number + 1) * count]))
        except Exception as error:
            yield _words(error)


def _plain(outputs: list[Array]) -> list[Array]:
    if any(output.dtype.kind not in "biuf" for output in outputs):
        raise TypeError("an output is no tensor of numbers")
    return [np.ascontiguousarray(output) for output in outputs]


def _words(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
