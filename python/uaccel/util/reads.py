"""Records what a computation reads besides uaccel itself, so that a kept result can be told from one that is stale.

Python announces every file that is opened and every folder that is listed (audit events). It does not announce
questions whether a file is there, nor environment variables. So while something is recorded, ``os.stat`` and its like
and the lookup of ``os.environ`` are wrapped. What starts programs or talks to a network reads things that nobody sees
here: its result must not be kept.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, lru_cache
from importlib.util import source_from_cache
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, Final

from uaccel.util.cache import PACKAGES, Cache, Entry, Key, cache_folders, file_digest, sources_of_uaccel

# A row of what was read: a kind, then the path or the name. Its state is what was found there.

CONTENT, KIND, STAMP, LIST, VARIABLE = "content", "kind", "stamp", "list", "variable"
UNSEEN: Final = "unseen"  # Says what reads something that cannot be recorded.
NONE: Final = "none"
_NO_SOURCES: Final = ("__pycache__", ".pyc", ".pyo")


def state(row: str) -> str:
    """What is found now under a row; an answer for each kind, whatever lies there."""
    kind, _, name = row.partition(" ")
    try:
        return _STATES[kind](name)
    except (OSError, ValueError, KeyError):
        return NONE


def _content(name: str) -> str:
    return file_digest(Path(name)) if stat.S_ISREG(Path(name).stat().st_mode) else _kind(name)


def _kind(name: str) -> str:
    return str(stat.S_IFMT(Path(name).stat().st_mode))


def _stamp(name: str) -> str:
    """Where a link leads, which kind of thing it is, and of a file size and time."""
    path = Path(name)
    leads = f"{path.readlink()}: " if path.is_symlink() else ""
    if leads and not path.exists():
        return leads
    told = path.stat()
    size_and_time = f" {told.st_size} {told.st_mtime_ns}" if stat.S_ISREG(told.st_mode) else ""
    return f"{leads}{stat.S_IFMT(told.st_mode)}{size_and_time}"


def _list(name: str) -> str:
    names = sorted(each.name for each in Path(name).iterdir() if not each.name.endswith(_NO_SOURCES))
    return hashlib.sha256("\0".join(names).encode("utf-8", "surrogateescape")).hexdigest()


def _variable(name: str) -> str:
    """The digest of a variable's value, which may be a secret; without a name that of all variables."""
    told = os.environ[name] if name else repr(sorted(os.environ.items()))
    return hashlib.sha256(told.encode("utf-8", "surrogateescape")).hexdigest()


_STATES: Final[Mapping[str, Callable[[str], str]]] = {
    CONTENT: _content,
    KIND: _kind,
    STAMP: _stamp,
    LIST: _list,
    VARIABLE: _variable,
}


def still_true(rows: Mapping[str, str]) -> bool:
    """Whether all that was read would be found again; what could not be recorded never is."""
    return all(state(row) == known for row, known in rows.items())


def is_rows(data: Any) -> bool:
    """Whether JSON data are rows of what was read."""
    return isinstance(data, dict) and all(isinstance(known, str) for known in data.values())


def not_seen(rows: Mapping[str, str]) -> str:
    """What the result depends on and cannot be recorded; empty if all is."""
    return next((row.partition(" ")[2] for row in rows if row.startswith(f"{UNSEEN} ")), "")


def seen_only(rows: Mapping[str, str]) -> dict[str, str]:
    """The rows without those that say what could not be recorded."""
    return {row: known for row, known in rows.items() if not row.startswith(f"{UNSEEN} ")}


# Whose reading counts. A file counts whoever opens it, unless it belongs to Python, to uaccel or to a package whose
# version is part of every key. Variables, times of files, imports and programs count where an accelerator's own code is
# being run: code in a file that belongs neither to these nor to an installed package.

KNOWN, LIBRARY, FOREIGN = "known", "library", "foreign"
_ADDED: Final[set[str]] = set()  # Folders of accelerators that are installed among the libraries.


