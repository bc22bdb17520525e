"""Archives that are broken, hostile or of another format: one line says so, and nothing is written anywhere."""

from __future__ import annotations

import io
import json
import random
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from support.device.generated import gesture_files
from support.run.raw_server import RawServer
from uaccel.build.archive_reader import read_metadata
from uaccel.errors import UaccelError
from uaccel.util.files import write_tar

Change = Callable[[tarfile.TarFile], None]
BLOCK = 512


def with_members(change: Change, files: dict[str, bytes] | None = None) -> bytes:
    """A good archive, and more in it."""
    stream = io.BytesIO()
    write_tar(stream, gesture_files() if files is None else files)
    good = stream.getvalue()
    more = io.BytesIO()
    with tarfile.open(fileobj=more, mode="w", format=tarfile.GNU_FORMAT) as tar:
        change(tar)
    end = len(good.rstrip(b"\0"))
    return good[: -(-end // BLOCK) * BLOCK] + more.getvalue()


def file(name: str, content: bytes = b"evil", **fields: object) -> Change:
    def change(tar: tarfile.TarFile) -> None:
        entry = tarfile.TarInfo(name)
        entry.size = len(content)
        for field, value in fields.items():
            setattr(entry, field, value)
        tar.addfile(entry, io.BytesIO(content))

    return change


def special(kind: bytes, name: str = "model/thing", target: str = "") -> Change:
    return file(name, b"", type=kind, linkname=target)


def huge(size: int) -> Change:
    """A header that claims so much, and nothing behind it."""

    def change(tar: tarfile.TarFile) -> None:
        entry = tarfile.TarInfo("src/huge")
        entry.size = size
        assert tar.fileobj is not None
        tar.fileobj.write(entry.tobuf(tarfile.GNU_FORMAT))
        tar.offset += BLOCK

    return change


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def generate(server: RawServer, data: bytes, folder: Path, **options: object) -> dict[str, object]:
    """The reply of a server that is given this archive."""
    (folder / "model.tar").write_bytes(data)
    return server.ask(
        "generate_project",
        model_library_format_path=str(folder / "model.tar"),
        standalone_crt_dir=str(folder),
        project_dir=str(folder / "below" / "project"),
        options=options,
    )


def refused(server: RawServer, data: bytes, folder: Path, **options: object) -> str:
    """The one line that refuses an archive; nothing else has happened, not even beside the project."""
    reply = generate(server, data, folder, **options)
    error = reply["error"]
    assert isinstance(error, dict)
    assert error["code"] == -32000
    message = str(error["message"])
    assert "\n" not in message
    assert str(folder / "model.tar") in message
    assert list(folder.iterdir()) == [folder / "model.tar"]
    return message.replace(str(folder), "DIR")


WOULD_LEAVE = "would not stay in the project; wanted a plain relative path"


@pytest.mark.parametrize(
    "name",
    [
        "/etc/evil",
        "//evil",
        "../evil",
        "./../evil",
        "src/../../evil",
        "src/..",
        "..",
        "src\\..\\..\\evil",
        "C:/evil",
        "C:evil",
        "src/a\nb",
        "src/\x1b[31m",
        "src/\udcff",
    ],
    ids=repr,
)
def test_names_that_lead_out_of_the_project(name: str, tmp_path: Path, template: RawServer) -> None:
    message = refused(template, with_members(file(name)), tmp_path)
    assert message.endswith(WOULD_LEAVE)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (special(tarfile.SYMTYPE, target="/etc/passwd"), "a symbolic link"),
        (special(tarfile.SYMTYPE, target="../../.."), "a symbolic link"),
        (special(tarfile.LNKTYPE, target="metadata.json"), "a hard link"),
        (special(tarfile.LNKTYPE, target="/etc/passwd"), "a hard link"),
        (special(tarfile.CHRTYPE), "a character device"),
        (special(tarfile.BLKTYPE), "a block device"),
        (special(tarfile.FIFOTYPE), "a named pipe"),
        (special(b"Z"), "of no known kind"),
    ],
    ids=["symlink", "symlink up", "hard link", "hard link away", "char", "block", "fifo", "unknown"],
)
def test_members_that_are_no_files(change: Change, what: str, tmp_path: Path, template: RawServer) -> None:
    message = refused(template, with_members(change), tmp_path)
    assert message == f"archive DIR/model.tar: member 'model/thing' is {what}; wanted files and folders alone"


