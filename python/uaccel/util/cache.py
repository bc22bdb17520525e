"""Keeps results in the user's cache folder, by the content of everything that they were made of."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import IO, Any, Final

from uaccel.util import incoming
from uaccel.util.files import DataFolder, data_dir

# Keys: all that a result depends on as one digest, files by their content, programs by what lies in PATH.

# Packages whose versions may change what is compiled; "none" is the version of one that is not installed.
PACKAGES: Final = ("apache-tvm", "apache-tvm-ffi", "flatbuffers", "numpy", "onnx", "ortools", "tflite", "torch")
_NO_SOURCES: Final = (".pyc", ".pyo", ".orig", ".swp")
# Variables that compilers and CMake read; of those that name folders to look into, what lies there is unknown.
SEARCHED: Final = ("COMPILER_PATH", "CPATH", "CPLUS_INCLUDE_PATH", "C_INCLUDE_PATH", "GCC_EXEC_PREFIX", "LIBRARY_PATH")
_VARIABLES: Final = (
    *("AR", "ASM", "ASMFLAGS", "CC", "CFLAGS", "CPPFLAGS", "CXX", "CXXFLAGS", "LD", "LDFLAGS", "SOURCE_DATE_EPOCH"),
    *SEARCHED,
)
_PREFIXES: Final = ("BOARD_", "CCACHE_", "CMAKE_", "COLLECT_", "GCC_", "LD_", "UACCEL_IMPORT_", "VERILATOR_", "YOSYS")


class Key:
    """Is a digest that grows by named parts; equal parts in the same order give the same digest."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._digest = hashlib.sha256(kind.encode())

    def add(self, name: str, value: Any) -> Key:
        """Add a part: plain data that JSON can express; bytes count by their digest."""
        if isinstance(value, (bytes, bytearray, memoryview)):
            value = {"sha256": hashlib.sha256(value).hexdigest()}
        self._digest.update(json.dumps([name, value], sort_keys=True, default=str).encode() + b"\n")
        return self

    @property
    def digest(self) -> str:
        return self._digest.hexdigest()


def file_digest(path: Path) -> str:
    """The digest of a file's content."""
    digest = hashlib.sha256()
    with incoming.opened(path, incoming.ARCHIVE) as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def folder_digest(folder: Path, without: str = "") -> str:
    """The digest of all source files below a folder, with their paths, also behind links; what tools leave behind does
    not count, nor do folders called ``without``."""
    digest, left_out, seen = hashlib.sha256(), ("__pycache__", without), set[str]()
    for above, folders, files in os.walk(folder, followlinks=True):
        real = os.path.realpath(above)
        folders[:] = sorted(name for name in folders if name not in left_out and not name.startswith("."))
        if real in seen:  # a link leads back; it has been read by its other name
            folders[:] = []
            continue
        seen.add(real)
        for name in sorted(files):
            if not name.endswith(_NO_SOURCES):
                path = Path(above) / name
                digest.update(f"{path.relative_to(folder)}\0".encode("utf-8", "surrogateescape"))
                digest.update(incoming.read_bytes(path) if path.is_file() else b"")
    return digest.hexdigest()


def sources_of_uaccel() -> list[Path]:
    """The folders whose content is uaccel itself."""
    names: tuple[DataFolder, ...] = ("boards", "firmware", "project_template", "accelerators")
    return [Path(__file__).resolve().parent.parent, *(data_dir(name) for name in names)]


@lru_cache(maxsize=1)
def own_sources() -> str:
    """The digest of uaccel itself, with boards, firmware, template and accelerators, and of the packages it uses."""
    digest = hashlib.sha256()
    for folder in sources_of_uaccel():
        digest.update(folder_digest(folder).encode())
    for package in PACKAGES:
        digest.update(f"{package} {installed_version(package)}\n".encode())
    return digest.hexdigest()


@lru_cache(maxsize=1)
def sources_digest() -> str:
    """The digest of uaccel's own sources: the same in a checkout and installed, whatever packages are there."""
    package, *others = sources_of_uaccel()
    digests = [folder_digest(package, without="_data"), *map(folder_digest, others)]  # a wheel has the others there
    return hashlib.sha256(" ".join(digests).encode()).hexdigest()


