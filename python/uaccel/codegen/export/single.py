"""Exports format ``single``: the model as one C file and one header."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from uaccel.codegen.export.base import Files, Format, Rest
from uaccel.codegen.export.c import by_hand
from uaccel.codegen.export.library import Export, Library
from uaccel.codegen.header import INCLUDE
from uaccel.errors import InternalError

_INCLUDE: Final = re.compile(r'^[ \t]*#[ \t]*include[ \t]+(?:"([^"]+)"|(UACCEL_BODY))[^\n]*\n', re.MULTILINE)
_BODY: Final = re.compile(r'^[ \t]*#[ \t]*define UACCEL_BODY "([^"]+)"', re.MULTILINE)
_GUARD: Final = re.compile(r"^#ifndef (\w+_H)\n#define \1\n", re.MULTILINE)


def _rest(library: Library, _: Files) -> Rest:
    """The model's sources one after the other, with headers in the places of their includes. Drivers stay files of
    their own."""
    (export,) = library.models
    name = export.name
    joined = Joined(export.headers, keep={export.names.header})
    text = "\n".join(joined.expanded(source) for source in export.generated.sources.values())
    contents = [
        (f"{name}.h", "the interface"),
        (f"{name}.c", "all of the model: its layers, its constants, kernels"),
        *([("*.c", "beside it the drivers of its accelerators")] if export.engines else []),
    ]
    return by_hand(export, {f"{name}.c": text, **_drivers(export)}, contents)


ALONE: Final = "is one model in one file"
FORMAT = Format(_rest, include="", src=None, example="", apart=True, alone=ALONE, assembles=False)


def _drivers(export: Export) -> Files:
    """The drivers' sources, and the headers that these and the example include."""
    if not export.engines:
        return {}
    sources = {name: text for name, text in export.sources.items() if name not in export.generated.sources}
    found: Files = {}
    wanted = ["uaccel_kernel.h", "uaccel_hal.h", *(name for text in sources.values() for name in INCLUDE.findall(text))]
    while wanted:
        name = wanted.pop()
        if name in export.headers and name not in found:
            found[name] = export.headers[name]
            wanted += INCLUDE.findall(found[name])
    return sources | found


class Joined:
    """Replaces each ``#include`` by the header's text, as a preprocessor would.

    A header with a guard is put in once; one without, each time. ``#include UACCEL_BODY`` includes the file that the
    last ``#define UACCEL_BODY`` before it names, so definitions are followed in the order of the text. Headers in
    ``keep`` stay includes.
    """

    def __init__(self, headers: Mapping[str, str], keep: set[str]) -> None:
        self._headers = headers
        self._keep = keep
        self._seen: set[str] = set()
        self._body = ""

    def expanded(self, text: str) -> str:
        """The text with all that it includes."""
        pieces, at = [], 0
        for match in _INCLUDE.finditer(text):
            before = text[at : match.start()]
            pieces.append(before)
            self._remember(before)
            pieces.append(self._included(match))
            at = match.end()
        rest = text[at:]
        self._remember(rest)
        return "".join([*pieces, rest])

    def _remember(self, text: str) -> None:
        for match in _BODY.finditer(text):
            self._body = match[1]

    def _included(self, match: re.Match[str]) -> str:
        name = match[1] or self._body
        if name in self._keep:
            first = name not in self._seen
            self._seen.add(name)
            return match[0] if first else ""
        if name not in self._headers:
            raise InternalError(f"the sources of an export include {name}, which is not among its headers")
        text = self._headers[name]
        if _GUARD.search(text):
            if name in self._seen:
                return ""
            self._seen.add(name)
        return self.expanded(text)
