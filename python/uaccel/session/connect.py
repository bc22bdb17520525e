"""Opens lines to devices: at serial ports and URLs, in processes, and through Project API servers."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import IO, Final
from urllib.parse import parse_qs, quote, urlsplit

import serial

from uaccel.board import Board, PyOcdFlash, RttConsole
from uaccel.build.children import start, temporary_file
from uaccel.build.project_api import IoTimeoutError, ProjectServer
from uaccel.errors import DeviceError, UaccelError
from uaccel.session.debug_probe import Area, GdbMemory, ProbeMemory, RttTransport
from uaccel.session.message import describe_bytes
from uaccel.session.transport import CHUNK as STREAM_CHUNK
from uaccel.session.transport import WRITE_SECONDS, FairClock, StreamTransport, Transport, connect_tcp

# Serial ports and URLs: the values of ``--port``.

BITS_PER_BYTE: Final = 10  # One start bit, eight of data, one stop bit.
RTT: Final = "rtt://"
NO_SUCH, IN_USE, FORBIDDEN = 2, 16, 13  # errno


def open_port(port: str, baud: int = 115200) -> Transport:
    """Opens a device path (``/dev/ttyACM0``), ``socket://host:port``, ``rtt://...``, or any URL that pyserial knows."""
    if port.startswith("socket://"):
        return _open_socket(port)
    if port.startswith(RTT):
        return open_rtt(port)
    try:
        line = serial.serial_for_url(port, baud, timeout=0, write_timeout=WRITE_SECONDS, do_not_open=True)
        if os.name == "posix" and isinstance(line, serial.Serial):
            line.exclusive = True
        line.open()
    except (serial.SerialException, OSError, ValueError) as error:
        raise DeviceError(f"cannot open port {port}: {_reason(error)}") from error
    rate = baud / BITS_PER_BYTE
    if os.name == "posix" and isinstance(line, serial.Serial):
        return StreamTransport(port, line.fileno(), line.fileno(), line.close, rate)
    return SerialTransport(port, line, rate)


def require_port(port: str, baud: int) -> None:
    """Refuses a port that cannot be opened, before the work whose result would go there."""
    open_port(port, baud).close()


def for_board(board: Board, port: str) -> str:
    """The port of a board; to an ``rtt://`` port it adds where the board's RAM lies, and for probes the chip's name."""
    if not isinstance(board.console, RttConsole) or not port.startswith(RTT) or "?" in port:
        return port
    return f"{port}?{ram_words(board.ram_areas)}{_chip_words(board)}"


def _chip_words(board: Board) -> str:
    """The URL's words for pyOCD: the target, and the pack that describes it."""
    if not isinstance(board.flash, PyOcdFlash):
        return ""
    pack = "" if board.flash.pack is None else str(board.file.resolve().parent / board.flash.pack)
    return f"&target={board.flash.target}" + (f"&pack={quote(pack)}" if pack else "")


def ram_words(areas: Sequence[Sequence[int]]) -> str:
    """The words by which a URL states where RAM lies."""
    return "&".join(f"ram={origin:#x}:{length:#x}" for origin, length in areas)


def open_rtt(url: str) -> Transport:
    """Opens ``rtt://HOST:PORT`` of a debugger's server, or ``rtt://pyocd`` or ``rtt://pyocd/SERIAL_NUMBER`` of a probe.

    Behind a question mark follow ``ram=ORIGIN:LENGTH`` for each area of RAM, ``target`` with pyOCD's name of the chip,
    and ``pack`` with the CMSIS-Pack that describes it.
    """
    wrong = f"port {url} is no address; wanted rtt://HOST:NUMBER or rtt://pyocd, and a board whose file states its RAM"
    try:
        parts = urlsplit(url)
        query = parse_qs(parts.query)
        areas = [Area(*(int(number, 0) for number in area.split(":"))) for area in query.get("ram", ())]
        host, number = parts.hostname, parts.port
    except (ValueError, TypeError):
        raise DeviceError(wrong) from None
    if not host or not areas:
        raise DeviceError(wrong)
    if host == "pyocd" and number is None:
        target, pack = (query.get(key, [None])[0] for key in ("target", "pack"))
        return RttTransport(ProbeMemory(parts.path.strip("/") or None, target, pack), areas)
    if number is None:
        raise DeviceError(wrong)
    return RttTransport(GdbMemory(connect_tcp(host, number, name=url.partition("?")[0])), areas)


def _open_socket(url: str) -> Transport:
    try:
        parts = urlsplit(url)
        host, number = parts.hostname, parts.port
    except ValueError:
        host = number = None
    if not host or number is None:
        raise DeviceError(f"port {url} is no address; wanted socket://HOST:NUMBER")
    return connect_tcp(host, number, name=url)


def _reason(error: Exception) -> str:
    number = getattr(error, "errno", None)
    if number == NO_SUCH:
        return "there is none of that name; is the board plugged in?"
    if number == FORBIDDEN:
        return "you may not; on Linux add yourself to the group dialout and log in again"
    if number in (IN_USE, 11) or "exclusively lock" in str(error):
        return "another program has it open"
    return " ".join(str(error).split())