def add_foreign(folder: Path) -> None:
    """Makes the code in a folder count as an accelerator's, wherever it lies."""
    if f"{folder}/" not in _ADDED and _owner(str(folder / "any")) == LIBRARY:
        _ADDED.add(f"{folder}/")
        _owner.cache_clear()


@lru_cache(maxsize=1)
def _roots() -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """The folders of uaccel and of packages whose versions are in every key; of all packages; of Python."""
    paths = sysconfig.get_paths()
    libraries = {os.path.realpath(paths["purelib"]), os.path.realpath(paths["platlib"])}
    modules = ("tvm", "tvm_ffi", *PACKAGES)
    packages = tuple(f"{library}/{module}/" for library in libraries for module in modules)
    python = [paths["stdlib"], paths["platstdlib"], "/dev", "/proc", "/sys"]
    own = (*packages, *(f"{place}/" for place in sources_of_uaccel()))
    return own, tuple(f"{library}/" for library in libraries), tuple(f"{os.path.realpath(one)}/" for one in python)


@cache
def _owner(file: str) -> str:
    path = os.path.realpath(file)
    own, libraries, python = _roots()
    if path.startswith(tuple(_ADDED)):
        return FOREIGN
    if path.startswith(own):
        return KNOWN
    if path.startswith(libraries):  # which may lie within Python's own folder
        return LIBRARY
    return KNOWN if path.startswith(python) else FOREIGN


# Recording: any number of recordings may be open, one within the other, and each gets all that is read in it.

_OPEN: Final[list[Reads]] = []
_BUSY: Final = threading.local()  # Is set while this module itself looks at files.
_PROGRAMS: Final = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty", "pty.spawn")
_ELSEWHERE: Final = ("socket.connect", "socket.getaddrinfo", "ctypes.dlopen", "sqlite3.connect")
_HOOKED: Final[list[bool]] = []


class Reads:
    """Records what is read in the body of a ``with``; ``rows`` has the state of each thing as it was found first."""

    def __init__(self, ignored: Path | None = None, *, trusts_packages: bool = False) -> None:
        self.rows: dict[str, str] = {}
        self.trusts_packages = trusts_packages  # Programs that installed packages start belong to them.
        # Files that the computation itself writes, and folders that it makes, with a slash.
        self._made: list[str] = [] if ignored is None else [f"{ignored}/"]
        self.within: FrameType | None = None

    def __enter__(self) -> Reads:
        self.within = sys._getframe(1)
        if not _HOOKED:
            _HOOKED.append(True)
            sys.addaudithook(_heard)  # for as long as the process lives
        if not _OPEN:
            _wrap()
        _OPEN.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _OPEN.remove(self)
        self.within = None
        if not _OPEN:
            _unwrap()
        self._settle()

    def add(self, rows: Mapping[str, str]) -> None:
        """Adds what was recorded before, or elsewhere."""
        self.rows = {**rows, **self.rows}

    def write(self, path: str) -> None:
        """Notes what the computation itself makes: what it reads there follows from the rest."""
        self._made.append(path)

    def _settle(self) -> None:
        """Leaves out what the computation made, and notes what changed under its eyes."""
        made, folders = set(self._made), tuple(each for each in self._made if each.endswith("/"))
        for row in list(self.rows):
            path = row.partition(" ")[2]
            if path in made or f"{path}/" in made or path.startswith(folders):
                del self.rows[row]
        with _busy():
            changed = [row for row, known in self.rows.items() if not row.startswith(UNSEEN) and state(row) != known]
        self.rows |= {f"{UNSEEN} {row.partition(' ')[2]}, which changed meanwhile": "" for row in changed}


def add_to_open(rows: Mapping[str, str]) -> None:
    """Gives all open recordings what was recorded when a module was imported, which happens only once."""
    for reads in _OPEN:
        reads.add(rows)


