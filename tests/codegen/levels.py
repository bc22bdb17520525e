"""Models in one program, built by one compiler at one level and run where it is for: here, on an emulated processor or
on an emulated board.

Inputs and outputs lie as badly as their element types allow, and the bytes of every sample are those of a fresh TFLite
Micro. A model that remembers sees its samples in a row.
"""

from __future__ import annotations

import functools
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from support.device.boards import board_with_tools, build_bare
from support.device.generated import cc
from support.models.float_rows import assert_same_bits
from support.models.networks import OWN
from support.oracle.exactness import assert_same
from support.oracle.oracle import Array, Tflm, random_inputs
from uaccel.board import Board, load_board
from uaccel.codegen.options import EmitOptions
from uaccel.kernels.choice import selection_for
from uaccel.model import TensorSpec
from uaccel.pipeline import Compiled, compile_model
from uaccel.runner.compiled import archive_of
from uaccel.session.qemu import QemuTransport
from uaccel.tvm_api.executor import Executor
from uaccel.util.files import CODE

LEVELS = ("-O0", "-O1", "-O2", "-O3", "-Os", "-Ofast", "-O2 -flto")
MODELS = ("gesture", "residual", "branches", "int16", "stream", "mixed")
FAST_MATH = "-Ofast"
"""At this level compilers compute floats as they like, and a model that has some is not to be built."""
RUNS = 3
WORST = 16
"""A tensor begins behind a multiple of this, by the bytes of one element."""
PATIENCE = 60.0

ON_A_BOARD = "-DON_A_BOARD"
SEND = """\
#ifdef ON_A_BOARD
#include "uaccel_port.h"
static void send(const void *bytes, uint32_t count)
{
    uaccel_port_write(bytes, count);
}
#else
#include <stdio.h>
static void send(const void *bytes, uint32_t count)
{
    (void)fwrite(bytes, 1, count, stdout);
}
static void uaccel_port_init(void)
{
}
#endif
"""


@dataclass(frozen=True)
class Machine:
    """A compiler, and what runs its programs. With ``board`` it is the board's own compiler, and QEMU."""

    compiler: str = ""
    runner: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    board: str = "host"
    big_endian: bool = False

    @property
    def name(self) -> str:
        return self.compiler or self.board

    def require(self) -> None:
        """Or the test is skipped, with the reason."""
        if not self.compiler:
            board_with_tools(self.board)
        for program in (self.compiler, *self.runner[:1]):
            if program and shutil.which(program) is None:
                pytest.skip(f"{program} is not installed")

    def stored(self, array: Array) -> bytes:
        return np.ascontiguousarray(array).astype(array.dtype.newbyteorder(">" if self.big_endian else "<")).tobytes()

    def read(self, spec: TensorSpec, data: bytes) -> Array:
        kind = np.dtype(spec.info.dtype)
        stored = np.frombuffer(data, kind.newbyteorder(">" if self.big_endian else "<"))
        return stored.astype(kind).reshape(spec.info.shape)


@dataclass(frozen=True)
class Sampled:
    """A model, what goes in and what must come out."""

    model: Compiled
    inputs: list[list[Array]]
    outputs: list[list[Array]]
    bits: bool = False
    """Floats are to be the same, too; the meaning of those that other runtimes give differs by rounding."""

    @property
    def out_bytes(self) -> int:
        return RUNS * (1 + sum(spec.info.size for spec in self.model.model.signature.outputs))


@functools.cache
def sampled(name: str, board: str = "host", options: EmitOptions | None = None) -> Sampled:
    data = (OWN / f"{name}.tflite").read_bytes()
    inputs, reference = random_inputs(data, 7, RUNS), Tflm(data)
    selection = selection_for(load_board(board))
    model = compile_model(OWN / f"{name}.tflite", board=board, selection=selection, options=options or EmitOptions())
    return Sampled(model, inputs, [reference.run(values) for values in inputs])


def sampled_by_meaning(path: Path, board: str) -> Sampled:
    """Of a model that TFLite Micro does not read."""
    model = compile_model(path, board=board, selection=selection_for(load_board(board)))
    random = np.random.default_rng(7)
    specs, executor = model.model.signature.inputs, Executor(model.stages["import"])
    inputs = [[random.standard_normal(spec.info.shape).astype(spec.info.dtype) for spec in specs] for _ in range(RUNS)]
    return Sampled(model, inputs, [executor.run(values) for values in inputs])


def check(machine: Machine, level: Sequence[str], models: Sequence[Sampled], folder: Path) -> None:
    """Build one program of all the models, run it, compare."""
    sources = written(machine, models, folder)
    run = _in_process if machine.compiler else _on_board
    compare(machine, models, run(machine, level, models, sources, folder))


def compare(machine: Machine, models: Sequence[Sampled], got: bytes) -> None:
    """Hold what the program sent against what each model gives."""
    assert len(got) == sum(one.out_bytes for one in models)
    for one in models:
        for run in range(RUNS):
            assert got[0] == 0, f"run {run} of {one.model.program.name} returned {got[0]}"
            got = got[1:]
            for spec, wanted in zip(one.model.model.signature.outputs, one.outputs[run], strict=True):
                actual, got = machine.read(spec, got[: spec.info.size]), got[spec.info.size :]
                what = f'run {run} of {one.model.program.name}, output "{spec.name}"'
                if actual.dtype.kind == "f" and one.bits:
                    assert_same_bits(actual, wanted.reshape(actual.shape), what)
                elif actual.dtype.kind == "f":
                    np.testing.assert_allclose(actual, wanted.reshape(actual.shape), rtol=1e-5, atol=1e-6)
                else:
                    assert_same(actual, wanted.reshape(actual.shape), what)


