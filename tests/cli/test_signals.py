"""``timeout``, CI and impatient people end a run at any moment: nothing of it is left."""

from __future__ import annotations

import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.device.boards import board_with_tools
from support.device.family import Family, family
from support.models.networks import OWN
from uaccel.cli import app
from uaccel.session.emulated_board import give_order

GESTURE = OWN / "gesture.tflite"
BOARD = "mps2_an386"
MANY = "30000"
"""Runs of the model: minutes."""
both = pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)


def running(program: str) -> Callable[[dict[int, str]], bool]:
    return lambda members: any(Path(line.split(" ")[0]).name.startswith(program) for line in members.values())


def end(started: Family, number: signal.Signals) -> None:
    """The process is told to end, and does; so does all that it started."""
    started.first.send_signal(number)
    _, words = started.first.communicate(timeout=60)
    started.must_be_gone()
    assert started.first.returncode == (143 if number == signal.SIGTERM else -number)
    if number == signal.SIGTERM:
        assert words.splitlines()[-1] == "uaccel: ended by SIGTERM"
        assert "Traceback" not in words


def uaccel(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "uaccel", *map(str, arguments)]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built already: what takes time is running it."""
    board_with_tools(BOARD)
    folder = tmp_path_factory.mktemp("signals")
    assert app.main(["compile", str(GESTURE), "-o", str(folder / "g.tar"), "-b", BOARD]) == 0
    assert app.main(["create", str(folder / "g.tar"), str(folder / "project"), "-b", BOARD]) == 0
    assert app.main(["build", str(folder / "project")]) == 0
    return folder / "project"


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache: what is verilated for one test is there for the next."""
    return tmp_path_factory.mktemp("cache")


@pytest.mark.sample(1)
@both
def test_while_an_emulated_board_runs_a_project(number: signal.Signals, project: Path) -> None:
    """uaccel, the project's server, and QEMU as that one's child."""
    with family(uaccel("run", project, "--repeat", MANY)) as started:
        started.wait_for(running("qemu-system-arm"))
        end(started, number)


@pytest.mark.slow
@both
@pytest.mark.parametrize("program", ["cmake", "ninja", "arm-none-eabi-gcc"])
def test_while_a_project_is_built(program: str, number: signal.Signals, project: Path, tmp_path: Path) -> None:
    anew = tmp_path / "project"
    shutil.copytree(project, anew, ignore=shutil.ignore_patterns("build"))
    with family(uaccel("run", anew, "--repeat", MANY)) as started:
        started.wait_for(running(program))
        end(started, number)


@pytest.mark.slow
@both
@pytest.mark.parametrize(("board", "program"), [(BOARD, "qemu-system-arm"), ("host", "firmware"), (BOARD, "cmake")])
def test_while_a_model_runs(
    board: str, program: str, number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a cache of its own: firmware that another test has built needs no cmake."""
    monkeypatch.setenv("UACCEL_CACHE", str(tmp_path / "cache"))
    if board != "host":
        board_with_tools(board)
    with family(uaccel("run", GESTURE, "-b", board, "--repeat", MANY), tmp_path) as started:
        started.wait_for(running(program))
        end(started, number)


RTL = ("run", GESTURE, "-a", "nuc_fpga", "--device", "rtl", "--repeat", MANY)
AT_WORK: dict[str, tuple[tuple[str | Path, ...], str]] = {
    "RTL is verilated": (RTL, "verilator"),
    "its C++ is compiled": (RTL, "cc1plus"),
    "a verilated device runs": (RTL, "firmware"),
    "a verilated core runs": (("run", GESTURE, "-b", "rtl_vexriscv", "--repeat", MANY), "machine"),
    "RTL is synthesised": (("synth", "nuc_fpga", "--no-place"), "yosys"),
}


@pytest.mark.slow
@both
@pytest.mark.parametrize("what", AT_WORK)
def test_while_there_is_rtl(
    what: str, number: signal.Signals, tmp_path: Path, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words, program = AT_WORK[what]
    if shutil.which("yosys" if words[0] == "synth" else "verilator") is None:
        pytest.skip("no tools for RTL")
    if "rtl_vexriscv" in words:
        board_with_tools("rtl_vexriscv")
    runs = what.endswith("runs")
    monkeypatch.setenv("UACCEL_CACHE", str(kept if runs else tmp_path / "cache"))
    with family(uaccel(*words), tmp_path) as started:
        started.wait_for(running(program))
        end(started, number)


@both
def test_while_a_stand_in_serves(number: signal.Signals, project: Path, tmp_path: Path) -> None:
    """Its QEMU belongs to it, although it goes on itself when who set it up has ended."""
    command = [sys.executable, "-m", "uaccel.bench", "serve", str(tmp_path), "--board", BOARD]
    with family(command) as started:
        started.wait_for(lambda members: (tmp_path / "desk.json").is_file())
        shutil.copyfile(project / "build" / "firmware.elf", tmp_path / "flash.elf")
        give_order(tmp_path, ["on"])
        started.wait_for(running("qemu-system-arm"))
        started.first.send_signal(number)
        started.first.communicate(timeout=60)
        started.must_be_gone()
        assert started.first.returncode == (143 if number == signal.SIGTERM else -number)
        assert (tmp_path / "ttyDESK").is_symlink() == (number == signal.SIGKILL), "its port goes with it"
