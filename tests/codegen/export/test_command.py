"""``uaccel export`` and what ``compile -o`` makes of a name: reports, errors, folders and zips."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from support.models.networks import OWN
from support.run.command import Call, call_in

GESTURE = OWN / "gesture.tflite"
SAMPLE = "tvmgen_gesture_sample.h"


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str]) -> Call:
    return call_in(capfd)


def test_the_report(call: Call, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    report = call("export", GESTURE, "--to", "c", "-o", folder, "--json").report
    assert (report["format"], report["folder"], report["name"]) == ("c", str(folder), "gesture")
    assert report["files"] == sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    )
    assert report["ram"]["arena"] == 320


def test_the_readme_s_command_makes_the_same(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import shlex

    call("export", GESTURE, "--to", "make", "--name", "x", "-o", tmp_path / "first", "--favour", "size")
    (line,) = [row for row in (tmp_path / "first/README.md").read_text().splitlines() if row.startswith("Made by `")]
    words = shlex.split(line.removeprefix("Made by `").removesuffix("`."))
    assert words[-2:] == ["-o", "first"]
    monkeypatch.chdir(OWN)
    (tmp_path / "again").mkdir()
    second = tmp_path / "again" / "first"
    assert call(*words[1:-1], second).status == 0
    for path in (tmp_path / "first").rglob("*.[ch]"):
        assert path.read_bytes() == (second / path.relative_to(tmp_path / "first")).read_bytes()
    assert f"regenerate:\n *   {shlex.join(words)}\n" in (second / "include/tvmgen_x.h").read_text()


def test_the_sample_is_the_users(call: Call, tmp_path: Path) -> None:
    given = np.full((1, 32, 1, 3), 77, np.int8)
    np.savez(tmp_path / "in.npz", motion=given)
    done = call("export", GESTURE, "--to", "c", "-o", tmp_path / "out", "--inputs", tmp_path / "in.npz")
    assert done.status == 0
    text = (tmp_path / "out" / SAMPLE).read_text()
    assert text.count(" 77,") == given.size - 1


def a_full_folder(place: Path) -> list[str | Path]:
    (place / "out").mkdir()
    (place / "out/mine.c").write_text("")
    return ["--to", "c", "-o", place / "out"]


def a_file(place: Path) -> list[str | Path]:
    (place / "out").write_text("")
    return ["--to", "c", "-o", place / "out"]


def nowhere(place: Path) -> list[str | Path]:
    return ["--to", "c", "-o", place / "no/out"]


def two_samples(place: Path) -> list[str | Path]:
    np.savez(place / "in.npz", motion=np.zeros((2, 32, 1, 3), np.int8))
    return ["--to", "c", "-o", place / "out", "--inputs", place / "in.npz"]


def idle(place: Path) -> list[str | Path]:
    return ["--to", "c", "-o", place / "out", "--accelerator", "vanilla"]


REFUSED: list[tuple[Callable[[Path], list[str | Path]], str]] = [
    (a_full_folder, "cannot write folder {0}/out: the folder holds files already; choose a new one with -o"),
    (a_file, "cannot write folder {0}/out: it is a file; choose a new one with -o"),
    (nowhere, "cannot write folder {0}/no/out: there is no folder {0}/no; choose a new one with -o"),
    (two_samples, "{0}/in.npz holds 2 samples, and the example feeds one; give an array of one sample"),
    (idle, "nothing is offloaded to vanilla"),
]


@pytest.mark.parametrize(("options", "complaint"), REFUSED)
def test_what_is_refused(
    options: Callable[[Path], list[str | Path]], complaint: str, call: Call, tmp_path: Path
) -> None:
    done = call("export", GESTURE, *options(tmp_path))
    assert done.status == 1
    assert complaint.format(tmp_path) in done.complaint
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_an_unknown_format_is_an_error_of_usage(call: Call, tmp_path: Path) -> None:
    done = call("export", GESTURE, "--to", "keil", "-o", tmp_path / "out")
    assert done.status == 2
    formats = "c, single, cmake, make, arduino, platformio, zephyr, esp-idf, cmsis-pack"
    one_of = formats.replace(", ", "', '")
    asked = "see 'uaccel export --help'"
    assert done.complaint == f"Invalid value for '--to': 'keil' is not one of '{one_of}'; {asked}"
    done = call("export", GESTURE, "-o", tmp_path / "out")
    assert (done.status, done.complaint) == (2, f"Missing option '--to'. Choose from: {formats}; {asked}")


def test_a_zip_holds_the_folder(call: Call, tmp_path: Path) -> None:
    file = tmp_path / "mine.zip"
    done = call("export", GESTURE, "--to", "single", "-o", file)
    assert f"unzip {file} && cat mine/README.md" in " ".join(done.out.split())
    with zipfile.ZipFile(file) as archive:
        assert archive.testzip() is None
        assert {name for name in archive.namelist() if not name.endswith((".json", ".txt"))} == {
            f"mine/{name}" for name in ("README.md", "main.c", "tvmgen_gesture.c", "tvmgen_gesture.h", SAMPLE)
        }


def test_an_archive_is_what_its_name_says(call: Call, tmp_path: Path) -> None:
    for output in ("a.tar", "a.zip", "a/", "plain"):
        assert call("compile", GESTURE, "-o", f"{tmp_path}/{output}").status == 0
    with tarfile.open(tmp_path / "a.tar") as tar:
        files = {m.name.removeprefix("./"): tar.extractfile(m) for m in tar.getmembers() if m.isfile()}
        wanted = {name: stream.read() for name, stream in files.items() if stream is not None}
    with zipfile.ZipFile(io.BytesIO((tmp_path / "a.zip").read_bytes())) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == wanted
    folder = tmp_path / "a"
    assert {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()} == wanted
    assert (tmp_path / "plain").read_bytes() == (tmp_path / "a.tar").read_bytes()


def test_a_folder_is_not_written_over(call: Call, tmp_path: Path) -> None:
    assert call("compile", GESTURE, "-o", f"{tmp_path}/a/").status == 0
    done = call("compile", GESTURE, "-o", f"{tmp_path}/a/")
    assert (
        done.complaint == f"cannot write folder {tmp_path}/a: the folder holds files already; choose a new one with -o"
    )
