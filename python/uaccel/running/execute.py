"""Compile, build and run a model on a board, and hold the result against its exact meaning."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from numpy.typing import NDArray

from uaccel.bench import find_port, hold_if_known
from uaccel.board import Board
from uaccel.emit.archive import archive_files
from uaccel.emit.describe import tensor_memory
from uaccel.lower.program import Value
from uaccel.model import TensorSpec
from uaccel.pipeline import Compiled, Progress
from uaccel.project.build import build_project, firmware_of
from uaccel.project.create import create_project
from uaccel.project.devices import project_devices
from uaccel.project.footprint import Footprint, footprint
from uaccel.running.told import Told
from uaccel.session.batch import BatchRun, run_batch
from uaccel.session.description import Identity, Kinds
from uaccel.session.link import Timeouts
from uaccel.session.profile import layer_times, require_layers
from uaccel.session.qemu import QemuTransport
from uaccel.session.records import LayerTime
from uaccel.session.session import LogLine, Session
from uaccel.session.tensors import TensorType

Array = NDArray[Any]
HOST_TIMEOUTS: Final = Timeouts(run=600)
DEFAULT_BAUD: Final = 115200
FEW: Final = 2
"""Layers that are read in a run each; more of them in one run."""


@dataclass(frozen=True)
class Measured:
    """``samples``: the inputs of every run, those of verification last."""

    samples: list[list[Array]]
    run: BatchRun
    footprint: Footprint
    layers: list[LayerTime]
    extra: BatchRun | None = None
    """Of samples that only verification wanted: figures are those of the user's own."""
    computed: list[dict[tuple[int, int], Array]] = field(default_factory=list)
    """What layers gave for each sample, by (layer, output), where it was asked for."""

    @property
    def outputs(self) -> list[list[Array]]:
        """Of every sample, those of verification last."""
        return self.run.outputs + (self.extra.outputs if self.extra is not None else [])


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
    extra: Sequence[list[Array]] = (),
    port: str = "",
    profile: bool = False,
    read: Sequence[int] = (),
    sequence: bool = False,
    count: Callable[[int, int], None] = lambda done, total: None,
    on_log: Callable[[LogLine], None] | None = None,
) -> Measured:
    """Build the firmware in ``folder`` and run it once for each sample; ``count`` is told how many are done,
    ``on_log`` what the device's log says. ``extra`` are samples of verification, which count for no figure.

    With ``profile`` a second build, which calls an observer after every layer, tells what each layer takes; so it
    does without being asked where instructions can be counted; it tells what the layers of ``read`` gave, too.
    With ``port`` the board is one that runs already. With ``sequence`` the samples are frames of one sequence.
    """
    progress("create the project")
    create_project(archive_of(compiled), board, folder)
    line = find_port(board, port) if port or board.runs[0].kind == "serial" else ""
    progress("build the firmware")
    build = build_project(folder)
    taken = _measure(folder, build, compiled)
    layers: list[LayerTime] = []
    computed: list[dict[tuple[int, int], Array]] = []
    every = [*samples, *extra]
    looked_at = every[:1] if sequence else every
    more = None
    with hold_if_known(line), connect(board, firmware_of(build), identity(compiled), line, on_log=on_log) as session:
        if line and profile:
            require_layers(session)
        told = Told(len(every), progress, count)
        run = run_batch(session, samples, sequence=sequence, count=told.done)
        if extra:
            more = run_batch(session, extra, count=partial(told.done, before=len(samples)))
        if line and profile:
            layers = layer_times(session, samples[0])
        if line and read and session.model.observable:
            computed = [layers_of(session, sample, read) for sample in looked_at]
    if not line and (profile or read or run.instructions is not None):
        progress("read the layers" if read else "profile the layers")
        observed = firmware_of(build_project(folder, observe=True))
        with connect(board, observed, identity(compiled), line) as session:
            layers = layer_times(session, samples[0])
            computed = [layers_of(session, sample, read) for sample in looked_at] if read else []
    return Measured(every, run, taken, layers, more, computed)


def layers_of(session: Session, sample: list[Array], wanted: Sequence[int]) -> dict[tuple[int, int], Array]:
    """What these layers give for a sample, by (layer, output)."""
    inputs = dict(zip([tensor.name for tensor in session.model.inputs], sample, strict=True))
    if len(wanted) > FEW:
        return {key: value for key, value in session.layers(inputs).items() if key[0] in set(wanted)}
    return {(layer, i): value for layer in wanted for i, value in enumerate(session.layer(layer, inputs))}


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
