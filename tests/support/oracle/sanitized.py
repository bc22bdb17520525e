"""Generated C under the address and undefined behaviour sanitizers, in a process of its own.

Every input and output and the workspace is an allocation of exactly its size, so that one byte too far is caught. Each
set of inputs runs several times: over workspaces and outputs of different former content, which must change nothing,
and with inputs that must come out as they went in. A model that remembers begins anew each time.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from support.device.hostlib import Array, compile_c, write_sources
from support.oracle.exactness import assert_same
from support.oracle.oracle import Tflm, random_inputs
from uaccel.codegen.options import EmitOptions
from uaccel.memory import Pool
from uaccel.pipeline import Compiled, compile_model

__all__ = ["SANITIZE", "assert_clean", "compile_pooled", "run_sanitized"]

SANITIZE = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-g")
LEVELS = {"gcc": "-O1", "clang": "-O0"}  # clang takes minutes at -O1 where many layers are inlined
POOL = "arena"
DRIVER = Path(__file__).with_name("sanitized_driver.c")


def compile_pooled(data: bytes, name: str = "model", *, whole_layers: bool = False) -> Compiled:
    """The model with a workspace that the application passes in."""
    with tempfile.TemporaryDirectory(prefix="uaccel-test-") as folder:
        path = Path(folder) / f"{name}.tflite"
        path.write_bytes(data)
        return compile_model(path, board="host", options=EmitOptions(pools=(Pool(POOL),), whole_layers=whole_layers))


def run_sanitized(compiled: Compiled, inputs: Sequence[Sequence[Array]], compiler: str = "gcc") -> list[list[Array]]:
    """The outputs of every run; an AssertionError with the sanitizer's words where it has any."""
    with tempfile.TemporaryDirectory(prefix="uaccel-test-") as name:
        folder = Path(name)
        sources = write_sources(compiled, folder)
        (folder / "model_under_test.h").write_text(_adapter(compiled))
        program = folder / "program"
        compile_c(folder, [*sources, DRIVER], program, compiler=compiler, flags=(*SANITIZE, LEVELS[compiler]))
        sent = b"".join(np.ascontiguousarray(value).tobytes() for values in inputs for value in values)
        done = subprocess.run([program, str(len(inputs))], input=sent, capture_output=True, timeout=300, check=False)
    words = done.stderr.decode(errors="replace")
    assert (done.returncode, words) == (0, ""), f"exit status {done.returncode}:\n{words[:4000]}"
    return _split(compiled, done.stdout, len(inputs))


def assert_clean(data: bytes, *, runs: int = 3, seed: int = 0) -> None:
    """Sanitizers find nothing, and the outputs are the reference's."""
    inputs = random_inputs(data, seed, runs)
    for number, (values, outputs) in enumerate(zip(inputs, run_sanitized(compile_pooled(data), inputs), strict=True)):
        for i, (got, wanted) in enumerate(zip(outputs, Tflm(data).run(values), strict=True)):
            assert_same(got, wanted.reshape(got.shape), f"run {number}, output {i} under sanitizers")


def _adapter(compiled: Compiled) -> str:
    """What the driver needs to know of one model, as macros."""
    names, signature = compiled.generated.names, compiled.model.signature
    inputs = ", ".join(str(spec.info.size) for spec in signature.inputs)
    outputs = ", ".join(str(spec.info.size) for spec in signature.outputs)
    return "\n".join(
        [
            f'#include "{names.header}"',
            f"#define INPUTS {len(names.inputs)}",
            f"#define OUTPUTS {len(names.outputs)}",
            f"#define INPUT_SIZES {inputs or 0}",
            f"#define OUTPUT_SIZES {outputs}",
            f"#define WORKSPACE {names.macro}_WORKSPACE_SIZE",
            f"#define INPUTS_STRUCT struct {names.prefix}_inputs",
            f"#define OUTPUTS_STRUCT struct {names.prefix}_outputs",
            f"#define POOLS_STRUCT struct {names.prefix}_workspace_pools",
            f"#define RUN {names.prefix}_run",
            f"#define RESET() {f'{names.prefix}_reset()' if compiled.model.state else '((void)0)'}",
            "",
        ]
    )


def _split(compiled: Compiled, data: bytes, runs: int) -> list[list[Array]]:
    specs = compiled.model.signature.outputs
    assert len(data) == runs * sum(spec.info.size for spec in specs)
    results, position = [], 0
    for _ in range(runs):
        values = []
        for spec in specs:
            raw = data[position : position + spec.info.size]
            values.append(np.frombuffer(raw, spec.info.dtype).reshape(spec.info.shape))
            position += spec.info.size
        results.append(values)
    return results
