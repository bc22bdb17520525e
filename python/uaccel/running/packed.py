"""From what was compiled to what is run: the archive, and what its firmware says it is."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from uaccel.board import Board
from uaccel.emit.describe import tensor_memory
from uaccel.emit.feed import held_of
from uaccel.lower.program import Value
from uaccel.model import Array, TensorSpec
from uaccel.packagers.archive import archive
from uaccel.pipeline import Compiled, Progress
from uaccel.running.execute import Measured, run_on_board
from uaccel.running.firmware import Firmware, tensor_types
from uaccel.running.making import Maker
from uaccel.running.stated import stated
from uaccel.session.description import Identity, Kinds


def archive_of(compiled: Compiled) -> dict[str, bytes]:
    """The files of the model's archive, with what verification must know of its layers."""
    return archive(compiled.generated, {"meanings": stated(compiled), "warnings": compiled.warnings})


def digest_of(files: Mapping[str, bytes]) -> str:
    """Of an archive's files: the same for the same content, however they are packed."""
    digest = hashlib.sha256()
    for name in sorted(files):
        digest.update(f"{name}\0{len(files[name])}\0".encode())
        digest.update(files[name])
    return digest.hexdigest()


def identity(compiled: Compiled) -> Identity:
    """What firmware that was built from this says it is."""
    signature = compiled.model.signature
    layers = tuple(_kinds(layer.outputs) for layer in compiled.program.layers)
    tensors = (_kinds(signature.inputs), _kinds(signature.outputs), layers)
    return Identity(bytes.fromhex(compiled.model.digest), compiled.generated.build, tensors)


def packed(compiled: Compiled) -> Firmware:
    """With its archive's files."""
    signature, fed = compiled.model.signature, compiled.program.fed
    held = held_of(compiled.program, signature.inputs)
    files = archive_of(compiled)
    return Firmware(
        compiled.program.name,
        lambda: files,
        digest_of(files),
        identity(compiled),
        tuple(tensor_types(signature.inputs)),
        tuple(tensor_types(signature.outputs)),
        tuple(len(layer.outputs) for layer in compiled.program.layers),
        compiled.placement.arena,
        0 if compiled.options.workspace_io else tensor_memory((*held, *signature.outputs)),
        fed.info.size if fed is not None else 0,
    )


def _kinds(values: Iterable[TensorSpec | Value]) -> Kinds:
    return tuple((value.info.shape, value.info.dtype) for value in values)


def run_compiled(
    compiled: Compiled, board: Board, samples: list[list[Array]], folder: Path, progress: Progress, **how: Any
) -> Measured:
    """:func:`~uaccel.running.execute.run_on_board` with what was just compiled; the project is made in ``folder``."""
    firmware = packed(compiled)
    maker = Maker(firmware, board, folder, progress, None)
    return run_on_board(firmware, board, samples, maker, progress, **how)
