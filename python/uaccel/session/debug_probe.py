"""Uses a device's memory as a line: two rings in RAM (RTT), which a debug probe or a debugger's server accesses."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final, Protocol

from uaccel.errors import DeviceError, ToolError
from uaccel.session.transport import WRITE_SECONDS, Transport

# Rings in the device's RAM (SEGGER's Real Time Transfer), through anything that reads and writes its memory.
#
# The control block has sixteen bytes that name it, the numbers of rings up and down, then six words for each ring.
# These are the addresses of its name and of its bytes, the number of bytes, the writer's place, the reader's place,
# flags. Each side moves its own place only. One byte of a ring stays free, so that equal places mean an empty ring,
# never a full one.

ID: Final = b"SEGGER RTT".ljust(16, b"\0")
HEAD: Final = struct.Struct("<16s2i")
RING: Final = struct.Struct("<6I")
MOST_RINGS: Final = 16
CHUNK: Final = 1 << 12  # Bytes that are searched at a time.
SHORTEST_PAUSE, LONGEST_PAUSE = 0.0005, 0.01  # Seconds between two looks, while nothing comes.
FIND_SECONDS: Final = 5.0
# Bytes of each area that are searched at first: megabytes take a probe seconds, and variables lie at the front.
NEAR: Final = 1 << 16
_WRITTEN, _READ = 12, 16  # Offsets in a ring's words of the writer's and the reader's place.


class UnreadableError(DeviceError):
    """Memory cannot be read: it is switched off, or neither the CPU nor an emulator's debugger may touch it."""


class DeviceMemory(Protocol):
    """Reads and writes a device's memory, as a debug probe does. ``access`` encloses a few reads and writes in a row:
    a device that cannot be read while it runs is halted meanwhile."""

    name: str

    def access(self) -> AbstractContextManager[None]: ...

    def read(self, address: int, count: int) -> bytes: ...

    def write(self, address: int, data: bytes) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class Area:
    """States a range of RAM in which the control block may lie."""

    origin: int
    length: int


@dataclass(frozen=True)
class Ring:
    """Holds the state of one ring; ``at`` is the address of its six words."""

    at: int
    bytes: int
    size: int
    written: int
    read: int

    @property
    def filled(self) -> int:
        return (self.written - self.read) % self.size

    @property
    def room(self) -> int:
        return self.size - 1 - self.filled