def test_a_link_and_then_a_file_through_it(tmp_path: Path, template: RawServer) -> None:
    def change(tar: tarfile.TarFile) -> None:
        special(tarfile.SYMTYPE, "src/door", str(tmp_path))(tar)
        file("src/door/evil")(tar)

    assert "is a symbolic link" in refused(template, with_members(change), tmp_path)


@pytest.mark.parametrize(
    ("size", "words"),
    [
        ((1 << 30) + 1, "member 'src/huge' has 1073741825 bytes; wanted at most 1073741824"),
        (1 << 40, "member 'src/huge' has 1099511627776 bytes; wanted at most 1073741824"),
        (1 << 20, "is truncated: 'src/huge' goes beyond its end; make it anew"),
    ],
)
def test_members_that_claim_too_much(size: int, words: str, tmp_path: Path, template: RawServer) -> None:
    assert refused(template, with_members(huge(size)), tmp_path).endswith(words)


def test_a_sparse_file_that_would_fill_the_disk(tmp_path: Path, template: RawServer) -> None:
    """A few bytes in the archive, a tebibyte outside."""

    def change(tar: tarfile.TarFile) -> None:
        entry = tarfile.TarInfo("src/sparse")
        entry.type = tarfile.GNUTYPE_SPARSE
        header = bytearray(entry.tobuf(tarfile.GNU_FORMAT))
        header[386:410] = b"00000000000\0" + b"00000000000\0"
        header[483:495] = b"\x80" + (1 << 40).to_bytes(11, "big")
        header[148:156] = b" " * 8
        header[148:156] = f"{sum(header):06o}\0 ".encode()
        assert tar.fileobj is not None
        tar.fileobj.write(bytes(header))
        tar.offset += BLOCK

    assert "'src/sparse' is a sparse file; wanted files and folders alone" in refused(
        template, with_members(change), tmp_path
    )


def test_more_members_than_any_model_has(tmp_path: Path, template: RawServer) -> None:
    def change(tar: tarfile.TarFile) -> None:
        for number in range(10_001):
            file(f"src/{number}", b"")(tar)

    assert refused(template, with_members(change), tmp_path) == "archive DIR/model.tar has more than 10000 members"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ([file("metadata.json")], "member 'metadata.json' stands there twice"),
        ([file("./metadata.json")], "member './metadata.json' stands there twice"),
        ([file("src/a"), file("src/a/b")], "member 'src/a/b' is inside 'src/a', which is a file"),
        ([file("src/a/b"), file("src/a")], "member 'src/a' stands there twice"),
        ([file("metadata.json/x")], "member 'metadata.json/x' is inside 'metadata.json', which is a file"),
        ([file("src/" + "x" * 300)], "has too long a name"),
        ([file("/".join("y" * 99 for _ in range(12)))], "has too long a name"),
    ],
    ids=["twice", "twice with ./", "file in file", "file over folder", "in metadata", "long name", "long path"],
)
def test_members_that_contradict(changes: list[Change], words: str, tmp_path: Path, template: RawServer) -> None:
    def change(tar: tarfile.TarFile) -> None:
        for each in changes:
            each(tar)

    assert refused(template, with_members(change), tmp_path).endswith(words)


def good() -> bytes:
    return with_members(lambda tar: None)


