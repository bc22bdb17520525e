"""Compile, build and run a model on a board, and hold the result against its exact meaning."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from uaccel.bench import find_port, hold_if_known
from uaccel.board import Board
from uaccel.emit.archive import archive_files
from uaccel.emit.describe import tensor_memory
from uaccel.lower.program import Value
from uaccel.model import ImportedModel, TensorSpec
from uaccel.pipeline import Compiled, Progress
from uaccel.project.build import build_project, firmware_of
from uaccel.project.create import create_project
from uaccel.project.devices import project_devices
from uaccel.project.footprint import Footprint, footprint
from uaccel.running.diagnosis import differing
from uaccel.session.batch import BatchRun, run_batch
from uaccel.session.description import Identity, Kinds
from uaccel.session.link import Timeouts
from uaccel.session.profile import layer_times, require_layers
from uaccel.session.qemu import QemuTransport
from uaccel.session.records import LayerTime
from uaccel.session.session import LogLine, Session
from uaccel.session.tensors import TensorType
from uaccel.telling.report import json_number

Array = NDArray[Any]
HOST_TIMEOUTS: Final = Timeouts(run=600)
DEFAULT_BAUD: Final = 115200


@dataclass(frozen=True)
class Measured:
    """``samples``: the inputs of every run."""

    samples: list[list[Array]]
    run: BatchRun
    footprint: Footprint
    layers: list[LayerTime]
    computed: dict[tuple[int, int], Array] = field(default_factory=dict)
    """What every layer gave for the first sample, by (layer, output), where it was asked for."""


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
            "expected": json_number(self.expected),
            "got": json_number(self.got),
        }


def tensor_types(specs: Sequence[TensorSpec]) -> list[TensorType]:
    return [TensorType(spec.name, spec.info.shape, spec.info.dtype) for spec in specs]


def identity(compiled: Compiled) -> Identity:
    """What firmware that was built from this says it is."""
    signature = compiled.model.signature
    layers = tuple(_kinds(layer.outputs) for layer in compiled.program.layers)
    tensors = (_kinds(signature.inputs), _kinds(signature.outputs), layers)
    return Identity(bytes.fromhex(compiled.model.digest), compiled.generated.build, tensors)


def _kinds(values: Iterable[TensorSpec | Value]) -> Kinds:
    return tuple((value.info.shape, value.info.dtype) for value in values)


def archive_of(compiled: Compiled) -> dict[str, bytes]:
    """The files of the model's archive."""
    relax = compiled.model.module.script(show_meta=False)
    return archive_files(
        compiled.program, compiled.placement, compiled.generated, compiled.board, relax, compiled.options
    )


def run_on_board(
    compiled: Compiled,
    board: Board,
    samples: list[list[Array]],
    folder: Path,
    progress: Progress,
    *,
    port: str = "",
    profile: bool = False,
    read_layers: bool = False,
    sequence: bool = False,
    count: Callable[[int, int], None] = lambda done, total: None,
    on_log: Callable[[LogLine], None] | None = None,
) -> Measured:
    """Build the firmware in ``folder`` and run it once for each sample; ``count`` is told how many are done,
    ``on_log`` what the device's log says.

    With ``profile`` a second build, which calls an observer after every layer, tells what each layer takes; so it
    does without being asked where instructions can be counted; with ``read_layers`` it tells what each of them gave.
    With ``port`` the board is one that runs already. With ``sequence`` the samples are frames of one sequence.
    """
    progress("create the project")
    create_project(archive_of(compiled), board, folder)
    progress("build the firmware")
    build = build_project(folder)
    taken = _measure(folder, build, compiled)
    progress(f"run {len(samples)} inference{'s' if len(samples) > 1 else ''}")
    line = find_port(board, port) if port or board.runs[0].kind == "serial" else ""
    layers: list[LayerTime] = []
    computed: dict[tuple[int, int], Array] = {}
    with hold_if_known(line), connect(board, firmware_of(build), identity(compiled), line, on_log=on_log) as session:
        if line and (profile or read_layers):
            require_layers(session)
        run = run_batch(session, samples, sequence=sequence, count=count)
        if line and profile:
            layers = layer_times(session, samples[0])
        if line and read_layers:
            computed = layers_of(session, samples[0])
    if not line and (profile or read_layers or run.instructions is not None):
        progress("read the layers" if read_layers else "profile the layers")
        observed = firmware_of(build_project(folder, observe=True))
        with connect(board, observed, identity(compiled), line) as session:
            layers = layer_times(session, samples[0])
            computed = layers_of(session, samples[0]) if read_layers else {}
    return Measured(samples, run, taken, layers, computed)


def layers_of(session: Session, sample: list[Array]) -> dict[tuple[int, int], Array]:
    """What every layer gives for a sample, by (layer, output)."""
    names = [tensor.name for tensor in session.model.inputs]
    return session.layers(dict(zip(names, sample, strict=True)))


def connect(
    board: Board, firmware: Path, expect: Identity, port: str, timeouts: Timeouts | None = None, **options: Any
) -> Session:
    """A session with the firmware: a process, an emulated board, or what is at the other end of ``port``.

    ``options`` as :class:`Session` takes them.
    """
    kind = "serial" if port else board.runs[0].kind
    timeouts = timeouts or HOST_TIMEOUTS
    if kind == "serial":
        line = find_port(board, port)
        baud = getattr(board.console, "baud", DEFAULT_BAUD)
        return Session.open(line, baud=baud, expect=expect, timeouts=timeouts, **options)
    if kind == "host":
        return Session.start([str(firmware)], expect=expect, timeouts=timeouts, **options)
    emulated = QemuTransport(board, firmware, devices=project_devices(firmware.parent.parent))
    return Session(emulated, expect=expect, timeouts=timeouts, **options)


def _measure(folder: Path, build: Path, compiled: Compiled) -> Footprint:
    signature = compiled.model.signature
    io = 0 if compiled.options.workspace_io else tensor_memory((*signature.inputs, *signature.outputs))
    return footprint(folder, build, compiled.program.name, arena=compiled.placement.arena, io=io)


def first_difference(
    model: ImportedModel, samples: list[list[Array]], run: BatchRun, tolerance: float = 0
) -> Difference | None:
    """Compare every output of every run with the meaning of ``model``, as TVM executes it; frame by frame where the
    samples were a sequence."""
    from uaccel.tvm_api.executor import Executor

    executor = Executor(model.module, state=model.state)
    names = [spec.name for spec in model.signature.outputs]
    for sample, (values, outputs) in enumerate(zip(samples, run.outputs, strict=True)):
        if not run.sequence:
            executor.reset()
        for name, expected, got in zip(names, executor.run(values), outputs, strict=True):
            index = differing_index(expected.reshape(got.shape), got, tolerance)
            if index is not None:
                wanted = np.asarray(expected).reshape(got.shape)[index].item()
                return Difference(sample, name, index, wanted, got[index].item())
    return None


def differing_index(expected: Array, got: Array, tolerance: float = 0) -> tuple[int, ...] | None:
    """The first element whose bytes differ, or that is further away than the tolerance."""
    where = np.argwhere(differing(expected, got, tolerance))
    return tuple(int(i) for i in where[0]) if len(where) else None
