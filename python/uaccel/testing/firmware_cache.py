"""Compiles models and builds their firmware once in a pytest run, however many tests ask for them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from uaccel.board import Board
from uaccel.errors import AcceleratorError, ModelError
from uaccel.runner.request import Quiet
from uaccel.util import incoming

if TYPE_CHECKING:
    from uaccel.accelerator import Accelerator
    from uaccel.pipeline import Compiled
    from uaccel.runner.execute import BoardBench, FirmwareMaker
    from uaccel.runner.job import Job
    from uaccel.runner.verify import Reference
    from uaccel.session.link import Timeouts


@dataclass(frozen=True)
class CachedFirmware:
    """Holds a compiled model for a board, its meaning, and what builds its firmware, each form at its first use."""

    job: Job
    compiled: Compiled
    reference: Reference
    maker: FirmwareMaker

    def bench(self, port: str, timeouts: Timeouts) -> BoardBench:
        """Puts the firmware on the board, which may be at a port."""
        from uaccel.runner.execute import BoardBench

        return BoardBench(self.maker, port, timeouts=timeouts)


class Workshop:
    """Makes products in ``folder``, which nobody else may use, and keeps them until the run ends."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._products: dict[tuple[object, ...], CachedFirmware] = {}
        self._references: dict[bytes, Reference] = {}

    def product(
        self, model: Path, board: Board, accelerators: Sequence[str | Path] = (), objective: str = "latency"
    ) -> CachedFirmware:
        """Returns the product of a model, the same one while the file's content is the same.

        ``accelerators``: names, or paths of their folders."""
        with incoming.reading(ModelError, model):
            digest = hashlib.sha256(incoming.read_bytes(model)).digest()
        names = tuple(str(name.resolve()) if isinstance(name, Path) else name for name in accelerators)
        key = digest, model.name, board.file, names, objective
        if key not in self._products:
            self._products[key] = self._make(model, board, digest, names, objective)
        return self._products[key]

    def _make(self, model: Path, board: Board, digest: bytes, names: Sequence[str], objective: str) -> CachedFirmware:
        from uaccel.runner.compiled import pack_compiled
        from uaccel.runner.execute import FirmwareMaker
        from uaccel.runner.job import Job
        from uaccel.runner.verify import Reference

        job = Job.of(model, board, names, objective=objective)
        compiled = job.compiled()
        _require_offload(compiled, job.accelerators)
        reference = self._references.setdefault(digest, Reference.of(compiled))
        folder = self._folder / f"{len(self._products)}_{compiled.program.name}_{board.name}"
        maker = FirmwareMaker(pack_compiled(compiled), board, folder, Quiet(), None)
        return CachedFirmware(job, compiled, reference, maker)


def _require_offload(compiled: Compiled, accelerators: Sequence[Accelerator]) -> None:
    """Raises an error if the accelerators compute nothing: such a test would pass whatever they do."""
    layers = compiled.partitioned.decisions
    if accelerators and all(layer.engine == "cpu" for layer in layers):
        names = ", ".join(accelerator.name for accelerator in accelerators)
        reasons = dict.fromkeys(rejection.reason for layer in layers for rejection in layer.rejections)
        raise AcceleratorError(
            f"nothing of {compiled.model.name} is offloaded to {names}: {'; '.join([*reasons][:3])}; "
            "'uaccel explain' tells layer by layer"
        )