def test_the_archive_that_the_others_are_made_of_is_good(tmp_path: Path, template: RawServer) -> None:
    assert generate(template, good(), tmp_path)["result"] is None
    project = tree(tmp_path / "below" / "project")
    assert project["model/metadata.json"] == gesture_files()["metadata.json"]
    assert project["model.tar"] == good()


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        (None, "has no metadata.json; wanted an archive that 'uaccel compile' wrote"),
        (b"", "metadata.json is not JSON: Expecting value: line 1 column 1 (char 0)"),
        (b"\xff", "metadata.json is not JSON: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"),
        (b"[" * 100_000, None),
        (b"[]", "metadata.json has no version; wanted Model Library Format 7"),
        (b"{}", "metadata.json has no version; wanted Model Library Format 7"),
        (b'{"version": "7"}', "metadata.json has no version; wanted Model Library Format 7"),
        (b'{"version": true}', "metadata.json has no version; wanted Model Library Format 7"),
        (b'{"version": 7.0}', "metadata.json has no version; wanted Model Library Format 7"),
        (b'{"version": 8}', "Library Format 8, a version later than 7, which is wanted: use a newer uaccel"),
        (b'{"version": 99}', "Library Format 99, a version later than 7, which is wanted: use a newer uaccel"),
        (b'{"version": 5}', "Library Format 5, a version earlier than 7, which is wanted: compile the model anew"),
        (b'{"version": 7}', None),
        (b'{"version": 7, "uaccel": 5}', None),
    ],
    ids=lambda value: repr(value[:20]) if isinstance(value, bytes) else "",
)
def test_metadata(metadata: bytes | None, words: str | None, tmp_path: Path, template: RawServer) -> None:
    """Where only the format counts, an archive that says no more passes."""
    files = {name: data for name, data in gesture_files().items() if name != "metadata.json"}
    stream = io.BytesIO()
    write_tar(stream, files if metadata is None else files | {"metadata.json": metadata})
    if metadata and metadata.startswith(b'{"version": 7') and words is None:
        assert generate(template, stream.getvalue(), tmp_path)["result"] is None
        return
    message = refused(template, stream.getvalue(), tmp_path)
    assert words is None or message.endswith(words)
    with pytest.raises(UaccelError) as ours:
        read_metadata(tmp_path / "model.tar")
    assert "\n" not in str(ours.value)
    assert str(tmp_path / "model.tar") in str(ours.value)


def test_an_archive_that_is_for_no_board(tmp_path: Path, template: RawServer) -> None:
    files = {name: data for name, data in gesture_files().items() if not name.startswith("templates/project/")}
    stream = io.BytesIO()
    write_tar(stream, files)
    assert "holds nothing for a board; make it with 'uaccel compile --board B'" in refused(
        template, stream.getvalue(), tmp_path
    )


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("templates/project/microtvm_api_server.py", "microtvm_api_server.py is not for a board; wanted board/ or f"),
        ("templates/project/api_server/main.py", "api_server/main.py is not for a board; wanted board/ or firmware/"),
        ("templates/project/CMakeLists.txt", "CMakeLists.txt is not for a board; wanted board/ or firmware/"),
    ],
)
def test_an_archive_that_would_replace_the_server(name: str, words: str, tmp_path: Path, template: RawServer) -> None:
    assert words in refused(template, with_members(file(name)), tmp_path)


def test_an_archive_that_would_replace_the_runtime(tmp_path: Path, template: RawServer) -> None:
    evil = "templates/project/firmware/runtime/uaccel_server.c"
    reply = generate(template, with_members(file(evil)), tmp_path)
    assert isinstance(reply["error"], dict)
    assert reply["error"]["message"] == (
        "what the board adds would replace firmware/runtime/uaccel_server.c of the template"
    )
    assert not (tmp_path / "below" / "project").exists()


@pytest.mark.parametrize(
    "data",
    [b"", b"\0" * 10, b"\0" * 1024, b"\0" * 10240, b"hello", b"PK\x03\x04" + bytes(600), b"x" * 5000],
    ids=["empty", "ten", "two blocks", "zeros", "hello", "zip", "text"],
)
def test_what_is_no_tar(data: bytes, tmp_path: Path, template: RawServer) -> None:
    message = refused(template, data, tmp_path)
    assert message.startswith("archive DIR/model.tar ")
    with pytest.raises(UaccelError):
        read_metadata(tmp_path / "model.tar")


