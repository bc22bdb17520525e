"""Packs rows with their files for workers elsewhere, and does the work that a worker is sent."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from uaccel.bench import BoardAbsentError, find_port, hold
from uaccel.board import load_board
from uaccel.build.board_json import flash_steps, reset_steps
from uaccel.errors import DeviceError, InputError, UaccelError
from uaccel.frontend import files_beside
from uaccel.runner.sweep.answer import Lost, answer_of, substitute_paths
from uaccel.runner.sweep.matrix import FILES, SweepRow
from uaccel.runner.sweep.options import PoolLimits
from uaccel.runner.sweep.pool import PoolOutcome, WorkerPool
from uaccel.runner.sweep.row_result import BOARD, JUDGE, WHOLE, BoardFailed, RowJob, StageResult, act
from uaccel.util import incoming
from uaccel.util.cache import cache_folder, sources_digest
from uaccel.version import __version__

# Parcels: the files and folders that a row names travel with it, by content.
#
# In a packed row each path is replaced by a mark, ``parcel:DIGEST/NAME``. The worker unpacks parcels in its cache
# folder, each content once, and puts its own paths in place of the marks. In results it puts the marks back, and the
# sender replaces them by its paths. So both see nothing but their own paths.

MARK: Final = "parcel:"
MOST_BYTES: Final = 1 << 30  # The most bytes of one parcel.
_KEPT_SECONDS: Final = 14 * 24 * 3600
_LEFT_OUT: Final = (".pyc", ".pyo", ".orig", ".swp")


@dataclass(frozen=True)
class Parcel:
    """Holds a file, or a folder with all files below it; ``files`` are by path from the folder that holds ``name``."""

    digest: str
    name: str
    files: Mapping[str, bytes]

    @property
    def mark(self) -> str:
        """The text that stands for it in a row."""
        return f"{MARK}{self.digest}/{self.name}"


@dataclass(frozen=True)
class Packed:
    """Holds a row as JSON with marks; ``paths``: the path here that each mark stands for."""

    row: Mapping[str, Any]
    parcels: tuple[Parcel, ...]
    paths: Mapping[str, str]


class Packer:
    """Reads each file and folder once, however many rows name it."""

    def __init__(self) -> None:
        self._made: dict[str, Parcel] = {}

    def pack(self, row: SweepRow) -> Packed:
        parcels: dict[str, Parcel] = {}
        paths: dict[str, str] = {}

        def mark(path: str, files: Iterator[Path] | None = None) -> str:
            parcel = self._parcel(path, files)
            parcels[parcel.digest] = parcel
            paths[parcel.mark] = path
            return parcel.mark

        board = mark(row.board, _of_board(Path(row.board))) if _is_file(row.board) else row.board
        engines = tuple(mark(_folder(name)) if "/" in name else name for name in row.accelerators)
        options = {key: mark(value) if key in FILES else value for key, value in row.options.items()}
        model = mark(row.model, iter(files_beside(Path(row.model))))
        packed = replace(row, model=model, board=board, accelerators=engines, options=options)
        return Packed(packed.to_json(), tuple(parcels.values()), paths)

    def _parcel(self, path: str, files: Iterator[Path] | None) -> Parcel:
        if path not in self._made:
            self._made[path] = _read(Path(path), files)
        return self._made[path]


def _is_file(board: str) -> bool:
    return "/" in board or board.endswith(".toml")


def _folder(name: str) -> str:
    """Returns the folder of an accelerator that is given by its path, or by its ``accelerator.py``."""
    return str(Path(name).parent) if name.endswith(".py") else name


def _read(path: Path, more: Iterator[Path] | None) -> Parcel:
    """Reads a file or folder as a parcel; ``more``: files beside it that belong to it."""
    place = path.resolve()
    members = [*(_below(place) if place.is_dir() else [place]), *(more or ())]
    try:
        files = {str(member.relative_to(place.parent)): incoming.read_bytes(member) for member in members}
    except OSError as error:
        raise InputError(f"cannot read {error.filename or path}: {error.strerror}") from error
    except ValueError as error:
        raise InputError(
            f"{path} is a link, and its weights lie beside the link; put a copy of the model there"
        ) from error
    size = sum(map(len, files.values()))
    if size > MOST_BYTES:
        raise InputError(f"{path} holds {size:,} bytes; a lab is sent at most {MOST_BYTES:,} of one file or folder")
    digest = hashlib.sha256(place.name.encode())
    for name in sorted(files):
        digest.update(f"\0{name}\0{len(files[name])}\0".encode() + files[name])
    return Parcel(digest.hexdigest()[:32], place.name, files)


def _below(folder: Path) -> Iterator[Path]:
    for above, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != "__pycache__" and not name.startswith("."))
        yield from (Path(above) / name for name in sorted(files) if not name.endswith(_LEFT_OUT))


def _of_board(file: Path) -> Iterator[Path]:
    """Yields the files that a board file names beside itself: its port's folder, and files of its flash tool."""
    board, folder = load_board(file), file.resolve().parent
    if str(board.source.data["port"]).startswith((".", "/")):
        port = board.port.folder
        if not port.is_relative_to(folder):
            raise InputError(f"{file}: its port is {port}; a lab can be sent a port that lies beside the board file")
        yield from _below(port)
    steps = [*flash_steps(board.flash), *reset_steps(board.flash)] if board.flash is not None else []
    for word in {word.replace("{board}/", "") for step in steps for word in step.command}:
        beside = folder / word
        if word and beside.is_file() and beside.resolve().is_relative_to(folder):
            yield beside.resolve()


