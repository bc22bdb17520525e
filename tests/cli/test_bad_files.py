"""What is no file of the kind that a command reads: every option that takes one, and everything that may lie there."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Final

import pytest

from support.models.onnx_models import Graph
from support.run.command import Call
from uaccel.cli import app

MOST_SECONDS: Final = 20
# What lies at a path, and what is said of it: the opener's words, or a command's own.
_NAMES: Final = ("no file can have this name", "embedded null byte", "surrogates not allowed")
BAD: Final = {
    "zero": ("it is a device and no regular file",),
    "pipe": ("it is a pipe and no regular file",),
    "sparse": ("it has 107,374,182,400 bytes, and at most ",),
    "folder": ("Is a directory", "is a directory, wanted", "holds no files", "has no .npy files"),
    "loop": ("Too many levels of symbolic links", "no model file"),
    "none\nat all": ("No such file or directory", "no model file"),
    "nul\0nul": _NAMES,
    "surrogate\ud800": _NAMES,
}
# Commands with the place where a bad file stands, and the end of its name; SMALL, FLOAT and
# ARCHIVE are good ones.
COMMANDS: Final = [
    "compile {}.tflite -b host",
    "compile {}.onnx -b host",
    "compile {}.pt2 -b host",
    "compile SMALL -b {}.toml",
    "compile SMALL -b host -a vanilla --engines {}.toml",
    "compile SMALL -b host --records {}.json",
    "run SMALL -b host --inputs {}.npz",
    "run {}.tflite -b host --verify",
    "explain {}.onnx -b host",
    "evaluate SMALL -b host --data {}.npy --labels none.csv",
    "evaluate SMALL -b host --data {}.npz --labels none.csv",
    "evaluate {}.tflite -b host --data none.npy --labels none.csv",
    "export {}.tflite --to c -o out",
    "export SMALL --to c --inputs {}.npz -o out",
    "create {}.tar project -b host",
    "create ARCHIVE project -b host --protocol mlperf-tiny --energy-pin {}.c",
    "create ARCHIVE project -b {}.toml",
    "synth vanilla --against {}.json",
    "report {}.json -o out.html",
    "report {}.jsonl -o out.html",
    "report {}.tflite -b host -o out.html",
    "report SMALL -b host --quantized {}.json -o out.html",
    "sweep {}.toml -o out.jsonl",
    "tune {}.tflite -b host",
    "quantize {}.onnx -c .",
    "quantize FLOAT -c {}.npy",
    "quantize FLOAT -c {}.npz",
    "new board mine --target stm32f4 --pack {}.pack",
    "worker tls://127.0.0.1:9 --tls {}.pem",
]


def put(kind: str, place: Path) -> None:
    """Puts something bad at a path; what is only a bad name is not there."""
    if kind == "zero":
        place.symlink_to("/dev/zero")
    elif kind == "pipe":
        os.mkfifo(place)
    elif kind == "sparse":
        with place.open("wb") as file:
            file.truncate(100 << 30)
    elif kind == "folder":
        place.mkdir()
    elif kind == "loop":
        place.symlink_to(place.name)


@pytest.fixture(scope="session")
def floats(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A float model."""
    graph = Graph()
    graph.outputs.append((graph.apply("Relu", graph.input((1, 4), "float32")), "float32"))
    return graph.save(tmp_path_factory.mktemp("float") / "float.onnx")


@pytest.fixture(scope="session")
def archive(small: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive of a model, for the board host."""
    path = tmp_path_factory.mktemp("archive") / "small.tar"
    assert app.main(["compile", str(small), "-b", "host", "-o", str(path)]) == 0
    return path


@pytest.fixture
def alarm() -> Iterator[None]:
    """A command that waits or reads for ever fails the test, and does not hold it up."""

    def late(_: int, __: FrameType | None) -> None:
        raise AssertionError("it takes too long")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(MOST_SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def refused(call: Call, command: str, kind: str) -> None:
    """The command with something bad in its place ends soon, in one line that says what was seen."""
    given = [word.replace("{}", kind) for word in command.split()]
    for place in {Path(name) for word, name in zip(command.split(), given, strict=True) if "{}" in word}:
        put(kind, place)
    done = call(*given, "--json")
    assert done.status in (1, 2), done.err
    assert any(reason in done.complaint for reason in BAD[kind])
    assert done.report["error"]["status"] == done.status


@pytest.mark.sample(8)
@pytest.mark.usefixtures("alarm")
@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_no_file_is_refused(
    command: str, small: Path, floats: Path, archive: Path, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, path in {"FLOAT": floats, "ARCHIVE": archive, "SMALL": small}.items():
        command = command.replace(name, str(path))
    for kind in BAD if "-b {}" in command or "{}.npy" in command else ("pipe", "sparse"):
        refused(call, command, kind)
