"""From an archive and this template to a project."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Iterator

from .archive import Archive
from .errors import InvalidParamsError, ServerError
from .files import read

ARCHIVE_NAME = "model.tar"
"""A project has it and a template has not."""
OVERLAY = "templates/project/"
"""What the archive holds for the project itself, by path in it: what its board needs."""
ACCELERATORS = "project/accelerators/"
"""What it holds of the model's accelerators: their drivers and models, for ``accelerators/`` of the project."""
UNFIT = "templates/no_project.txt"
"""Where it says why it holds nothing of that."""
OVERLAY_FOLDERS = ("board/", "firmware/")
FIRMWARE_PARTS = ("include", "runtime")
LEFT_OUT = shutil.ignore_patterns("__pycache__", "build", "build-*", ".*")


def find_firmware(template: Path, standalone_crt_dir: Path) -> Path:
    """The client's word counts where it leads to uaccel's firmware, and not to TVM's C runtime."""
    for folder in (standalone_crt_dir, template.parent / "firmware", template / "firmware"):
        if (folder / "include" / "uaccel_model.h").is_file():
            return folder
    raise ServerError(f"no firmware sources: neither {standalone_crt_dir} nor {template.parent / 'firmware'} has them")


def overlay_of(archive: Archive, board: str | None, folder: str | None) -> dict[str, bytes]:
    """What the board adds to a project, by path in it: from ``folder``, else from the archive."""
    if folder is not None:
        return files_below(Path(folder))
    own = archive.metadata.get("uaccel")
    made_for = own.get("board") if isinstance(own, dict) else None
    found = {name[len(OVERLAY) :]: data for name, data in archive.files.items() if name.startswith(OVERLAY)}
    strangers = [name for name in found if not name.startswith(OVERLAY_FOLDERS)]
    if strangers:
        raise ServerError(
            f"archive {archive.path}: {OVERLAY}{strangers[0]} is not for a board; wanted board/ or firmware/"
        )
    if "board/board.json" not in found:
        why = f": {archive.files[UNFIT].decode(errors='replace')}" if UNFIT in archive.files else ""
        raise ServerError(
            f"archive {archive.path} holds nothing for a board{why}; make it with 'uaccel compile --board B' for a "
            "board that the model fits on, or the project with 'uaccel create --board B'"
        )
    if board not in (None, made_for):
        raise ServerError(
            f"archive {archive.path} is for board {made_for}, not {board}; compile the model for that board, "
            f"or make the project with 'uaccel create --board {board}'"
        )
    return found


def files_below(folder: Path) -> dict[str, bytes]:
    """Of a folder that is not for a board nothing is read: it may be any, and of any size."""
    if not folder.is_dir():
        raise ServerError(f"board_files {folder} is no folder")
    strangers = [entry.name for entry in sorted(folder.iterdir()) if f"{entry.name}/" not in OVERLAY_FOLDERS]
    if strangers or not (folder / "board" / "board.json").is_file():
        seen = f"{strangers[0]!r} is not for a board" if strangers else "there is no board/board.json in it"
        raise InvalidParamsError(f"generate_project: option board_files: {folder}: {seen}; wanted board/ and firmware/")
    paths = (path for path in sorted(folder.rglob("*")) if not path.is_dir())
    return {path.relative_to(folder).as_posix(): read(path) for path in paths}


def fill_project(project: Path, template: Path, firmware: Path, archive: Archive, overlay: dict[str, bytes]) -> None:
    """The folder appears with all its files, or not at all."""
    if project.exists() and (not project.is_dir() or any(project.iterdir())):
        raise ServerError(f"{project} exists already; name a folder that does not")
    existed = project.exists()
    project.mkdir(parents=True, exist_ok=True)
    try:
        copy_folder(template, project, project)
        for part in FIRMWARE_PARTS:
            copy_folder(firmware / part, project / "firmware" / part)
        for name, data in contents(archive, overlay):
            target = project / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.exists():
                raise ServerError(f"what the board adds would replace {name} of the template")
            target.write_bytes(data)
        shutil.copyfile(archive.path, project / ARCHIVE_NAME)
    except BaseException:
        clear(project, itself=not existed)
        raise


def contents(archive: Archive, overlay: dict[str, bytes]) -> Iterator[tuple[str, bytes]]:
    yield from overlay.items()
    for name, data in archive.files.items():
        if name.startswith(ACCELERATORS):
            yield name[len("project/") :], data
        elif not name.startswith(OVERLAY):
            yield f"model/{name}", data


def copy_folder(source: Path, target: Path, project: Path | None = None) -> None:
    """What is not a source stays behind, and so does a project that is made inside of its template."""
    left_out = LEFT_OUT(str(source), [entry.name for entry in source.iterdir()])
    for entry in sorted(source.iterdir()):
        if entry.name in left_out or (project is not None and entry.resolve() == project.resolve()):
            continue
        if entry.is_dir():
            copy_folder(entry, target / entry.name, project)
        else:
            target.mkdir(parents=True, exist_ok=True)
            (target / entry.name).write_bytes(read(entry))


def clear(folder: Path, *, itself: bool) -> None:
    for entry in folder.iterdir():
        if entry.is_dir():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink()
    if itself:
        folder.rmdir()