@pytest.mark.parametrize("mode", ["gz", "bz2", "xz"])
def test_a_packed_archive(mode: str, tmp_path: Path, template: RawServer) -> None:
    """Which could unpack to any size."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=f"w:{mode}") as tar:  # type: ignore[call-overload]
        file("metadata.json", b'{"version": 7}')(tar)
    assert "is no tar file or is damaged" in refused(template, stream.getvalue(), tmp_path)


def test_a_folder_and_a_file_that_is_not_there(tmp_path: Path, template: RawServer) -> None:
    params = {"standalone_crt_dir": ".", "project_dir": str(tmp_path / "p"), "options": {}}
    error = template.error("generate_project", model_library_format_path=str(tmp_path), **params)
    assert error["message"] == f"cannot read archive {tmp_path}: Is a directory"
    error = template.error("generate_project", model_library_format_path=str(tmp_path / "none"), **params)
    assert error["message"] == f"cannot read archive {tmp_path / 'none'}: No such file or directory"
    assert list(tmp_path.iterdir()) == []


def test_every_truncation_is_refused(tmp_path: Path, template: RawServer) -> None:
    """At every block, and around each: only the padding behind the end may be missing."""
    data = good()
    end = -(-len(data.rstrip(b"\0")) // BLOCK) * BLOCK + 2 * BLOCK
    lengths = sorted({min(end - 1, max(0, at + by)) for at in range(0, end, BLOCK) for by in (-1, 0, 1, 100)})
    assert len(lengths) > 500
    for length in lengths:
        refused(template, data[:length], tmp_path)
    assert generate(template, data[:end], tmp_path)["result"] is None


def damaged(data: bytes, generator: random.Random) -> bytes:
    """A few bytes changed, most of them in headers."""
    changed = bytearray(data)
    headers = [at for at in range(0, len(data), BLOCK) if data[at + 257 : at + 262] == b"ustar"]
    for _ in range(generator.choice([1, 1, 2, 5])):
        position = generator.choice(headers) + generator.randrange(BLOCK)
        changed[position] = generator.choice([0, 1, ord("0"), ord("7"), 0x80, 0xFF, changed[position] ^ 1])
    return bytes(changed)


def test_damage_is_refused_or_harmless(tmp_path: Path, template: RawServer) -> None:
    data, refusals = good(), 0
    for seed in range(300):
        reply = generate(template, damaged(data, random.Random(seed)), tmp_path)
        assert {path.name for path in tmp_path.iterdir()} <= {"model.tar", "below"}
        if "error" in reply:
            assert isinstance(reply["error"], dict)
            assert reply["error"]["code"] == -32000, reply
            assert "\n" not in reply["error"]["message"]
            refusals += 1
            assert not (tmp_path / "below" / "project").exists()
        else:
            project = tmp_path / "below" / "project"
            assert (project / "model.tar").is_file()
            project.rename(tmp_path / "below" / f"accepted {seed}")
    assert 200 < refusals < 300


def test_a_project_that_is_there_already(tar: Path, tmp_path: Path, template: RawServer) -> None:
    project = tmp_path / "below" / "project"
    project.mkdir(parents=True)
    (project / "mine.txt").write_text("precious")
    reply = generate(template, good(), tmp_path)
    assert isinstance(reply["error"], dict)
    assert reply["error"]["message"] == f"{project} exists already; name a folder that does not"
    assert tree(project) == {"mine.txt": b"precious"}


def test_an_empty_folder_is_filled_and_left_empty_on_failure(tmp_path: Path, template: RawServer) -> None:
    project = tmp_path / "below" / "project"
    project.mkdir(parents=True)
    evil = with_members(file("templates/project/firmware/runtime/uaccel_server.c"))
    assert "error" in generate(template, evil, tmp_path)
    assert list(project.iterdir()) == []
    assert generate(template, good(), tmp_path)["result"] is None


@pytest.mark.slow
def test_a_project_below_a_file(tmp_path: Path, template: RawServer) -> None:
    (tmp_path / "below").write_text("a file")
    reply = generate(template, good(), tmp_path)
    assert isinstance(reply["error"], dict)
    assert reply["error"]["code"] == -32000
    assert "below" in reply["error"]["message"]


def test_metadata_is_version_7(tar: Path) -> None:
    assert read_metadata(tar).data == json.loads(gesture_files()["metadata.json"])
