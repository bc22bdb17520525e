"""Serial ports and URLs: what a user writes behind ``--port``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Final
from urllib.parse import parse_qs, urlsplit

import serial

from uaccel.board import Board, PyOcdFlash, RttConsole
from uaccel.errors import DeviceError
from uaccel.session.gdb import GdbMemory
from uaccel.session.probe import ProbeMemory
from uaccel.session.rtt import Area, RttTransport
from uaccel.session.streams import CHUNK, StreamTransport, connect_tcp
from uaccel.session.transport import WRITE_SECONDS, Transport

BITS_PER_BYTE: Final = 10
"""One start bit, eight of data, one stop bit."""
RTT: Final = "rtt://"
NO_SUCH, IN_USE, FORBIDDEN = 2, 16, 13  # errno


def open_port(port: str, baud: int = 115200) -> Transport:
    """A device path (``/dev/ttyACM0``), ``socket://host:port``, or any other URL that pyserial knows."""
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
    """Complain about a port that cannot be opened before the work whose result would go there."""
    open_port(port, baud).close()


def for_board(board: Board, port: str) -> str:
    """Who looks for rings in a board's RAM must know where that is, and a probe which chip it is."""
    if not isinstance(board.console, RttConsole) or not port.startswith(RTT) or "?" in port:
        return port
    target = f"&target={board.flash.target}" if isinstance(board.flash, PyOcdFlash) else ""
    return f"{port}?{ram_words(board.ram_areas)}{target}"


def ram_words(areas: Sequence[Sequence[int]]) -> str:
    """How a URL says where RAM lies."""
    return "&".join(f"ram={origin:#x}:{length:#x}" for origin, length in areas)


def open_rtt(url: str) -> Transport:
    """``rtt://HOST:PORT`` of a debugger's server, ``rtt://pyocd`` or ``rtt://pyocd/SERIAL_NUMBER`` of a probe. Behind a
    question mark ``ram=ORIGIN:LENGTH``, as often as there are areas, and ``target``, as pyOCD calls the chip."""
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
        return RttTransport(ProbeMemory(parts.path.strip("/") or None, query.get("target", [None])[0]), areas)
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
    """What pyserial reaches and the operating system has no descriptor for, such as ``rfc2217://``."""

    def __init__(self, name: str, line: serial.SerialBase, bytes_per_second: float) -> None:
        self.name = name
        self.bytes_per_second = bytes_per_second
        self._line = line

    def write(self, data: bytes, timeout: float = WRITE_SECONDS) -> None:
        """``timeout`` is that with which the port was opened: setting another would set up the port anew."""
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
            return bytes(first + self._line.read(CHUNK)) if first else b""
        except (serial.SerialException, OSError) as error:
            raise DeviceError(f"{self.name} vanished: {_reason(error)}") from error

    def close(self) -> None:
        with suppress(serial.SerialException, OSError):
            self._line.close()