class RttTransport(Transport):
    """Carries bytes through ring 0 up and ring 0 down of the control block that lies in one of the areas."""

    def __init__(self, memory: DeviceMemory, areas: Sequence[Area]) -> None:
        self.name = memory.name
        self._memory = memory
        self._areas = tuple(areas)
        self._block: int | None = None
        self._lost_at = time.monotonic()
        self._reach = NEAR
        self._arrived = bytearray()
        self._open = True

    def write(self, data: bytes, timeout: float = WRITE_SECONDS) -> None:
        rest, end, pause = data, time.monotonic() + timeout, SHORTEST_PAUSE
        while rest:
            with self._memory.access():
                moved = self._take() + (sent := self._give(rest))
            rest = rest[sent:]
            if rest and time.monotonic() >= end:
                raise DeviceError(
                    f"{self.name} took {len(data) - len(rest)} of {len(data)} bytes within {timeout:.3g} s: "
                    "does its firmware run?"
                )
            pause = self._wait(pause, bool(moved)) if rest else pause

    def read(self, timeout: float) -> bytes:
        end, pause = time.monotonic() + timeout, SHORTEST_PAUSE
        while not self._arrived:
            with self._memory.access():
                self._take()
            if self._arrived or time.monotonic() >= end:
                break
            pause = self._wait(pause, False)
        data = bytes(self._arrived)
        self._arrived.clear()
        return data

    def close(self) -> None:
        if self._open:
            self._open = False
            with suppress(DeviceError):
                self._memory.close()

    def _wait(self, pause: float, moved: bool) -> float:
        """Lets the device work for a pause, and returns the next one; pauses grow while nothing moves."""
        time.sleep(SHORTEST_PAUSE if moved else pause)
        return SHORTEST_PAUSE if moved else min(pause * 1.5, LONGEST_PAUSE)

    def _take(self) -> int:
        """Takes all bytes out of the ring that leads up, and returns their number. The reader's place is written last:
        until then the device does not use the room again."""
        rings = self._rings()
        if rings is None or not rings[0].filled:
            return 0
        ring = rings[0]
        end = ring.written if ring.written > ring.read else ring.size
        data = self._memory.read(ring.bytes + ring.read, end - ring.read)
        if ring.written < ring.read and ring.written:
            data += self._memory.read(ring.bytes, ring.written)
        self._memory.write(ring.at + _READ, ring.written.to_bytes(4, "little"))
        self._arrived += data
        return len(data)

    def _give(self, data: bytes) -> int:
        """Puts as many bytes as there is room for into the ring that leads down, and returns their number. The writer's
        place is written last: until then the device does not look at the bytes."""
        rings = self._rings()
        if rings is None or not rings[1].room:
            return 0
        ring = rings[1]
        piece = data[: ring.room]
        first = piece[: ring.size - ring.written]
        self._memory.write(ring.bytes + ring.written, first)
        if len(piece) > len(first):
            self._memory.write(ring.bytes, piece[len(first) :])
        self._memory.write(ring.at + _WRITTEN, ((ring.written + len(piece)) % ring.size).to_bytes(4, "little"))
        return len(piece)

    def _rings(self) -> tuple[Ring, Ring] | None:
        """The rings as they are now; None while there is no block, for example from a reset to the firmware's start.

        A known block is checked at each look, since a reset may remove it. A search begins near and reaches four times
        as far at each look. It is an error only if all of RAM was searched and the block has been away for some time.
        """
        if self._block is not None:
            rings = self._rings_at(self._block)
            if rings is not None:
                self._lost_at = time.monotonic()
                return rings
            self._block = None
        began, reach = time.monotonic(), self._reach
        for area in self._areas:
            found = self._search(Area(area.origin, min(area.length, reach)))
            if found is not None:
                (self._block, rings), self._reach = found, NEAR
                return rings
        self._reach = 4 * reach
        if began - self._lost_at > FIND_SECONDS and all(area.length <= reach for area in self._areas):
            where = ", ".join(f"{area.origin:#010x} to {area.origin + area.length - 1:#010x}" for area in self._areas)
            raise DeviceError(
                f"{self.name} has no RTT control block in its RAM ({where}): "
                "is firmware of this board flashed, and does it run?"
            )
        return None

    def _search(self, area: Area) -> tuple[int, tuple[Ring, Ring]] | None:
        """The first sound block in an area. Chunks that cannot be read are skipped. The end of each chunk, one byte
        shorter than the name, is searched with the next one, so that a name across their border is found."""
        before = b""
        for at in range(area.origin, area.origin + area.length, CHUNK):
            try:
                piece = before + self._memory.read(at, min(CHUNK, area.origin + area.length - at))
            except UnreadableError:
                before = b""
                continue
            place = piece.find(ID)
            while place >= 0:
                block = at - len(before) + place
                rings = self._rings_at(block)
                if rings is not None:
                    return block, rings
                place = piece.find(ID, place + 1)
            before = piece[-len(ID) + 1 :]
        return None

    def _rings_at(self, block: int) -> tuple[Ring, Ring] | None:
        """The rings of a block at an address; None if there is no block, or one that is not yet complete."""
        if not self._inside(block, HEAD.size):
            return None
        name, up, down = HEAD.unpack(self._memory.read(block, HEAD.size))
        if name != ID or not (0 < up <= MOST_RINGS and 0 < down <= MOST_RINGS):
            return None
        first = block + HEAD.size
        if not self._inside(first, RING.size * (up + down)):
            return None
        words = self._memory.read(first, RING.size * (up + 1))
        rings = [self._ring(first + place, words[place:]) for place in (0, RING.size * up)]
        return (rings[0], rings[1]) if rings[0] is not None and rings[1] is not None else None

    def _ring(self, at: int, words: bytes) -> Ring | None:
        _, start, size, written, read, _ = RING.unpack_from(words)
        sound = size > 1 and written < size and read < size and self._inside(start, size)
        return Ring(at, start, size, written, read) if sound else None

    def _inside(self, at: int, length: int) -> bool:
        return any(area.origin <= at and at + length <= area.origin + area.length for area in self._areas)


