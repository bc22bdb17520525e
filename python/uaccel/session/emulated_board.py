"""Sets up an emulated board that behaves like one on a desk, and has the command ``python -m uaccel.bench``.

QEMU runs behind a pseudo-terminal. It is flashed, reset, plugged and unplugged like a board at a USB port, so that all
code for boards can be tried without one.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import secrets
import select
import socket
import struct
import subprocess
import sys
import threading
import time
import tty
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from uaccel.board import Board, load_board
from uaccel.build.children import EndedError, ending_signals
from uaccel.errors import DeviceError, UaccelError
from uaccel.session.qemu import EmulatedBoard, qemu_run
from uaccel.util import incoming
from uaccel.util.files import write_atomically

# Checks of an image: it must be firmware for the stand-in's processor, and lie within its flash.

MACHINES: Final = {"arm": 40, "riscv": 243}
_MAGIC: Final = b"\x7fELF\x01\x01"  # 32 bits, little endian.
_SEGMENT: Final = struct.Struct("<8I")
_LOAD: Final = 1


@dataclass(frozen=True)
class _Part:
    """States how many bytes of a file are loaded, and where."""

    address: int
    size: int


def check_image(board: Board, image: Path) -> None:
    """Refuses, as a flash tool would, an image that does not fit the board."""
    with incoming.reading(DeviceError, image):
        data = incoming.read_bytes(image)
    if not data.startswith(_MAGIC):
        raise DeviceError(f"{image.name} is no ELF file for a 32-bit little-endian processor")
    try:
        (machine,) = struct.unpack_from("<H", data, 18)
        parts = list(_parts(data))
    except struct.error as error:
        raise DeviceError(f"{image.name} is cut short") from error
    wanted = MACHINES["riscv" if board.cpu.arch == "rv32" else "arm"]
    if machine != wanted:
        raise DeviceError(f"{image.name} is for ELF machine {machine}; the chip is of {wanted}")
    for part in parts:
        if not any(
            m.kind == "flash" and m.origin <= part.address and part.address + part.size <= m.end for m in board.memories
        ):
            raise DeviceError(f"no flash of the chip is at {part.address:#010x}, {part.size} bytes")


def _parts(data: bytes) -> Iterator[_Part]:
    (begin,) = struct.unpack_from("<I", data, 28)
    size, count = struct.unpack_from("<2H", data, 42)
    for index in range(count):
        kind, _, _, physical, in_file, *_ = _SEGMENT.unpack_from(data, begin + size * index)
        if kind == _LOAD and in_file:
            yield _Part(physical, in_file)


# Terminal: the cable between the board and the computer, which stays while the board is flashed and reset.

CHUNK: Final = 1 << 12


class Terminal:
    """Keeps a pseudo-terminal; ``path`` leads to it under the same name each time it is plugged in."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._ends: tuple[int, int] | None = None
        self._waiting = b""
        self.plug()

    @property
    def descriptor(self) -> int | None:
        """The board's end; None while unplugged."""
        return None if self._ends is None else self._ends[0]

    @property
    def is_full(self) -> bool:
        """Whether what the board has sent still waits for a reader."""
        return bool(self._waiting)

    def plug(self) -> None:
        """Makes the port, as a USB plug does. Its other end is kept open: when the last user closed it, it would lose
        the raw mode."""
        if self._ends is None:
            board, computer = os.openpty()
            tty.setraw(computer)
            os.set_blocking(board, False)
            self._ends = board, computer
            self.path.unlink(missing_ok=True)
            self.path.symlink_to(os.ttyname(computer))

    def unplug(self) -> None:
        """Removes the port, as a pulled plug does: who has it open sees it vanish."""
        if self._ends is not None:
            for end in self._ends:
                os.close(end)
            self._ends, self._waiting = None, b""
            self.path.unlink(missing_ok=True)

    def give(self, data: bytes = b"") -> None:
        """Passes on what the board has sent. What finds no room waits; without a plug it is lost."""
        if self._ends is None:
            return
        self._waiting += data
        with suppress(BlockingIOError):
            while self._waiting:
                self._waiting = self._waiting[os.write(self._ends[0], self._waiting) :]

    def drop(self) -> None:
        """Drops what waits, since nobody reads it."""
        self._waiting = b""

    def take(self) -> bytes:
        """Takes what the computer has sent."""
        if self._ends is None:
            return b""
        try:
            return os.read(self._ends[0], CHUNK)
        except BlockingIOError:
            return b""


