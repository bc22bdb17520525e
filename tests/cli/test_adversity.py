"""A disk that is full at any step, a process that is killed at any step, odd homes, paths and clocks: the right result
or one line, no litter, and the next command finds nothing of it."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.hostile.campaign import Result, run
from support.models.networks import OWN
from support.models.onnx_networks import convolutional
from support.run.command import Call
from uaccel.cli import app

GESTURE = OWN / "gesture.tflite"
CHANGING = ("os.mkdir", "os.rename", "os.link", "os.symlink", "tempfile.mkstemp", "tempfile.mkdtemp")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
MOST_STEPS = 400


class Steps:
    """Counts what changes the file system, and does something at one of them."""

    def __init__(self, at: int, act: Callable[[], object]) -> None:
        self.count, self._at, self._act = 0, at, act
        self.on = True
        sys.addaudithook(self._see)

    def _see(self, event: str, arguments: tuple[Any, ...]) -> None:
        writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITING
        if self.on and (writes or event in CHANGING) and arguments[0] != os.devnull:
            self.count += 1
            if self.count == self._at:
                self._act()


def full() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "somewhere")


def killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def nothing() -> None:
    """Only count."""


def command(kind: str, folder: Path) -> list[str]:
    output = folder / "out"
    if kind == "quantize":
        model = floats(folder.parent.parent)
        return [kind, str(model), "-c", str(model.with_suffix(".npy")), "-o", f"{output}.onnx"]
    if kind == "run":
        return ["run", str(GESTURE), "--outputs", f"{output}.npz"]
    return [kind, str(GESTURE), "-o", f"{output}.tar"] + (["--to", "c"] if kind == "export" else [])


def floats(folder: Path) -> Path:
    """A float model, and samples of it in an array beside it; written once."""
    path = folder / "floats.onnx"
    if not path.exists():
        pytest.importorskip("onnxruntime")
        net = convolutional()
        net.onnx.save(net.model(), path)
        shape = [entry.dim_value for entry in net.inputs[0].type.tensor_type.shape.dim]
        np.save(path.with_suffix(".npy"), np.random.default_rng(1).normal(size=(4, *shape[1:])).astype(np.float32))
    return path


def places(folder: Path, number: int) -> Path:
    """A folder of its own for each trial, and in it what is temporary and what is kept."""
    here = folder / f"{number}"
    for name in ("work", "tmp", "cache"):
        (here / name).mkdir(parents=True, exist_ok=True)
    os.environ.update(TMPDIR=str(here / "tmp"), UACCEL_CACHE=str(here / "cache"), HOME=str(here))
    import tempfile

    tempfile.tempdir = None
    return here


def once(kind: str, here: Path) -> tuple[int, str]:
    """The command's status, and what it says on stderr."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        status = app.main(command(kind, here / "work"))
    return status, said.getvalue()


def content(here: Path) -> dict[str, bytes]:
    work = here / "work"
    return {p.relative_to(work).as_posix(): p.read_bytes() for p in work.rglob("*") if p.is_file()}


def trials(kind: str, act: Callable[[], object], numbers: list[int], folder: Path) -> Iterator[Result]:
    """The command, with that at this step, each in a process of its own; its words: what is wrong, steps."""

    def one(number: int) -> tuple[int, str]:
        here = places(folder, number)
        steps = Steps(number, act)
        status, said = once(kind, here)
        steps.on = False
        wrong = []
        if status not in (0, 1, 4) or (status != 0) != (said.count("error: ") == 1):
            wrong.append(f"status {status}: {said[-300:]}")
        left = [path.name for path in (here / "tmp").iterdir()]
        wrong += [f"left behind {left}"] if left else []
        wrong += [f"a failed command wrote {sorted(content(here))}"] if status and content(here) else []
        return steps.count, "; ".join(wrong)

    return run(numbers, one, 120, 8192)


def again(kind: str, numbers: list[int], folder: Path) -> list[dict[str, bytes]]:
    """What the same command writes where something happened before; its first output goes away, if it has one."""

    def one(number: int) -> tuple[int, str]:
        here = places(folder, number)
        if kind == "export":
            for path in (here / "work").glob("out.tar/*"):
                path.unlink()
        return once(kind, here)

    done = list(run(numbers, one, 120, 8192))
    assert [(result.number, result.words) for result in done if result.status] == []
    return [content(folder / str(number)) for number in numbers]


