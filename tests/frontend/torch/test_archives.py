"""Zip archives that two readers understand differently, or that PyTorch does not write: none is read."""

from __future__ import annotations

import io
import struct
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from uaccel.errors import ModelError
from uaccel.frontend.checks import read_file
from uaccel.frontend.torch.reader import LARGEST_FILE, RecordsError, names, records

CONTENT = {"model/a": b"first record", "model/b/c": b"second"}


def archive(content: dict[str, bytes] | None = None, compression: int = zipfile.ZIP_STORED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as made:
        for name, data in (CONTENT if content is None else content).items():
            made.writestr(zipfile.ZipInfo(name), data, compression)
    return stream.getvalue()


def patched(data: bytes, place: int, form: str, value: int) -> bytes:
    made = bytearray(data)
    struct.pack_into(form, made, place, value)
    return bytes(made)


def central(data: bytes, number: int = 0) -> int:
    """Where the directory speaks of this record."""
    place = data.index(b"PK\x01\x02")
    for _ in range(number):
        place = data.index(b"PK\x01\x02", place + 1)
    return place


def local(data: bytes, number: int = 0) -> int:
    place = data.index(b"PK\x03\x04")
    for _ in range(number):
        place = data.index(b"PK\x03\x04", place + 1)
    return place


def everywhere(data: bytes, at_local: int, at_central: int, form: str, value: int) -> bytes:
    """In both headers of the first record."""
    return patched(patched(data, local(data) + at_local, form, value), central(data) + at_central, form, value)


def test_records_are_found() -> None:
    found = records(archive())
    assert {name: bytes(content) for name, content in found.items()} == {"a": b"first record", "b/c": b"second"}
    assert names(archive()) == ["a", "b/c"]


def twice() -> bytes:
    return archive({"model/a": b"one", "model/b": b"another"}).replace(b"model/b", b"model/a")


def overlapping() -> bytes:
    """The second record's header is the first's bytes."""
    inner = archive({"model/b": b"x"})
    data = archive({"model/a": inner[: inner.index(b"PK\x01\x02")], "model/b": b"x"})
    return patched(data, central(data, 1) + 42, "<I", data.index(b"PK\x03\x04", 1))


def renamed() -> bytes:
    """In the directory alone."""
    data = archive()
    place = data.index(b"model/a", central(data))
    return data[:place] + b"model/z" + data[place + 7 :]


ARCHIVES: dict[str, tuple[Callable[[], bytes], str]] = {
    "one name twice": (twice, "it has two records of one name"),
    "two names for one record": (renamed, "the archive says two things of model/z"),
    "overlapping": (overlapping, "model/a overlaps what follows it, or leaves a gap"),
    "compressed": (
        lambda: archive(compression=zipfile.ZIP_DEFLATED),
        "model/a is compressed, which PyTorch does not do",
    ),
    "encrypted": (
        lambda: everywhere(archive(), 6, 8, "<H", 1),
        "model/a is encrypted or in several parts, which PyTorch does not do",
    ),
    "in several parts": (
        lambda: patched(archive(), central(archive()) + 34, "<H", 1),
        "model/a is encrypted or in several parts, which PyTorch does not do",
    ),
    "sizes that differ": (
        lambda: patched(archive(), local(archive()) + 22, "<I", 3),
        "the archive says two things of model/a",
    ),
    "methods that differ": (
        lambda: patched(archive(), local(archive()) + 8, "<H", 8),
        "the archive says two things of model/a",
    ),
    "larger than the file": (
        lambda: patched(
            patched(archive(), central(archive()) + 24, "<I", 1 << 20), central(archive()) + 20, "<I", 1 << 20
        ),
        "model/a lies outside the file",
    ),
    "elsewhere": (
        lambda: patched(archive(), central(archive()) + 42, "<I", 3),
        "model/a lies outside the file",
    ),
    "a flipped bit": (
        lambda: archive().replace(b"first record", b"First record"),
        "the checksum of model/a is wrong",
    ),
    "something before it": (lambda: b"#!/bin/sh\n" + archive(), "something precedes the archive"),
    "something behind it": (
        lambda: patched(archive(), len(archive()) - 2, "<H", 5) + b"hello",
        "something follows the archive",
    ),
    "a gap": (
        lambda: archive()[: central(archive())] + b"\0" * 7 + patched_end(archive()),
        "model/b/c overlaps what follows it, or leaves a gap",
    ),
    "a name that leads out": (lambda: archive({"model/../../etc": b""}), "a record has the name 'model/../../etc'"),
    "a name from the root": (lambda: archive({"/etc/passwd": b""}), "a record has the name '/etc/passwd'"),
    "a name with a line's end": (lambda: archive({"model/a\nb": b""}), "a record has the name 'model/a\\nb'"),
    "a name with an end": (
        lambda: archive({"model/aXb": b""}).replace(b"aXb", b"a\0b"),
        "a record has the name 'model/a\\x00b'",
    ),
    "nothing in it": (lambda: archive({}), "something precedes the archive"),
    "no archive": (lambda: b"PK\x03\x04 and no more", "File is not a zip file"),
}


def patched_end(data: bytes) -> bytes:
    """The directory and the end, for an archive that is seven bytes longer before them."""
    rest = data[central(data) :]
    return patched(rest, rest.index(b"PK\x05\x06") + 16, "<I", central(data) + 7)


@pytest.mark.parametrize("name", ARCHIVES)
def test_archives_that_pytorch_does_not_write(name: str) -> None:
    make, text = ARCHIVES[name]
    data = make()
    with pytest.raises(RecordsError) as caught:
        records(data)
    assert str(caught.value) == text


def test_a_small_file_takes_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "small.pt2"
    path.write_bytes(b"few")
    tracemalloc.start()
    try:
        assert read_file(path, LARGEST_FILE) == b"few"
        assert tracemalloc.get_traced_memory()[1] < 1 << 21
    finally:
        tracemalloc.stop()


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "large.pt2"
    with path.open("wb") as stream:
        stream.truncate(LARGEST_FILE + 1)  # holes, which take no room
    with pytest.raises(ModelError) as caught:
        read_file(path, LARGEST_FILE)
    assert str(caught.value) == (
        f"cannot read model {path}: it has 1,073,741,825 bytes, and at most 1,073,741,824 are read"
    )
