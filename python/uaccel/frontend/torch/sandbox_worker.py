"""Runs in the process that reads a ``.pt2`` file: it takes one request, confines itself, reads, and answers.

Standard input holds the request and standard output takes the answer. Nothing else leaves the process.
"""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path
from typing import Any, Final

from uaccel.errors import InternalError, ModelError
from uaccel.frontend.torch.reader import LARGEST_FILE
from uaccel.frontend.torch.sandbox import read_frame, write_frame
from uaccel.model import Array, Bound

MOST: Final = 2 * LARGEST_FILE  # Most bytes of a request, which holds a file and samples to run it on.


def main() -> None:
    """Answer one request. Everything that is needed is imported before the file is looked at."""
    with os.fdopen(os.dup(1), "wb") as answers:
        _silence()
        request, arrays = read_frame(sys.stdin.buffer, MOST)
        answer, given = _answered(request, arrays)
        write_frame(answers, answer, given)
        answers.flush()
        os._exit(0)  # the libraries' own ends take a while


def _silence() -> None:
    """Send what libraries print to nowhere: on standard output it would break the frame of the answer."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (1, 2):
        os.dup2(nowhere, number)


def _answered(request: dict[str, Any], arrays: list[Array]) -> tuple[dict[str, Any], list[Array]]:
    """The answer: a result, an ``error`` of the file or of its user, or the traceback of a ``bug`` of ours."""
    path, data = Path(request["path"]), arrays[0].tobytes()
    try:
        _prepare(data, request["memory"], request["seconds"])
        if request["task"] == "import":
            return _imported(path, data, request["shapes"])
        return _executed(path, data, arrays[1:], request)
    except InternalError:
        return {"bug": traceback.format_exc()}, []
    except ModelError as error:
        return {"error": str(error)}, []
    except MemoryError:
        return {"error": f"{path} needs more memory than {request['memory'] >> 20} MB to read"}, []
    except Exception:
        return {"bug": traceback.format_exc()}, []


def _prepare(data: bytes, memory: int, seconds: int) -> None:
    """Load everything that the work needs, then confine the process.

    Nothing has parsed the file yet: whether it needs torchao is found by searching its bytes.
    """
    from uaccel.frontend.torch import importer
    from uaccel.frontend.torch.program import register_torchao, torch_package
    from uaccel.frontend.torch.sandbox import confine

    torch_package().set_num_threads(1)
    if b"torch.ops.torchao." in data:
        register_torchao()
    importer.rehearse()
    confine(memory, seconds)


def _imported(path: Path, data: bytes, shapes: dict[str, list[int]]) -> tuple[dict[str, Any], list[Array]]:
    from uaccel.frontend.torch.importer import import_bytes
    from uaccel.frontend.torch.isolated import packed

    model = import_bytes(path, data, {name: tuple(shape) for name, shape in shapes.items()})
    try:
        document, tensors = packed(model)
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from error
    return {"model": document}, tensors


def _executed(
    path: Path, data: bytes, arrays: list[Array], asked: dict[str, Any]
) -> tuple[dict[str, Any], list[Array]]:
    """Run the file's program. ``arrays`` holds what bound inputs begin with, and then the ``inputs`` of each sample."""
    from uaccel.frontend.torch.importer import execute
    from uaccel.frontend.torch.program import torch_package

    bound, count = [Bound(*pair) for pair in asked["bound"]], asked["inputs"]
    first, values = arrays[: len(bound)], arrays[len(bound) :]
    samples = [values[number * count : (number + 1) * count] for number in range(asked["samples"])]
    rows = execute(path, data, samples, bound, first, afresh=asked["afresh"])
    return {"version": str(torch_package().__version__)}, [value for row in rows for value in row]