# Board files: plain data written as TOML.


def toml_text(data: Mapping[str, Any]) -> str:
    """Writes data as TOML, a line for each key; tables are inline."""
    return "".join(f"{_key(key)} = {_value(value)}\n" for key, value in data.items())


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name, re.ASCII) else json.dumps(name, ensure_ascii=False)


def _value(value: Any) -> str:
    """A value in TOML, which writes strings, booleans and integers as JSON does."""
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_key(key)} = {_value(inner)}' for key, inner in value.items())}}}"
    return json.dumps(value, ensure_ascii=False)


# Desk: QEMU behind a terminal, with orders to flash, reset, plug and unplug it.
#
# Its user sees what a board at a USB port shows. The port stays while the firmware changes, and vanishes when the cable
# comes out. A flash tool is the one that the board file names. Without firmware or power there is silence.

ADDRESS: Final = "desk.json"
NAME: Final = "stand_in"
IMAGE: Final = "flash.elf"
PORT: Final = "ttyDESK"
ORDERS: Final = ("look", "flash", "reset", "plug", "unplug", "on", "off", "stop")
ORDER_SECONDS: Final = 30.0
LONGEST_ORDER: Final = 1 << 16
LOOK_SECONDS: Final = 0.5
# Seconds until bytes that nobody reads are lost, in either direction, as on any serial line.
UNREAD_SECONDS: Final = 0.5


