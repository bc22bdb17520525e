"""A stand-in for a board on a desk: QEMU behind a terminal, which is flashed, reset, plugged and unplugged.

Who uses it sees what a board at a USB port shows: a port that stays while the firmware changes, a flash tool that the
board file names, silence where there is no firmware or no power, a port that vanishes when the cable comes out.
"""

from __future__ import annotations

import json
import secrets
import select
import shutil
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final
from urllib.parse import urlsplit

from uaccel.basics.files import write_atomically
from uaccel.bench.chip import check_image
from uaccel.bench.terminal import CHUNK, Terminal
from uaccel.bench.toml import toml_text
from uaccel.board import Board, load_board
from uaccel.errors import DeviceError, UaccelError
from uaccel.session.qemu import EmulatedBoard, qemu_run

ADDRESS: Final = "desk.json"
NAME: Final = "stand_in"
IMAGE: Final = "flash.elf"
PORT: Final = "ttyDESK"
ORDERS: Final = ("look", "flash", "reset", "plug", "unplug", "on", "off", "stop")
ORDER_SECONDS: Final = 30.0
LONGEST_ORDER: Final = 1 << 16
LOOK_SECONDS: Final = 0.5
UNREAD_SECONDS: Final = 0.5
"""Who has a port open reads it within this, and so does the board; what nobody reads is lost, as on any serial line."""


class Desk:
    """One stand-in, in a folder of its own; a context manager.

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
        self._cleared = threading.Event()  # a thread that a signal has broken the wait for cannot be joined again
        threading.Thread(target=self._work, name=f"desk {self.folder}", daemon=True).start()

    @property
    def port(self) -> str:
        """The path of its serial port."""
        return str(self._terminal.path)

    def order(self, *words: str) -> None:
        """One of :data:`ORDERS`, as the flash tool gives them."""
        give_order(self.folder, words)

    def close(self) -> None:
        """Clear the desk: the port and the board are gone, the folder stays. May be called again."""
        with suppress(DeviceError):
            self.order("stop")
        self._cleared.wait()

    def wait(self) -> None:
        """Until somebody gives the order to stop, or deletes the folder."""
        self._cleared.wait()

    def __enter__(self) -> Desk:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
        """Wait for whatever comes first, and pass it on."""
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
        """Empty where all is well, else what is wrong."""
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
        shutil.copyfile(path, self.folder / IMAGE)
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
        """An erased chip is as silent as one without power."""
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
    """The board file's data, with the desk's port and flash tool instead of the board's own."""
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
    def write(stream: IO[bytes]) -> None:
        stream.write(text.encode())

    write_atomically(path, write, "another folder for the desk")


def is_set_up(folder: Path) -> bool:
    """Whether there is a desk in a folder."""
    try:
        give_order(folder, ["look"])
    except DeviceError:
        return False
    return True


def give_order(folder: Path, words: Sequence[str]) -> None:
    """Have the desk in a folder do something; :class:`DeviceError` where it will not."""
    try:
        address = json.loads((folder / ADDRESS).read_text(encoding="utf-8"))
        with socket.create_connection(("127.0.0.1", address["port"]), ORDER_SECONDS) as connection:
            connection.sendall(json.dumps({"key": address["key"], "words": list(words)}).encode() + b"\n")
            answer = _receive(connection).decode()
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DeviceError(f"no desk is set up in {folder}: python -m uaccel.bench start {folder}") from error
    if answer:
        raise DeviceError(answer)


def _receive(connection: socket.socket) -> bytes:
    """One line; whoever sends it, it does not keep the desk from its work."""
    data, end = b"", time.monotonic() + ORDER_SECONDS
    while not data.endswith(b"\n"):
        piece = connection.recv(CHUNK)
        if not piece or len(data) > LONGEST_ORDER or time.monotonic() > end:
            raise OSError("cut short")
        data += piece
    return data[:-1]
