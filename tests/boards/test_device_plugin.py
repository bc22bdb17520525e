"""The plugin that runs models of devices: both of QEMU's plugin interfaces against a stand-in, request by request."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import pytest

from support.device.adder_project import ACCELERATORS
from support.device.boards import WARNINGS
from uaccel.board.accelerator_devices import rack_source
from uaccel.util.files import data_dir

ORIGIN, BYTES, MAILBOX = 0x80000000, 0x4000, 0x3000
SHARED, CONSTANTS = (0x1000, 0x1100), (0x1200, 0x1210)
SERVED, FIND, READ, WRITE, RESET = range(5)
NOTHING = 0xFFFFFFFF
RUNG = 0x1008
"""The stand-in comes by there three times."""


@pytest.fixture(scope="module", params=[1, 2])
def plugin(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plugin")
    ports = data_dir("firmware") / "ports"
    rack = folder / "rack.c"
    rack.write_text(rack_source([path.name for path in ACCELERATORS]))
    sources = [ports / "qemu_device" / "device.c", *(ports / "device_rack").glob("*.c"), rack]
    sources += [source for path in ACCELERATORS for source in (path / "device").rglob("*.c")]
    includes = [ports / name for name in ("qemu_plugin", "device_rack", "hal_qemu")]
    flags = [f"-I{folder}" for folder in (*includes, data_dir("firmware") / "include")]
    options = ["-shared", "-fPIC", "-fvisibility=hidden", f"-DUACCEL_QEMU_PLUGIN_API={request.param}", *flags]
    plugin = folder / "device.so"
    subprocess.run(["gcc", *WARNINGS, *options, *map(str, sources), "-o", str(plugin)], check=True)
    return plugin


class Board:
    """The stand-in, and a file that is its memory."""

    def __init__(self, fake_qemu: Path, plugin: Path, folder: Path) -> None:
        self._command = [str(fake_qemu), str(plugin), "0"]
        self.ram = folder / "ram"
        self.ram.write_bytes(bytes(BYTES))

    def options(self, **changes: int | str) -> list[str]:
        spans = {"shared": SHARED[0], "shared_end": SHARED[1], "constants": CONSTANTS[0], "constants_end": CONSTANTS[1]}
        addresses = {name: ORIGIN + offset for name, offset in (spans | {"mailbox": MAILBOX}).items()}
        values = {"ram": str(self.ram), "origin": ORIGIN, "rung": RUNG} | addresses | changes
        return [f"{name}={value}" for name, value in values.items()]

    def run(self, options: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*self._command, *options], capture_output=True, text=True, check=False)

    def ask(self, request: int, device: int = 0, offset: int = 0, value: int = 0, name: str = "") -> tuple[int, int]:
        """The mailbox's request and value afterwards."""
        letter = struct.pack("<4I64s", request, device, offset, value, name.encode())
        memory = bytearray(self.ram.read_bytes())
        memory[MAILBOX : MAILBOX + len(letter)] = letter
        self.ram.write_bytes(memory)
        done = self.run(self.options())
        assert (done.returncode, done.stderr) == (0, "")
        left, _, _, answer = struct.unpack_from("<4I", self.ram.read_bytes(), MAILBOX)
        return left, answer


@pytest.fixture
def board(fake_qemu: Path, plugin: Path, tmp_path: Path) -> Board:
    return Board(fake_qemu, plugin, tmp_path)


def test_devices_are_found_by_name(board: Board) -> None:
    assert board.ask(FIND, name="adder") == (SERVED, 0)
    assert board.ask(FIND, name="swapper") == (SERVED, 1)
    assert board.ask(FIND, name="adde") == (SERVED, NOTHING)
    assert board.ask(FIND, name="x" * 64) == (SERVED, NOTHING)


def test_registers_are_read_and_written(board: Board) -> None:
    assert board.ask(READ, 0, 0) == (SERVED, 0x41444452)
    assert board.ask(READ, 0, 4) == (SERVED, 0x00010000)
    assert board.ask(READ, 1, 0) == (SERVED, 0)
    assert board.ask(READ, 2, 0) == (SERVED, NOTHING), "there is no such device"
    assert board.ask(READ, 0, 0x1000) == (SERVED, NOTHING), "there is no such register"
    assert board.ask(WRITE, 1, 0, 5) == (SERVED, 5)
    assert board.ask(WRITE, 7, 0, 5) == (SERVED, 5), "nobody takes it"
    assert board.ask(RESET) == (SERVED, 0)


def test_what_is_no_request_is_answered_too(board: Board) -> None:
    assert board.ask(1000, 0, 0, 3) == (SERVED, 3)


def test_without_remove_the_memory_stays(board: Board) -> None:
    assert board.run(board.options()).returncode == 0
    assert board.ram.is_file()
    assert board.run(board.options(remove=1)).returncode == 0
    assert not board.ram.exists()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"origin": "0x10x"}, "device: unknown or bad option origin=0x10x; the file that it was built from tells them"),
        ({"size": 3}, "device: unknown or bad option size=3; the file that it was built from tells them"),
        ({"ram": "/nonexistent/ram"}, "device: cannot open the board's memory, ram=/nonexistent/ram"),
        ({"mailbox": ORIGIN + BYTES - 8}, "device: what the firmware shares with devices lies outside the memory of "),
        ({"shared_end": ORIGIN + BYTES + 1}, "device: what the firmware shares with devices lies outside the memory "),
        ({"constants": ORIGIN - 1}, "device: what the firmware shares with devices lies outside the memory of "),
    ],
)
def test_what_cannot_be_is_refused(board: Board, changes: dict[str, int | str], words: str) -> None:
    done = board.run(board.options(**changes))
    assert done.returncode == 2
    assert done.stderr.startswith(words)
    assert done.stderr.count("\n") == 1