class Desk:
    """Runs one stand-in in a folder of its own; a context manager.

    ``board_file`` describes it like any board; ``port`` is where it is plugged in.
    """

    def __init__(self, folder: Path, board: str | Path = "netduino_plus_2") -> None:
        self.folder = folder.resolve()
        self.board = load_board(board)
        qemu_run(self.board)  # or it says why not
        self.folder.mkdir(parents=True, exist_ok=True)
        self.board_file = self.folder / f"{NAME}.toml"
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._key = secrets.token_hex(16)
        self._terminal = Terminal(self.folder / PORT)
        self._emulated: EmulatedBoard | None = None
        self._line: socket.socket | None = None
        self._read_at = 0.0
        self._working = True
        self._write_files()
        # An event instead of join(), which cannot be called again after a signal has interrupted it.
        self._cleared = threading.Event()
        threading.Thread(target=self._work, name=f"desk {self.folder}", daemon=True).start()

    @property
    def port(self) -> str:
        """The path of its serial port."""
        return str(self._terminal.path)

    def order(self, *words: str) -> None:
        """Carries out one of :data:`ORDERS`, as the flash tool gives them."""
        give_order(self.folder, words)

    def close(self) -> None:
        """Clears the desk: the port and the board are gone, the folder stays. May be called again."""
        with suppress(DeviceError):
            self.order("stop")
        self._cleared.wait()

    def wait(self) -> None:
        """Waits until somebody gives the order to stop, or deletes the folder."""
        self._cleared.wait()

    def __enter__(self) -> Desk:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ------------------------------------------------------------------------------------------------ its files

    def _write_files(self) -> None:
        board = toml_text(stand_in(self.board, self.folder))
        port = self._listener.getsockname()[1]
        address = json.dumps({"port": port, "key": self._key, "board": str(self.board.file)})
        _write(self.board_file, board)
        _write(self.folder / ADDRESS, address)  # now there is a desk

    # ------------------------------------------------------------------------------------------------ at work

    def _work(self) -> None:
        try:
            while self._working and (self.folder / ADDRESS).is_file():
                self._step()
        finally:
            self._power_off()
            self._terminal.unplug()
            self._listener.close()
            (self.folder / ADDRESS).unlink(missing_ok=True)
            self._cleared.set()

    def _step(self) -> None:
        """Waits for bytes or an order, and passes it on. While the terminal is full, nothing is read from the board, so
        that QEMU waits as well; after ``UNREAD_SECONDS`` without a reader the bytes are dropped."""
        descriptor, line = self._terminal.descriptor, self._line
        readers: list[Any] = [self._listener]
        readers += [] if descriptor is None else [descriptor]
        readers += [] if line is None or self._terminal.is_full else [line]
        writers: list[Any] = [descriptor] if self._terminal.is_full else []
        ready, writable, _ = select.select(readers, writers, [], LOOK_SECONDS)
        if writable or not self._terminal.is_full:
            self._read_at = time.monotonic()
            self._terminal.give()
        elif time.monotonic() - self._read_at > UNREAD_SECONDS:
            self._terminal.drop()
        if line is not None and line in ready:
            self._from_board(line)
        if descriptor is not None and descriptor in ready:
            self._to_board(self._terminal.take())
        if self._listener in ready:
            self._take_order()

    def _from_board(self, line: socket.socket) -> None:
        try:
            data = line.recv(CHUNK)
        except OSError:
            data = b""
        if data:
            self._terminal.give(data)
        else:
            self._power_off()  # QEMU has ended by itself: the board is dead

    def _to_board(self, data: bytes) -> None:
        if self._line is not None:
            with suppress(OSError):
                self._line.sendall(data)

    # ------------------------------------------------------------------------------------------------ orders

    def _take_order(self) -> None:
        connection, _ = self._listener.accept()
        with connection, suppress(OSError):
            connection.settimeout(ORDER_SECONDS)
            connection.sendall(self._answer(_receive(connection)) + b"\n")

    def _answer(self, text: bytes) -> bytes:
        """Carries out an order; the answer is empty if all is well, else says what is wrong."""
        try:
            order = json.loads(text)
            if order["key"] != self._key:
                return b"this is another desk"
            word, *rest = order["words"]
            self._actions()[word](*rest)
        except (UaccelError, OSError) as error:
            return str(error).encode()
        except (ValueError, KeyError, TypeError) as error:
            return f"no order that this desk knows: {error!r}".encode()
        return b""

    def _actions(self) -> dict[str, Callable[..., None]]:
        return {
            "look": lambda: None,
            "flash": self._flash,
            "reset": self._reset,
            "plug": self._terminal.plug,
            "unplug": self._terminal.unplug,
            "on": self._power_on,
            "off": self._power_off,
            "stop": self._stop,
        }

    def _flash(self, path: str) -> None:
        self._require_plug()
        check_image(self.board, Path(path))
        self._power_off()
        incoming.copy(path, self.folder / IMAGE)
        self._power_on()

    def _reset(self) -> None:
        self._require_plug()
        if self._emulated is not None:
            self._emulated.reset()

    def _require_plug(self) -> None:
        if self._terminal.descriptor is None:
            raise DeviceError("no debug probe found: the cable is out")

    def _stop(self) -> None:
        self._working = False

    def _power_on(self) -> None:
        """Starts QEMU if there is an image; a board without firmware stays silent, as an erased chip does."""
        image = self.folder / IMAGE
        if self._emulated is None and image.is_file():
            self._emulated = EmulatedBoard(self.board, image, counting="off")
            address = urlsplit(self._emulated.port)
            self._line = socket.create_connection((address.hostname, address.port), ORDER_SECONDS)
            self._line.settimeout(UNREAD_SECONDS)

    def _power_off(self) -> None:
        emulated, line = self._emulated, self._line
        self._emulated = self._line = None
        if line is not None:
            line.close()
        if emulated is not None:
            emulated.stop()


def stand_in(board: Board, folder: Path) -> dict[str, Any]:
    """The data of the board's file with the desk's port and flash tool in place of its own."""
    tool = [sys.executable, "-m", "uaccel.bench"]
    own_port = {"port": str(board.port.folder)} if str(board.source.data["port"]).startswith(".") else {}
    return {
        **board.source.data,
        **own_port,
        "description": f"Stand-in for: {board.description}",
        "run": {"serial": {"port": str(folder / PORT)}},
        "flash": {
            "tool": "command",
            "command": [*tool, "flash", str(folder), "{elf}"],
            "reset": [*tool, "reset", str(folder)],
        },
    }


def _write(path: Path, text: str) -> None:
    write_atomically(path, lambda stream: stream.write(text.encode()), "another folder for the desk")