# Memory through a debugger's server (OpenOCD, pyOCD, J-Link, QEMU), by GDB's remote protocol.

MOST: Final = 1024  # Bytes of memory in one packet; every server takes so many.
ANSWER_SECONDS: Final = 5.0
TRY_SECONDS: Final = 0.5  # Until a server counts as one that does not answer while the device runs.
STOPPED: Final = (b"T", b"S")
INTERRUPT: Final = b"\x03"


class GdbMemory:
    """Reads and writes memory through the server at ``line``. Some servers do so while the device runs; for others it
    is halted meanwhile. The first request finds out which kind it is."""

    def __init__(self, line: Transport) -> None:
        self.name = line.name
        self._line = line
        self._rest = b""
        # Whether the device must be halted; None before the first try.
        self._halts: bool | None = None
        self._running = False
        self._depth = 0
        self._begin()

    @contextmanager
    def access(self) -> Iterator[None]:
        self._depth += 1
        try:
            if self._halts and self._running:
                self._halt()
            yield
        finally:
            self._depth -= 1
            if not self._running and not self._depth:
                self._go_on()

    def read(self, address: int, count: int) -> bytes:
        data = b""
        while len(data) < count:
            size = min(MOST, count - len(data))
            told = self._ask(f"m{address + len(data):x},{size:x}")
            try:
                piece = bytes.fromhex(told.decode())
            except ValueError:
                piece = b""
            if not piece or len(piece) > size:
                raise UnreadableError(
                    f"{self.name}: the debugger cannot read {size} bytes at {address + len(data):#010x} "
                    f"({told.decode(errors='replace') or 'no answer'}): does the board file state this chip's RAM?"
                )
            data += piece
        return data

    def write(self, address: int, data: bytes) -> None:
        for at in range(0, len(data), MOST):
            piece = data[at : at + MOST]
            told = self._ask(f"M{address + at:x},{len(piece):x}:{piece.hex()}")
            if told != b"OK":
                raise DeviceError(
                    f"{self.name}: the debugger cannot write at {address + at:#010x} ({told.decode(errors='replace')})"
                )

    def close(self) -> None:
        with suppress(DeviceError):
            if not self._running:
                self._go_on()
        self._line.close()

    def _begin(self) -> None:
        """Lets the device run, which servers halt when somebody connects."""
        self._send("?")
        told = self._receive(ANSWER_SECONDS)
        if told is None:
            self._line.write(INTERRUPT)
            told = self._receive(ANSWER_SECONDS)
        if told is None or not told.startswith(STOPPED):
            raise DeviceError(f"{self.name} is no debugger's server: it does not answer; name its GDB port")
        self._go_on()

    def _ask(self, words: str) -> bytes:
        """The answer to a request. If the first try shows that the server does not answer while the device runs, the
        device is halted, and ``access`` lets it go on."""
        if self._running and self._halts is None:
            self._send(words)
            told = self._receive(TRY_SECONDS)
            if told is not None and not told.startswith(STOPPED) and told:
                self._halts = False
                return told
            self._halts = True
            self._running = told is None or not told.startswith(STOPPED)
        if self._running and self._halts:
            self._halt()
        self._send(words)
        told = self._receive(ANSWER_SECONDS)
        while told is not None and told.startswith(STOPPED):  # of a halt that came late
            told = self._receive(ANSWER_SECONDS)
        if told is None:
            raise DeviceError(f"{self.name}: the debugger does not answer within {ANSWER_SECONDS:g} s")
        return told

    def _halt(self) -> None:
        self._line.write(INTERRUPT)
        told = self._receive(ANSWER_SECONDS)
        if told is None or not told.startswith(STOPPED):
            raise DeviceError(f"{self.name}: the debugger does not halt the device; reset the board")
        self._running = False

    def _go_on(self) -> None:
        self._send("c")
        self._running = True

    def _send(self, words: str) -> None:
        self._line.write(f"${words}#{sum(words.encode()) & 0xFF:02x}".encode())

    def _receive(self, seconds: float) -> bytes | None:
        """The next packet; acknowledgements and the program's own output (``O``) are left out."""
        end = time.monotonic() + seconds
        while True:
            begin = self._rest.find(b"$")
            stop = self._rest.find(b"#", begin)
            if begin >= 0 and stop >= 0 and len(self._rest) >= stop + 3:
                packet, self._rest = self._rest[begin + 1 : stop], self._rest[stop + 3 :]
                self._line.write(b"+")
                if not packet.startswith(b"O") or packet == b"OK":
                    return _expanded(packet)
                continue
            left = end - time.monotonic()
            if left <= 0:
                return None
            self._rest += self._line.read(left)