def unpacked(row: Mapping[str, Any], parcels: Sequence[Parcel]) -> tuple[dict[str, Any], dict[str, str]]:
    """Unpacks parcels; returns the row with this computer's paths, and the mark of each such path."""
    paths = {str(unpack(parcel)): parcel.mark for parcel in parcels}
    marks = {mark: path for path, mark in paths.items()}
    return substitute_paths(row, marks), paths


def unpack(parcel: Parcel, folder: Path | None = None) -> Path:
    """Unpacks a parcel if it is not there yet, and returns where its file or folder is.

    It is written beside its place and renamed, so that it appears as a whole. A parcel that is used gets a new time,
    by which :func:`forget_old` knows it."""
    base = folder or _kept()
    target = base / parcel.digest
    if all((target / name).is_file() for name in parcel.files):
        os.utime(target)
    else:
        shutil.rmtree(target, ignore_errors=True)
        base.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=base) as temporary:
            made = Path(temporary) / "parcel"
            for name, content in parcel.files.items():
                path = made / name
                if not path.resolve().is_relative_to(made.resolve()):
                    raise InputError(f"a parcel holds the name {name!r}; wanted one that stays in its folder")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            with contextlib.suppress(OSError):  # another process was first
                made.rename(target)
    return target / parcel.name


def forget_old() -> None:
    """Removes parcels that nobody has used for two weeks."""
    for place in _kept().glob("*"):
        with contextlib.suppress(OSError):
            if time.time() - place.stat().st_mtime > _KEPT_SECONDS:
                shutil.rmtree(place)


def _kept() -> Path:
    return cache_folder() / "parcels"


# One worker: its boards, its limits, and the processes in which it does its jobs.

BUSY_SECONDS: Final = 600.0  # How long a job waits for a board that others on this computer use.
_LOOK_SECONDS: Final = 0.2


@dataclass(frozen=True)
class Task:
    """Holds what a worker is sent. ``board``: the board that it needs. ``function`` is given the :class:`Job`.

    ``sources``: of the uaccel that sends it. Stages of a row are of one uaccel, and their results too."""

    kind: str
    digest: str
    row: Mapping[str, Any]
    board: str = ""
    limits: PoolLimits = field(default_factory=PoolLimits)
    sources: str = field(default_factory=sources_digest)
    function: Callable[[RowJob], Any] = act


