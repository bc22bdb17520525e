"""Rings in RAM: the block is found wherever it lies, and bytes pass whatever the device is at."""

from __future__ import annotations

import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from uaccel.errors import DeviceError, UaccelError
from uaccel.session import debug_probe
from uaccel.session.connect import open_port
from uaccel.session.debug_probe import ID, Area, GdbMemory, ProbeMemory, RttTransport, UnreadableError
from uaccel.session.transport import connect_tcp

ORIGIN, LENGTH = 0x20000000, 0x3000
UP, DOWN = 0x20002800, 0x20002900


class Ram:
    """Memory, and what the firmware does in it. ``writes``: the addresses, in order."""

    name = "the chip"

    def __init__(self) -> None:
        self.data = bytearray(LENGTH)
        self.writes: list[tuple[int, int]] = []
        self.on_read: Callable[[], None] = lambda: None

    @contextmanager
    def access(self) -> Iterator[None]:
        yield

    def read(self, address: int, count: int) -> bytes:
        assert address >= ORIGIN
        assert address + count <= ORIGIN + LENGTH
        data = bytes(self.data[address - ORIGIN : address - ORIGIN + count])
        self.on_read()
        return data

    def write(self, address: int, data: bytes) -> None:
        self.writes.append((address, len(data)))
        self.put(address, data)

    def close(self) -> None:
        self.writes.append((0, 0))

    def put(self, address: int, data: bytes) -> None:
        assert address >= ORIGIN
        assert address + len(data) <= ORIGIN + LENGTH
        self.data[address - ORIGIN : address - ORIGIN + len(data)] = data

    def word(self, address: int, value: int | None = None) -> int:
        if value is not None:
            self.put(address, value.to_bytes(4, "little"))
        return int.from_bytes(self.data[address - ORIGIN : address - ORIGIN + 4], "little")

    def block(self, at: int, up: tuple[int, ...] = (UP, 16, 0, 0), down: tuple[int, ...] = (DOWN, 16, 0, 0)) -> None:
        for place, value in enumerate((1, 1, 0, *up, 0, 0, *down, 0)):
            self.word(at + 16 + 4 * place, value)
        self.put(at, ID)


def transport(ram: Ram) -> RttTransport:
    return RttTransport(ram, [Area(ORIGIN, LENGTH)])


PLACES = [ORIGIN, ORIGIN + 1, ORIGIN + 0x7F3, *(ORIGIN + 4096 - back for back in (1, 8, 15, 16, 17)), UP - 72]


@pytest.mark.parametrize("at", PLACES, ids=hex)
def test_the_block_is_found_wherever_it_lies(at: int) -> None:
    ram = Ram()
    ram.block(at, up=(UP, 16, 3, 0))
    ram.put(UP, b"abc")
    assert transport(ram).read(0) == b"abc"
    assert ram.word(at + 40) == 3


@pytest.mark.parametrize(
    "decoy",
    [
        {"up": (UP, 0, 0, 0)},
        {"up": (UP, 16, 16, 0)},
        {"down": (DOWN, 16, 0, 99)},
        {"up": (0x08000000, 16, 0, 0)},
        {"down": (ORIGIN + LENGTH - 8, 16, 0, 0)},
    ],
)
def test_what_only_looks_like_one_is_passed_over(decoy: dict[str, tuple[int, ...]]) -> None:
    ram = Ram()
    ram.block(ORIGIN + 0x10, **decoy)
    ram.put(ORIGIN + 0x210, ID[:12])
    ram.put(ORIGIN + LENGTH - 16, ID)  # nothing fits behind it
    ram.block(ORIGIN + 0x1000, up=(UP, 16, 2, 0))
    ram.put(UP, b"ok")
    assert transport(ram).read(0) == b"ok"


