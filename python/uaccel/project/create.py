"""Make a project of an archive: through the Project API server of a template, uaccel's or anybody's."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from uaccel.basics.mlf import write_tar
from uaccel.board import Board, load_board
from uaccel.errors import BoardError, UaccelError
from uaccel.project.api_client import ProjectServer
from uaccel.project.api_options import OptionValue
from uaccel.project.archive_reader import METADATA, Metadata, read_metadata
from uaccel.project.layout import needs_of
from uaccel.project.overlay import board_overlay
from uaccel.resources import data_dir


def create_project(files: Mapping[str, bytes], board: Board, folder: Path) -> None:
    """``files``: the archive's, by path. The folder is made and filled; it must not hold anything yet."""
    with tempfile.TemporaryDirectory(prefix="uaccel-") as temporary:
        archive = Path(temporary) / "model.tar"
        with archive.open("wb") as stream:
            write_tar(stream, files)
        create_from_archive(archive, folder, board)


def create_from_archive(
    archive: Path,
    folder: Path,
    board: Board | None = None,
    *,
    template: Path | None = None,
    options: Mapping[str, OptionValue] | None = None,
    runtime: Path | None = None,
    protocol: str = "",
    energy_pin: Path | None = None,
) -> Metadata:
    """The archive's metadata. Without a board the project is for the one that the model was compiled for.

    ``runtime``: the folder of C sources that the template takes what it needs from; uaccel's own when left out, which
    has the layout of microTVM's, too. ``protocol``: what the firmware speaks in the place of sessions; ``energy_pin``:
    the C file with the pin that a power monitor watches then.
    """
    if runtime is not None and template is None:
        raise UaccelError("--standalone-crt is for the template that copies from it; give --template, or leave it away")
    if runtime is not None and not runtime.is_dir():
        raise UaccelError(f"--standalone-crt {runtime} is no folder; name one with TVM's C runtime, or leave it away")
    metadata = read_metadata(archive)
    if protocol and template is not None:
        raise UaccelError("--protocol is for uaccel's own template; leave it or --template away")
    if energy_pin is not None and not protocol:
        raise UaccelError(
            "--energy-pin is for MLPerf Tiny's energy mode; give --protocol mlperf-tiny, or leave it away"
        )
    if protocol and board is None and metadata.board is not None:
        board = load_board(metadata.board)
    if board is not None:
        _require_features(metadata, board)
    with (
        tempfile.TemporaryDirectory(prefix="uaccel-") as temporary,
        ProjectServer(template or data_dir("project_template"), options) as server,
    ):
        if board is not None:
            server.offer("board", board.name)
        if board is not None and server.takes("board_files"):
            overlay = board_overlay(board, needs_of({METADATA: metadata.text}))
            _write(Path(temporary), overlay | (_benchmark(metadata, energy_pin) if protocol else {}))
            server.offer("board_files", temporary)
        server.generate_project(archive, folder, runtime or data_dir("firmware"))
    return metadata


def _benchmark(metadata: Metadata, pin: Path | None) -> dict[str, bytes]:
    """With this file the firmware speaks MLPerf Tiny's protocol and not that of sessions."""
    from uaccel.packagers.mlperf_tiny import ENERGY, HEADER, NAME, PIN, header, why_not

    tensors = [metadata.at("uaccel", side) for side in ("inputs", "outputs")]
    reason = why_not(*tensors)
    if reason:
        raise UaccelError(f"--protocol {NAME} {reason}; leave it away")
    text = header(metadata.model, *tensors)
    if pin is None:
        return {f"board/{HEADER}": text.encode()}
    try:
        source = pin.read_bytes()
    except OSError as error:
        raise UaccelError(f"cannot read --energy-pin {pin}: {error.strerror}") from error
    return {f"board/{HEADER}": (text + ENERGY).encode(), f"board/{PIN}": source}


def _require_features(metadata: Metadata, board: Board) -> None:
    """Kernels were chosen for a CPU when the model was compiled."""
    missing = [need for need in metadata.requires if need not in board.cpu.features and need != board.cpu.arch]
    if missing:
        raise BoardError(
            f"the model was compiled for board {metadata.board}, and its kernels need a CPU with {', '.join(missing)}; "
            f"{board.cpu.name} of board {board.name} has none: compile it again with --board {board.name}"
        )


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    for name, content in files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