def is_set_up(folder: Path) -> bool:
    """Whether there is a desk in a folder."""
    try:
        give_order(folder, ["look"])
    except DeviceError:
        return False
    return True


def give_order(folder: Path, words: Sequence[str]) -> None:
    """Gives an order to the desk in a folder; :class:`DeviceError` if it fails."""
    try:
        address = json.loads(incoming.read_text(folder / ADDRESS))
        with socket.create_connection(("127.0.0.1", address["port"]), ORDER_SECONDS) as connection:
            connection.sendall(json.dumps({"key": address["key"], "words": list(words)}).encode() + b"\n")
            answer = _receive(connection).decode()
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DeviceError(f"no desk is set up in {folder}: python -m uaccel.bench start {folder}") from error
    if answer:
        raise DeviceError(answer)


def _receive(connection: socket.socket) -> bytes:
    """Receives one line. Its length and time are limited, so that no sender can stop the desk's work."""
    data, end = b"", time.monotonic() + ORDER_SECONDS
    while not data.endswith(b"\n"):
        piece = connection.recv(CHUNK)
        if not piece or len(data) > LONGEST_ORDER or time.monotonic() > end:
            raise OSError("cut short")
        data += piece
    return data[:-1]


# The command ``python -m uaccel.bench``: sets up a stand-in, flashes it, resets it, plugs it in and out.

START_SECONDS: Final = 30.0
LOG: Final = "desk.log"
ABOUT: Final = "Set up a stand-in for a board in a folder DIR, and do to it what is done to boards."
MARK: Final = "uaccel.bench: error: "


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns exit status 0, or that of the error."""
    options = _parser().parse_args(arguments)
    try:
        with ending_signals():
            _obey(options)
    except UaccelError as error:
        print(f"{MARK}{error}", file=sys.stderr)
        return error.exit_status
    except EndedError as ended:
        return ended.status
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m uaccel.bench", description=ABOUT)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    helps = {
        "start": "set up a stand-in in a folder, and leave it running",
        "serve": "the same, but stay with it until it is stopped",
        "flash": "write firmware to it and start it",
        "reset": "press its reset button",
        "plug": "put its USB cable in",
        "unplug": "pull its USB cable out",
        "on": "switch its power on",
        "off": "switch its power off",
        "stop": "clear the desk",
    }
    for name, text in helps.items():
        command = commands.add_parser(name, help=text, description=text)
        command.add_argument("folder", type=Path, metavar="DIR")
        if name in ("start", "serve"):
            command.add_argument("--board", default="netduino_plus_2", help="what it stands in for (%(default)s)")
        if name == "flash":
            command.add_argument("elf", type=Path, metavar="ELF")
    return parser


def _obey(options: argparse.Namespace) -> None:
    if options.command == "serve":
        with Desk(options.folder, options.board) as desk:
            desk.wait()
    elif options.command == "start":
        _start(options.folder, options.board)
    else:
        assert options.command in ORDERS
        words = [str(options.elf.resolve())] if options.command == "flash" else []
        give_order(options.folder, [options.command, *words])
        if options.command == "flash":
            print(f"{options.elf}: written and started")


def _start(folder: Path, board: str) -> None:
    """Starts a desk in a process of its own, which outlives the command, and waits until it answers."""
    folder.mkdir(parents=True, exist_ok=True)
    if is_set_up(folder):
        raise DeviceError(f"a desk is set up in {folder} already: python -m uaccel.bench stop {folder}")
    command = [sys.executable, "-m", "uaccel.bench", "serve", str(folder), "--board", board]
    with (folder / LOG).open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    deadline = time.monotonic() + START_SECONDS
    while not is_set_up(folder):
        if process.poll() is not None or time.monotonic() > deadline:
            lines = incoming.read_text(folder / LOG).strip().splitlines()
            raise DeviceError(
                lines[-1].removeprefix("uaccel.bench: error: ") if lines else f"no desk came up in {folder}"
            )
        time.sleep(0.05)
    print(f"board file: {folder / NAME}.toml\nport: {folder / PORT}")


if __name__ == "__main__":
    sys.exit(main())
