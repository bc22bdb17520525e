"""Flashing: what the tools are called with, and what is told when they fail."""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from uaccel.bench import flash, reset
from uaccel.board import Board, load_board
from uaccel.errors import BoardError, DeviceError, ToolError, UaccelError


class Tool:
    """A flash tool that writes down how it is called, and ends as it is told."""

    def __init__(self, folder: Path, name: str) -> None:
        self.record = folder / "calls"
        self.says = folder / "says"
        self.path = folder / name
        self.say("")
        self.path.write_text(
            f'''#!{sys.executable}
import pathlib, sys, time
if sys.argv[1:] == ["--version"]:
    sys.exit(print("{name} 1.2.3"))
with open({str(self.record)!r}, "a") as file:
    print(*sys.argv[1:], sep="|", file=file)
    print(pathlib.Path.cwd(), pathlib.Path("firmware.elf").exists(), file=file)
exec(pathlib.Path({str(self.says)!r}).read_text())
'''
        )
        self.path.chmod(0o755)

    def say(self, program: str) -> None:
        """Python that it runs when it is called."""
        self.says.write_text(program)

    @property
    def calls(self) -> list[str]:
        """The words of each, joined by bars."""
        return self.record.read_text().splitlines()[::2]

    @property
    def places(self) -> list[list[str]]:
        """Where each was called, and whether there is a firmware.elf."""
        return [line.rsplit(" ", 1) for line in self.record.read_text().splitlines()[1::2]]


@pytest.fixture
def elf(tmp_path: Path) -> Path:
    folder = tmp_path / "a build"  # blanks are where tools stumble
    folder.mkdir()
    file = folder / "firmware.elf"
    file.write_bytes(b"\x7fELF")
    return file


@pytest.fixture
def in_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is first in PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder


def board_with(tmp_path: Path, *lines: str) -> Board:
    """A board with another ``[flash]``."""
    text = load_board("nucleo_f746zg").file.read_text()
    file = tmp_path / "mine.toml"
    file.write_text(text.partition("[flash]")[0] + "\n".join(lines) + "\n")
    return load_board(file)


def complaint(kind: type[UaccelError], board: Board, elf: Path, **options: Any) -> str:
    with pytest.raises(UaccelError) as caught:
        flash(board, elf, **options)
    assert type(caught.value) is kind
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_openocd_is_called_as_the_board_file_says(tmp_path: Path, in_path: Path, elf: Path) -> None:
    """Its scripts take a path apart at blanks: it sees the firmware without its folder."""
    tool = Tool(in_path, "openocd")
    board = board_with(
        tmp_path, '[flash]\ntool = "openocd"', 'config = ["a.cfg", "b.cfg"]', 'commands = ["adapter serial X 1"]'
    )
    flash(board, elf)
    reset(board)
    start = f"-s|{tmp_path}|-f|a.cfg|-f|b.cfg|-c|adapter serial X 1|-c|"
    assert tool.calls == [f"{start}program firmware.elf verify reset exit", f"{start}init; reset run; shutdown"]
    assert [there for _, there in tool.places] == ["True", "False"]


def test_pyocd_is_called_as_the_board_file_says(tmp_path: Path, in_path: Path, elf: Path) -> None:
    tool = Tool(in_path, "pyocd")
    board = board_with(tmp_path, '[flash]\ntool = "pyocd"', 'target = "stm32f746zg"', 'options = ["-u", "066B"]')
    flash(board, elf)
    reset(board)
    assert tool.calls == [
        f"flash|--no-wait|--target|stm32f746zg|-u|066B|{elf}",
        "reset|--no-wait|--target|stm32f746zg|-u|066B",
    ]
    assert [place for place, _ in tool.places] == [str(tmp_path)] * 2


def test_pyocd_is_given_the_pack(tmp_path: Path, in_path: Path, elf: Path) -> None:
    tool = Tool(in_path, "pyocd")
    flash(board_with(tmp_path, '[flash]\ntool = "pyocd"', 'target = "own123"', 'pack = "a b.pack"'), elf)
    assert tool.calls == [f"flash|--no-wait|--target|own123|--pack|a b.pack|{elf}"]


def test_a_command_of_the_users_own(tmp_path: Path, elf: Path) -> None:
    """Relative to the board file, with what it asks for in place; its reset command starts the firmware."""
    tool = Tool(tmp_path, "burn")
    board = board_with(
        tmp_path,
        '[flash]\ntool = "command"',
        'command = ["./burn", "-p{port}", "{elf}", "{other}"]',
        'reset = ["./burn", "again", "{port}"]',
    )
    flash(board, elf, "/dev/ttyACM7")
    reset(board, "socket://bench:1")
    assert tool.calls == [f"-p/dev/ttyACM7|{elf}|{{other}}", "again|/dev/ttyACM7", "again|socket://bench:1"]
    assert {place for place, _ in tool.places} == {str(tmp_path)}


