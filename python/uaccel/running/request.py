"""What is to be run, and what of it is wanted: as plain data, without a compiler."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uaccel.basics.favour import Favour
from uaccel.board import Board
from uaccel.running.devices import Devices
from uaccel.running.engines import Engines

if TYPE_CHECKING:
    from uaccel.memory import Pool
    from uaccel.model import Array
    from uaccel.project.api_options import OptionValue
    from uaccel.project.footprint import Footprint
    from uaccel.running.job import Job
    from uaccel.session.tensors import TensorType

    Samples = list[list[Array]]


@dataclass(frozen=True)
class Wishes:
    """The options of ``run`` that make sense for a project."""

    inputs: Path | None = None
    outputs: Path | None = None
    repeat: int = 1
    profile: bool = False
    verify: bool = False
    every_layer: bool = False
    """``--verify layers``."""
    port: str = ""
    trace: Path | None = None
    options: Mapping[str, OptionValue] = field(default_factory=dict)
    symbols: bool = False
    sequence: bool = False
    """The samples are frames: the model's state goes on from each to the next."""
    verified_samples: int | None = None
    seed: int = 0
    details: bool = False
    """All that a report page shows, in the JSON."""
    report: Path | None = None
    """Where such a page is written."""
    flashes: bool = True
    """Write a model's firmware to a board at a line, where its board file says how."""

    def add_symbols(self, report: dict[str, Any], taken: Footprint | None) -> None:
        """To the report's memory, where they were asked for."""
        from uaccel.telling.figures import symbols_report

        for memory, rows in symbols_report(taken).items() if self.symbols or self.details else ():
            report[memory]["symbols"] = rows

    def samples(self, tensors: Sequence[TensorType]) -> Samples:
        from uaccel.session.inputs import load_inputs, ramp

        samples = load_inputs(self.inputs, tensors) if self.inputs else [[ramp(tensor) for tensor in tensors]]
        return [sample for sample in samples for _ in range(self.repeat)]

    @property
    def words(self) -> list[str]:
        """What to type for the same, quoted for a shell."""
        found = ["--inputs", shlex.quote(str(self.inputs))] if self.inputs is not None else []
        found += ["--repeat", str(self.repeat)] if self.repeat > 1 else []
        found += ["--sequence"] if self.sequence else []
        found += ["--verify layers" if self.every_layer else "--verify"] if self.verify else []
        found += ["--samples", str(self.verified_samples)] if self.verified_samples is not None else []
        found += ["--seed", str(self.seed)] if self.seed else []
        return found + (["--profile"] if self.profile else [])

    @property
    def more_samples(self) -> bool:
        """Whether verification adds some to the user's own: to the ramp alone."""
        return self.verify and self.inputs is None and not self.sequence

    def more(self, tensors: Sequence[TensorType]) -> Samples:
        """Those that only verification wants."""
        from uaccel.running.samples import SAMPLES, default_samples

        count = SAMPLES if self.verified_samples is None else self.verified_samples
        return default_samples(tensors, count, self.seed)[1:] if self.more_samples else []


@dataclass(frozen=True)
class RunRequest:
    """A run of a model, as plain data: ``board_file`` is what the user calls the board. ``project``: a folder that
    keeps the firmware.

    ``workspace_io``: None where nothing was said; the firmware is ours then, and takes as little RAM as can be.
    """

    model: Path
    board: Board
    board_file: str
    name: str = ""
    project: Path | None = None
    wishes: Wishes = field(default_factory=Wishes)
    engines: Engines = field(default_factory=Engines)
    workspace_io: bool | None = None
    records: Path | None = None
    input_shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    favour: Favour = Favour.balanced
    pools: tuple[Pool, ...] = ()
    ram: int | None = None
    feed: bool = False
    constant_pools: tuple[Pool, ...] = ()
    devices: Devices = field(default_factory=Devices)

    @property
    def io_in_workspace(self) -> bool:
        """As it was said; else where the firmware is ours, and not one that was flashed already."""
        ours = not self.at_line or (self.wishes.flashes and self.board.flash is not None)
        return ours if self.workspace_io is None else self.workspace_io

    def what(self) -> Job:
        """What to compile."""
        from uaccel.emit.options import EmitOptions
        from uaccel.running.job import Job

        options = EmitOptions(
            self.pools, self.io_in_workspace, ram=self.ram, feed=self.feed, constant_pools=self.constant_pools
        )
        words = self.board_file
        given = (*self.engines.arguments(), self.records, self.input_shapes, self.favour)
        return Job(self.model, self.board, words, self.name, options, *given)

    @property
    def words(self) -> str:
        """What to type after what the compilation says, for the same run with its proof."""
        return " ".join(
            self.wishes.words + self.devices.words + (["--no-workspace-io"] if self.workspace_io is False else [])
        )

    @property
    def at_line(self) -> bool:
        """Whether a board at a line runs it."""
        return bool(self.wishes.port) or self.board.runs[0].kind == "serial"
