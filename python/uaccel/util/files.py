"""Writes files whole or not at all, reads JSON and TOML, packs archives, and finds the package's own data.

It also silences libraries that write to stdout and stderr.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import logging
import math
import os
import sys
import tarfile
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final, Literal

from uaccel.errors import UaccelError, need

# Atomic writing: a failure leaves nothing half-written.


def require_writable(path: Path, option: str) -> None:
    """Complain about a place that cannot be written before the work that leads to it; ``option`` names it."""
    folder = path.parent
    if not folder.is_dir():
        problem = f"{folder} is no folder" if folder.exists() else f"there is no folder {folder}"
    elif path.is_dir():
        problem = "it is a folder"
    elif path.exists() and not path.is_file():
        problem = "it is a device or a pipe, which cannot be replaced"
    elif not os.access(folder, os.W_OK):
        problem = f"folder {folder} may not be written"
    else:
        return
    raise UaccelError(f"cannot write {path}: {problem}; choose another place with {option}")


@contextlib.contextmanager
def writing(path: object, option: str) -> Iterator[None]:
    """Makes one line of what goes wrong while the block writes a file; ``option`` names its place."""
    try:
        yield
    except OSError as error:
        raise UaccelError(
            f"cannot write {path}: {error.strerror or error}; choose another place with {option}"
        ) from error


def write_atomically(path: Path, write: Callable[[IO[bytes]], object], option: str) -> None:
    """Write beside the target and move over it: a reader sees the old file or the new one, never a part."""
    require_writable(path, option)
    with writing(path, option):
        target = path.resolve()  # a link stays a link
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:32]}.")
        try:
            with os.fdopen(handle, "wb") as stream:
                write(stream)
            Path(temporary).chmod(0o666 & ~_umask())
            Path(temporary).replace(target)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


def require_new_folder(path: Path, option: str) -> None:
    """Complain about a folder that holds something, or cannot be made, before the work that leads to it."""
    if path.is_dir() and any(path.iterdir()):
        problem = "the folder holds files already"
    elif path.exists() and not path.is_dir():
        problem = "it is a file"
    elif not path.exists() and not path.parent.is_dir():
        problem = f"there is no folder {path.parent}"
    elif not os.access(path if path.is_dir() else path.parent, os.W_OK):
        problem = f"folder {path if path.is_dir() else path.parent} may not be written"
    else:
        return
    raise UaccelError(f"cannot write folder {path}: {problem}; choose a new one with {option}")


def write_folder(path: Path, files: Mapping[str, bytes], option: str) -> None:
    """Write all of the files or none: they are written to a folder beside, which is then renamed."""
    require_new_folder(path, option)
    with writing(f"folder {path}", option):
        target = path.resolve()
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name[:32]}.") as temporary:
            made = Path(temporary) / "made"
            made.mkdir()
            fill_folder(made, files)
            made.replace(target)


def fill_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    for name, content in files.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)


def write_zip(stream: IO[bytes], files: Mapping[str, bytes]) -> None:
    """Write a zip that has the same bytes for the same files: in order of their names, without a date."""
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(entry, files[name])


# JSON and TOML that anybody may have written: whatever is wrong with them is a ValueError.
#
# An integer has 64 bits at most, as TOML wants it and as every reader can hold; a float is a finite number. Depth is
# limited, so that code which walks a document need not fear Python's limit of recursion.

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TomlError = tomllib.TOMLDecodeError  # A ValueError that has the place of a mistake in the syntax.
DEEPEST: Final = 64  # Levels of nesting, at most.
_LIMIT: Final = 1 << 64
_DEEP: Final = "values are nested too deeply"
_LONG: Final = "an integer has more than 64 bits"


def parse_json(text: str | bytes) -> Any:
    """Read JSON; ValueError, with a reason in words, for what is no JSON or exceeds the limits above."""
    return _checked(_read(json.loads, text))


def parse_toml(text: str) -> dict[str, Any]:
    """Read TOML in the same way; ``TomlError`` where the place of a mistake is known."""
    data: dict[str, Any] = _checked(_read(tomllib.loads, text))
    return data


def _read(reader: Callable[[Any], Any], text: str | bytes) -> Any:
    try:
        return reader(text)
    except RecursionError as error:
        raise ValueError(_DEEP) from error
    except (TomlError, json.JSONDecodeError, UnicodeDecodeError):
        raise
    except ValueError as error:  # Python's own limit of digits
        raise ValueError(_LONG) from error


def _checked(value: Any, depth: int = 0) -> Any:
    need(depth <= DEEPEST, _DEEP, ValueError)
    if isinstance(value, (dict, list)):
        for entry in value.values() if isinstance(value, dict) else value:
            _checked(entry, depth + 1)
    elif isinstance(value, int) and not -_LIMIT < value < _LIMIT:
        raise ValueError(_LONG)
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError("a float is no finite number")
    return value


# The Model Library Format archive: its folders, and a tar that has the same bytes for the same files.

CODE: Final = "codegen/host"
PROJECT: Final = "templates/project"  # Files that a project copies to the same paths: what a board adds to it.
FIRST_VALUES: Final = "src/{}.state.npz"  # What the inputs that --state binds hold before the first inference.
UNFIT: Final = "templates/no_project.txt"  # Why there are none: the model does not fit on its board.
ACCELERATORS: Final = "project/accelerators"  # Drivers and device models, which a project takes over as they are.
# Folders that are there even when they are empty.
FOLDERS: Final = (
    f"{CODE}/src",
    f"{CODE}/include",
    f"{CODE}/lib",
    "executor-config/aot",
    "parameters",
    "src",
    "templates",
)


def write_tar(stream: IO[bytes], files: Mapping[str, bytes]) -> None:
    """Write a tar without owners and dates, folders first, all in order of their names."""
    inner = (*(PurePosixPath(folder) / "file" for folder in FOLDERS), *map(PurePosixPath, files))
    folders = {str(parent) for path in inner for parent in path.parents} - {"."}
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for folder in sorted(folders):
            entry = tarfile.TarInfo(f"./{folder}")
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(entry)
        for name in sorted(files):
            entry = tarfile.TarInfo(f"./{name}")
            entry.size, entry.mode = len(files[name]), 0o644
            tar.addfile(entry, io.BytesIO(files[name]))


def read_tar(stream: IO[bytes]) -> dict[str, bytes]:
    """The files of what :func:`write_tar` wrote; archives from elsewhere are read by ``build.archive_reader``."""
    with tarfile.open(fileobj=stream, mode="r:") as tar:
        members = {entry.name.removeprefix("./"): tar.extractfile(entry) for entry in tar if entry.isfile()}
        return {name: content.read() for name, content in members.items() if content is not None}


def write_archive(path: Path, files: Mapping[str, bytes], option: str = "-o", *, folder: bool = False) -> None:
    """Write an archive as a folder, or as a zip or a tar by its name; errors name the ``option`` that chooses it."""
    if folder:
        write_folder(path, files, option)
    elif path.suffix.lower() == ".zip":
        write_atomically(path, lambda stream: write_zip(stream, files), option)
    else:
        write_atomically(path, lambda stream: write_tar(stream, files), option)


# Silencing other people's libraries: what they print is for their authors, not for our users.

_STREAMS = (1, 2)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Discard warnings, logs, and whatever Python or C writes to stdout and stderr."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with (
            warnings.catch_warnings(),
            _closed_streams(),
            contextlib.redirect_stderr(io.StringIO()),
            contextlib.redirect_stdout(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def imported(name: str, error: type[UaccelError], takes: str, install: str) -> Any:
    """A module of an optional package, imported without a word when it is first needed; ``takes``: what needs it."""
    if sys.modules.get(name):
        return sys.modules[name]
    try:
        with quiet():
            return importlib.import_module(name)
    except ImportError as failure:
        raise error(f"{takes} fails ({failure}); {install}") from failure


@contextlib.contextmanager
def _closed_streams() -> Iterator[None]:
    """Redirect file descriptors 1 and 2, so that what C writes is discarded too; one that is closed stays closed."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    kept = {}
    try:
        for number in _STREAMS:
            with contextlib.suppress(OSError):
                kept[number] = os.dup(number)
                os.dup2(nowhere, number)
        yield
    finally:
        for number, copy in kept.items():
            os.dup2(copy, number)
            os.close(copy)
        os.close(nowhere)