@contextmanager
def _busy() -> Iterator[None]:
    """Keeps what the block itself reads out of the recordings."""
    _BUSY.now = True
    try:
        yield
    finally:
        _BUSY.now = False


def _note(kind: str, name: str) -> None:
    row = f"{kind} {name}"
    if all(row in reads.rows for reads in _OPEN):
        return
    found = "" if kind == UNSEEN else state(row)
    for reads in _OPEN:
        reads.rows.setdefault(row, found)


def _owners(last: FrameType | None = None) -> Iterator[str]:
    """Says whose the functions are that are being run, the innermost first, up to ``last``."""
    here: FrameType | None = sys._getframe(1)
    while here is not None and here is not last:
        file = here.f_code.co_filename
        if not file.startswith("<"):
            yield _owner(file)
        here = here.f_back


def _by_accelerator() -> bool:
    """Whether an accelerator's code is being run, as far as the first recording reaches."""
    return FOREIGN in _owners(_OPEN[0].within)


def _asker() -> str:
    """Says whose code asks: that of the innermost function that is not Python's."""
    return next((owner for owner in _owners() if owner != KNOWN), KNOWN)


def _heard(event: str, given: tuple[Any, ...]) -> None:
    """Is called for every audit event of the process, so that it must be quick for most of them."""
    if not _OPEN or getattr(_BUSY, "now", False):
        return
    handler = _EVENTS.get(event)
    if handler is None:
        return
    with _busy():
        handler(event, given)


def _path(given: Any) -> str | None:
    """A path as text, from the root; None for what names no file."""
    if isinstance(given, int) or given is None:
        return None
    try:
        return os.path.normpath(Path(os.fsdecode(given)).absolute())
    except (TypeError, ValueError):
        return None


def _counts(path: str) -> bool:
    return _owner(path) != KNOWN and not f"{path}/".startswith(tuple(f"{folder}/" for folder in cache_folders()))


def _opened(_event: str, given: tuple[Any, ...]) -> None:
    path, mode, flags = _path(given[0]), given[1], given[2]
    if path is None or not _counts(path):
        return
    writes = (
        any(letter in mode for letter in "wax+") if isinstance(mode, str) else bool(flags & (os.O_WRONLY | os.O_RDWR))
    )
    if writes:
        for reads in _OPEN:
            reads.write(path)
    elif "/__pycache__/" in path and path.endswith(".pyc"):
        _note(CONTENT, source_from_cache(path))
    else:
        _note(CONTENT, path)


def _made_folder(_event: str, given: tuple[Any, ...]) -> None:
    path = _path(given[0])
    if path is not None and not Path(path).exists():  # many are made only where they are not there
        for reads in _OPEN:
            reads.write(f"{path}/")


def _listed(_event: str, given: tuple[Any, ...]) -> None:
    """An import looks through all folders of Python's path; what it looks for there is noted with the import."""
    path = _path("." if given[0] is None else given[0])
    importing = "importlib._bootstrap" in sys._getframe(2).f_code.co_filename
    if path is not None and not importing and _counts(path):
        _note(LIST, path)


def _imported(_event: str, given: tuple[Any, ...]) -> None:
    """Notes where an accelerator's import looks for a module and does not find it, up to where it does."""
    name, file = str(given[0]), given[1]
    if not _by_accelerator():
        return
    if file is not None:
        if _owner(str(file)) == FOREIGN:
            _note(UNSEEN, f"the machine code of {file}")
        return
    if "." not in name:
        for place in sys.path:
            folder = Path(place or ".").absolute()
            here = [folder / name, *(folder / f"{name}{suffix}" for suffix in (".py", ".so"))]
            for path in here if _owner(str(folder / "any")) != KNOWN else ():
                _note(KIND, str(path))
            if any(path.exists() for path in here):
                break


def _beyond(event: str, given: tuple[Any, ...]) -> None:
    if _by_accelerator() and not (_OPEN[0].trusts_packages and _asker() == LIBRARY):
        _note(UNSEEN, f"what {event} of {str(given[0]) if given else 'something'} reads")


