"""Compile, build and run a model on a board, and hold the result against its exact meaning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from uaccel.board import Board
from uaccel.emit.archive import archive_files
from uaccel.emit.describe import tensor_memory
from uaccel.errors import BoardError
from uaccel.model import TensorSpec
from uaccel.pipeline import Compiled, Progress
from uaccel.project.build import build_project
from uaccel.project.create import create_project
from uaccel.project.sizes import Sizes, object_sizes
from uaccel.session.batch import BatchRun, run_batch
from uaccel.session.description import Identity
from uaccel.session.link import Timeouts
from uaccel.session.session import Session
from uaccel.session.tensors import TensorType

Array = NDArray[Any]
HOST_TIMEOUTS: Final = Timeouts(run=600)


@dataclass(frozen=True)
class Measured:
    """``samples``: the inputs of every run; ``code`` and ``static`` without weights and arena."""

    samples: list[list[Array]]
    run: BatchRun
    code: int
    static: int
    session: Sizes


@dataclass(frozen=True)
class Difference:
    """The first element that differs from the exact meaning."""

    sample: int
    output: str
    index: tuple[int, ...]
    expected: float | int
    got: float | int

    def to_json(self) -> dict[str, Any]:
        return {
            "sample": self.sample,
            "output": self.output,
            "index": list(self.index),
            "expected": self.expected,
            "got": self.got,
        }


def tensor_types(specs: Sequence[TensorSpec]) -> list[TensorType]:
    return [TensorType(spec.name, spec.info.shape, spec.info.dtype) for spec in specs]


def identity(compiled: Compiled) -> Identity:
    """What firmware that was built from this says it is."""
    return Identity(bytes.fromhex(compiled.model.digest), compiled.generated.build)


def archive_of(compiled: Compiled) -> dict[str, bytes]:
    """The files of the model's archive."""
    relax = compiled.model.module.script(show_meta=False)
    return archive_files(compiled.program, compiled.placement, compiled.generated, compiled.board, relax)


def run_on_host(
    compiled: Compiled,
    board: Board,
    samples: list[list[Array]],
    folder: Path,
    progress: Progress,
    *,
    observe: bool,
    count: Callable[[int, int], None] = lambda done, total: None,
) -> Measured:
    """Build the firmware in ``folder`` and run it once for each sample; ``count`` is told how many are done."""
    if not any(run.kind == "host" for run in board.runs):
        kinds = ", ".join(run.kind for run in board.runs) or "nothing"
        raise BoardError(
            f"board {board.name} runs by {kinds}; this command can run boards of kind host: use --board host"
        )
    progress("create the project")
    create_project(archive_of(compiled), board, folder)
    progress("build the firmware")
    build = build_project(folder)
    sizes = _measure(build, compiled)
    firmware = build_project(folder, observe=True) / "firmware" if observe else build / "firmware"
    progress(f"run {len(samples)} inference{'s' if len(samples) > 1 else ''}")
    with Session.start([str(firmware)], expect=identity(compiled), timeouts=HOST_TIMEOUTS) as session:
        run = run_batch(session, samples, observe=observe, count=count)
    return Measured(samples, run, *sizes)


def _measure(build: Path, compiled: Compiled) -> tuple[int, int, Sizes]:
    """Code and static RAM of the model, without weights and arena; and what the host application adds."""
    weights_name = f"{compiled.generated.names.prefix}_weights.c"
    objects = sorted(build.glob("CMakeFiles/model.dir/**/*.o"))
    code = object_sizes([path for path in objects if path.name != f"{weights_name}.o"])
    arena = 0 if compiled.options.workspace_pool else compiled.placement.arena
    application = object_sizes(sorted(build.glob("CMakeFiles/firmware.dir/**/*.o")))
    signature = compiled.model.signature
    io = tensor_memory((*signature.inputs, *signature.outputs))
    return code.flash, code.ram - arena, Sizes(application.flash, application.ram - io)


def first_difference(compiled: Compiled, measured: Measured) -> Difference | None:
    """Compare every output of every run with the module as TVM executes it."""
    from uaccel.reference import Executor

    executor = Executor(compiled.stages["import"])
    names = [spec.name for spec in compiled.model.signature.outputs]
    for sample, (values, outputs) in enumerate(zip(measured.samples, measured.run.outputs, strict=True)):
        for name, expected, got in zip(names, executor.run(values), outputs, strict=True):
            index = differing_index(expected.reshape(got.shape), got)
            if index is not None:
                wanted = np.asarray(expected).reshape(got.shape)[index].item()
                return Difference(sample, name, index, wanted, got[index].item())
    return None


def differing_index(expected: Array, got: Array) -> tuple[int, ...] | None:
    """The first element whose bytes differ; float kernels of two compilers may differ in the last bits."""
    if got.dtype.kind == "f":
        same = np.isclose(got, expected, rtol=1e-5, atol=1e-6, equal_nan=True)
    else:
        same = got == expected
    where = np.argwhere(~same)
    return tuple(int(i) for i in where[0]) if len(where) else None