class Station:
    """Does tasks, each in a process of its own that stays warm for the next.

    ``ports``: where boards are, by their names; ``wait``: how many seconds a board may be away when it is needed."""

    def __init__(
        self,
        name: str = "",
        ports: Mapping[str, str] | None = None,
        limits: PoolLimits | None = None,
        wait: float = 0.0,
    ) -> None:
        self.name = name
        self.ports = dict(ports or {})
        self.limits = limits or PoolLimits()
        self.wait = wait
        self._sources = sources_digest()  # As it began: the files may change while it works.
        self._idle: list[tuple[Any, WorkerPool]] = []
        self._pools: list[WorkerPool] = []
        self._lock = threading.Lock()

    def do(self, task: Task, parcels: Sequence[Parcel], before: Any) -> Any:
        """Returns a result as JSON, :class:`StageResult` for the next stage, :class:`BoardFailed` or :class:`Lost`."""
        if task.sources != self._sources:
            return Lost(
                f"worker {self.name} has another uaccel: {__version__} of sources {self._sources[:12]}, "
                f"wanted {task.sources[:12]}; install the same at both ends, and start the worker again"
            )
        if task.kind in (BOARD, JUDGE) and not isinstance(before, StageResult):
            return before  # the stage before has failed: that is the result
        paths: dict[str, str] = {}
        try:
            row, paths = unpacked(task.row, parcels)
            with self._held(task.board, row) if task.board else contextlib.nullcontext("") as port:
                return self._worked(task, RowJob(task.kind, task.digest, row, before, port), paths)
        except OSError as error:
            return Lost(f"worker {self.name} cannot use {error.filename}: {error.strerror}")
        except UaccelError as error:
            words = substitute_paths(str(error), paths)
            return BoardFailed(words) if isinstance(error, DeviceError) else Lost(words)

    def close(self) -> None:
        """End its processes, even in the middle of a job."""
        with self._lock:
            pools, self._pools = self._pools, []
        for pool in pools:
            pool.close()

    def _worked(self, task: Task, job: RowJob, paths: Mapping[str, str]) -> Any:
        with self._pool(task.function, task.limits.within(self.limits)) as pool:
            (outcome,) = pool.run([job])
        return self._told(outcome, paths)

    def _told(self, outcome: PoolOutcome, paths: Mapping[str, str]) -> Any:
        """Returns the outcome with marks in place of this computer's paths."""
        if outcome.result is None:
            failure, log = substitute_paths([outcome.failure, outcome.log], paths)
            return Lost(failure, log, outcome.attempts)
        if isinstance(outcome.result, BoardFailed):
            return BoardFailed(substitute_paths(outcome.result.error, paths))
        if isinstance(outcome.result, dict):
            return substitute_paths(outcome.result, paths) | {"worker": self.name}
        return outcome.result

    @contextmanager
    def _pool(self, function: Callable[[RowJob], Any], limits: PoolLimits) -> Iterator[WorkerPool]:
        """Gives a pool of one process for a job: an idle one of the same function and limits, else a new one.

        Idle ones for other work are ended: limits of a process cannot be raised again, and it would hold memory."""
        kind = (function, limits)
        with self._lock:
            fitting = [entry for entry in self._idle if entry[0] == kind]
            others = [entry for entry in self._idle if entry[0] != kind]
            self._idle = fitting[:-1]
            ended = [entry[1] for entry in others]
            self._pools = [other for other in self._pools if other not in ended]
            pool = fitting[-1][1] if fitting else WorkerPool(function, 1, limits)
            self._pools += [] if fitting else [pool]
        for other in ended:
            other.close()
        try:
            yield pool
        finally:
            with self._lock:
                self._idle.append((kind, pool))

    @contextmanager
    def _held(self, name: str, row: Mapping[str, Any]) -> Iterator[str]:
        """Gives the board's port once it is there and nobody else uses it."""
        port = self._port(name, row)
        with hold(port, wait=BUSY_SECONDS, user=f"uaccel worker {self.name}"):
            yield port

    def _port(self, name: str, row: Mapping[str, Any]) -> str:
        """Waits for the board and returns its port, which may have another number after the cable was out."""
        board, until = load_board(row["board"]), time.monotonic() + self.wait
        while True:
            try:
                port = find_port(board, self.ports.get(name, "auto"))
                if "://" in port or Path(port).exists():
                    return port
                problem = DeviceError(f"board {name} is not at {port} of worker {self.name}; plug it in")
            except BoardAbsentError as error:
                problem = error
            if time.monotonic() >= until:
                raise problem
            time.sleep(_LOOK_SECONDS)


_HERE: list[Station] = []


def take_over(station: Station) -> None:
    """Makes this process work as that worker."""
    _HERE[:] = [station]


def do_task(task: Task, parcels: Sequence[Parcel], before: Any) -> Any:
    """Does a task in this process; Dask sends a function of a module by its name.

    What goes back to the sweeper is text, and nothing is raised: Dask would pickle the exception. Stages hand on what
    they have to each other."""
    if not _HERE:
        take_over(Station())
    station = _HERE[0]
    try:
        found = station.do(task, parcels, before)
        return answer_of(found) if task.kind in (WHOLE, JUDGE) else found
    except Exception as error:
        lost = Lost(f"worker {station.name}: {type(error).__name__}: {error}")
        return answer_of(lost) if task.kind in (WHOLE, JUDGE) else lost


def as_it_is(parcel: Parcel) -> Parcel:
    """Returns a parcel: as the result of a task, it can be made again by Dask after a worker lost it."""
    return parcel
