"""To the byte: what may stand in an archive, by whoever unpacks it and by whoever only looks into it."""

from __future__ import annotations

import importlib
import io
import json
import sys
import tarfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from uaccel.build import archive_reader
from uaccel.build.archive_reader import read_metadata, read_model
from uaccel.errors import UaccelError
from uaccel.model import ModelFile
from uaccel.util.files import data_dir, write_tar

BLOCK = 512
SMALLEST = json.dumps({"version": 7, "modules": {"m": {}}}).encode()


@pytest.fixture(scope="module")
def server() -> Iterator[ModuleType]:
    """The reader of the Project API server, which has no package but its own."""
    sys.path.insert(0, str(data_dir("project_template")))
    yield importlib.import_module("api_server.archive")
    sys.path.pop(0)
    for name in [name for name in sys.modules if name.split(".")[0] == "api_server"]:
        del sys.modules[name]


def tar_of(*members: tuple[str, int] | tarfile.TarInfo, content: bytes = b"x") -> bytes:
    """Metadata that says as little as it may, then members of these sizes."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for member in (("metadata.json", len(SMALLEST)), *members):
            entry = member if isinstance(member, tarfile.TarInfo) else tarfile.TarInfo(member[0])
            entry.size = entry.size if isinstance(member, tarfile.TarInfo) else member[1]
            data = SMALLEST if entry.name == "metadata.json" else content * entry.size
            tar.addfile(entry, io.BytesIO(data))
    return stream.getvalue()


def special(name: str, kind: bytes = tarfile.REGTYPE, **fields: Any) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type = kind
    for field, value in fields.items():
        setattr(entry, field, value)
    return entry


def said(server: ModuleType, folder: Path, data: bytes) -> str:
    """What the server says against an archive; empty where it takes it."""
    path = folder / "a.tar"
    path.write_bytes(data)
    try:
        server.read_archive(path)
    except server.ServerError as error:
        return str(error).replace(str(path), "A")
    return ""


FOLDER = special("f", tarfile.DIRTYPE)
WOULD_LEAVE = "would not stay in the project; wanted a plain relative path"
MEMBERS = [
    ([("f/a", 3), ("f/b", 0)], ""),
    ([FOLDER, ("f/a", 3)], ""),
    ([("f/a", 3), FOLDER], ""),
    ([FOLDER, FOLDER], ""),
    ([("./f//a", 3)], ""),
    ([("f/a", 3), ("f/a", 3)], "A: member 'f/a' stands there twice"),
    ([("f/a", 3), ("./f/a", 3)], "A: member './f/a' stands there twice"),
    ([("f", 3), FOLDER], "A: member 'f' stands there twice"),
    ([FOLDER, ("f", 3)], "A: member 'f' stands there twice"),
    ([("f/a", 3), ("f", 3)], "A: member 'f' stands there twice"),
    ([("f", 3), ("f/g/a", 3)], "A: member 'f/g/a' is inside 'f', which is a file"),
    ([("./", 3)], "A: member './' stands there twice"),
    ([("../a", 3)], f"A: member '../a' {WOULD_LEAVE}"),
    ([("f/../a", 3)], f"A: member 'f/../a' {WOULD_LEAVE}"),
    ([("f/..", 3)], f"A: member 'f/..' {WOULD_LEAVE}"),
    ([("f/..a", 3)], ""),
    ([("/a", 3)], f"A: member '/a' {WOULD_LEAVE}"),
    ([("f\\a", 3)], f"A: member 'f\\\\a' {WOULD_LEAVE}"),
    ([("c:a", 3)], f"A: member 'c:a' {WOULD_LEAVE}"),
    ([("f\na", 3)], f"A: member 'f\\na' {WOULD_LEAVE}"),
    ([(f"{'n' * 240}/{'m' * 240}", 3)], ""),
    ([(f"{'n' * 241}/a", 3)], "... has too long a name"),
    ([("/".join(["n" * 204] * 5), 3)], ""),
    ([("/".join(["n" * 204] * 5) + "n", 3)], "... has too long a name"),
    ([special("a", tarfile.SYMTYPE, linkname="b")], "A: member 'a' is a symbolic link; wanted files and folders alone"),
    ([special("a", tarfile.FIFOTYPE)], "A: member 'a' is a named pipe; wanted files and folders alone"),
    ([special("a", b"Z")], "A: member 'a' is of no known kind; wanted files and folders alone"),
]  # fmt: skip


@pytest.mark.parametrize(("members", "words"), MEMBERS, ids=range(len(MEMBERS)))
def test_members(server: ModuleType, members: list[Any], words: str, tmp_path: Path) -> None:
    told = said(server, tmp_path, tar_of(*members))
    assert told.endswith(words) if words else not told


def test_contents_come_out_as_they_went_in(server: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    path.write_bytes(tar_of(("./f/a", 700), ("b", 0)))
    archive = server.read_archive(path)
    assert archive.files == {"metadata.json": SMALLEST, "f/a": b"x" * 700, "b": b""}
    assert (archive.path, archive.metadata) == (path, json.loads(SMALLEST))


def test_the_end(server: ModuleType, tmp_path: Path) -> None:
    """Two blocks of zeros; what follows does not matter, what is in them does."""
    data = tar_of(("a", 700)).rstrip(b"\0")
    whole = data + bytes(-len(data) % BLOCK)
    truncated = f"archive A is truncated at byte {len(whole) + BLOCK}: it has no end; make it anew"
    assert said(server, tmp_path, whole + bytes(2 * BLOCK)) == ""
    assert said(server, tmp_path, whole + bytes(2 * BLOCK) + b"more") == ""
    assert said(server, tmp_path, whole + bytes(BLOCK)) == truncated
    short = said(server, tmp_path, whole + bytes(2 * BLOCK - 1))
    assert short == truncated.replace(str(len(whole) + BLOCK), str(len(whole) + 2 * BLOCK - 1))
    damaged = f"archive A is damaged at byte {len(whole)} of {len(whole) + 2 * BLOCK}; make it anew"
    assert said(server, tmp_path, whole + bytes(2 * BLOCK - 1) + b"!") == damaged
    assert said(server, tmp_path, whole[:-BLOCK]).endswith("'a' goes beyond its end; make it anew")
    assert said(server, tmp_path, data[: len(whole) - 1]).endswith("make it anew")


LIMITS = [  # name of the limit, its value, what just fits, what does not, and what is said
    ("MOST_MEMBERS", 3, [("a", 1), ("b", 1)], [("a", 1), ("b", 1), ("c", 1)], "archive A has more than 3 members"),
    ("LONGEST_MEMBER", 100, [("a", 100)], [("a", 101)], "archive A: member 'a' has 101 bytes; wanted at most 100"),
    ("LONGEST_ARCHIVE", 10240, [("a", 1)], [("a", 9000)],
     "cannot read archive A: it has 20480 bytes; wanted at most 10240"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value", "fits", "not_", "words"), LIMITS, ids=lambda value: str(value)[:14])
def test_limits(
    server: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
    name: str, value: int, fits: list[Any], not_: list[Any], words: str,
) -> None:  # fmt: skip
    monkeypatch.setattr(server, name, value)
    assert said(server, tmp_path, tar_of(*fits)) == ""
    assert said(server, tmp_path, tar_of(*not_)) == words


def test_the_limit_of_metadata(server: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for module, name in ((server, "LONGEST_METADATA"), (archive_reader, "LONGEST")):
        monkeypatch.setattr(module, name, len(SMALLEST))
    assert said(server, tmp_path, tar_of()) == ""
    read_metadata(tmp_path / "a.tar")
    for module, name in ((server, "LONGEST_METADATA"), (archive_reader, "LONGEST")):
        monkeypatch.setattr(module, name, len(SMALLEST) - 1)
    words = f"metadata.json has {len(SMALLEST)} bytes; wanted at most {len(SMALLEST) - 1}"
    assert said(server, tmp_path, tar_of()) == f"archive A: {words}"
    with pytest.raises(UaccelError, match=f"{words}$"):
        read_metadata(tmp_path / "a.tar")


def test_the_limits_themselves(server: ModuleType) -> None:
    """Larger than what any model has, and small enough for any computer."""
    assert (server.VERSION, server.MOST_MEMBERS, server.LONGEST_NAME, server.BLOCK) == (7, 10_000, 240, BLOCK)
    assert (server.LONGEST_MEMBER, server.LONGEST_ARCHIVE, server.LONGEST_METADATA) == (1 << 30, 1 << 32, 1 << 26)
    assert (archive_reader.VERSION, archive_reader.MOST_MEMBERS) == (7, 10_000)
    assert (archive_reader.LONGEST, archive_reader.LONGEST_MODEL) == (1 << 26, 1 << 28)


VERSIONS = [
    (b"", "metadata.json is not JSON: Expecting value: line 1 column 1 (char 0)"),
    (b"{}", "metadata.json has no version; wanted Model Library Format 7"),
    (b"[]", "metadata.json has no version; wanted Model Library Format 7"),
    (b'{"version": true}', "metadata.json has no version; wanted Model Library Format 7"),
    (b'{"version": "7"}', "metadata.json has no version; wanted Model Library Format 7"),
    (b'{"version": 8}', "use a newer uaccel"),
    (b'{"version": 6}', "compile the model anew"),
    (b"{", "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
]


@pytest.mark.parametrize(("metadata", "words"), VERSIONS, ids=range(len(VERSIONS)))
def test_versions(server: ModuleType, metadata: bytes, words: str, tmp_path: Path) -> None:
    stream = io.BytesIO()
    write_tar(stream, {"metadata.json": metadata})
    assert said(server, tmp_path, stream.getvalue()).endswith(words)
    with pytest.raises(UaccelError) as caught:
        read_metadata(tmp_path / "a.tar")
    assert str(caught.value).endswith(words)


# Looking into one


def written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def test_what_is_looked_at(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Members before metadata are counted, those behind it are not even read."""
    monkeypatch.setattr(archive_reader, "MOST_MEMBERS", 2)
    entries = {f"{letter}": b"" for letter in "abc"}

    def archive(before: int) -> Path:
        stream = io.BytesIO()
        with tarfile.open(fileobj=stream, mode="w") as tar:
            for name in [*list(entries)[:before], "metadata.json"]:
                entry = special(name, size=len(SMALLEST) if name == "metadata.json" else 0)
                tar.addfile(entry, io.BytesIO(SMALLEST))
        return written(tmp_path / f"{before}.tar", stream.getvalue()[: -(-len(stream.getvalue()) // BLOCK) * BLOCK])

    for before in (0, 1, 2):
        assert read_metadata(archive(before)).model == "m"
    with pytest.raises(UaccelError, match=r"3.tar has more than 2 members$"):
        read_metadata(archive(3))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"PK\3\4 and more", "is a zip; projects are made of the tar that 'uaccel compile -o X.tar' writes"),
        (b"PK\3", "is no tar file or is damaged (truncated header); make it anew"),
        (tar_of()[: BLOCK + len(SMALLEST) - 1], "is no tar file or is damaged (unexpected end of data); make it anew"),
        (tar_of()[BLOCK * 2 :], "has no metadata.json; wanted an archive that 'uaccel compile' wrote"),
    ],
)
def test_what_is_no_archive(data: bytes, words: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a.tar", data)
    with pytest.raises(UaccelError) as caught:
        read_metadata(path)
    assert str(caught.value) == f"archive {path} {words}"


def test_a_link_of_the_name_is_no_metadata(tmp_path: Path) -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        tar.addfile(special("metadata.json", tarfile.SYMTYPE, linkname="/etc/passwd"))
    with pytest.raises(UaccelError, match=r"has no metadata\.json"):
        read_metadata(written(tmp_path / "a.tar", stream.getvalue()))


def test_a_folder_and_nothing(tmp_path: Path) -> None:
    with pytest.raises(UaccelError, match="is a folder; projects are made of the tar"):
        read_metadata(tmp_path)
    with pytest.raises(UaccelError, match=r"^cannot read archive .*: No such file or directory$"):
        read_metadata(tmp_path / "absent.tar")


FACTS = {"board": "host", "workspace_io": True, "favour": "speed", "requires": ["fpu"]}


def metadata_of(tmp_path: Path, facts: dict[str, Any], files: dict[str, bytes]) -> Any:
    document = json.dumps({"version": 7, "modules": {"m": {"memory": {"functions": {"main": [{}]}}}}, "uaccel": facts})
    stream = io.BytesIO()
    write_tar(stream, {"metadata.json": document.encode(), **files})
    return written(tmp_path / "a.tar", stream.getvalue())


def test_facts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(archive_reader, "wrong_with", lambda document: "")
    found = read_metadata(metadata_of(tmp_path, FACTS, {}))
    assert (found.board, found.workspace_io, found.favour, found.requires) == ("host", True, "speed", ["fpu"])
    assert (found.model, found.main, found.at("uaccel", "requires", 0)) == ("m", {}, "fpu")
    with pytest.raises(UaccelError, match=r"has no uaccel.requires.1; compile the model with this uaccel$"):
        found.at("uaccel", "requires", 1)
    none = read_metadata(metadata_of(tmp_path, {}, {}))
    assert (none.board, none.workspace_io, none.favour, none.requires) == (None, False, "balanced", [])


def test_the_model_within(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(archive_reader, "wrong_with", lambda document: "")
    data, name = b"the model", "model/m.tflite"
    facts = {"model": {"file": name, "file_sha256": sha256(data).hexdigest()}}
    path = metadata_of(tmp_path, facts, {name: data})
    assert read_model(path, read_metadata(path)) == ModelFile(".tflite", data)
    monkeypatch.setattr(archive_reader, "LONGEST_MODEL", len(data))
    assert read_model(path, read_metadata(path)).data == data
    monkeypatch.setattr(archive_reader, "LONGEST_MODEL", len(data) - 1)
    with pytest.raises(UaccelError, match=rf"{name} has 9 bytes; wanted at most 8$"):
        read_model(path, read_metadata(path))
    other = metadata_of(tmp_path, facts, {name: b"a model"})
    with pytest.raises(UaccelError, match=r"is not the model that its code was made of; compile it anew$"):
        read_model(other, read_metadata(other))
    for facts_, files in ((facts, {}), ({"model": {"file": None}}, {name: data})):
        without = metadata_of(tmp_path, facts_, files)
        with pytest.raises(UaccelError, match=r"does not hold its model; compile the model with this uaccel$"):
            read_model(without, read_metadata(without))
