"""Files are read in a process of their own that can do nothing but compute; what comes back is plain data.

Reading one takes PyTorch's operators and TVM's converters: native code, which a file that was made for it might crash,
or keep busy for good. There that costs an error message.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from uaccel.errors import InternalError, ModelError
from uaccel.frontend import limits
from uaccel.frontend.budget import read_file
from uaccel.frontend.torch.archive import WANTED
from uaccel.frontend.torch.frames import FrameError, read_frame, write_frame
from uaccel.frontend.torch.package import ADVICE
from uaccel.frontend.torch.records import LARGEST_FILE
from uaccel.frontend.torch.shapes import InputShapes
from uaccel.frontend.torch.wire import unpacked
from uaccel.model import Array, ImportedModel, ModelFile

Samples = Sequence[Sequence[Array]]

_MEMORY: Final = (1 << 30, 8)
"""Bytes beside what PyTorch and TVM themselves take, and for each byte of the file."""
_SECONDS: Final = (40, 1 << 18)
"""Of a processor, and bytes of the file for which there is one more."""
_PATIENCE: Final = 10
"""Seconds on the clock for each of a processor's: other programs want it too."""
_DYING: Final = 2
"""Seconds in which a process ends that says no more."""
WORKER: Final = "uaccel.frontend.torch.worker"  # the module whose `main` the process runs
_START: Final = f"import sys; sys.path[:] = sys.argv[1:]; from {WORKER} import main; main()"
_KEPT: Final = ("PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "LD_LIBRARY_PATH")


def import_isolated(path: Path, input_shapes: InputShapes) -> ImportedModel:
    """The model in a ``.pt2`` file."""
    data = read_file(path, LARGEST_FILE)
    shapes = {name: list(shape) for name, shape in input_shapes.items()}
    answer, tensors = _answer(path, data, {"task": "import", "shapes": shapes}, [])
    return unpacked(answer["model"], tensors, ModelFile(path.suffix.lower(), data))


def execute_isolated(path: Path, samples: Samples) -> tuple[str, list[list[Array]]]:
    """PyTorch's version, and for each sample what the program in the file computes of it."""
    values = [np.asarray(value) for sample in samples for value in sample]
    data = read_file(path, LARGEST_FILE)
    answer, results = _answer(path, data, {"task": "execute", "inputs": len(samples[0])}, values)
    count = len(results) // len(samples)
    return str(answer["version"]), [results[first : first + count] for first in range(0, len(results), count)]


def _answer(
    path: Path, data: bytes, request: dict[str, Any], values: list[Array]
) -> tuple[dict[str, Any], list[Array]]:
    memory = limits.asked.memory or _MEMORY[0] + _MEMORY[1] * len(data)
    seconds = math.ceil(limits.asked.seconds or _SECONDS[0] + len(data) // _SECONDS[1])
    request |= {"path": str(path), "memory": memory, "seconds": seconds}
    with tempfile.TemporaryFile() as asked:
        write_frame(asked, request, [np.frombuffer(data, np.uint8), *values])
        asked.seek(0)
        status, answer, arrays = _run(asked.fileno(), memory, seconds)
    if status != 0 or answer is None:
        raise ModelError(f"{path} {_cause(status, memory, seconds)}")
    if "error" in answer:
        raise ModelError(str(answer["error"]))
    if "bug" in answer:
        where = str(answer["bug"])
        raise InternalError(f"reading {path} failed: {where.strip().splitlines()[-1]}") from RuntimeError(where)
    return answer, arrays


def _run(asked: int, memory: int, seconds: int) -> tuple[int, dict[str, Any] | None, list[Array]]:
    """Its status, and what it said where that makes sense."""
    command = [sys.executable, "-I", "-B", "-c", _START, *(entry for entry in sys.path if Path(entry).is_absolute())]
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ} | {"OMP_NUM_THREADS": "1"}
    nowhere = subprocess.DEVNULL
    with subprocess.Popen(
        command, stdin=asked, stdout=subprocess.PIPE, stderr=nowhere, env=environment, start_new_session=True
    ) as process:
        clock = threading.Timer(seconds * _PATIENCE, process.kill)
        clock.start()
        try:
            assert process.stdout is not None
            answer, arrays = read_frame(process.stdout, memory)
            return process.wait(), answer, arrays
        except FrameError:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(_DYING), None, []
            process.kill()
            return process.wait(), None, []
        finally:
            clock.cancel()
            process.kill()


def _cause(status: int, memory: int, seconds: int) -> str:
    """Of an end without an answer."""
    if status in (-signal.SIGXCPU, -signal.SIGKILL):
        return (
            f"takes more than {memory >> 20} MB or {seconds} seconds of a processor to read; no model for a "
            "microcontroller does: export a smaller one, or give it more by --limit-memory and --limit-seconds"
        )
    if status < 0:
        return f"crashes PyTorch or TVM, which read it (signal {-status}); {WANTED}"
    return f"cannot be read: a process of {sys.executable} for it ended with status {status}; {ADVICE}"