class SerialTransport(Transport):
    """Uses pyserial for lines without a file descriptor of the operating system, such as ``rfc2217://``."""

    def __init__(self, name: str, line: serial.SerialBase, bytes_per_second: float) -> None:
        self.name = name
        self.bytes_per_second = bytes_per_second
        self._line = line

    def write(self, data: bytes, timeout: float = WRITE_SECONDS) -> None:
        """Ignores ``timeout`` for the one with which the port was opened: a change would configure the port again."""
        try:
            self._line.write(data)
        except serial.SerialTimeoutException as error:
            words = f"{self.name} did not take {len(data)} bytes within {WRITE_SECONDS:g} s: is its line held?"
            raise DeviceError(words) from error
        except (serial.SerialException, OSError) as error:
            raise DeviceError(f"{self.name} vanished: {_reason(error)}") from error

    def read(self, timeout: float) -> bytes:
        try:
            self._line.timeout = max(0.0, timeout)
            first = self._line.read(1)
            self._line.timeout = 0
            return bytes(first + self._line.read(STREAM_CHUNK)) if first else b""
        except (serial.SerialException, OSError) as error:
            raise DeviceError(f"{self.name} vanished: {_reason(error)}") from error

    def close(self) -> None:
        with suppress(serial.SerialException, OSError):
            self._line.close()


# Firmware as a process of the same computer: its standard input and output are the line.

PATIENCE: Final = 2.0  # Seconds that a process has to end by itself once its input has ended.
CLOSING: Final = 20.0  # Seconds that it has after SIGTERM; it ends at once unless it has a waveform to close.
LOOKED_AT: Final = 1 << 16  # Bytes of its messages that are searched for the first line.


def first_words(file: IO[bytes]) -> str:
    """The first line of words that a process wrote; lines of ornaments, with which sanitizers begin, are skipped."""
    file.seek(0)
    lines = file.read(LOOKED_AT).decode(errors="replace").splitlines()
    return next((describe_bytes(line.strip()) for line in lines if any(map(str.isalnum, line))), "it said nothing")


class ProcessTransport(StreamTransport):
    """Starts a process for a session, and ends it with the session, with all that it has started meanwhile."""

    def __init__(self, command: Sequence[str], name: str = "the firmware") -> None:
        self._words = temporary_file()  # closed with the transport
        pipe = subprocess.PIPE
        try:
            self._process = start(command, stdin=pipe, stdout=pipe, stderr=self._words, start_new_session=True)
        except OSError as error:
            self._words.close()
            raise DeviceError(f"cannot start {command[0]}: {error.strerror}") from error
        assert self._process.stdin is not None  # both are pipes
        assert self._process.stdout is not None
        self._clock = FairClock(self.pid)
        super().__init__(name, self._process.stdout.fileno(), self._process.stdin.fileno(), self._end)

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def clock(self) -> float:
        """The time without the process's waits for a processor: on a busy computer it must not count as silent."""
        return self._clock()

    def vanished(self, reason: str) -> DeviceError:
        """The error when the process ends, with its exit status and its own message."""
        try:
            status = self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            return super().vanished(reason)
        how = f"signal {-status}" if status < 0 else f"exit status {status}"
        return DeviceError(f"{self.name} ended with {how}: {first_words(self._words)}")

    def _end(self) -> None:
        process = self._process
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        for ask, patience in ((process.terminate, PATIENCE), (process.kill, CLOSING)):
            try:
                process.wait(patience)
                break
            except subprocess.TimeoutExpired:
                ask()
        process.wait()
        with suppress(OSError):  # mostly there is nobody left
            os.killpg(process.pid, signal.SIGKILL)
        self._words.close()


# Firmware behind a Project API server, uaccel's or any other of microTVM's protocol.

CHUNK: Final = 1 << 16
SLICE: Final = 0.1  # Seconds of one call. Some servers wait for as many bytes as they are asked for until time is up.


class ProjectTransport(Transport):
    """Is the line of a :class:`Session` through a :class:`ProjectServer`, which goes on when it is closed."""

    def __init__(
        self,
        server: ProjectServer,
        *,
        bytes_per_second: float | None = None,
        instructions_per_second: float | None = None,
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        self.name = f"project {server.folder}"
        self.bytes_per_second = bytes_per_second
        self.instructions_per_second = instructions_per_second
        self._server = server
        self._on_close = on_close
        self._open = True
        try:
            server.open_transport()
        except BaseException:
            self._open = False
            on_close()
            raise

    def write(self, data: bytes, timeout: float = WRITE_SECONDS) -> None:
        self._server.write_transport(data, timeout)

    def read(self, timeout: float) -> bytes:
        end = time.monotonic() + timeout
        while True:
            left = max(0.0, end - time.monotonic())
            with suppress(IoTimeoutError):
                return self._server.read_transport(CHUNK, min(left, SLICE))
            if left <= SLICE:
                return b""

    def close(self) -> None:
        if self._open:
            self._open = False
            with suppress(UaccelError):
                self._server.close_transport()
            self._on_close()
