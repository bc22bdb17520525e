"""Prepares all that a run needs of its model, as plain data: compiled now, or from the cache without a compiler.

Two entries are kept: what the compilation tells, by what it was asked, and the archive, by its digest. Nobody knows
before what a compilation reads. So an entry also lists that, and is valid while all of it would be found again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from importlib.metadata import entry_points
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from uaccel.build.archive_reader import Metadata
from uaccel.errors import AcceleratorError, UaccelError
from uaccel.frontend import bundle, files_beside
from uaccel.report.archived import told_of_archive
from uaccel.runner.firmware import Firmware
from uaccel.runner.options import CompileOptions
from uaccel.runner.request import RunRequest
from uaccel.util.cache import Cache, Entry, Key, file_digest, folder_digest, own_sources, programs_digest
from uaccel.util.files import read_tar, write_tar
from uaccel.util.option import shared
from uaccel.util.reads import READS, Reads, add_true, find_true, not_seen

if TYPE_CHECKING:
    from uaccel.pipeline import Compiled

KIND: Final = "model"
ARCHIVE_KIND: Final = "archive"
TOLD, ARCHIVE = "told.json", "archive.tar"
ACCELERATORS: Final = "uaccel.accelerators"  # The entry points of installed ones.


@dataclass(frozen=True)
class Prepared:
    """Holds firmware, and in ``told`` what its compilation tells (:func:`told_of`).

    ``key`` is None where nothing may be kept. ``reads``: what the compilation read (uaccel/util/reads.py)."""

    firmware: Firmware
    told: Mapping[str, Any]
    key: Key | None = None
    compile: Callable[[], Compiled] | None = None
    reads: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def compiled(self) -> Compiled:
        """The compilation itself; it is made now if only what it tells came from the cache."""
        assert self.compile is not None  # firmware that was brought here is not asked for it
        return self.compile()


def prepare(request: RunRequest, step: Callable[[str], None], cache: Cache | None) -> Prepared:
    """Takes the model from the cache, else compiles and keeps it."""
    key = key_of(request) if cache is not None else None
    if cache is not None and key is not None:
        entry = find_true(cache, key)
        if entry is not None:
            return _from(entry, key, cache, request, step)
    return _made(request, step, cache, key)


def require_offload(request: RunRequest, prepared: Prepared) -> None:
    """Raises an error if accelerators compute nothing at all, unless that is allowed."""
    if prepared.told["missing_offload"] and not request.engines.allow_none:
        raise AcceleratorError(prepared.told["missing_offload"])


def _made(request: RunRequest, step: Callable[[str], None], cache: Cache | None, key: Key | None) -> Prepared:
    from uaccel.runner.compiled import pack_compiled

    with Reads() as reads:
        compiled = request.what().compiled(step)
        firmware = pack_compiled(compiled)
        told = told_of(compiled, request, firmware.files())
    # nothing is kept of a file that changes meanwhile, or where something was read that leaves no trace
    unseen = not_seen(reads.rows) if key is not None else ""
    if cache is not None and unseen:
        step(f"keep nothing, as nobody can know {unseen}")
    may_keep = key is not None and not unseen and compiled.model.digest == _digest(request.model)
    prepared = Prepared(firmware, told, key if may_keep else None, lambda: compiled, reads.rows)
    if cache is not None and prepared.key is not None:
        about = f"{firmware.name} for {request.board.name}"
        text = json.dumps({"told": told, "firmware": firmware.to_json()})
        add_true(cache, prepared.key, {TOLD: text.encode()}, about, reads.rows)
        stream = BytesIO()
        write_tar(stream, firmware.files())
        cache.add(_archive_key(firmware.archive), {ARCHIVE: stream.getvalue()}, about)
    return prepared


def _from(entry: Entry, key: Key, cache: Cache, request: RunRequest, step: Callable[[str], None]) -> Prepared:
    data, reads = entry.json(TOLD), entry.json(READS)
    entry.close()

    def files() -> Mapping[str, bytes]:
        held = cache.find(_archive_key(data["firmware"]["archive"]))
        if held is not None:
            return read_tar(BytesIO(held.read(ARCHIVE)))
        from uaccel.runner.compiled import archive_of

        return archive_of(prepared.compiled)

    prepared = Prepared(
        Firmware.from_json(data["firmware"], files), data["told"], key, lambda: request.what().compiled(step), reads
    )
    return prepared


def told_of(compiled: Compiled, request: RunRequest, files: Mapping[str, bytes]) -> dict[str, Any]:
    """Returns what runs and pages tell of a compilation, as data for JSON: what its archive's files tell, and more."""
    job, told = request.what(), told_of_archive(Metadata.of(files), files.get)
    given = {"file": request.model.name, "bytes": request.model.stat().st_size if request.model.is_file() else None}
    told["structure"]["source"] |= given
    return told | {
        "command": replace(job, options=replace(job.options, workspace_io=False)).command("run"),
        "missing_offload": request.engines.missing_offload(compiled),
    }


def key_of(request: RunRequest) -> Key | None:
    """Returns a key of all that a compilation depends on; None where a file cannot be read.

    In that case the compilation itself says what is wrong."""
    files = request.engines.file, request.engines.records, request.state_from
    try:
        return (
            Key(KIND)
            .add("uaccel", own_sources())
            .add("variables", programs_digest(()))
            .add("model", [str(request.model), file_digest(bundle.outer(request.model))])
            .add("weights", [[str(path), file_digest(path)] for path in files_beside(request.model)])
            .add("board", [request.board.name, request.board_file, file_digest(request.board.file)])
            .add("port", [folder_digest(folder) for folder in request.board.port.sources])
            .add("accelerators", [_accelerator(name) for name in request.engines.accelerators])
            .add("files", [file_digest(path) for path in files if path])
            .add("options", [shared(request, CompileOptions), asdict(request.engines), asdict(request.emit)])
            .add("memory", request.io_in_workspace)
        )
    except (OSError, ValueError, UaccelError):
        return None


def _accelerator(name: str) -> list[str]:
    """Returns where an accelerator's sources lie and what they hold; bundled ones are part of uaccel."""
    if "/" in name or name.endswith(".py") or name in (".", ".."):
        path = Path(name).resolve()
        folder = path.parent if path.suffix == ".py" else path
        return [str(folder), folder_digest(folder)]
    found = []
    for entry in entry_points(group=ACCELERATORS, name=name):
        spec = find_spec(entry.module.partition(".")[0])
        places = [Path(place) for place in spec.submodule_search_locations or ()] if spec is not None else []
        files = [Path(spec.origin)] if spec is not None and spec.origin is not None and not places else []
        found += [entry.value, *map(folder_digest, places), *map(file_digest, files)]
    return [name, *found]


def _digest(model: Path) -> str:
    return bundle.digest(model) if bundle.is_inside(model) else file_digest(model)


def _archive_key(digest: str) -> Key:
    return Key(ARCHIVE_KIND).add("archive", digest)
