"""Compiled models and their firmware, made once in a run of pytest, however many tests ask for them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uaccel.board import Board
from uaccel.cpu_kernels.selection import selection_for
from uaccel.errors import AcceleratorError, ModelError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from uaccel.accelerator import Accelerator
    from uaccel.model import StateSpec
    from uaccel.pipeline import Compiled
    from uaccel.tvm_api.executor import Executor


class Meaning:
    """The exact meaning of a model, built for this computer when it is first asked for; that takes seconds."""

    def __init__(self, module: Any, state: Sequence[StateSpec] = ()) -> None:
        self._module = module
        self._state = state
        self._executor: Executor | None = None

    def outputs(self, inputs: Sequence[NDArray[Any]], *, continues: bool = False) -> list[NDArray[Any]]:
        """What the model should compute; with ``continues`` from the state that it had after the inputs before."""
        from uaccel.tvm_api.executor import Executor

        if self._executor is None:
            self._executor = Executor(self._module, state=self._state)
        if not continues:
            self._executor.reset()
        return self._executor.run(inputs)


@dataclass(frozen=True)
class Product:
    """A model for a board, what it means on any, and the project that builds its firmware."""

    compiled: Compiled
    meaning: Meaning
    project: Path
    _built: dict[bool, Path] = field(default_factory=dict)

    def firmware(self, *, observe: bool = False) -> Path:
        """Built when it is first asked for. With ``observe`` its layers can be read."""
        from uaccel.project.build import build_project, firmware_of

        if observe not in self._built:
            self._built[observe] = firmware_of(build_project(self.project, observe=observe))
        return self._built[observe]


class Workshop:
    """Works in ``folder``, which nobody else may use."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._products: dict[tuple[object, ...], Product] = {}
        self._meanings: dict[bytes, Meaning] = {}

    def product(
        self, model: Path, board: Board, accelerators: Sequence[str | Path] = (), objective: str = "latency"
    ) -> Product:
        """The same as long as the file's content is. ``accelerators`` by name, or by the path of their folders."""
        try:
            digest = hashlib.sha256(model.read_bytes()).digest()
        except OSError as error:
            raise ModelError(f"cannot read {model}: {error.strerror}") from error
        names = tuple(str(name.resolve()) if isinstance(name, Path) else name for name in accelerators)
        key = digest, model.name, board.file, names, objective
        if key not in self._products:
            self._products[key] = self._make(model, board, digest, names, objective)
        return self._products[key]

    def _make(self, model: Path, board: Board, digest: bytes, names: Sequence[str], objective: str) -> Product:
        from uaccel.accelerator import load_accelerators, planning_for
        from uaccel.pipeline import compile_model
        from uaccel.project.create import create_project
        from uaccel.running.execute import archive_of

        accelerators = planning_for(objective, load_accelerators(names))
        compiled = compile_model(
            model,
            board=board.name,
            board_file=board.file.name,
            selection=selection_for(board),
            accelerators=accelerators,
        )
        _require_offload(compiled, accelerators)
        project = self._folder / f"{len(self._products)}_{compiled.program.name}_{board.name}"
        create_project(archive_of(compiled), board, project)
        meaning = self._meanings.setdefault(digest, Meaning(compiled.stages["import"], compiled.model.state))
        return Product(compiled, meaning, project)


def _require_offload(compiled: Compiled, accelerators: Sequence[Accelerator]) -> None:
    """A test of an accelerator that computes nothing would hold anything for right."""
    layers = compiled.partitioned.decisions
    if accelerators and all(layer.engine == "cpu" for layer in layers):
        names = ", ".join(accelerator.name for accelerator in accelerators)
        reasons = dict.fromkeys(rejection.reason for layer in layers for rejection in layer.rejections)
        raise AcceleratorError(
            f"nothing of {compiled.model.name} is offloaded to {names}: {'; '.join([*reasons][:3])}; "
            "'uaccel explain' tells layer by layer"
        )
