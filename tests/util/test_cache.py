"""The folder of kept results: what is found is whole, what is used stays, and what cannot be kept does no harm."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from uaccel.util.cache import Cache, Entry, Key, folder_digest, programs_digest


def key(name: str) -> Key:
    return Key("thing").add("name", name)


def add(cache: Cache, name: str, size: int = 100) -> None:
    """Used at another moment than the others."""
    entry = cache.add(key(name), {"data": name.encode() * (size // len(name)), "folder/more": b"more"}, f"about {name}")
    assert entry is not None
    entry.close()
    age = -1000 + 10 * len(cache.kept())
    os.utime(cache.folder / "thing" / key(name).digest / "manifest.json", (time.time() + age, time.time() + age))


def test_what_was_added_is_found_by_an_equal_key_only(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "kept")
    assert cache.find(key("a")) is None
    add(cache, "a")
    found = Cache(tmp_path / "kept").find(key("a"))
    assert found is not None
    assert (found.read("data")[:3], found.read("folder/more"), found.has("other")) == (b"aaa", b"more", False)
    assert cache.find(key("b")) is None
    assert cache.find(Key("other").add("name", "a")) is None
    assert [(entry.kind, entry.about) for entry in cache.kept()] == [("thing", "about a")]


def _longer(place: Path) -> None:
    (place / "data").write_bytes((place / "data").read_bytes() + b"!")


def _changed(place: Path) -> None:
    data = (place / "data").read_bytes()
    (place / "data").write_bytes(b"?" + data[1:])


DAMAGES: dict[str, Callable[[Path], object]] = {
    "a byte is another": _changed,
    "a file is longer": _longer,
    "a file is gone": lambda place: (place / "data").unlink(),
    "the manifest is cut off": lambda place: (place / "manifest.json").write_text('{"about": "a", "fi'),
    "the manifest is empty": lambda place: (place / "manifest.json").write_text(""),
    "the manifest is gone": lambda place: (place / "manifest.json").unlink(),
    "the manifest is something else": lambda place: (place / "manifest.json").write_text('{"files": [1, 2]}'),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_what_is_damaged_counts_as_missing_and_is_made_again(damage: Callable[[Path], object], tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    add(cache, "a")
    damage(tmp_path / "thing" / key("a").digest)
    assert cache.find(key("a")) is None
    add(cache, "a")
    found = cache.find(key("a"))
    assert found is not None
    assert found.read("data")[:3] == b"aaa"


def test_beyond_the_limit_what_was_used_longest_ago_goes(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    for name in ("a", "b", "c"):
        add(cache, name, 10_000)
    assert sum(entry.bytes for entry in cache.kept()) > 30_000
    assert cache.find(key("a")) is not None  # now b is the oldest
    assert cache.prune(25_000) > 10_000
    assert [cache.find(key(name)) is not None for name in ("a", "b", "c")] == [True, False, True]
    small = Cache(tmp_path, limit=15_000)
    add(small, "d", 10_000)
    assert sum(entry.bytes for entry in small.kept()) < 15_000
    assert small.find(key("d")) is not None


def test_what_somebody_uses_is_not_removed(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    add(cache, "a")
    held: Entry | None = cache.find(key("a"))
    assert held is not None
    assert cache.prune(0) == 0
    assert held.read("data")[:3] == b"aaa"
    held.close()
    assert cache.prune(0) > 0
    assert cache.kept() == []


@pytest.mark.parametrize("kind", ["a file lies there", "it may not be written"])
def test_a_folder_that_cannot_be_used_keeps_nothing_and_says_so(kind: str, tmp_path: Path) -> None:
    place = tmp_path / "kept"
    if kind == "a file lies there":
        place.write_text("")
    else:
        place = Path("/proc/uaccel")
    cache = Cache(place)
    assert cache.add(key("a"), {"data": b""}, "about") is None
    assert cache.problem.startswith(f"cannot keep anything in {place}: ")
    assert cache.find(key("a")) is None
    assert (cache.kept(), cache.prune(0)) == ([], 0)


def test_what_killed_processes_left_behind_is_swept(tmp_path: Path) -> None:
    left = tmp_path / "new" / "tmp123"
    left.mkdir(parents=True)
    long_ago = time.time() - 100_000
    os.utime(left, (long_ago, long_ago))
    young = tmp_path / "new" / "tmp456"
    young.mkdir()
    add(Cache(tmp_path), "a")
    assert (left.exists(), young.exists()) == (False, True)


def _work(folder: Path) -> int:
    """Adds, finds and prunes as fast as it can; how often it saw something that was not whole."""
    cache, wrong = Cache(folder, limit=3_000), 0
    for turn in range(60):
        name = "abcdef"[turn % 6]
        found = cache.find(key(name)) or cache.add(key(name), {"data": name.encode() * 1000}, name)
        if found is not None:
            wrong += found.read("data") != name.encode() * 1000
            found.close()
    return wrong


def test_many_processes_share_it(tmp_path: Path) -> None:
    with ProcessPoolExecutor(4) as pool:
        assert list(pool.map(_work, [tmp_path] * 4)) == [0] * 4
    assert sum(entry.bytes for entry in Cache(tmp_path).kept()) < 5_000
    assert list((tmp_path / "new").iterdir()) == []


def test_a_digest_follows_content_and_names_but_not_what_python_leaves(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("1")
    before = folder_digest(tmp_path)
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "a.pyc").write_text("x")
    assert folder_digest(tmp_path) == before
    (tmp_path / "a.py").rename(tmp_path / "b.py")
    renamed = folder_digest(tmp_path)
    (tmp_path / "b.py").write_text("2")
    assert len({before, renamed, folder_digest(tmp_path)}) == 3


def test_another_program_of_the_same_name_is_another_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = programs_digest(["cc"])
    (tmp_path / "cc").write_text("#!/bin/sh\n")
    (tmp_path / "cc").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert programs_digest(["cc"]) != before


def test_a_program_of_another_time_is_another_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler that is updated may have as many bytes as before, and the time of its package."""
    program, other = tmp_path / "cc", tmp_path / "other"
    for path, text in ((program, "#!/bin/sh\n#1\n"), (other, "#!/bin/sh\n#2\n")):
        path.write_text(text)
        path.chmod(0o755)
        os.utime(path, (1, 1))
    monkeypatch.setenv("PATH", str(tmp_path))
    before = programs_digest(["cc"])
    os.utime(program, (2, 2))
    touched = programs_digest(["cc"])
    os.utime(program, (1, 1))
    other.replace(program)
    assert before != touched
    assert before != programs_digest(["cc"])


def test_a_program_that_a_wrapper_finds_next_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("first", "next"):
        (tmp_path / folder).mkdir()
    (tmp_path / "first" / "cc").write_text("#!/bin/sh\n")
    (tmp_path / "first" / "cc").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/first:{tmp_path}/next")
    before = programs_digest(["cc"])
    (tmp_path / "next" / "cc").write_text("#!/bin/sh\n")
    (tmp_path / "next" / "cc").chmod(0o755)
    assert programs_digest(["cc"]) != before


def test_a_folder_behind_a_link_counts_and_a_link_that_leads_back_ends(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "folder", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    (folder / "there").symlink_to(elsewhere)
    (elsewhere / "back").symlink_to(folder)
    before = folder_digest(folder)
    (elsewhere / "file").write_text("1")
    assert folder_digest(folder) != before


@pytest.mark.parametrize("name", ["ASMFLAGS", "CFLAGS", "CPATH", "C_INCLUDE_PATH", "COMPILER_PATH", "CMAKE_GENERATOR"])
def test_what_the_environment_tells_a_compiler_counts(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "there")
    assert [name, "there"] in programs_digest(["cc"])
