"""What a C source depends on: everything that it may include, and the names that it mentions, read without a compiler.

More is found than one compilation includes, since conditions are not evaluated. That makes a key too narrow at worst.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_INCLUDE: Final = re.compile(rb'^[ \t]*#[ \t]*(?:include|import)[ \t]*(["<])([^">\n]+)[">]', re.MULTILINE)
_UNKNOWN: Final = re.compile(
    rb"__(?:DATE__|TIME__|TIMESTAMP__|has_include)|\bincbin\b|^[ \t]*#[ \t]*(?:embed\b|include_next\b"
    rb'|include[ \t]+[^"<\s])|^\s*\.include\b',
    re.MULTILINE,
)
_OWN: Final = re.compile(rb"\bUACCEL_\w+")
_KNOWN: Final[dict[str, Text]] = {}
"""By content: what the texts of this process hold."""


@dataclass(frozen=True)
class Text:
    """A source or a header. ``includes``: the quotation mark and the name of each; ``names``: those of uaccel's macros;
    ``pastes``: it may make names of parts; ``plain``: nothing else is read by it, and no clock."""

    digest: str
    includes: tuple[tuple[str, str], ...]
    names: frozenset[str]
    pastes: bool
    plain: bool


@dataclass(frozen=True)
class Closure:
    """``edges``: who includes what by which name, by paths in the project; an empty path where the compiler's own
    headers have it. ``texts``: digests by path. ``names``: the macros of uaccel that matter; None for all."""

    edges: tuple[tuple[str, str, str], ...]
    texts: tuple[tuple[str, str], ...]
    names: frozenset[str] | None


class Sources:
    """Those of one project, each read once."""

    def __init__(self, project: Path) -> None:
        self.project = project
        self._texts: dict[Path, Text] = {}
        self._found: dict[tuple[Path, str, str, tuple[Path, ...]], Path | None] = {}
        self._headers: dict[Path, frozenset[str]] = {}

    def closure(self, source: Path, folders: Sequence[Path]) -> Closure | None:
        """With these folders to look for headers in, in that order; None where it cannot be known."""
        seen, todo, edges, places = {source}, [source], [], tuple(folders)
        while todo:
            one = todo.pop()
            text = self._text(one)
            if not text.plain:
                return None
            for mark, name in text.includes:
                found = self._find(one.parent, mark, name, places)
                edges.append((self._named(one), mark + name, "" if found is None else self._named(found)))
                if found is not None and found not in seen:
                    seen.add(found)
                    todo.append(found)
        texts = {self._named(path): self._text(path) for path in seen}
        pastes = any(text.pastes for text in texts.values())
        names = None if pastes else frozenset[str]().union(*(text.names for text in texts.values()))
        return Closure(tuple(sorted(edges)), tuple(sorted((n, t.digest) for n, t in texts.items())), names)

    def headers(self, folder: Path) -> frozenset[str]:
        """The names of all files that may be included from a folder."""
        if folder not in self._headers:
            self._headers[folder] = frozenset(path.name for path in folder.rglob("*"))
        return self._headers[folder]

    def _text(self, path: Path) -> Text:
        if path not in self._texts:
            self._texts[path] = _read(path.read_bytes())
        return self._texts[path]

    def _find(self, beside: Path, mark: str, name: str, folders: tuple[Path, ...]) -> Path | None:
        key = (beside, mark, name, folders)
        if key not in self._found:
            places = [folder / name for folder in ((beside, *folders) if mark == '"' else folders)]
            self._found[key] = next((path.resolve() for path in places if path.is_file()), None)
        return self._found[key]

    def _named(self, path: Path) -> str:
        return path.relative_to(self.project).as_posix()


def _read(data: bytes) -> Text:
    digest = hashlib.sha256(data).hexdigest()
    if digest not in _KNOWN:
        _KNOWN[digest] = Text(
            digest,
            tuple((mark.decode(), name.decode("utf-8", "replace")) for mark, name in _INCLUDE.findall(data)),
            frozenset(name.decode() for name in _OWN.findall(data)),
            b"##" in data,
            _UNKNOWN.search(data) is None,
        )
    return _KNOWN[digest]
