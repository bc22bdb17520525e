"""Builds firmware with compiled objects of earlier builds, kept in the cache by the content of their sources.

An object is taken if nothing that its compilation reads has changed. So the closure of includes of a source is read
here without a compiler, and CMake's own commands are replayed one by one.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from uaccel.build.stack_usage import SUFFIX
from uaccel.util import incoming
from uaccel.util.cache import SEARCHED, Cache, Key, file_digest, programs_digest
from uaccel.util.reads import CONTENT, state, still_true

# Include closure: everything that a C source may include, and the macros that it mentions, read without a compiler.
#
# Conditions are not evaluated, so more is found than one compilation includes. A key may then depend on too much: that
# costs a compilation that was not needed, and never gives a wrong object.

_INCLUDE: Final = re.compile(rb'^[ \t]*#[ \t]*(?:include|import)[ \t]*(["<])([^">\n]+)[">]', re.MULTILINE)
# The name of an include may be a macro that stands for a file: kernels include their bodies so, once for each type.
_NAMED: Final = re.compile(rb"^[ \t]*#[ \t]*include[ \t]+([A-Za-z_]\w*)[ \t]*$", re.MULTILINE)
_DEFINE: Final = re.compile(rb'^[ \t]*#[ \t]*define[ \t]+(\w+)(?:[ \t]+(["<])([^">\n]+)[">][ \t]*$)?', re.MULTILINE)
# What makes a source depend on more than can be read here: clocks, other computed includes, files of assembly.
_UNKNOWN: Final = re.compile(
    rb"__(?:DATE__|TIME__|TIMESTAMP__|has_include)|\bincbin\b|^[ \t]*#[ \t]*(?:embed\b|include_next\b"
    rb'|include[ \t]+(?![A-Za-z_]\w*[ \t]*$)[^"<\s])|^\s*\.include\b',
    re.MULTILINE,
)
_OWN: Final = re.compile(rb"\bUACCEL_\w+")
_KNOWN: Final[dict[str, Text]] = {}  # Texts that this process has read, by digest.


@dataclass(frozen=True)
class Text:
    """Describes a source or a header.

    ``includes`` has the quotation mark and the name of each include, ``named`` the macros that others are named by.
    ``defines`` has each macro with the mark and the name of the file that it stands for, empty where it is no file.
    ``names`` are the macros of uaccel that are mentioned.
    ``pastes``: names may be put together with ``##``. ``plain``: nothing else is read, and no clock.
    """

    digest: str
    includes: tuple[tuple[str, str], ...]
    named: frozenset[str]
    defines: frozenset[tuple[str, str, str]]
    names: frozenset[str]
    pastes: bool
    plain: bool


@dataclass(frozen=True)
class Closure:
    """Holds what a source may include, directly or not.

    ``edges`` say who includes what by which name, as paths in the project; the path is empty where the compiler's own
    headers have it. ``texts`` are digests by path. ``names`` are the macros of uaccel that matter; None for all.
    ``named`` are the macros that includes are named by.
    """

    edges: tuple[tuple[str, str, str], ...]
    texts: tuple[tuple[str, str], ...]
    names: frozenset[str] | None
    named: frozenset[str]


class Sources:
    """Reads the sources of one project, each once."""

    def __init__(self, project: Path) -> None:
        self.project = project
        self._texts: dict[Path, Text] = {}
        self._found: dict[tuple[Path, str, str, tuple[Path, ...]], Path | None] = {}
        self._headers: dict[Path, frozenset[str]] = {}

    def closure(self, source: Path, folders: Sequence[Path]) -> Closure | None:
        """The closure of a source, with headers looked for in these folders, in order; None where it cannot be known.

        Where a name may be pasted together, any macro may be mentioned, so that all of them matter.
        """
        texts = more = {source: self._text(source)}
        while more:
            files = _stood_for(texts.values())
            reached = {
                (one, mark, name): self._find(one.parent, mark, name, tuple(folders))
                for one, text in texts.items()
                for mark, name in {*text.includes, *(file for macro in text.named for file in files.get(macro, ()))}
            }
            more = {path: self._text(path) for path in reached.values() if path is not None and path not in texts}
            texts |= more
        named = frozenset[str]().union(*(text.named for text in texts.values()))
        if not named <= files.keys() or not all(text.plain for text in texts.values()):
            return None
        edges = (
            (self._named(one), mark + name, "" if found is None else self._named(found))
            for (one, mark, name), found in reached.items()
        )
        pastes = any(text.pastes for text in texts.values())
        names = None if pastes else frozenset[str]().union(*(text.names for text in texts.values()))
        digests = sorted((self._named(path), text.digest) for path, text in texts.items())
        return Closure(tuple(sorted(edges)), tuple(digests), names, named)

    def headers(self, folder: Path) -> frozenset[str]:
        """The names of all files that may be included from a folder."""
        if folder not in self._headers:
            self._headers[folder] = frozenset(path.name for path in folder.rglob("*"))
        return self._headers[folder]

    def _text(self, path: Path) -> Text:
        if path not in self._texts:
            self._texts[path] = _read(incoming.read_bytes(path))
        return self._texts[path]

    def _find(self, beside: Path, mark: str, name: str, folders: tuple[Path, ...]) -> Path | None:
        key = (beside, mark, name, folders)
        if key not in self._found:
            places = [folder / name for folder in ((beside, *folders) if mark == '"' else folders)]
            self._found[key] = next((path.resolve() for path in places if path.is_file()), None)
        return self._found[key]

    def _named(self, path: Path) -> str:
        return path.relative_to(self.project).as_posix()


def _stood_for(texts: Collection[Text]) -> dict[str, set[tuple[str, str]]]:
    """The files that macros stand for by which includes are named, where they stand for nothing else in these texts."""
    named, found = frozenset[str]().union(*(text.named for text in texts)), dict[str, set[tuple[str, str]]]()
    for macro, mark, name in frozenset[tuple[str, str, str]]().union(*(text.defines for text in texts)):
        if macro in named:
            found.setdefault(macro, set()).add((mark, name))
    return {macro: files for macro, files in found.items() if ("", "") not in files}


def is_plain(source: Path) -> bool:
    """Whether compiling a source reads nothing but what its includes name."""
    text = _read(incoming.read_bytes(source))
    return text.plain and not text.named


def _read(data: bytes) -> Text:
    digest = hashlib.sha256(data).hexdigest()
    if digest not in _KNOWN:
        _KNOWN[digest] = Text(
            digest,
            tuple((mark.decode(), name.decode("utf-8", "replace")) for mark, name in _INCLUDE.findall(data)),
            frozenset(name.decode() for name in _NAMED.findall(data)),
            frozenset(
                (macro.decode(), mark.decode(), name.decode("utf-8", "replace"))
                for macro, mark, name in _DEFINE.findall(data)
            ),
            frozenset(name.decode() for name in _OWN.findall(data)),
            b"##" in data,
            _UNKNOWN.search(data) is None,
        )
    return _KNOWN[digest]


# Objects of C sources, kept by content: what was compiled for one firmware serves every other that compiles the same.
#
# A key holds the compiler, its options, the source with all that it may include, and who includes what. Folders of
# headers count by what is found in them, and uaccel's macros only where the source mentions them. So the session server
# is compiled once for all accelerators, and mostly once for firmware with and without a hook after every layer.
#
# Two things could make a kept object wrong, and are excluded. A header of the compiler's could change, or be hidden by
# one of the project's. So the paths of all system headers that were read are kept with their content, and their names
# are compared with the folders of the next project.
# The project's path could be in the object: one that holds it is not kept.

OBJECTS: Final = "object"
OBJECT, GRAPH, TOLD = "object", "graph", "told.json"  # Files of an entry; the last names the system headers.
PLACE: Final = "/uaccel-project"  # What stands for the project's folder in what is kept.
_COMMAND: Final = re.compile(r" -o (\S+) -c (\S+)$")
_MACRO: Final = re.compile(r"-D(UACCEL_\w+)")
# Options by which a compiler reads or writes what is not known here.
_ALONE: Final = re.compile(r"-(g|save-temps|fprofile|fplugin|-coverage|flto|i[a-z]+|B|W[ap],|X|wrapper|specs=.*/)|@")


@dataclass(frozen=True)
class Compilation:
    """Describes one call of a compiler in the build folder. ``command`` is for a shell."""

    command: str
    source: Path
    made: Path

    @classmethod
    def of(cls, command: str, build: Path) -> Compilation | None:
        """The compilation that a command is; None where it is another command."""
        match = _COMMAND.search(command)
        return None if match is None else cls(command, Path(match[2]), build / match[1])


def in_shell(command: str, build: Path) -> bool:
    """Run a command in the build folder; whether it succeeded."""
    words = ["/bin/sh", "-c", command]
    return subprocess.run(words, cwd=build, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == 0


class Objects:
    """Makes the objects of one build: takes them from the cache, or compiles and keeps them."""

    def __init__(self, cache: Cache, project: Path, build: Path) -> None:
        self._cache = cache
        self._project = project
        self._build = build
        self._sources = Sources(project)

    def make(self, wanted: Compilation) -> bool:
        """Take an object from the cache, or compile and keep it; False where the compiler fails."""
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
        """The key of an object; None where it depends on more than can be known here."""
        compiler, *options = words
        for flag in ("-MT", "-MF", "-o", "-c"):
            at = options.index(flag) if flag in options else len(options)
            del options[at : at + 2]
        options = [word for word in options if not word.startswith("-I")]
        if any(map(os.environ.get, SEARCHED)) or any(
            _ALONE.match(word) or str(self._project) in word for word in options
        ):
            return None
        try:
            closure = self._sources.closure(wanted.source, folders)
        except (OSError, ValueError):  # a header beyond the project
            return None
        if closure is None or any(macro in word for macro in closure.named for word in options):
            return None
        counted = [word for word in options if _counts(word, options, closure.names)]
        key = Key(OBJECTS).add("compiler", programs_digest([compiler])).add("options", counted)
        return key.add("source", wanted.source.name).add("edges", closure.edges).add("texts", closure.texts)

    def _taken(self, key: Key, wanted: Compilation, folders: list[Path]) -> bool:
        entry = self._cache.find(key)
        if entry is None:
            return False
        try:
            here = frozenset[str]().union(*map(self._sources.headers, folders))
            system = entry.json(TOLD)["system"]
            if not here.isdisjoint(Path(row).name for row in system) or not still_true(system):
                return False  # one of the folders' may take the place of a header of the compiler's, or one has changed
            rules = " ".join([f"{wanted.made.name}:", *(shlex.quote(row.partition(" ")[2]) for row in system)])
            _rules_of(wanted).write_text(rules + "\n", encoding="utf-8")
            wanted.made.write_bytes(entry.read(OBJECT))
            if entry.has(GRAPH):
                self._graph(wanted).write_bytes(entry.read(GRAPH).replace(PLACE.encode(), str(self._project).encode()))
            return True
        finally:
            entry.close()

    def _keep(self, key: Key, wanted: Compilation) -> None:
        here, content = str(self._project).encode(), incoming.read_bytes(wanted.made)
        rules = _rules_of(wanted)
        if here in content or not rules.is_file():
            return
        read = [Path(word) for word in shlex.split(incoming.read_text(rules).replace("\\\n", " "))[1:]]
        beyond = sorted({path for path in read if path.is_absolute() and not path.is_relative_to(self._project)})
        system = {row: state(row) for row in (f"{CONTENT} {path}" for path in beyond)}
        files = {OBJECT: content, TOLD: json.dumps({"system": system}).encode()}
        if self._graph(wanted).is_file():
            files[GRAPH] = incoming.read_bytes(self._graph(wanted)).replace(here, PLACE.encode())
        entry = self._cache.add(key, dict(files), wanted.source.name)
        if entry is not None:
            entry.close()

    def _graph(self, wanted: Compilation) -> Path:
        return wanted.made.with_suffix(SUFFIX)


def _rules_of(wanted: Compilation) -> Path:
    """The file in which the compiler lists what it read."""
    return wanted.made.with_name(wanted.made.name + ".d")


def _counts(word: str, options: list[str], names: frozenset[str] | None) -> bool:
    """Whether an option is part of the key: a macro of uaccel only where the source or another option mentions it."""
    match = _MACRO.match(word)
    if match is None or names is None or match[1] in names:
        return True
    return any(match[1] in other for other in options if other is not word)


# Progress of a build: Ninja and Make tell it in forms of their own, so the objects that they write are counted.

Count = Callable[[int, int], None]  # Is called with objects made, and objects in all.
EVERY: Final = 0.2  # Seconds between looks.
_RULES: Final = {
    "build.ninja": re.compile(r"^build (\S+\.(?:o|obj)): ", re.MULTILINE),
    "CMakeFiles/*.dir/build.make": re.compile(r"^(CMakeFiles/\S+\.(?:o|obj)): ", re.MULTILINE),
}


@contextmanager
def counted(build: Path, count: Count) -> Iterator[None]:
    """Call ``count`` with the objects in this folder while the body builds there."""
    ended = threading.Event()
    watcher = threading.Thread(target=_watch, args=(build, count, ended), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


def objects_of(build: Path) -> set[Path]:
    """All objects that the build makes; none before it is configured."""
    return {
        build / name
        for pattern, rule in _RULES.items()
        for file in build.glob(pattern)
        for name in rule.findall(incoming.read_text(file, errors="replace"))
    }


def _watch(build: Path, count: Count, ended: threading.Event) -> None:
    wanted: set[Path] = set()
    while not ended.wait(EVERY):
        wanted = wanted or objects_of(build)
        if wanted:
            count(sum(path.is_file() for path in wanted), len(wanted))


# Building firmware by CMake's own commands, with objects that were made before.
#
# CMake is asked for the commands once for each form of project: for a board and accelerators' files, whatever the
# model. In what is kept, placeholders stand for the project's folder and the model's name. The commands make the same
# bytes as Ninja makes by them.

KIND: Final = "recipe"
COMMANDS: Final = "commands.json"
MODEL: Final = "tvmgen_@"  # What stands for the model's name in what is kept.
_PLAIN: Final = re.compile(r"[\w./+-]+")
_NOTHING_THERE: Final = re.compile(r"^: && \S+cmake -E rm -f \S+ && ")
_READ: Final = (".cmake", "CMakeLists.txt", "build.txt")
# Folders by the one above them: their files have no part in the commands.
_LEFT_OUT: Final = {".": ("build", "api_server"), "model": ("src", "parameters"), "model/codegen/host": ("include",)}
_TOOLS: Final = ("cmake", "ninja", "cc", "gcc", "clang", "c++", "g++", "clang++", "as", "ld", "ar")
_CROSS: Final = ("gcc", "g++", "objcopy", "ar", "ranlib", "as", "ld")


def build_by_recipe(project: Path, build: Path, toolchain: str, cache: Cache, count: Count, *, observe: bool) -> bool:
    """Build into a folder that is not there yet. False where that cannot be done or fails: then nothing is left."""
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
    """CMake's commands for a project, configured as the project's server does it; None where that fails."""
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
    """The key of a project's commands: names of all files, since CMake's lists look for them, and the content of those
    that CMake reads."""
    files = [(path.relative_to(project).as_posix(), path) for path in _files(project)]
    programs = [*_TOOLS, *(f"{toolchain}-{tool}" for tool in _CROSS)]
    return (
        Key(KIND)
        .add("files", [_replaced(name, words) for name, _ in files])
        .add("read", [[name, file_digest(path)] for name, path in files if path.name.endswith(_READ)])
        .add("programs", programs_digest(programs))
        .add("observe", observe)
    )


def _files(project: Path) -> Iterator[Path]:
    """All files of a project in a fixed order, without those that depend on the model, and without what was built."""
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
    """Run the compilations in parallel, as they need nothing of each other; then all other commands in order."""
    compilations = [one for line in commands if (one := Compilation.of(line, build)) is not None]
    others = [line for line in commands if Compilation.of(line, build) is None]
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for done, made in enumerate(pool.map(objects.make, compilations), 1):
            count(done, len(compilations))
            if not made:
                pool.shutdown(cancel_futures=True)
                return False
    return all(in_shell(_NOTHING_THERE.sub(": && ", line), build) for line in others)
