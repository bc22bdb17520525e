"""Finds accelerators by name and by path, and writes the folder of a new one."""

from __future__ import annotations

import hashlib
import importlib.util
import re
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, Final

from uaccel.accelerator.description import Accelerator
from uaccel.accelerator.vendor import FAILURES, described, staying, validate
from uaccel.errors import AcceleratorError, need
from uaccel.util import incoming
from uaccel.util.cache import folder_digest
from uaccel.util.files import ACCELERATOR_FILE, accelerator_entries, accelerator_folders, data_dir
from uaccel.util.reads import Reads, add_foreign, add_to_open, modules_of, seen_only, state, still_true
from uaccel.util.text import did_you_mean, is_reserved

# Accelerators by name or by path: bundled ones, ones that other packages install, and a user's own folder.

VARIABLE: Final = "ACCELERATOR"
# Folders whose modules are being imported now, each because the one before it builds on it.
_importing: Final[ContextVar[tuple[Path, ...]]] = ContextVar("importing", default=())


# What was read when a package was imported last, by the package's name (uaccel/util/reads.py): its own files, those of
# accelerators that it builds on, and what its code asked for.
_READ: Final[dict[str, Mapping[str, str]]] = {}


def load_accelerators(names: Sequence[str]) -> list[Accelerator]:
    """Loads the named accelerators, in this order, which is the order of preference."""
    found: dict[str, Accelerator] = {}
    for name in names:
        accelerator = load_accelerator(name)
        other = found.get(accelerator.name)
        if other is not None and other.folder == accelerator.folder:
            raise AcceleratorError(f"accelerator '{name}' is given twice; name it once")
        if other is not None:
            raise _clash(
                accelerator.name, str(other.folder / ACCELERATOR_FILE), str(accelerator.folder / ACCELERATOR_FILE)
            )
        found[accelerator.name] = accelerator
    units = [accelerator.name for accelerator in found.values() if accelerator.instructions]
    if len(units) > 1:
        raise AcceleratorError(f"{' and '.join(units)} are instructions of the core, and it has one unit; name one")
    return list(found.values())


def load_accelerator(name: str) -> Accelerator:
    """Loads an accelerator by the name of one that is bundled or installed, or the path of a folder or its file."""
    if is_path(name):
        return from_folder(_folder_of(Path(name)))
    bundled, installed = accelerator_folders(), accelerator_entries()
    origins = [str(bundled[name] / ACCELERATOR_FILE)] if name in bundled else []
    origins += [_origin(entry) for entry in installed.get(name, ())]
    if len(origins) > 1:
        raise _clash(name, *origins[:2])
    if name in bundled:
        return from_folder(bundled[name])
    if name in installed:
        return _from_entry_point(installed[name][0])
    known = sorted({*bundled, *installed})
    raise AcceleratorError(
        f"no accelerator '{name}'{did_you_mean(name, known)}; there are: {', '.join(known) or 'none'}; "
        "or give the path of its folder (./NAME)"
    )


def is_path(name: str) -> bool:
    """Whether a name is a path."""
    return "/" in name or name.endswith(".py") or name in (".", "..")


def _clash(name: str, one: str, other: str) -> AcceleratorError:
    return AcceleratorError(f"two accelerators are called '{name}': {one} and {other}; rename one of them")


def _origin(entry: EntryPoint) -> str:
    package = entry.dist.name if entry.dist is not None else "an installed package"
    return f"{package} ({entry.value})"


def _folder_of(path: Path) -> Path:
    folder = path.parent if path.name == ACCELERATOR_FILE else path
    if not folder.is_dir():
        raise AcceleratorError(f"no folder {folder}; wanted an accelerator's, as 'uaccel new accelerator NAME' writes")
    if not (folder / ACCELERATOR_FILE).is_file():
        raise AcceleratorError(f"{folder} is no accelerator's folder: it has no {ACCELERATOR_FILE}")
    return folder.resolve()


def module_of(name: str) -> Any:
    """Imports the module that describes an accelerator, by its name or its folder's path, for a variant of it."""
    if is_path(name):
        return _module_in(_folder_of(Path(name)))
    bundled = accelerator_folders()
    if name in bundled and name not in accelerator_entries():
        return _module_in(bundled[name])
    load_accelerator(name)  # says what is wrong
    return sys.modules[accelerator_entries()[name][0].module]


def from_folder(folder: Path) -> Accelerator:
    """The accelerator that a folder describes; its modules may import each other relatively."""
    return _checked(getattr(_module_in(folder), VARIABLE, None), folder, folder / ACCELERATOR_FILE)


def _module_in(folder: Path) -> Any:
    """Imports a folder's module as part of a package of its own. The package's name has a digest of the folder and its
    content, so that a changed folder is imported anew. If something else that it read has changed, the package is
    forgotten first."""
    name, content = re.sub(r"\W", "_", folder.name), folder_digest(folder)
    package = f"uaccel_accelerator_{name}_{hashlib.sha256(f'{folder} {content}'.encode()).hexdigest()[:8]}"
    importing = _importing.get()
    if folder in importing:
        raise AcceleratorError(
            f"{folder / ACCELERATOR_FILE} builds on itself; build on an accelerator that does not need this one"
        )

    def load() -> Any:
        if package not in sys.modules:
            parent = types.ModuleType(package)
            parent.__path__ = [str(folder)]
            sys.modules[package] = parent
        return importlib.import_module(f"{package}.{Path(ACCELERATOR_FILE).stem}")

    token = _importing.set((*importing, folder))
    try:
        return _recorded(package, folder, load)
    except AcceleratorError as error:  # of another one that this one builds on
        raise AcceleratorError(f"{folder / ACCELERATOR_FILE}: {error}") from error
    except FAILURES as error:
        raise AcceleratorError(f"{folder / ACCELERATOR_FILE} cannot be imported: {described(error, folder)}") from error
    finally:
        _importing.reset(token)


