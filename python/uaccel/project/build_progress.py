"""How far a build is: CMake's tools tell it in forms of their own, but what they write is objects."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

Count = Callable[[int, int], None]
EVERY: Final = 0.2
"""Seconds between looks."""
_RULES: Final = {
    "build.ninja": re.compile(r"^build (\S+\.(?:o|obj)): ", re.MULTILINE),
    "CMakeFiles/*.dir/build.make": re.compile(r"^(CMakeFiles/\S+\.(?:o|obj)): ", re.MULTILINE),
}


@contextmanager
def counted(build: Path, count: Count) -> Iterator[None]:
    """``count`` is told of the objects in this folder while the body builds there."""
    ended = threading.Event()
    watcher = threading.Thread(target=_watch, args=(build, count, ended), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


def objects_of(build: Path) -> set[Path]:
    """All that the build makes; none before it is configured."""
    return {
        build / name
        for pattern, rule in _RULES.items()
        for file in build.glob(pattern)
        for name in rule.findall(file.read_text(encoding="utf-8", errors="replace"))
    }


def _watch(build: Path, count: Count, ended: threading.Event) -> None:
    wanted: set[Path] = set()
    while not ended.wait(EVERY):
        wanted = wanted or objects_of(build)
        if wanted:
            count(sum(path.is_file() for path in wanted), len(wanted))
