"""Finds which files outside of its project a build has read: headers and libraries, of the system and by path."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from uaccel.build.object_cache import is_plain
from uaccel.util import incoming
from uaccel.util.cache import SEARCHED
from uaccel.util.reads import CONTENT, KIND, UNSEEN, state

# Compilers list what they read in a file beside each object, which Ninja takes in where it runs them. The linker's map
# names objects and libraries.
MAP: Final = "firmware.map"
_BY_PATH: Final = re.compile(rb"[<\"]((?:/|\.{1,2}/)[^\">\n]{1,300})[>\"]")
_LOADED: Final = re.compile(r"^LOAD (/.+)$", re.MULTILINE)
_SOURCES: Final = (".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".S")


def reads_of_build(build: Path, project: Path) -> dict[str, str]:
    """Returns rows of :mod:`uaccel.util.reads` for what the build read outside of the project."""
    build, project = build.resolve(), project.resolve()
    rows, listed = dict[str, str](), set[str]()
    for rules in build.rglob("*.d"):
        listed.add(rules.name.removesuffix(".d"))
        rows |= rows_of(dependencies(rules), project)
    rows |= rows_of(_of_ninja(build, listed), project)
    made = [path.name for path in build.rglob("*") if path.suffix in (".o", ".obj") and "CompilerId" not in str(path)]
    for name in made:
        if name not in listed:
            rows[f"{UNSEEN} the sources of {name}"] = ""
    linked = build / MAP
    if linked.is_file():
        text = incoming.read_bytes(linked).decode("utf-8", "replace")
        rows |= rows_of(map(Path, _LOADED.findall(text)), project)
    else:
        rows[f"{UNSEEN} what was linked"] = ""
    if any(map(os.environ.get, SEARCHED)):
        rows[f"{UNSEEN} folders that {', '.join(SEARCHED)} name"] = ""
    for path in sorted((project / "accelerators").rglob("*")):
        if path.suffix in _SOURCES and not is_plain(path):
            rows[f"{UNSEEN} what {path.relative_to(project)} asks the compiler for"] = ""
    return rows


def dependencies(rules: Path) -> Iterator[Path]:
    """Yields the files in a rule that a compiler wrote."""
    text = incoming.read_bytes(rules).decode("utf-8", "replace").replace("\\\n", " ")
    yield from (rules.parent / word for word in shlex.split(text.partition(": ")[2]))


def rows_of(paths: Iterable[Path], project: Path) -> dict[str, str]:
    """Returns the content of all files that are not the project's."""
    beyond = {path for path in paths if path.is_absolute() and not path.resolve().is_relative_to(project)}
    rows = {f"{CONTENT} {path}" for path in beyond} | {f"{KIND} {path}" for one in beyond for path in _before(one)}
    return {row: state(row) for row in sorted(rows)}


def _before(path: Path) -> Iterator[Path]:
    """Yields where the system's tools look for a header or a library before they find it here."""
    for folder in ("include", "lib"):
        if path.is_relative_to(f"/usr/{folder}"):
            within = path.relative_to(f"/usr/{folder}")
            yield Path("/usr/local", folder, *within.parts[int("-linux-" in within.parts[0]) :])


def _of_ninja(build: Path, listed: set[str]) -> Iterator[Path]:
    ninja = shutil.which("ninja")
    if ninja is None or not (build / ".ninja_deps").is_file():
        return
    done = subprocess.run([ninja, "-C", str(build), "-t", "deps"], capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        if line.startswith("    "):
            yield build / line.strip()
        elif ": #deps" in line and "(VALID)" in line:
            listed.add(Path(line.partition(": #deps")[0]).name)


def mentioned(folders: Iterable[Path]) -> dict[str, str]:
    """Returns the content of files elsewhere that sources below the folders name by path, or that those name: headers,
    Verilog, memories' content. A file that is not there counts, too."""
    within = [folder.resolve() for folder in folders]
    waiting = [path for folder in within for path in folder.rglob("*") if path.is_file()]
    seen, rows = set(waiting), dict[str, str]()
    while waiting:
        path = waiting.pop()
        for name in _BY_PATH.findall(incoming.read_bytes(path)):
            other = Path(os.path.normpath(path.parent / os.fsdecode(name)))
            if other in seen or b"\0" in name:
                continue
            seen.add(other)
            if not any(other.is_relative_to(folder) for folder in within):
                rows[f"{CONTENT} {other}"] = state(f"{CONTENT} {other}")
            waiting += [other] if other.is_file() else []
    return rows