@pytest.mark.parametrize("begin", range(16))
def test_rings_that_wrap_round(begin: int) -> None:
    ram = Ram()
    ram.block(ORIGIN, up=(UP, 16, (begin + 15) % 16, begin), down=(DOWN, 16, begin, begin))
    message = bytes(range(1, 16))
    for place, byte in enumerate(message):
        ram.put(UP + (begin + place) % 16, bytes([byte]))
    line = transport(ram)
    assert line.read(0) == message
    ram.writes.clear()
    line.write(message, 0)
    assert bytes(ram.data[DOWN - ORIGIN + (begin + place) % 16] for place in range(15)) == message
    assert ram.word(ORIGIN + 60) == (begin + 15) % 16
    assert [address for address, _ in ram.writes][-1] == ORIGIN + 60, "the device may look before all is there"


def test_more_than_a_ring_holds_goes_as_the_device_takes_it() -> None:
    ram, taken = Ram(), bytearray()
    ram.block(ORIGIN)

    def device() -> None:
        at, end = ram.word(ORIGIN + 64), ram.word(ORIGIN + 60)
        if at != end:
            taken.append(ram.data[DOWN - ORIGIN + at])
            ram.word(ORIGIN + 64, (at + 1) % 16)

    ram.on_read = device
    message = bytes(i & 0xFF for i in range(100))
    line = transport(ram)
    line.write(message, 5)
    while len(taken) < 100:
        line.read(0)
    assert bytes(taken) == message


def test_a_block_that_is_being_made_is_left_alone() -> None:
    """As start-up goes: all zero, then the descriptors, the name last; in between each look sees a part."""
    ram = Ram()
    line = transport(ram)
    assert line.read(0) == b""
    ram.block(ORIGIN + 64, up=(UP, 16, 5, 0))
    ram.put(ORIGIN + 64, bytes(16))
    for length in (1, 9, 10 - 1):
        ram.put(ORIGIN + 64, ID[:length])
        assert line.read(0) == b""
    ram.put(UP, b"there")
    ram.put(ORIGIN + 64, ID)
    assert line.read(0) == b"there"


def test_memory_that_cannot_be_read_is_passed_over() -> None:
    class Holes(Ram):
        def read(self, address: int, count: int) -> bytes:
            if address < ORIGIN + 0x1000:
                raise UnreadableError("off")
            return super().read(address, count)

    ram = Holes()
    ram.block(ORIGIN + 0x1FF8, up=(UP, 16, 2, 0))
    assert transport(ram).read(0) == b"\0\0"


def test_offsets_that_cannot_be_are_not_followed() -> None:
    ram = Ram()
    ram.block(ORIGIN, up=(UP, 16, 2, 0))
    line = transport(ram)
    assert line.read(0) == b"\0\0"
    ram.word(ORIGIN + 36, 0xFFFF)
    ram.writes.clear()
    assert line.read(0) == b""
    assert ram.writes == []
    ram.word(ORIGIN + 36, 3)
    assert line.read(0) == b"\0"


