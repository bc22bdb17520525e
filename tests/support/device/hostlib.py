"""Generated C, built as a shared library and called in this process: the quickest way to run a case.

The library is the generated source as it stands plus an observer that keeps every layer's outputs, so that a test
compares intermediate tensors too. ``build`` can add warnings, sanitizers or another compiler.
"""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uaccel.pipeline import Compiled, compile_model
from uaccel.util.files import data_dir

Array = NDArray[Any]

OBSERVER = """
#include <stdint.h>
#include <string.h>
#include "uaccel_observe.h"
static uint8_t *store; static uint32_t used, room; static int32_t records[4096][3]; static int32_t count;
void test_observe(uint8_t *memory, uint32_t bytes);
int32_t test_records(int32_t *to);
void test_observe(uint8_t *memory, uint32_t bytes) { store = memory; room = bytes; used = 0; count = 0; }
int32_t test_records(int32_t *to) { memcpy(to, records, (size_t)count * sizeof records[0]); return count; }
void uaccel_layer_begin(const char *model, int32_t layer) { (void)model; (void)layer; }
void uaccel_layer_end(const char *model, int32_t layer, int32_t output, const void *data, uint32_t bytes)
{
    (void)model;
    if (store == 0 || bytes > room - used || count == 4096) { return; }
    memcpy(store + used, data, bytes);
    records[count][0] = layer; records[count][1] = output; records[count][2] = (int32_t)used;
    used += bytes; ++count;
}
"""

STRICT = ("-std=c99", "-Wall", "-Wextra", "-pedantic", "-Wconversion", "-Werror")


def kernel_folders() -> list[Path]:
    """The folders of the families of kernels: includes are flat, as in an archive."""
    return sorted((data_dir("firmware") / "kernels").iterdir())


def include_flags() -> list[str]:
    firmware = data_dir("firmware")
    return [f"-I{folder}" for folder in (firmware / "include", *kernel_folders())]


def write_sources(compiled: Compiled, folder: Path) -> list[Path]:
    """The generated files, flat in one folder; returns the C files."""
    generated = compiled.generated
    for group in (generated.sources, generated.private_headers, generated.public_headers):
        for name, text in group.items():
            (folder / name).write_text(text)
    return [folder / name for name in generated.sources]


def compile_c(
    folder: Path, sources: Sequence[Path], output: Path, *, compiler: str = "gcc", flags: Sequence[str] = ()
) -> None:
    command = [
        compiler,
        *STRICT,
        *flags,
        f"-I{folder}",
        *include_flags(),
        *map(str, sources),
        "-o",
        str(output),
        "-lm",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr[:4000]}"


class HostModel:
    """A compiled model in this process."""

    def __init__(self, compiled: Compiled, *, optimise: str = "-O1", more: str = "", flags: Sequence[str] = ()) -> None:
        """``more``: C beside it."""
        self.compiled = compiled
        self.signature = compiled.model.signature
        self._folder = tempfile.TemporaryDirectory(prefix="uaccel-test-")
        folder = Path(self._folder.name)
        sources = write_sources(compiled, folder)
        observer = folder / "observer.c"
        observer.write_text(OBSERVER + more)
        library = folder / "model.so"
        compile_c(
            folder, [*sources, observer], library, flags=("-shared", "-fPIC", optimise, "-DUACCEL_OBSERVE", *flags)
        )
        self._library = ctypes.CDLL(str(library))
        self._run = self._library[f"{compiled.generated.names.prefix}_run"]

    def __call__(self, *inputs: Array) -> list[Array]:
        """The outputs; ``layers`` then holds each layer's outputs by (layer index, output index)."""
        held = [
            np.ascontiguousarray(value, dtype=spec.info.dtype).reshape(spec.info.shape)
            for value, spec in zip(inputs, self.signature.inputs, strict=True)
        ]
        outputs = [np.full(spec.info.shape, 0x55, spec.info.dtype) for spec in self.signature.outputs]
        layers = self.compiled.program.layers
        room = sum(value.info.size for layer in layers for value in layer.outputs)
        memory = np.zeros(max(1, room), np.uint8)
        self._library.test_observe(memory.ctypes.data_as(ctypes.c_void_p), ctypes.c_uint32(room))
        status = self._run(ctypes.byref(_pointers(held)), ctypes.byref(_pointers(outputs)))
        assert status == 0, f"run returned {status}"
        records = np.zeros((4096, 3), np.int32)
        count = self._library.test_records(records.ctypes.data_as(ctypes.c_void_p))
        self.layers: dict[tuple[int, int], Array] = {}
        for layer, output, offset in records[:count].tolist():
            info = layers[layer].outputs[output].info
            raw = memory[offset : offset + info.size].tobytes()
            self.layers[layer, output] = np.frombuffer(raw, info.dtype).reshape(info.shape)
        return outputs

    def reset(self) -> None:
        """Of a model that remembers: begin anew."""
        self._library[f"{self.compiled.generated.names.prefix}_reset"]()

    def by_tensor_name(self) -> dict[str, Array]:
        """After a call: intermediate tensors by their names in the model file."""
        layers = self.compiled.program.layers
        return {layers[i].outputs[j].spec.name: data for (i, j), data in self.layers.items()}


def _pointers(arrays: Sequence[Array]) -> Any:
    return (ctypes.c_void_p * max(1, len(arrays)))(*(a.ctypes.data for a in arrays))


def compile_bytes(data: bytes, name: str = "model") -> Compiled:
    """Compile a model that exists only in memory."""
    with tempfile.TemporaryDirectory(prefix="uaccel-test-") as folder:
        path = Path(folder) / f"{name}.tflite"
        path.write_bytes(data)
        return compile_model(path, board="host")
