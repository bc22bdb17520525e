"""The counting plugin: both of QEMU's plugin interfaces against a stand-in, and how it is built and found."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from support.device.boards import WARNINGS, board_with_tools
from uaccel.build.programs import FoundProgram, find_command
from uaccel.cycles import Executed, ExecutedBlock, Mark, read_marks
from uaccel.errors import ToolError
from uaccel.session.qemu import plugin_for, plugin_options, qemu_command
from uaccel.util.cache import cache_folder
from uaccel.util.files import data_dir

SOURCE = data_dir("firmware") / "ports" / "qemu_plugin" / "count.c"
ALL_ONES = "ffffffffffffffff"
OPTIONS = ("function=0x1008", "window=0x1100", "skip=0x1008", "until=0x1014")
"""Of 16 instructions 3 do not count: what is told is 2, then 2 + 13 and 2 + 26."""

each_interface = pytest.mark.parametrize("interface", [1, 2])


@pytest.fixture(scope="module")
def plugins(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    folder = tmp_path_factory.mktemp("plugins")
    plugins = {interface: folder / f"count{interface}.so" for interface in (1, 2)}
    for interface, plugin in plugins.items():
        options = ["-shared", "-fPIC", "-fvisibility=hidden", f"-DUACCEL_QEMU_PLUGIN_API={interface}"]
        subprocess.run(["gcc", *WARNINGS, *options, str(SOURCE), "-o", str(plugin)], check=True)
    return plugins


def run(fake_qemu: Path, plugin: Path, window: str, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([fake_qemu, plugin, window, *options], capture_output=True, text=True, check=False)


@each_interface
def test_the_count_is_in_the_window_before_the_function_reads_it(
    interface: int, fake_qemu: Path, plugins: dict[int, Path]
) -> None:
    done = run(fake_qemu, plugins[interface], ALL_ONES, *OPTIONS)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == [str(interface), "2", "f", "1c"]


@each_interface
def test_a_window_that_is_not_the_linkers_is_left_alone(
    interface: int, fake_qemu: Path, plugins: dict[int, Path]
) -> None:
    done = run(fake_qemu, plugins[interface], "1234", *OPTIONS)
    assert done.stdout.split()[1:] == ["1234"] * 3


@each_interface
def test_blocks_are_told_at_the_first_readings(
    interface: int, fake_qemu: Path, plugins: dict[int, Path], tmp_path: Path
) -> None:
    file = tmp_path / "blocks"
    done = run(fake_qemu, plugins[interface], ALL_ONES, *OPTIONS, f"blocks={file}", "marks=2")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split()[1:] == ["2", "f", "1c"], "what is counted does not change"
    assert file.read_text().splitlines() == ["mark 2", "1 1000 13 1", "mark 15", "1 1000 13 1 1 1"]
    first, second = read_marks(file)
    block = ExecutedBlock(0x1000, 13)
    assert first == Mark(2, (Executed(block, 1),))
    assert second == Mark(15, (Executed(block, 1, {block: 1}),))
    assert second.count - first.count == second.instructions == 13


CODE, DATA = "0x1000:0x1100:5:16", "0x2000:0x2100:5:16"
"""Memories with five wait states and lines of 16 bytes. Of the block 2, 3, 4 and 4 instructions lie in four lines of
code, and read one word each: the first 2 words of a line, the last 3 of the next, and two whole lines."""


@each_interface
@pytest.mark.parametrize(
    ("memory", "first", "again"),
    [
        (f"{CODE}:0:0:0:0", (20, 0), (20, 0)),  # a line at a time
        (f"{CODE}:64:0:0:0", (20, 0), (0, 0)),  # four lines are kept
        (f"{CODE}:0:64:0:0", (20, 0), (20, 0)),  # for data alone
        (f"{CODE}:48:0:0:0", (20, 0), (20, 0)),  # three are kept: the least recently used is the one that is needed
        (f"{CODE}:0:0:0:1", (11, 0), (11, 0)),  # 5 less the 2, 3 and 4 instructions of the line before
        (f"{CODE}:64:0:0:1", (11, 0), (0, 0)),  # a line that comes late is kept
        (f"{DATA}:0:0:0:0", (0, 5), (0, 20)),  # two instructions read before the first mark, the rest after it
        (f"{DATA}:0:64:0:1", (0, 5), (0, 15)),
        (f"{DATA}:0:0:64:0", (0, 5), (0, 15)),
        (f"{DATA}:64:0:0:0", (0, 5), (0, 20)),
        (f"{CODE}:0:0:0:0+{DATA}:0:0:0:0", (20, 5), (20, 20)),
        (f"{DATA}:0:0:0:0+{CODE}:0:0:0:0", (20, 5), (20, 20)),
        ("0x3000:0x3100:5:16:0:0:0:0", (0, 0), (0, 0)),  # what is written waits for nothing
        ("0x4000:0x4100:5:16:0:0:0:0", (0, 0), (0, 0)),
    ],
)
def test_slow_memory_is_waited_for(
    memory: str,
    first: tuple[int, int],
    again: tuple[int, int],
    interface: int,
    fake_qemu: Path,
    plugins: dict[int, Path],
    tmp_path: Path,
) -> None:
    file = tmp_path / "blocks"
    done = run(fake_qemu, plugins[interface], ALL_ONES, *OPTIONS, f"blocks={file}", "marks=2", f"flash={memory}")
    assert (done.returncode, done.stderr) == (0, "")
    assert [mark.waits for mark in read_marks(file)] == [first, again]


def test_a_file_that_is_cut_short_tells_nothing(tmp_path: Path) -> None:
    (tmp_path / "blocks").write_text("mark 2\n1 1000\n")
    assert read_marks(tmp_path / "blocks") == read_marks(tmp_path / "none") == []


WRONG = [f"flash=0:16:{rest}" for rest in ("5", "5:16:0:0:0:", "5:16:0:0:0:0x", "5:0:0:0:0:0", "5:16:0:0:0:0+")]


@pytest.mark.parametrize("option", ["function", "window=", "skip=0x10x", "other=1", "blocks=/nowhere/blocks", *WRONG])
def test_a_bad_option_is_refused(option: str, fake_qemu: Path, plugins: dict[int, Path]) -> None:
    done = run(fake_qemu, plugins[1], ALL_ONES, *OPTIONS, option)
    assert done.returncode == 2
    wanted = "wanted function, window, skip, until, marks, flash and a file for blocks"
    assert done.stderr == f"count: unknown or bad option {option}; {wanted}\n"


@pytest.fixture
def qemu() -> FoundProgram:
    board_with_tools("mps2_an385")
    return find_command("qemu-system-arm", "a test")


def test_it_is_built_once_and_kept(qemu: FoundProgram, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    plugin = plugin_for(qemu)
    assert plugin.parent == cache_folder() == tmp_path / "uaccel"
    made = plugin.stat().st_mtime_ns
    assert plugin_for(qemu) == plugin
    assert plugin.stat().st_mtime_ns == made
    assert [path.name for path in plugin.parent.iterdir()] == [plugin.name]


def test_a_newer_qemu_gets_the_newer_interface(
    qemu: FoundProgram, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    names = {
        version: plugin_for(FoundProgram(qemu.command, version)).name for version in ((8, 2, 9), (9, 0), (10, 1, 2))
    }
    assert [name.split("-")[1] for name in names.values()] == ["1", "2", "2"]


def fake_program(folder: Path, name: str, script: str) -> Path:
    program = folder / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return program


def test_a_qemu_without_plugins_is_said_to_be_one(tmp_path: Path) -> None:
    program = fake_program(tmp_path, "qemu-system-arm", "echo '-machine'")
    with pytest.raises(ToolError) as caught:
        plugin_for(FoundProgram((str(program),), (9, 0)))
    assert str(caught.value) == f"{program} was built without support for plugins"


def test_without_a_plugin_the_clock_counts_unless_it_must_be_exact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    board = board_with_tools("mps2_an385")
    fake_program(tmp_path, "qemu-system-arm", "echo 'QEMU emulator version 9.9.9'")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    command = qemu_command(board, tmp_path / "firmware.elf", chardev="stdio")
    assert "-plugin" not in command
    assert command[-2:] == ["-icount", "shift=0"]
    with pytest.raises(ToolError, match="was built without support for plugins"):
        qemu_command(board, tmp_path / "firmware.elf", chardev="stdio", counting="plugin")


def test_a_compiler_that_fails_is_told(qemu: FoundProgram, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = 'case "$*" in *--version*) echo "cc 12.0";; *) echo "no such option" >&2; exit 1;; esac'
    program = fake_program(tmp_path, "cc-that-fails", script)
    monkeypatch.setenv("CC", str(program))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(ToolError) as caught:
        plugin_for(qemu)
    assert str(caught.value) == f"building the counting plugin failed ({program}): no such option"


def test_a_cache_that_cannot_be_written_is_told(
    qemu: FoundProgram, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "uaccel").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(
        ToolError, match=r"^cannot write to .*/uaccel: File exists; set UACCEL_CACHE to another folder$"
    ):
        plugin_for(qemu)


def test_firmware_without_the_window_runs_uncounted(tmp_path: Path) -> None:
    """As a product that uaccel's ports have no part in."""
    board_with_tools("mps2_an385")
    source = tmp_path / "empty.c"
    source.write_text("int main(void) { return 0; }\n")
    elf = tmp_path / "empty.elf"
    compiler = shutil.which("arm-none-eabi-gcc")
    subprocess.run([str(compiler), "-nostdlib", str(source), "-o", str(elf), "-Wl,-e,main"], check=True)
    assert plugin_options(tmp_path / "count.so", elf) == []