@pytest.mark.parametrize("near", [0x100, debug_probe.NEAR])
def test_a_block_that_comes_while_a_slow_probe_searches(near: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The front is searched first and then all of it, once more where it took longer than firmware needs to start."""
    monkeypatch.setattr(debug_probe, "NEAR", near)
    monkeypatch.setattr(debug_probe, "FIND_SECONDS", 0.02)
    ram = Ram()
    reads = 0

    def slow() -> None:
        nonlocal reads
        reads += 1
        time.sleep(0.01)
        if reads == 3:
            ram.block(UP - 72, up=(UP, 16, 3, 0))
            ram.put(UP, b"abc")

    ram.on_read = slow
    assert transport(ram).read(1) == b"abc"


def test_after_a_reset_the_block_is_found_anew() -> None:
    ram = Ram()
    ram.block(ORIGIN + 0x100, up=(UP, 16, 1, 0))
    line = transport(ram)
    assert line.read(0) == b"\0"
    ram.data[:] = bytes(LENGTH)
    assert line.read(0.01) == b""
    ram.block(ORIGIN + 0x2000, up=(UP, 16, 4, 2))
    assert line.read(0) == b"\0\0"


def test_what_goes_wrong_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    ram = Ram()
    line = transport(ram)
    monkeypatch.setattr(debug_probe, "FIND_SECONDS", 0.02)
    with pytest.raises(DeviceError) as caught:
        line.read(5)
    assert str(caught.value) == (
        "the chip has no RTT control block in its RAM (0x20000000 to 0x20002fff): "
        "is firmware of this board flashed, and does it run?"
    )
    ram.block(ORIGIN)
    with pytest.raises(DeviceError, match=r"^the chip took 15 of 20 bytes within 0.02 s: does its firmware run\?$"):
        transport(ram).write(bytes(20), 0.02)
    line.close()
    line.close()
    assert ram.writes[-1] == (0, 0)
    assert ram.writes.count((0, 0)) == 1


class Server:
    """A debugger's, for one client. ``halting``: it serves only while the device is halted, as QEMU's does: whatever
    comes first while it runs is what halts it, and is lost."""

    def __init__(self, ram: Ram, *, halting: bool) -> None:
        self.ram, self.halting = ram, halting
        self.running = False
        self.halts = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._listener.close()
        self._thread.join(5)

    def _serve(self) -> None:
        connection, _ = self._listener.accept()
        rest = b""
        with connection, suppress(ConnectionResetError):
            while data := connection.recv(4096):
                rest += data
                while rest:
                    answer, rest = self._step(rest)
                    if answer is None:
                        break
                    connection.sendall(answer)

    def _step(self, data: bytes) -> tuple[bytes | None, bytes]:
        if self.running and (self.halting or data[:1] == b"\x03"):
            self.running = False
            self.halts += 1
            return packet("T02thread:01;"), data[1:]
        if data[:1] != b"$":
            return b"", data[1:]
        if b"#" not in data or len(data) < data.index(b"#") + 3:
            return None, data
        end = data.index(b"#")
        words, sum_ = data[1:end], data[end + 1 : end + 3]
        assert f"{sum(words) & 0xFF:02x}".encode() == sum_
        return b"+" + self._answer(words.decode()), data[end + 3 :]

    def _answer(self, words: str) -> bytes:
        if words == "?":
            return packet("S05")
        if words == "c":
            self.running = True
            return b""
        place, _, rest = words[1:].partition(":")
        address, count = (int(number, 16) for number in place.split(","))
        if not ORIGIN <= address < ORIGIN + LENGTH:
            return packet("E14")
        if words[0] == "m":
            return packet(self.ram.read(address, count).hex())
        self.ram.write(address, bytes.fromhex(rest))
        return packet("OK")


def packet(words: str) -> bytes:
    return f"${words}#{sum(words.encode()) & 0xFF:02x}".encode()


@pytest.mark.parametrize("halting", [True, False])
def test_through_a_debuggers_server(halting: bool) -> None:
    ram = Ram()
    ram.block(ORIGIN + 0x123, up=(UP, 16, 3, 0))
    ram.put(UP, b"abc")
    server = Server(ram, halting=halting)
    line = open_port(f"rtt://127.0.0.1:{server.port}?ram={ORIGIN:#x}:{LENGTH:#x}")
    assert line.name == f"rtt://127.0.0.1:{server.port}"
    assert line.read(1) == b"abc"
    line.write(b"hello", 1)
    assert bytes(ram.data[DOWN - ORIGIN : DOWN - ORIGIN + 5]) == b"hello"
    end = time.monotonic() + 10
    while not server.running and time.monotonic() < end:  # nobody answers the word to go on
        time.sleep(0.01)
    assert server.running, "the device must go on"
    assert (server.halts > 0) is halting
    line.close()
    server.close()


def test_a_debugger_that_cannot_read_there() -> None:
    server = Server(Ram(), halting=False)
    memory = GdbMemory(connect_tcp("127.0.0.1", server.port, name="the server"))
    with pytest.raises(DeviceError) as caught:
        memory.read(0, 4)
    assert str(caught.value) == (
        "the server: the debugger cannot read 4 bytes at 0x00000000 (E14): does the board file state this chip's RAM?"
    )
    with pytest.raises(DeviceError, match=r"^the server: the debugger cannot write at 0x00000000 \(E14\)$"):
        memory.write(0, b"abcd")
    memory.close()
    server.close()


@pytest.mark.parametrize(
    "url", ["rtt://", "rtt://host", "rtt://host:1", "rtt://host:x?ram=0:1", "rtt://h:1?ram=0", "rtt://h:1?ram=a:b"]
)
def test_no_address(url: str) -> None:
    with pytest.raises(DeviceError) as caught:
        open_port(url)
    assert str(caught.value) == (
        f"port {url} is no address; wanted rtt://HOST:NUMBER or rtt://pyocd, and a board whose file states its RAM"
    )


def test_without_pyocd(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyocd.core.helpers", None)
    with pytest.raises(
        UaccelError, match=r"^pyOCD is not installed: pip install 'uaccel\[probe\]', or name a debugger's"
    ):
        open_port("rtt://pyocd?ram=0x20000000:0x1000")


class FakeProbe:
    """What pyOCD is asked for, on memory of this test."""

    def __init__(self, ram: Ram) -> None:
        self.ram, self.resumed, self.closed = ram, 0, 0
        self.asked: dict[str, Any] = {}
        self.target = self

    def session_with_chosen_probe(self, **asked: Any) -> FakeProbe | None:
        self.asked = asked
        return self if asked["unique_id"] != "none" else None

    def open(self) -> None:
        if self.asked["unique_id"] == "broken":
            raise RuntimeError("no ACK\nreceived")

    def close(self) -> None:
        self.closed += 1

    def resume(self) -> None:
        self.resumed += 1

    def read_memory_block8(self, address: int, count: int) -> list[int]:
        if address < ORIGIN:
            raise RuntimeError("fault")
        return list(self.ram.read(address, count))

    def write_memory_block8(self, address: int, data: list[int]) -> None:
        self.ram.write(address, bytes(data))

    def write32(self, address: int, value: int) -> None:
        self.ram.write(address, value.to_bytes(4, "little"))


@pytest.fixture
def probe(monkeypatch: pytest.MonkeyPatch) -> FakeProbe:
    """In pyOCD's place."""
    fake = FakeProbe(Ram())
    monkeypatch.setitem(sys.modules, "pyocd.core.helpers", SimpleNamespace(ConnectHelper=fake))
    for name in ("pyocd", "pyocd.core"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    return fake


def test_through_a_probe_by_pyocd(probe: FakeProbe) -> None:
    probe.ram.block(ORIGIN + 8, up=(UP, 16, 3, 0))
    probe.ram.put(UP, b"abc")
    line = open_port(f"rtt://pyocd/0042?ram={ORIGIN:#x}:{LENGTH:#x}&target=nrf52840&pack=/a%20b.pack")
    assert probe.asked["options"]["pack"] == ["/a b.pack"]
    assert (probe.asked["unique_id"], probe.asked["options"]["target_override"]) == ("0042", "nrf52840")
    assert probe.asked["options"]["connect_mode"] == "attach", "it is not halted"
    assert probe.resumed == 1
    assert line.read(0) == b"abc"
    line.write(b"hello", 1)
    assert probe.ram.writes[-1] == (ORIGIN + 68, 4), "in one go"
    line.close()
    assert probe.closed == 1


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("rtt://pyocd/none?ram=0x20000000:64", "no debug probe none is here; 'uaccel ports' lists what is plugged in"),
        ("rtt://pyocd/broken?ram=0x20000000:64", "debug probe broken cannot be used: no ACK received"),
    ],
)
def test_a_probe_that_does_not_serve(url: str, words: str, probe: FakeProbe) -> None:
    with pytest.raises(DeviceError) as caught:
        open_port(url)
    assert str(caught.value) == words


def test_what_a_probe_cannot_read(probe: FakeProbe) -> None:
    with pytest.raises(UnreadableError, match=r"^debug probe at USB cannot read 4 bytes at 0x00000000: fault$"):
        ProbeMemory(None, None).read(0, 4)