def test_a_command_that_asks_for_no_port_needs_none(tmp_path: Path, elf: Path) -> None:
    tool = Tool(tmp_path, "burn")
    board = board_with(tmp_path, '[flash]\ntool = "command"', 'command = ["./burn", "{elf}"]')
    flash(board, elf)
    assert tool.calls == [str(elf)]
    with pytest.raises(BoardError, match=r"mine\.toml:\d+: board mine cannot be reset: \[flash\] has no 'reset'"):
        reset(board)


def test_the_tools_own_words_are_told(tmp_path: Path, elf: Path) -> None:
    tool = Tool(tmp_path, "burn")
    board = board_with(tmp_path, '[flash]\ntool = "command"', 'command = ["./burn", "{elf}"]')
    tool.say("print('hello', flush=True); print('Error:  no   probe\\nThat failed', file=sys.stderr); sys.exit(3)")
    log = elf.with_name("flash.log")
    assert complaint(DeviceError, board, elf) == (
        "flashing board mine failed: burn ended with exit status 3: Error: no probe; That failed; "
        f"all that it said: {log}"
    )
    assert log.read_text() == "hello\nError:  no   probe\nThat failed\n"
    tool.say("sys.stdout.buffer.write(b'first\\nlast \\xff\\n'); sys.exit(1)")
    assert "burn ended with exit status 1: last \N{REPLACEMENT CHARACTER}; all" in complaint(DeviceError, board, elf)
    tool.say("import os; os.kill(os.getpid(), 9)")
    assert "burn ended with signal 9: it said nothing; all" in complaint(DeviceError, board, elf)


@pytest.mark.slow
def test_a_tool_that_hangs_is_ended_with_its_children(tmp_path: Path, elf: Path) -> None:
    tool = Tool(tmp_path, "burn")
    child = tmp_path / "child"
    tool.say(
        "import subprocess; print('erasing', flush=True); "
        f"subprocess.run(['sh', '-c', 'echo $$ > {child}; exec sleep 600'])"
    )
    board = board_with(tmp_path, '[flash]\ntool = "command"', 'command = ["./burn", "{elf}"]')
    begin = time.monotonic()
    said = complaint(DeviceError, board, elf, timeout=3)
    assert said == "flashing board mine did not end within 3 s: burn said last: erasing"
    assert time.monotonic() - begin < 10
    deadline = time.monotonic() + 10
    while is_alive(int(child.read_text())):
        assert time.monotonic() < deadline, "the child goes on"
        time.sleep(0.05)


def is_alive(process: int) -> bool:
    status = Path(f"/proc/{process}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z"


def test_a_tool_that_is_not_there(tmp_path: Path, elf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    board = board_with(tmp_path, '[flash]\ntool = "command"', 'command = ["./burn", "{elf}"]')
    assert complaint(ToolError, board, elf) == (
        "flashing board mine failed: cannot run ./burn (No such file or directory); install it, or correct [flash]"
    )
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "openocd (needed for flashing boards through OpenOCD): openocd: not found; to get it: " in complaint(
        ToolError, load_board("nucleo_f746zg"), elf
    )


def test_what_cannot_be_flashed(tmp_path: Path, elf: Path) -> None:
    board = load_board("mps2_an385")
    assert complaint(BoardError, board, elf) == (
        f"{board.file}: board mps2_an385 cannot be flashed: say with [flash] which tool does it"
    )
    missing = tmp_path / "none.elf"
    assert complaint(ToolError, load_board("nucleo_f746zg"), missing) == (
        f"there is no firmware at {missing}: build it first"
    )


@pytest.mark.skipif(shutil.which("openocd") is None, reason="openocd is not installed")
def test_openocd_itself_without_a_probe(tmp_path: Path, elf: Path) -> None:
    """The real one: there is none of these probes here, or its board is not this one's."""
    lines = ('[flash]\ntool = "openocd"', 'config = ["interface/stlink.cfg", "target/stm32f7x.cfg"]')
    board = board_with(tmp_path, *lines, 'commands = ["adapter serial 0000000000"]')
    said = complaint(DeviceError, board, elf)
    assert said.startswith("flashing board mine failed: openocd ended with exit status 1: Error: open failed; ")
    board = board_with(tmp_path, '[flash]\ntool = "openocd"', 'config = ["nowhere.cfg"]')
    assert "Can't find nowhere.cfg" in complaint(DeviceError, board, elf)


@pytest.mark.skipif(shutil.which("pyocd") is None, reason="pyocd is not installed")
def test_pyocd_itself_without_a_probe(tmp_path: Path, elf: Path) -> None:
    board = board_with(tmp_path, '[flash]\ntool = "pyocd"', 'target = "cortex_m"', 'options = ["-u", "0000000000"]')
    assert "No target device available" in complaint(DeviceError, board, elf)