def _expanded(packet: bytes) -> bytes:
    """A packet without run-length encoding: behind a character, ``*`` and n repeat it n - 29 times more."""
    if b"*" not in packet:
        return packet
    found = bytearray()
    place = 0
    while place < len(packet):
        if packet[place : place + 1] == b"*" and found and place + 1 < len(packet):
            found += found[-1:] * (packet[place + 1] - 29)
            place += 2
        else:
            found += packet[place : place + 1]
            place += 1
    return bytes(found)


# Memory through a debug probe at USB, by pyOCD if that is installed.


class ProbeMemory:
    """Reads and writes memory while the device runs. ``target`` is pyOCD's name of the chip, ``pack`` the CMSIS-Pack
    that describes it."""

    def __init__(self, serial_number: str | None, target: str | None, pack: str | None = None) -> None:
        try:
            from pyocd.core.helpers import ConnectHelper
        except ImportError as error:
            raise ToolError(
                "pyOCD is not installed: pip install 'uaccel[probe]', or name a debugger's server as rtt://HOST:PORT"
            ) from error
        self.name = f"debug probe {serial_number or 'at USB'}"
        options: dict[str, Any] = {"connect_mode": "attach", "resume_on_disconnect": True}
        if target is not None:
            options["target_override"] = target
        if pack is not None:
            options["pack"] = [pack]
        try:
            self._session: Any = ConnectHelper.session_with_chosen_probe(
                unique_id=serial_number, blocking=False, return_first=True, options=options
            )
            if self._session is None:
                raise DeviceError(f"no {self.name} is here; 'uaccel ports' lists what is plugged in")
            self._session.open()
            self._core: Any = self._session.target
            self._core.resume()
        except DeviceError:
            raise
        except Exception as error:
            raise self._failed("cannot be used", error) from error

    @contextmanager
    def access(self) -> Iterator[None]:
        yield

    def read(self, address: int, count: int) -> bytes:
        try:
            return bytes(self._core.read_memory_block8(address, count))
        except Exception as error:
            raise UnreadableError(str(self._failed(f"cannot read {count} bytes at {address:#010x}", error))) from error

    def write(self, address: int, data: bytes) -> None:
        try:
            if len(data) == 4 and address % 4 == 0:
                self._core.write32(address, int.from_bytes(data, "little"))  # at once: the device may look meanwhile
            else:
                self._core.write_memory_block8(address, list(data))
        except Exception as error:
            raise self._failed(f"cannot write at {address:#010x}", error) from error

    def close(self) -> None:
        with suppress(Exception):
            self._session.close()

    def _failed(self, what: str, error: Exception) -> DeviceError:
        """The error for one of pyOCD's many kinds of exceptions."""
        return DeviceError(f"{self.name} {what}: {' '.join(str(error).split()) or type(error).__name__}")