def _recorded(package: str, folder: Path, load: Callable[[], Any]) -> Any:
    """Imports a package anew if something that it read has changed, and tells those who record what it reads."""
    if not still_true(seen_only(_READ.get(package, {}))):
        _forget(package)
    add_foreign(folder)
    if package not in _READ:
        with Reads() as read, staying():
            value = load()
        read.add(modules_of(package))
        _READ[package] = read.rows
    else:
        with staying():
            value = load()
    add_to_open(_READ[package])
    return value


def _forget(package: str) -> None:
    """Removes a package's modules, and those of other places that they import, since something of it has changed."""
    changed = {row.partition(" ")[2] for row, known in _READ.pop(package).items() if state(row) != known}
    for name, module in list(sys.modules.items()):
        if name == package or name.startswith(f"{package}.") or getattr(module, "__file__", None) in changed:
            del sys.modules[name]


def _from_entry_point(entry: EntryPoint) -> Accelerator:
    try:
        spec = importlib.util.find_spec(entry.module.partition(".")[0])
        places = spec.submodule_search_locations if spec is not None else None
        folder = Path(places[0] if places else getattr(spec, "origin", None) or ".")
        value: Any = _recorded(entry.module, folder, entry.load)
        module = sys.modules[entry.module]
    except FAILURES as error:
        raise AcceleratorError(
            f"accelerator '{entry.name}' of {_origin(entry)} cannot be imported: {described(error, _home(error))}"
        ) from error
    file = Path(module.__file__ or entry.module)
    accelerator = _checked(value, file.parent, file)
    if accelerator.name != entry.name:
        raise AcceleratorError(
            f"{file}: the accelerator is called '{accelerator.name}', "
            f"and {_origin(entry)} installs it as '{entry.name}'; use one name"
        )
    return accelerator


def _checked(value: Any, folder: Path, file: Path) -> Accelerator:
    if not isinstance(value, Accelerator):
        seen = "defines none" if value is None else f"has {type(value).__name__} under that name"
        raise AcceleratorError(f"{file} must define {VARIABLE} = Accelerator(...), and {seen}")
    accelerator = value if value.folder != Path() else replace(value, folder=folder)
    validate(accelerator, file)
    return accelerator


def _home(error: BaseException) -> Path:
    """The folder of the file that an error comes from."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return Path(trace.tb_frame.f_code.co_filename).parent if trace is not None else Path()


# A starting point for an accelerator of one's own: a copy of a folder that works, under another name.

# The name of the accelerator in ``accelerator_template/``, in files' names and in their content.
TEMPLATE: Final = "starter"
LONGEST: Final = 32  # Characters of a name.
# Headers of C: the driver's header is named by the accelerator, and would be found in place of these.
_HEADERS: Final = (
    *("assert", "complex", "ctype", "errno", "fenv", "float", "inttypes", "iso646", "limits", "locale", "math"),
    *("setjmp", "signal", "stdarg", "stdbool", "stddef", "stdint", "stdio", "stdlib", "string", "tgmath", "time"),
    *("wchar", "wctype"),
)


def write_starter(name: str, folder: Path) -> list[Path]:
    """Writes a new folder with all that an accelerator has; returns its files, relative to it."""
    require_name(name)
    need(not folder.exists(), f"{folder} exists already; choose another name, or remove it", AcceleratorError)
    written = []
    try:
        for path, content in starter_files(name).items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)
            written.append(path)
    except OSError as error:
        raise AcceleratorError(f"{folder} cannot be written: {error.strerror}; name another folder") from error
    return written


def require_name(name: str) -> None:
    """Raises AcceleratorError for a name that cannot be part of names in C and of files."""
    if not re.fullmatch(rf"[a-z][a-z0-9_]{{0,{LONGEST - 1}}}", name):
        raise AcceleratorError(
            f"{name!r} cannot name an accelerator; wanted lower-case letters, digits and underscores, "
            f"a letter first, {LONGEST} at most"
        )
    if name in (*_HEADERS, "cpu") or name.startswith("uaccel") or is_reserved(name):
        raise AcceleratorError(f"{name!r} cannot name an accelerator: it has a meaning already; choose another name")
    if name in accelerator_folders():
        raise AcceleratorError(f"there is an accelerator {name!r} already; choose another name")


def starter_files(name: str) -> dict[Path, bytes]:
    """The files of a new accelerator by path, in the order of the paths."""
    template = data_dir("accelerator_template")
    renamed = {
        TEMPLATE: name,
        TEMPLATE.capitalize(): "".join(part.capitalize() for part in name.split("_")),
        TEMPLATE.upper(): name.upper(),
    }
    files = {}
    for path in sorted(path for path in template.rglob("*") if path.is_file() and "__pycache__" not in path.parts):
        content = incoming.read_bytes(path)
        if path.suffix != ".tflite":
            content = _replaced(content.decode(), renamed).encode()
        files[Path(_replaced(str(path.relative_to(template)), renamed))] = content
    return files


def _replaced(text: str, words: dict[str, str]) -> str:
    for word, other in words.items():
        text = text.replace(word, other)
    return text
