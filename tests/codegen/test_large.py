"""A large model's constants are strings: the same bytes, no warning from either compiler."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from support.device.generated import cc
from support.device.hostlib import kernel_folders
from uaccel.codegen.options import Names
from uaccel.codegen.weights import Array, weights_header, weights_source
from uaccel.util.c_text import COMPACT_FROM, SHORTEST, array_body, columns

LARGE = np.arange(COMPACT_FROM, dtype=np.uint32).astype(np.uint8).view(np.int8)
SMALL = np.arange(-5, 5, dtype=np.int8)
NAMES = Names("large", (), (), (), ())


def source(folder: Path, *arrays: NDArray[Any]) -> Path:
    made = [Array(f"a{i}", data) for i, data in enumerate(arrays)]
    (folder / f"{NAMES.prefix}_weights.h").write_text(weights_header(NAMES, made, "/* made */\n"))
    path = folder / "weights.c"
    path.write_text(weights_source(NAMES, made, "/* made */\n"))
    return path


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_the_bytes_are_the_same(compiler: str, tmp_path: Path) -> None:
    path, library = source(tmp_path, LARGE, SMALL), tmp_path / "weights.so"
    assert max(map(len, path.read_text().splitlines())) <= 120
    cc(path, "-shared", "-fPIC", "-o", library, include=[tmp_path, *kernel_folders()], compiler=compiler)
    loaded = ctypes.CDLL(str(library))
    for name, data in (("a0", LARGE), ("a1", SMALL)):
        got = (ctypes.c_int8 * data.size).in_dll(loaded, name)
        assert bytes(got) == data.tobytes()


def test_only_long_arrays_of_large_models_are_strings(tmp_path: Path) -> None:
    assert '"\\373' not in source(tmp_path, SMALL, LARGE[:SHORTEST]).read_text()
    text = source(tmp_path, LARGE, SMALL, LARGE[:SHORTEST]).read_text()
    assert text.count('=\n    "') == 2
    assert "{\n    -5, -4, -3, -2, -1,  0,  1,  2,  3,  4\n}" in text


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("size", [1, 17, 18, 19, 1000])
@pytest.mark.parametrize("most", [1, 9, 99, 127])
def test_lists_of_numbers_are_wrapped_as_others_are(dtype: type[np.generic], size: int, most: int) -> None:
    low = -most if dtype is np.int8 else 0
    array = np.random.RandomState(size).randint(low, most + 1, size).astype(dtype)
    assert array_body(array) == columns([str(value) for value in array.tolist()])
