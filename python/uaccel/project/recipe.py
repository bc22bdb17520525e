"""Building firmware by CMake's own commands, with objects that were made before.

CMake is asked for the commands once for each form of project: a board, accelerators' files, and no matter which model.
What they make is the same to the byte as what Ninja makes by them.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Final

from uaccel.cache import Cache, Key, file_digest, programs_digest
from uaccel.project.build_progress import Count
from uaccel.project.objects import PLACE, Compilation, Objects, in_shell

KIND: Final = "recipe"
COMMANDS: Final = "commands.json"
MODEL: Final = "tvmgen_@"
"""What stands for the model's name in what is kept."""
_PLAIN: Final = re.compile(r"[\w./+-]+")
_NOTHING_THERE: Final = re.compile(r"^: && \S+cmake -E rm -f \S+ && ")
_READ: Final = (".cmake", "CMakeLists.txt", "build.txt")
_LEFT_OUT: Final = {
    ".": ("build", "api_server"),
    "model": ("src", "parameters"),
    "model/codegen/host": ("include",),
}
"""Folders by the one above them: their files have no part in the commands."""
_TOOLS: Final = ("cmake", "ninja", "cc", "gcc", "clang", "c++", "g++", "clang++")
_CROSS: Final = ("gcc", "g++", "objcopy", "ar", "ranlib")


def build_by_recipe(project: Path, build: Path, toolchain: str, cache: Cache, count: Count, *, observe: bool) -> bool:
    """Into a folder that is not there yet. False where it cannot be done, or fails: then nothing is left there."""
    project, build = project.resolve(), build.parent.resolve() / build.name
    described = sorted((project / "model" / "templates").glob("tvmgen_*_describe.c"))
    if build.exists() or len(described) != 1 or _PLAIN.fullmatch(str(build)) is None or shutil.which("ninja") is None:
        return False
    model = described[0].name.removesuffix("_describe.c")
    words = ((str(project), PLACE), (model, MODEL))
    commands = _commands(project, build, toolchain, cache, words, observe=observe)
    if commands is not None and _run(commands, Objects(cache, project, build), build, count):
        return True
    shutil.rmtree(build, ignore_errors=True)
    return False


def _commands(
    project: Path, build: Path, toolchain: str, cache: Cache, words: Sequence[tuple[str, str]], *, observe: bool
) -> list[str] | None:
    key = _key(project, toolchain, words, observe=observe)
    entry = cache.find(key)
    if entry is not None:
        with closing(entry):
            return [_replaced(line, [(new, old) for old, new in words]) for line in entry.json(COMMANDS)]
    made = _configured(project, build, observe=observe)
    if made is not None:
        kept = json.dumps([_replaced(line, words) for line in made]).encode()
        entry = cache.add(key, {COMMANDS: kept}, f"commands for {toolchain}")
        if entry is not None:
            entry.close()
    return made


def _configured(project: Path, build: Path, *, observe: bool) -> list[str] | None:
    """As the project's server does it."""
    observed = f"-DOBSERVE={'ON' if observe else 'OFF'}"
    for command in (
        ["cmake", "-S", str(project), "-B", str(build), observed, "-G", "Ninja"],
        ["ninja", "-C", str(build), "-t", "commands"],
    ):
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        except OSError:
            return None
        if done.returncode != 0:
            return None
    return [line for line in done.stdout.splitlines() if not line.startswith("ninja: ")]


def _key(project: Path, toolchain: str, words: Sequence[tuple[str, str]], *, observe: bool) -> Key:
    """Names of files, since CMake's lists look for them; the content of what CMake reads."""
    files = [(path.relative_to(project).as_posix(), path) for path in _files(project)]
    programs = [*_TOOLS, *(f"{toolchain}-{tool}" for tool in _CROSS)]
    return (
        Key(KIND)
        .add("files", [_replaced(name, words) for name, _ in files])
        .add("read", [[name, file_digest(path)] for name, path in files if path.name.endswith(_READ)])
        .add("programs", [programs_digest(programs), os.environ.get("BOARD_TOOLCHAIN_PATH")])
        .add("observe", observe)
    )


def _files(project: Path) -> Iterator[Path]:
    """In their order; without what is as the model is, and what was built."""
    for above, folders, names in os.walk(project):
        place = Path(above).relative_to(project).as_posix()
        left_out = _LEFT_OUT.get(place, ())
        folders[:] = sorted(name for name in folders if not name.startswith(left_out))
        yield from (Path(above) / name for name in sorted(names))


def _replaced(text: str, words: Sequence[tuple[str, str]]) -> str:
    for old, new in words:
        text = text.replace(old, new)
    return text


def _run(commands: list[str], objects: Objects, build: Path, count: Count) -> bool:
    """Compilations at once, as they need nothing of each other; then the others in order."""
    compilations = [one for line in commands if (one := Compilation.of(line, build)) is not None]
    others = [line for line in commands if Compilation.of(line, build) is None]
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for done, made in enumerate(pool.map(objects.make, compilations), 1):
            count(done, len(compilations))
            if not made:
                pool.shutdown(cancel_futures=True)
                return False
    return all(in_shell(_NOTHING_THERE.sub(": && ", line), build) for line in others)
