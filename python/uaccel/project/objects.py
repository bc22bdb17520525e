"""Objects of C sources, kept by content: what was compiled for one firmware serves every other that compiles the same.

A key holds the compiler, its options, the source with all that it may include, and who includes what. Folders of
headers count by what is found in them, and uaccel's macros only where the source mentions them. So the session server
is compiled once for all accelerators, and mostly once for firmware with and without a hook after every layer.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from uaccel.cache import Cache, Entry, Key, programs_digest
from uaccel.project.callgraph import SUFFIX
from uaccel.project.sources import Sources

KIND: Final = "object"
OBJECT, GRAPH, TOLD = "object", "graph", "told.json"
PLACE: Final = "/uaccel-project"
"""What stands for the project's folder in what is kept."""
_COMMAND: Final = re.compile(r" -o (\S+) -c (\S+)$")
_MACRO: Final = re.compile(r"-D(UACCEL_\w+)")
_ALONE: Final = re.compile(r"-(g|save-temps|fprofile|fplugin|-coverage|flto|i[a-z]+|B|W[ap],|X|wrapper|specs=.*/)|@")
"""Options by which a compiler reads or writes what is not known here."""


@dataclass(frozen=True)
class Compilation:
    """One call of a compiler, in the build folder. ``command`` is for a shell."""

    command: str
    source: Path
    made: Path

    @classmethod
    def of(cls, command: str, build: Path) -> Compilation | None:
        """None where the command is another."""
        match = _COMMAND.search(command)
        return None if match is None else cls(command, Path(match[2]), build / match[1])


def in_shell(command: str, build: Path) -> bool:
    """Whether it did what it should."""
    words = ["/bin/sh", "-c", command]
    return subprocess.run(words, cwd=build, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == 0


class Objects:
    """Those of one build."""

    def __init__(self, cache: Cache, project: Path, build: Path) -> None:
        self._cache = cache
        self._project = project
        self._build = build
        self._sources = Sources(project)

    def make(self, wanted: Compilation) -> bool:
        """Taken, or compiled and kept; False where the compiler fails."""
        wanted.made.parent.mkdir(parents=True, exist_ok=True)
        words = shlex.split(wanted.command)
        folders = [Path(word[2:]) for word in words if word.startswith("-I")]
        key = self._key(words, wanted, folders)
        if key is not None and self._taken(key, wanted, folders):
            return True
        made = in_shell(wanted.command, self._build)
        if made and key is not None:
            self._keep(key, wanted)
        return made

    def _key(self, words: list[str], wanted: Compilation, folders: list[Path]) -> Key | None:
        """None for an object that depends on more than is known."""
        compiler, *options = words
        for flag in ("-MT", "-MF", "-o", "-c"):
            at = options.index(flag) if flag in options else len(options)
            del options[at : at + 2]
        options = [word for word in options if not word.startswith("-I")]
        if any(_ALONE.match(word) or str(self._project) in word for word in options):
            return None
        try:
            closure = self._sources.closure(wanted.source, folders)
        except (OSError, ValueError):  # a header beyond the project
            return None
        if closure is None:
            return None
        counted = [word for word in options if _counts(word, options, closure.names)]
        key = Key(KIND).add("compiler", programs_digest([compiler])).add("options", counted)
        return key.add("source", wanted.source.name).add("edges", closure.edges).add("texts", closure.texts)

    def _taken(self, key: Key, wanted: Compilation, folders: list[Path]) -> bool:
        entry = self._cache.find(key)
        if entry is None:
            return False
        try:
            here = frozenset[str]().union(*map(self._sources.headers, folders))
            if not here.isdisjoint(entry.json(TOLD)["system"]):
                return False  # one of these may take the place of a header of the compiler's
            wanted.made.write_bytes(entry.read(OBJECT))
            if entry.has(GRAPH):
                self._graph(wanted).write_bytes(self._moved(entry))
            return True
        finally:
            entry.close()

    def _moved(self, entry: Entry) -> bytes:
        return entry.read(GRAPH).replace(PLACE.encode(), str(self._project).encode())

    def _keep(self, key: Key, wanted: Compilation) -> None:
        here, content = str(self._project).encode(), wanted.made.read_bytes()
        rules = wanted.made.with_name(wanted.made.name + ".d")
        if here in content or not rules.is_file():
            return
        read = [Path(word) for word in shlex.split(rules.read_text().replace("\\\n", " "))[1:]]
        beyond = sorted({path.name for path in read if path.is_absolute() and not path.is_relative_to(self._project)})
        files = {OBJECT: content, TOLD: json.dumps({"system": beyond}).encode()}
        if self._graph(wanted).is_file():
            files[GRAPH] = self._graph(wanted).read_bytes().replace(here, PLACE.encode())
        entry = self._cache.add(key, dict(files), wanted.source.name)
        if entry is not None:
            entry.close()

    def _graph(self, wanted: Compilation) -> Path:
        return wanted.made.with_suffix(SUFFIX)


def _counts(word: str, options: list[str], names: frozenset[str] | None) -> bool:
    """Macros of uaccel count where the source mentions them, or another macro does."""
    match = _MACRO.match(word)
    if match is None or names is None or match[1] in names:
        return True
    return any(match[1] in other for other in options if other is not word)