def written(machine: Machine, models: Sequence[Sampled], folder: Path) -> list[Path]:
    """The models' files as their archives have them, and the application."""
    sources = []
    for one in models:
        for name, data in archive_of(one.model).items():
            if name.startswith(f"{CODE}/"):
                target = folder / Path(name).name
                target.write_bytes(data)
                sources += [target] if target.suffix == ".c" else []
    application = folder / "app.c"
    headers = "".join(f'#include "{one.model.generated.names.header}"\n' for one in models)
    runs = "".join(_runs(machine, one) for one in models)
    calls = "".join(f"    run_{one.model.program.name}();\n" for one in models)
    main = f"int main(void)\n{{\n    uaccel_port_init();\n{calls}    return 0;\n}}\n"
    application.write_text(f'{headers}#include "uaccel_kernel.h"\n{SEND}{runs}{main}')
    return [application, *sources]


def _runs(machine: Machine, one: Sampled) -> str:
    """A function that runs a model over its samples and sends a status and the outputs of each."""
    names, signature, options = one.model.generated.names, one.model.model.signature, one.model.options
    specs = (*signature.inputs, *signature.outputs)
    ends = np.cumsum([0, *(-(-(spec.info.size + WORST) // WORST) * WORST for spec in specs)]).tolist()
    places = [f"memory + {end + spec.info.itemsize}" for end, spec in zip(ends, specs, strict=False)]
    count = len(signature.inputs)
    samples = b"".join(machine.stored(value) for values in one.inputs for value in values)
    lines = [f"    static const uint8_t samples[] UACCEL_CONSTANT = {{{','.join(map(str, samples))}}};"]
    lines.append("    const uint8_t *next = samples;")
    arguments = []
    if options.workspace_io:
        lines += [f"    struct {names.prefix}_{what} {what};" for what in ("inputs", "outputs")]
    else:
        lines.append(f"    static UACCEL_ALIGNED({WORST}) uint8_t memory[{ends[-1]}];")
        lines.append(f"    struct {names.prefix}_inputs inputs = {{{', '.join(places[:count])}}};")
        lines.append(f"    struct {names.prefix}_outputs outputs = {{{', '.join(places[count:])}}};")
        arguments += ["&inputs", "&outputs"]
    if options.given_pools:
        lines.append(f"    static UACCEL_ALIGNED(16) uint8_t pool[{names.macro}_WORKSPACE_SIZE + 8];")
        lines.append(f"    struct {names.prefix}_workspace_pools pools = {{pool + 8}};")
        arguments.append("&pools")
    given = "&pools" if options.given_pools else ""
    body = [f"{what} = {names.prefix}_map_{what}({given});" for what in ("inputs", "outputs") if options.workspace_io]
    for member, spec in zip(names.inputs, signature.inputs, strict=True):
        body += [f"memcpy(inputs.{member}, next, {spec.info.size});", f"next += {spec.info.size};"]
    body += [f"const uint8_t status = (uint8_t){names.prefix}_run({', '.join(arguments)});", "send(&status, 1);"]
    sizes = zip(names.outputs, signature.outputs, strict=True)
    body += [f"send(outputs.{member}, {spec.info.size});" for member, spec in sizes]
    inner = "\n".join(f"        {line}" for line in body)
    head = f"\nstatic void run_{one.model.program.name}(void)\n{{\n"
    return head + "\n".join(lines) + f"\n    for (int run = 0; run < {RUNS}; ++run) {{\n{inner}\n    }}\n}}\n"


def _in_process(
    machine: Machine, level: Sequence[str], models: Sequence[Sampled], sources: Sequence[Path], folder: Path
) -> bytes:
    program = folder / "program"
    cc(*machine.flags, *level, *sources, "-lm", include=[folder], output=program, compiler=machine.compiler)
    done = subprocess.run([*machine.runner, program], capture_output=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stderr) == (0, b""), f"{machine.name} {' '.join(level)}: status {done.returncode}"
    return done.stdout


def _on_board(
    machine: Machine, level: Sequence[str], models: Sequence[Sampled], sources: Sequence[Path], folder: Path
) -> bytes:
    board = board_with_tools(machine.board)
    elf = build_bare(board, list(sources), folder / "bare", ON_A_BOARD, f"-I{folder}", *level)
    return sent(board, elf, sum(one.out_bytes for one in models), f"{machine.name} {' '.join(level)}")


def sent(board: Board, elf: Path, wanted: int, what: str) -> bytes:
    """So many bytes that firmware sends under QEMU; the port tells after them that main has ended."""
    transport, data, end = QemuTransport(board, elf), b"", time.monotonic() + PATIENCE
    try:
        while len(data) < wanted:
            assert time.monotonic() < end, f"{what}: {len(data)} bytes came: {data[-200:]!r}"
            data += transport.read(1.0)
    finally:
        transport.close()
    return data[:wanted]