def installed_version(package: str) -> str:
    """The version of an installed package."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"


def programs_digest(names: Iterable[str]) -> list[Any]:
    """The programs that each name may mean, by the files' places, sizes and times, since reading compilers would take
    long; and the environment variables that builds look at.

    All of a name count, not only the first: a wrapper runs the next one in ``PATH``. Times are those that no copy and
    no ``touch`` can set, too."""
    folders = [*os.environ.get("PATH", os.defpath).split(os.pathsep), os.environ.get("BOARD_TOOLCHAIN_PATH") or "."]
    found: list[Any] = []
    for name in names:
        places = dict.fromkeys(Path(os.path.realpath(Path(folder, name))) for folder in folders)
        told = [(str(place), place.stat()) for place in places if place.is_file() and os.access(place, os.X_OK)]
        found.append([name, [[place, one.st_size, one.st_mtime_ns, one.st_ctime_ns] for place, one in told]])
    every = sorted(os.environ.items())
    return [*found, *([name, value] for name, value in every if name in _VARIABLES or name.startswith(_PREFIXES))]


# The cache folder: an entry is a folder of files and a manifest with their digests.
#
# Many processes may use it at once. An entry appears as a whole, by a rename, and disappears as a whole, by a rename to
# a folder that nobody reads. Whoever uses one holds a shared lock on its manifest; removing one needs an exclusive
# lock, and so never hits an entry in use. An entry whose files are not what its manifest says counts as missing.

VARIABLE: Final = "UACCEL_CACHE"
OBJECTS: Final = "UACCEL_OBJECTS"
OFF: Final = "off"
LIMIT: Final = 4 << 30  # Bytes; beyond these, what was used longest ago is removed.
MANIFEST: Final = "manifest.json"
_PENDING: Final = "new"  # The folder of entries that are being written or removed.
_PARTS: Final = 6  # Each process may exceed the limit by 1 / 2**6 of it before it looks at all entries again.
# Bytes that this process has added since it last looked at all entries, by folder and limit.
_GROWN: Final[dict[tuple[Path, int], int]] = {}
_STALE: Final = 24 * 60 * 60  # Seconds after which a pending entry counts as left behind.


def cache_folder() -> Path:
    """The folder of the user's cache, which may be deleted at any time."""
    chosen = os.environ.get(VARIABLE, "")
    if chosen and chosen != OFF:
        return Path(chosen).absolute()
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".cache") / "uaccel"


def cache_of_user() -> Cache | None:
    """The cache that commands use; None where the user wants none."""
    return None if os.environ.get(VARIABLE) == OFF else Cache(cache_folder() / "kept")


def cache_folders() -> list[Path]:
    """The folders of all caches, in which many processes write."""
    objects = cache_of_objects()
    return [cache_folder(), *([] if objects is None else [objects.folder])]


def cache_of_objects() -> Cache | None:
    """The cache for compiled objects alone, in the folder that ``UACCEL_OBJECTS`` names; None without it."""
    chosen = os.environ.get(OBJECTS, "")
    return Cache(Path(chosen).absolute()) if chosen else None


@dataclass(frozen=True)
class CacheRow:
    """Holds what lists show of an entry; ``used``: seconds since 1970."""

    kind: str
    digest: str
    about: str
    bytes: int
    used: float


class Entry:
    """Holds an entry of the cache: nobody removes it before it is closed, or collected as garbage."""

    def __init__(self, folder: Path, manifest: Mapping[str, Any], held: IO[bytes]) -> None:
        self.folder = folder
        self.manifest = manifest
        self._held = held

    def path(self, name: str) -> Path:
        """The path of a file, whose content has been checked."""
        return self.folder / name

    def read(self, name: str) -> bytes:
        return self.path(name).read_bytes()

    def has(self, name: str) -> bool:
        return name in self.manifest["files"]

    def json(self, name: str) -> Any:
        """The content of a JSON file."""
        return json.loads(self.read(name))

    def close(self) -> None:
        self._held.close()


