"""C sources of a test through a compiler, without a warning, and into this process."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uaccel.lower.tir.function import CFunction

STRICT = ("-std=c99", "-Wall", "-Wextra", "-pedantic", "-Wconversion", "-Werror")


def compiled(folder: Path, source: str, compiler: str, *flags: str) -> Path:
    """The output of a compiler that must find nothing to say."""
    path, output = folder / f"{compiler}.c", folder / f"{compiler}.out"
    path.write_text(source)
    command = [compiler, *STRICT, *flags, str(path), "-o", str(output)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:3000]
    return output


def shared(folder: Path, source: str, *flags: str) -> ctypes.CDLL:
    """The source as a library in this process."""
    return ctypes.CDLL(str(compiled(folder, source, "gcc", "-O1", "-shared", "-fPIC", *flags, "-lm")))


def pointers(arrays: Sequence[NDArray[Any]]) -> Any:
    return (ctypes.c_void_p * max(len(arrays), 1))(*(a.ctypes.data for a in arrays))


def called(folder: Path, function: CFunction, inputs: Sequence[NDArray[Any] | None]) -> list[NDArray[Any]]:
    """The outputs of a function; None for an input that it does not use."""
    includes = "".join(f"#include <{header}>\n" for header in function.headers)
    source = function.source.replace(f"static void {function.name}(", f"void {function.name}(")
    prototype = source[source.index(f"void {function.name}(") :].split("\n{", 1)[0] + ";\n"
    library = shared(folder, includes + prototype + source)
    outputs = [np.zeros(info.shape, info.dtype) for info in function.outputs]
    scratch = np.zeros(function.scratch_bytes // 8 + 1, np.uint64)
    addresses = [None if a is None else a.ctypes.data for a in (*inputs, *outputs)]
    addresses += [scratch.ctypes.data] if function.scratch_bytes else []
    getattr(library, function.name)(*(ctypes.c_void_p(address) for address in addresses))
    return outputs
