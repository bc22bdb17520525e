"""Who calls whom and with how large a frame, as GCC says it beside each object (``-fcallgraph-info=su``)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

_NODE: Final = re.compile(r'^node: \{ title: "([^"]+)" label: "([^"\\]+)([^"]*)"', re.MULTILINE)
_EDGE: Final = re.compile(r'^edge: \{ sourcename: "([^"]+)" targetname: "([^"]+)"', re.MULTILINE)
_FRAME: Final = re.compile(r"(\d+) bytes \((static|dynamic,bounded)\)")
INDIRECT: Final = "__indirect_call"
SUFFIX: Final = ".ci"


@dataclass
class Function:
    """``frame``: None where it depends on what happens at run time. ``name`` is that of the symbol."""

    name: str
    frame: int | None
    calls: list[str] = field(default_factory=list)


Graph = Mapping[str, Function]
"""By a title that is the name of a function that others may call, and holds the file where none may."""


def read_graph(files: Iterable[Path]) -> dict[str, Function]:
    """The functions that these files define."""
    graph: dict[str, Function] = {}
    for file in files:
        text = file.read_text(encoding="utf-8", errors="replace")
        for title, name, rest in _NODE.findall(text):
            if " bytes (" in rest:
                match = _FRAME.search(rest)
                graph[title] = Function(_symbol(title, name), int(match[1]) if match else None)
        for source, target in _EDGE.findall(text):
            if source in graph:
                graph[source].calls.append(target)
    return graph


def _symbol(title: str, label: str) -> str:
    """What the compiler made of a function for one of its callers has a title with a suffix."""
    return title.rpartition(":")[2] or label


def deepest(
    graph: Graph,
    start: str,
    others: Callable[[str], int | None],
    pointed: Callable[[str], Iterable[str]] = lambda title: (),
) -> int | None:
    """The most stack that a call of ``start`` takes; None where that is unknown: recursion, calls by pointer, frames
    whose size is. ``others`` tells it of functions that the graph does not hold, or of which it knows no frame since
    they are assembly; ``pointed`` gives the functions that another one may call by pointer.
    """
    known: dict[str, int | None] = {}
    under_way: set[str] = set()

    def calls_of(title: str, function: Function) -> list[str]:
        """A call by pointer is one of everything that it may reach; of nothing known, unless that is told."""
        targets = list(pointed(title)) if INDIRECT in function.calls else []
        named = [call for call in function.calls if call != INDIRECT or not targets]
        return list(dict.fromkeys([*named, *targets]))

    def at_least(bound: int | None, other: int | None) -> int | None:
        return bound if bound is None or other is None else max(bound, other)

    def depth(title: str) -> int | None:
        if title in known:
            return known[title]
        if title in under_way:
            return None
        if title not in graph:
            known[title] = others(title)
            return known[title]
        under_way.add(title)
        function = graph[title]
        below = [depth(call) for call in calls_of(title, function)]
        under_way.remove(title)
        depths = [value for value in below if value is not None]
        whole = function.frame is not None and len(depths) == len(below)
        known[title] = (function.frame or 0) + max(depths, default=0) if whole else None
        if function.frame == 0:  # or written in assembly, of which the compiler knows nothing
            known[title] = at_least(known[title], others(function.name))
        return known[title]

    return depth(start)


def pointed_in(graph: Graph, file: str) -> Callable[[str], list[str]]:
    """In a file that takes the addresses of its own functions alone: those that nothing calls by name."""
    called = {target for function in graph.values() for target in function.calls}
    loose = [title for title in graph if f"{file}:" in title and title not in called]
    return lambda title: loose if f"{file}:" in title else []


def own_functions(graph: Graph, roots: Mapping[str, Sequence[str]]) -> dict[str, list[str] | None]:
    """For each name the functions that its roots (titles) need, as symbols; None where it shares one with another."""
    reached = {name: set(_reached(graph, titles)) for name, titles in roots.items()}
    users: dict[str, int] = {}
    for titles in reached.values():
        for title in titles:
            users[title] = users.get(title, 0) + 1
    return {
        name: None if any(users[title] > 1 for title in titles) else sorted(graph[title].name for title in titles)
        for name, titles in reached.items()
    }


def _reached(graph: Graph, titles: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    todo = [title for title in titles if title in graph]
    while todo:
        title = todo.pop()
        if title not in seen:
            seen.add(title)
            yield title
            todo += [call for call in graph[title].calls if call in graph]