# The package's own data: boards, firmware sources, templates, accelerators, models to try, pages.
#
# In a checkout these are folders beside ``python/``; a wheel has them inside the package as ``_data``.

DataFolder = Literal["boards", "firmware", "project_template", "accelerators", "accelerator_template", "models", "docs"]

_PACKAGE: Final = Path(__file__).resolve().parent.parent
_INSTALLED: Final = _PACKAGE / "_data"
_CHECKOUT: Final = _PACKAGE.parent.parent
_ELSEWHERE: Final = {"models": "tests/models"}  # Folders that a checkout has under another name.


def data_dir(name: DataFolder) -> Path:
    """The folder of that name, whether uaccel runs from a checkout or from a wheel."""
    folder = _INSTALLED / name if _INSTALLED.is_dir() else _CHECKOUT / _ELSEWHERE.get(name, name)
    if not folder.is_dir():
        raise UaccelError(
            f"this installation of uaccel lacks its folder '{name}' (looked at {folder}): reinstall uaccel"
        )
    return folder


ACCELERATOR_GROUP: Final = "uaccel.accelerators"  # The group of entry points by which other packages add accelerators.
ACCELERATOR_FILE: Final = "accelerator.py"


def accelerator_folders() -> dict[str, Path]:
    """The folders of uaccel's own accelerators, by name."""
    return {path.parent.name: path.parent for path in sorted(data_dir("accelerators").glob(f"*/{ACCELERATOR_FILE}"))}


def accelerator_entries() -> dict[str, list[EntryPoint]]:
    """The accelerators that other packages install, by name; one name may have several, and is then ambiguous."""
    found: dict[str, list[EntryPoint]] = {}
    for entry in entry_points(group=ACCELERATOR_GROUP):
        others = found.setdefault(entry.name, [])
        if all(other.value != entry.value for other in others):  # a package may be found twice
            others.append(entry)
    return found


def models() -> dict[str, Path]:
    """The models that come with uaccel, to try it with: files by their names, ``gesture`` the trained one."""
    return {file.stem: file for file in sorted(data_dir("models").glob("*.tflite"))}


def page(name: str) -> Path:
    """The path of a page of the documentation, for messages."""
    return data_dir("docs") / name
