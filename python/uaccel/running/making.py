"""Firmware of an archive for a board: built in a folder, or taken from the cache, where the same was built before."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, Protocol

from uaccel.board import Board
from uaccel.cache import Cache, Entry, Key, file_digest, folder_digest, programs_digest
from uaccel.errors import UaccelError
from uaccel.project.build import NATIVE, build_project, firmware_of
from uaccel.project.create import create_project
from uaccel.project.devices import FOLDER as DEVICES
from uaccel.project.footprint import Footprint, footprint
from uaccel.project.linked import Linked, Row
from uaccel.project.sizes import Sizes
from uaccel.resources import data_dir
from uaccel.running.firmware import Firmware

KIND: Final = "firmware"
FOOTPRINT: Final = "footprint.json"


class Source(Protocol):
    """Where firmware comes from."""

    footprint: Footprint | None
    """Of what was made without a hook after every layer."""

    def firmware(self, *, observe: bool = False) -> Path: ...

    def close(self) -> None: ...


class Maker:
    """``folder`` becomes the project where something must be built. Without a cache all is built; a project that its
    user keeps wants none, so that everything is in it."""

    def __init__(
        self, firmware: Firmware, board: Board, folder: Path, progress: Callable[[str], None], cache: Cache | None
    ) -> None:
        self._firmware = firmware
        self._board = board
        self._folder = folder
        self._progress = progress
        self._cache = cache
        self._created = False
        self._entries: list[Entry] = []
        self.footprint: Footprint | None = None

    def firmware(self, *, observe: bool = False) -> Path:
        """The program, or the ELF file. With ``observe`` its layers can be read."""
        kept = self.kept(observe=observe)
        if kept is not None:
            return kept
        if not self._created:
            self._created = True
            self._progress("create the project")
            create_project(self._firmware.files(), self._board, self._folder)
        self._progress(f"build the firmware{' with a hook after every layer' if observe else ''}")
        count = getattr(self._progress, "count", lambda done, total: None)
        build = build_project(self._folder, observe=observe, count=count, cache=self._cache)
        taken = self._measured(build)
        if not observe:
            self.footprint = taken
        key = self._key(observe) if self._cache is not None else None
        if self._cache is not None and key is not None:
            self._keep(self._cache, key, build, taken)
        return firmware_of(build)

    def kept(self, *, observe: bool = False) -> Path | None:
        """The same from the cache; None where it was not built before."""
        key = self._key(observe) if self._cache is not None else None
        entry = self._cache.find(key) if self._cache is not None and key is not None else None
        return None if entry is None else self._from(entry)

    def close(self) -> None:
        """What was taken from the cache may be removed from now on."""
        for entry in self._entries:
            entry.close()

    def _from(self, entry: Entry) -> Path:
        self._entries.append(entry)
        build = entry.path("build")
        if self.footprint is None:
            self.footprint = _footprint_of(entry.json(FOOTPRINT))
        made = firmware_of(build)
        made.chmod(0o755)
        return made

    def _measured(self, build: Path) -> Footprint:
        wanted = self._firmware
        return footprint(self._folder, build, wanted.name, arena=wanted.arena, io=wanted.io)

    def _keep(self, cache: Cache, key: Key, build: Path, taken: Footprint) -> None:
        made = firmware_of(build)
        devices = (self._folder / DEVICES).rglob("*")
        files: dict[str, bytes | Path] = {
            str(path.relative_to(self._folder)): path for path in sorted(devices) if path.is_file()
        }
        files |= {f"build/{made.name}": made, FOOTPRINT: json.dumps(asdict(taken)).encode()}
        entry = cache.add(key, files, f"{self._firmware.name} for {self._board.name}")
        if entry is not None:
            self._entries.append(entry)

    def _key(self, observe: bool) -> Key | None:
        """None where a tool is missing: then building says what to install."""
        board, toolchain = self._board, self._board.cpu.toolchain
        compilers = ["cc", "gcc", "clang"] if toolchain == NATIVE else [f"{toolchain}-{tool}" for tool in _TOOLS]
        try:
            return (
                Key(KIND)
                .add("archive", self._firmware.archive)
                .add("board", [board.name, file_digest(board.file)])
                .add("port", [folder_digest(folder) for folder in board.port.sources])
                .add("sources", [folder_digest(data_dir("firmware")), folder_digest(data_dir("project_template"))])
                .add("programs", programs_digest([*compilers, "cmake", "ninja", "make"]))
                .add("memory", [self._firmware.arena, self._firmware.io])
                .add("observe", observe)
            )
        except (OSError, UaccelError):
            return None


_TOOLS: Final = ("gcc", "objcopy", "objdump", "ld")


def _footprint_of(data: dict[str, Any]) -> Footprint:
    """From what :func:`dataclasses.asdict` made of it."""
    linked = data["linked"]
    if linked is not None:
        linked = Linked(*(tuple(Row(**row) for row in linked[memory]) for memory in ("flash", "ram")))
    return Footprint(**data | {"session": Sizes(**data["session"]), "linked": linked})