_EVENTS: Final[Mapping[str, Callable[[str, tuple[Any, ...]], None]]] = {
    "open": _opened,
    "os.listdir": _listed,
    "os.scandir": _listed,
    "os.mkdir": _made_folder,
    "import": _imported,
    **dict.fromkeys((*_PROGRAMS, *_ELSEWHERE), _beyond),
}


# Functions that ask without an audit event, and what they were before they were wrapped.

_ASKING: Final = ("stat", "lstat", "access", "readlink")
_WERE: Final[dict[str, Any]] = {}
_SETS: Final = (os.supports_dir_fd, os.supports_effective_ids, os.supports_fd, os.supports_follow_symlinks)


def _wrap() -> None:
    for name in _ASKING:
        _WERE[name] = was = getattr(os, name)
        asking = _asking(was)
        for group in _SETS:  # by which the library chooses how to call them
            if was in group:
                group.add(asking)
        setattr(os, name, asking)
    for name, looking in _ENVIRONMENT.items():
        _WERE[name] = getattr(type(os.environ), name)
        setattr(type(os.environ), name, looking)


def _unwrap() -> None:
    for name in _ASKING:
        setattr(os, name, _WERE[name])
    for name in _ENVIRONMENT:
        setattr(type(os.environ), name, _WERE[name])


def _asking(was: Callable[..., Any]) -> Callable[..., Any]:
    def asked(path: Any, *args: Any, **how: Any) -> Any:
        if _OPEN and not getattr(_BUSY, "now", False):
            with _busy():
                name = _path(path)
                if name is not None and _counts(name):
                    _note(STAMP if _by_accelerator() else KIND, name)
        return was(path, *args, **how)

    return asked


def _looking(was: str) -> Callable[..., Any]:
    def looked(environment: Any, *key: Any) -> Any:
        if _OPEN and not getattr(_BUSY, "now", False) and _by_accelerator():
            with _busy():
                _note(VARIABLE, os.fsdecode(key[0]) if key else "")
        return _WERE[was](environment, *key)

    return looked


_ENVIRONMENT: Final = {name: _looking(name) for name in ("__getitem__", "__iter__")}


# Results in the cache with what they were made of.

READS: Final = "reads.json"


def find_true(kept: Cache | None, key: Key | None) -> Entry | None:
    """The entry under the key, if all that its computation read would be found again; else it is removed."""
    if kept is None or key is None or (entry := kept.find(key)) is None:
        return None
    rows = entry.json(READS)
    if still_true(rows):
        add_to_open(rows)
        return entry
    entry.close()
    kept.drop(key)
    return None


def add_true(
    kept: Cache | None, key: Key | None, files: Mapping[str, bytes | Path], about: str, rows: Mapping[str, str]
) -> Entry | None:
    """Keep files with what their computation read; nothing if that cannot be known."""
    if kept is None or key is None or not_seen(rows):
        return None
    return kept.add(key, {**files, READS: json.dumps(dict(rows)).encode()}, about)


# Modules that were imported before anybody recorded it: those that an accelerator's modules name.

_FIRST: Final[dict[str, str]] = {}  # The content of each module's file when it was met first.


def modules_of(package: str) -> dict[str, str]:
    """The files of a package's modules, and of the modules elsewhere whose names they use, directly or not."""
    within = [name for name in sys.modules if name == package or name.startswith(f"{package}.")]
    waiting, seen, rows = within, set[str](), dict[str, str]()
    while waiting:
        name = waiting.pop()
        module = sys.modules.get(name)
        file = getattr(module, "__file__", None)
        if name in seen or module is None or (file is not None and _owner(file) != FOREIGN):
            continue
        seen.add(name)
        if file is not None:
            row = f"{CONTENT} {file}"
            rows[row] = _FIRST.setdefault(row, state(row))
        for value in list(vars(module).values()):
            named = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
            waiting += [named] if isinstance(named, str) else []
    return rows