class Cache:
    """Keeps entries in a folder, up to ``limit`` bytes. Where the folder cannot be used ``problem`` says why, and
    nothing is kept."""

    def __init__(self, folder: Path, limit: int = LIMIT) -> None:
        self.folder = folder
        self.limit = limit
        self.problem = ""

    def find(self, key: Key) -> Entry | None:
        """The entry under the key, whole and unchanged, or None. It counts as used now.

        The entry may be removed, and made anew, between opening its manifest and locking it. So it is checked after
        locking that the locked file is the one that lies there.
        """
        folder = self._place(key)
        try:
            held = (folder / MANIFEST).open("rb")
        except OSError:
            return None
        try:
            fcntl.flock(held, fcntl.LOCK_SH)
            manifest = json.loads(held.read())
            if _is_there(held, folder) and _is_intact(folder, manifest):
                with contextlib.suppress(OSError):
                    os.utime(folder / MANIFEST)
                return Entry(folder, manifest, held)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            pass
        held.close()
        return None

    def add(self, key: Key, files: Mapping[str, bytes | Path], about: str) -> Entry | None:
        """Keep files under the key; an intact entry that is there stays. None where nothing can be kept."""
        try:
            pending = self.folder / _PENDING
            pending.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=pending) as temporary:
                made = Path(temporary) / "entry"
                _fill(made, files, about)
                self._publish(made, key)
        except OSError as error:
            self.problem = f"cannot keep anything in {self.folder}: {error.strerror or error}"
            return None
        entry = self.find(key)
        self._prune_after(sum(size for size, _ in entry.manifest["files"].values()) if entry is not None else 0)
        return entry

    def drop(self, key: Key) -> None:
        """Remove the entry under the key, which is of no use any more."""
        self._remove(self._place(key))

    def kept(self) -> list[CacheRow]:
        """All entries, the one that was used last first."""
        found = []
        for folder in self._folders():
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                text = (folder / MANIFEST).read_bytes()
                manifest = json.loads(text)
                size = len(text) + sum(size for size, _ in manifest["files"].values())
                used = (folder / MANIFEST).stat().st_mtime
                found.append(CacheRow(folder.parent.name, folder.name, manifest["about"], size, used))
        return sorted(found, key=lambda entry: -entry.used)

    def _prune_after(self, added: int) -> None:
        """Prune at this process's first addition, and then after each 1 / 2**6 of the limit that it added: looking at
        all entries takes long."""
        place = (self.folder, self.limit)
        grown = _GROWN.get(place, self.limit) + added
        _GROWN[place] = 0 if grown > self.limit >> _PARTS else grown
        if grown > self.limit >> _PARTS:
            self.prune(self.limit)

    def prune(self, limit: int) -> int:
        """Remove what was used longest ago until at most ``limit`` bytes are kept; returns the bytes freed."""
        entries, freed = self.kept(), 0
        total = sum(entry.bytes for entry in entries)
        for entry in reversed(entries):
            if total - freed <= limit:
                break
            freed += entry.bytes if self._remove(self.folder / entry.kind / entry.digest) else 0
        self._sweep()
        return freed

    def _place(self, key: Key) -> Path:
        return self.folder / key.kind / key.digest

    def _folders(self) -> Iterator[Path]:
        if not self.folder.is_dir():
            return
        for kind in sorted(self.folder.iterdir()):
            if kind.is_dir() and kind.name != _PENDING:
                yield from sorted(entry for entry in kind.iterdir() if entry.is_dir())

    def _publish(self, made: Path, key: Key) -> None:
        """Move a finished entry to its place. If an intact one is there, another process was first, and its content is
        the same; a damaged one is removed."""
        place = self._place(key)
        place.parent.mkdir(parents=True, exist_ok=True)
        for _ in range(2):
            try:
                made.rename(place)
                return
            except OSError:
                there = self.find(key)
                if there is not None:
                    there.close()
                    return
                if not place.exists():
                    raise
                self._remove(place)

    def _remove(self, folder: Path) -> bool:
        """Remove an entry, unless somebody uses it."""
        try:
            with (folder / MANIFEST).open("rb") as held:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_there(held, folder):
                    self._discard(folder)
        except FileNotFoundError:
            with contextlib.suppress(OSError):
                if folder.is_dir() and not (folder / MANIFEST).exists():  # it lost it; entries come and go as wholes
                    self._discard(folder)
        except OSError:
            return False
        return not folder.exists()

    def _discard(self, folder: Path) -> None:
        """Delete an entry; it is moved away first, so that nobody finds a part of it."""
        pending = self.folder / _PENDING
        pending.mkdir(parents=True, exist_ok=True)
        away = Path(tempfile.mkdtemp(dir=pending))
        try:
            folder.rename(away / "entry")
        finally:
            shutil.rmtree(away, ignore_errors=True)

    def _sweep(self) -> None:
        """Delete what processes that were killed left behind."""
        with contextlib.suppress(OSError):
            for folder in (self.folder / _PENDING).iterdir():
                if time.time() - folder.stat().st_mtime > _STALE:
                    shutil.rmtree(folder, ignore_errors=True)


def _fill(folder: Path, files: Mapping[str, bytes | Path], about: str) -> None:
    known: dict[str, tuple[int, str]] = {}
    for name, content in files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, Path):
            incoming.copy(content, target)
        else:
            target.write_bytes(content)
        known[name] = (target.stat().st_size, file_digest(target))
    folder.mkdir(exist_ok=True)
    (folder / MANIFEST).write_text(json.dumps({"about": about, "files": known}), encoding="utf-8")


def _is_there(held: IO[bytes], folder: Path) -> bool:
    """Whether the locked manifest is still the entry's: it may have been removed meanwhile, and made anew."""
    return os.path.samestat(os.fstat(held.fileno()), (folder / MANIFEST).stat())


def _is_intact(folder: Path, manifest: Mapping[str, Any]) -> bool:
    return all(
        (folder / name).stat().st_size == size and file_digest(folder / name) == digest
        for name, (size, digest) in manifest["files"].items()
    )