def chosen(kind: str, folder: Path, most: int) -> tuple[list[int], dict[str, bytes]]:
    """Steps of the command, the first, the last and some between; and what it writes where nothing happens."""
    command(kind, folder / "0" / "work")  # what it reads is there
    (counted,) = trials(kind, nothing, [0], folder)
    assert counted.words == ""
    assert 3 < (counted.status or 0) < MOST_STEPS
    last = counted.status or 0
    return sorted({1 + (last - 1) * part // (most - 1) for part in range(most)}), content(folder / "0")


def outputs_alone(files: dict[str, bytes]) -> set[str]:
    return {name for name in files if name.startswith("out")}


KINDS = [
    pytest.param("compile", 3, id="compile"),
    pytest.param("compile", 60, marks=pytest.mark.slow, id="compile at each step"),
    pytest.param("export", 20, marks=pytest.mark.slow, id="export"),
    pytest.param("run", 20, marks=pytest.mark.slow, id="run"),
    pytest.param("quantize", 20, marks=pytest.mark.slow, id="quantize"),
]


@pytest.mark.parametrize(("kind", "most"), KINDS)
def test_a_disk_that_is_full_at_a_step(kind: str, most: int, tmp_path: Path) -> None:
    numbers, wanted = chosen(kind, tmp_path, most)
    found = list(trials(kind, full, numbers, tmp_path))
    assert [f"step {result.number}: {result.words}" for result in found if result.words or result.signal] == []
    assert again(kind, numbers, tmp_path) == [wanted] * len(numbers)


@pytest.mark.parametrize(("kind", "most"), KINDS)
def test_a_kill_at_a_step_and_the_command_again(kind: str, most: int, tmp_path: Path) -> None:
    numbers, wanted = chosen(kind, tmp_path, most)
    found = list(trials(kind, killed, numbers, tmp_path))
    assert {result.signal for result in found} == {signal.SIGKILL}
    parts = [files for number in numbers if outputs_alone(files := content(tmp_path / str(number)))]
    assert all(outputs_alone(files) == outputs_alone(wanted) for files in parts), "an output is whole or not there"
    for files in again(kind, numbers, tmp_path):
        assert {name: data for name, data in files.items() if name in wanted} == wanted


def test_a_step_that_goes_wrong_would_be_seen(tmp_path: Path) -> None:
    def bug() -> None:
        raise KeyError("planted")

    (found,) = trials("compile", bug, [2], tmp_path)
    assert "status 70" in found.words


NAMES = [
    "with blanks",
    'it\'s "quoted"',
    "ünïcode-日本",
    "-dash",
    "a$(touch x)`y`;z",
    "percent%s{}",
    "new\nline",
    "x" * 200,
]


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", NAMES, ids=lambda name: ascii(name)[:20])
def test_odd_paths(name: str, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / name
    folder.mkdir()
    model = folder / f"{name}.tflite"
    model.write_bytes(GESTURE.read_bytes())
    monkeypatch.chdir(folder)
    done = call("compile", "--name", "m", "-o", f"{name}.tar", "--json", "--", model.name)
    assert done.status == 0, done.err
    assert sorted(path.name for path in folder.iterdir()) == sorted([model.name, f"{name}.tar"])


def test_a_path_of_4000_characters(tmp_path: Path, call: Call) -> None:
    path = tmp_path / "/".join(["d" * 200] * 25) / "m.tflite"
    done = call("compile", path, "--json")
    assert (done.status, "\n" in done.complaint) == (1, False)


HOMES = {
    "missing": {"HOME": "/nonexistent/home"},
    "no folder": {"HOME": str(GESTURE)},
    "unset": {"HOME": None},
    "no TMPDIR": {"TMPDIR": "/nonexistent/tmp"},
}


@pytest.mark.parametrize("environment", HOMES.values(), ids=HOMES)
def test_homes(environment: dict[str, str | None], tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UACCEL_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name, value in environment.items():
        monkeypatch.delenv(name, raising=False) if value is None else monkeypatch.setenv(name, value)
    monkeypatch.setattr("tempfile.tempdir", None)
    done = call("compile", GESTURE, "-o", tmp_path / "out.tar", "--json")
    assert done.status == 0, done.err
    assert (tmp_path / "out.tar").is_file()


def test_a_clock_that_was_set_back(tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the cache holds is of the future."""
    monkeypatch.setenv("UACCEL_CACHE", str(tmp_path / "cache"))
    written = []
    for _ in range(2):
        assert call("compile", GESTURE, "-o", tmp_path / "out.tar").status == 0
        written.append((tmp_path / "out.tar").read_bytes())
        for path in (tmp_path / "cache").rglob("*"):
            os.utime(path, (time.time() + 1e9,) * 2)
    assert written[0] == written[1]
    assert call("cache", "--json").status == 0


@pytest.mark.slow
def test_two_at_once_in_one_folder(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "uaccel", "compile", str(GESTURE), "-o", "out.tar"]
    environment = os.environ | {"UACCEL_CACHE": str(tmp_path / "cache")}
    both = [subprocess.Popen(words, cwd=tmp_path, env=environment, stderr=subprocess.PIPE) for _ in range(2)]
    assert [process.communicate()[1] and process.returncode for process in both] == [0, 0]
    whole = (tmp_path / "out.tar").read_bytes()
    subprocess.run([*words[:-1], "alone.tar"], cwd=tmp_path, env=environment, check=True, capture_output=True)
    assert whole == (tmp_path / "alone.tar").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["alone.tar", "cache", "out.tar"]
