"""The server's lines to firmware: processes, terminals, TCP; every wait ends, and nothing is lost on the way."""

from __future__ import annotations

import os
import random
import re
import socket
import sys
import threading
import time
import tty
from collections.abc import Iterator
from pathlib import Path

import pytest
from api_server import ports
from api_server.connection import CHUNK, Connection
from api_server.errors import ClientGoneError, IoTimeoutError, TransportClosedError
from api_server.lines import MOST_ARRIVED, Line, ProcessLine
from api_server.ports import DeviceFaultError, find_port, open_port

from support.run.raw_server import is_alive, wait_for_end

ECHO = "import os\nwhile True:\n data = os.read(0, 4096)\n if not data: break\n os.write(1, data)"


class Client:
    """The other end of a connection."""

    def __init__(self) -> None:
        self._requests, self.output = os.pipe()
        self.input, self._replies = os.pipe()
        self.connection = Connection(self._requests, self._replies)

    def hang_up(self) -> None:
        ends = self.output, self.input
        self.output = self.input = -1  # first: another thread may tidy up as soon as one end is closed
        for end in ends:
            os.close(end)

    def close(self) -> None:
        for end in (self._requests, self._replies, self.output, self.input):
            if end >= 0:
                os.close(end)


@pytest.fixture
def client() -> Iterator[Client]:
    client = Client()
    yield client
    client.close()


@pytest.fixture
def connection(client: Client) -> Connection:
    return client.connection


def process(connection: Connection, program: str, patience: float = 0.0) -> ProcessLine:
    return ProcessLine(connection, [sys.executable, "-u", "-c", program], Path.cwd(), patience)


def read_all(line: Line, count: int) -> bytes:
    data = b""
    while len(data) < count:
        data += line.read(count - len(data), 10.0)
    return data


# ---------------------------------------------------------------------------------------- processes


def test_every_byte_passes_both_ways(connection: Connection) -> None:
    line = process(connection, ECHO)
    data = bytes(range(256)) * 40
    line.write(data, 10.0)
    assert read_all(line, len(data)) == data
    line.close()


def test_more_than_both_pipes_hold(connection: Connection) -> None:
    """Who writes and never reads would wait for ever, for an echo that waits itself."""
    line = process(connection, ECHO)
    data = random.Random(1).randbytes(1 << 20)
    line.write(data, 30.0)
    assert read_all(line, len(data)) == data
    line.close()


def test_reading_takes_what_is_there_and_no_more(connection: Connection) -> None:
    line = process(connection, "import os, time\nos.write(1, b'abcdef')\ntime.sleep(60)")
    assert line.read(4, 10.0) == b"abcd"
    assert line.read(4, 10.0) == b"ef"
    line.close()


def test_reading_without_a_timeout_waits_for_every_byte(connection: Connection) -> None:
    slow = "import os, time\nfor c in b'abcdef':\n os.write(1, bytes([c]))\n time.sleep(0.05)\ntime.sleep(60)"
    line = process(connection, slow)
    assert line.read(6, None) == b"abcdef"
    line.close()


@pytest.mark.parametrize("seconds", [0, 0.2])
def test_silence(seconds: float, connection: Connection) -> None:
    line = process(connection, "import time\ntime.sleep(60)")
    begin = time.monotonic()
    with pytest.raises(IoTimeoutError) as silence:
        line.read(1, seconds)
    assert seconds <= time.monotonic() - begin < seconds + 2
    assert re.fullmatch(rf"python\S* sent nothing within {seconds:g} s", silence.value.data["detail"])
    line.close()


@pytest.mark.parametrize("seconds", [0, 0.2])
def test_a_process_that_takes_nothing(seconds: float, connection: Connection) -> None:
    line = process(connection, "import time\ntime.sleep(60)")
    with pytest.raises(IoTimeoutError) as full:
        line.write(bytes(1 << 20), seconds)
    assert re.fullmatch(rf"python\S* took \d+ of 1048576 bytes within {seconds:g} s", full.value.data["detail"])
    line.close()


@pytest.mark.parametrize(("piece", "pause"), [("bytes(1 << 20)", 0), ("b'.'", 0.01)], ids=["floods", "trickles"])
def test_a_process_that_takes_nothing_and_talks(piece: str, pause: float, connection: Connection) -> None:
    """What it says is taken in: not for ever, and not all of it."""
    line = process(connection, f"import os, time\nwhile True:\n os.write(1, {piece})\n time.sleep({pause})")
    begin = time.monotonic()
    with pytest.raises(IoTimeoutError):
        line.write(bytes(1 << 23), 0.5)
    assert time.monotonic() - begin < 5
    assert len(line._arrived) <= MOST_ARRIVED + CHUNK
    line.close()


def test_what_came_before_the_end_is_read_first(connection: Connection) -> None:
    line = process(connection, "import os, sys\nos.write(1, b'last')\nsys.exit('that was all')")
    assert read_all(line, 4) == b"last"
    for _ in range(2):
        with pytest.raises(TransportClosedError) as closed:
            line.read(1, 10.0)
        assert re.fullmatch(r"python\S* ended with exit status 1: that was all", closed.value.data["detail"])
    line.close()


def test_an_end_while_all_the_bytes_are_awaited(connection: Connection) -> None:
    line = process(connection, "import os\nos.write(1, b'some')")
    assert line.read(100, None) == b"some"
    with pytest.raises(TransportClosedError, match="TransportClosedError"):
        line.read(100, None)
    line.close()


def test_writing_to_a_process_that_has_ended(connection: Connection) -> None:
    line = process(connection, "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
    line.last_words("it has ended")
    with pytest.raises(TransportClosedError) as closed:
        line.write(bytes(1000), 5.0)
    assert re.fullmatch(r"python\S* ended with signal 9: it said nothing", closed.value.data["detail"])
    line.close()


def test_a_process_may_end_by_itself(connection: Connection, tmp_path: Path) -> None:
    """For so long as it is given; then it is told to, and then made to."""
    note = tmp_path / "note"
    line = process(connection, f"import sys\nsys.stdin.read()\nopen({str(note)!r}, 'w').write('bye')", 10.0)
    line.close()
    assert note.read_text() == "bye"


@pytest.mark.parametrize("program", [ECHO, "import time\ntime.sleep(60)"])
def test_no_process_is_left(program: str, connection: Connection) -> None:
    line = process(connection, program)
    pid = line._process.pid
    assert is_alive(pid)
    line.close()
    assert not is_alive(pid)


@pytest.mark.parametrize("method", ["read", "write"])
def test_a_client_that_goes_ends_the_wait(method: str, client: Client) -> None:
    line = process(client.connection, "import time\ntime.sleep(60)")
    threading.Timer(0.2, client.hang_up).start()
    begin = time.monotonic()
    with pytest.raises(ClientGoneError):
        line.read(1, None) if method == "read" else line.write(bytes(1 << 20), None)
    assert time.monotonic() - begin < 10
    pid = line._process.pid
    line.close()
    wait_for_end(pid)


# ---------------------------------------------------------------------------------------- ports


class Cable:
    """A terminal whose other end the test has."""

    def __init__(self) -> None:
        self.board, self._computer = os.openpty()
        tty.setraw(self._computer)
        self.path = os.ttyname(self._computer)

    def unplug(self) -> None:
        for end in (self.board, self._computer):
            os.close(end)
        self.board = self._computer = -1


@pytest.fixture
def cable() -> Iterator[Cable]:
    cable = Cable()
    yield cable
    if cable.board >= 0:
        cable.unplug()


@pytest.fixture(params=[True, False], ids=["pyserial", "termios"])
def _with_or_without_pyserial(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "HAVE_PYSERIAL", request.param)


@pytest.mark.usefixtures("_with_or_without_pyserial")
def test_a_terminal_carries_every_byte(connection: Connection, cable: Cable) -> None:
    line = open_port(connection, cable.path, 115200)
    data = bytes(range(256))
    line.write(data, 5.0)
    assert os.read(cable.board, 1000) == data
    os.write(cable.board, data[::-1])
    assert read_all(line, 256) == data[::-1]
    with pytest.raises(IoTimeoutError):
        line.read(1, 0.1)
    line.close()


@pytest.mark.usefixtures("_with_or_without_pyserial")
def test_a_port_is_for_one_at_a_time(connection: Connection, cable: Cable) -> None:
    line = open_port(connection, cable.path, 115200)
    with pytest.raises(DeviceFaultError, match=f"cannot open port {cable.path}: another program has it open"):
        open_port(connection, cable.path, 115200)
    line.close()
    open_port(connection, cable.path, 115200).close()


@pytest.mark.usefixtures("_with_or_without_pyserial")
def test_a_port_that_vanishes(connection: Connection, cable: Cable) -> None:
    line = open_port(connection, cable.path, 115200)
    cable.unplug()
    with pytest.raises(TransportClosedError) as gone:
        line.read(1, 5.0)
    assert f"/dev/pts/{cable.path.rpartition('/')[2]} vanished: " in gone.value.data["detail"]
    line.close()


@pytest.mark.usefixtures("_with_or_without_pyserial")
def test_a_port_that_is_not_there(connection: Connection) -> None:
    with pytest.raises(DeviceFaultError) as absent:
        open_port(connection, "/dev/ttyNONE", 115200)
    assert absent.value.message == (
        "cannot open port /dev/ttyNONE: there is none of that name; is the board plugged in?"
    )
    assert absent.value.data == {"kind": "device"}


def test_odd_speeds_take_pyserial(connection: Connection, cable: Cable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "HAVE_PYSERIAL", False)
    with pytest.raises(DeviceFaultError, match="123456 baud takes pyserial: pip install pyserial"):
        open_port(connection, cable.path, 123456)


def test_what_is_no_terminal(connection: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "HAVE_PYSERIAL", False)
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(DeviceFaultError, match="Inappropriate ioctl for device"):
        open_port(connection, str(file), 115200)


def test_a_tcp_port(connection: Connection) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"socket://127.0.0.1:{listener.getsockname()[1]}"
        line = open_port(connection, url, 115200)
        board, _ = listener.accept()
        line.write(b"ping", 5.0)
        assert board.recv(10) == b"ping"
        board.sendall(b"pong")
        assert read_all(line, 4) == b"pong"
        board.close()
        with pytest.raises(TransportClosedError):
            line.read(1, 5.0)
        line.close()
    with pytest.raises(DeviceFaultError, match=rf"cannot connect to {url}: Connection refused; is it running\?"):
        open_port(connection, url, 115200)


@pytest.mark.parametrize("url", ["socket://", "socket://host", "socket://:5", "socket://host:x", "socket://host:99999"])
def test_what_is_no_address(url: str, connection: Connection) -> None:
    with pytest.raises(DeviceFaultError, match=r"is no address; wanted socket://HOST:NUMBER"):
        open_port(connection, url, 115200)


# ---------------------------------------------------------------------------------------- finding a port


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What Linux shows of its terminals: two boards of a kind, one of another, a terminal that is no USB device."""
    monkeypatch.setattr(ports, "TERMINALS", tmp_path / "class" / "tty")
    for name, usb in (
        ("ttyACM0", ("0483", "374b", "066AFF")),
        ("ttyACM1", ("0483", "374b", "066BEE")),
        ("ttyUSB0", ("0403", "6001", None)),
    ):
        plug(tmp_path, name, usb)
    for name in ("tty1", "ttyS0"):
        (tmp_path / "class" / "tty" / name).mkdir(parents=True)
    (tmp_path / "class" / "tty" / "ttyS0" / "device").symlink_to(tmp_path / "devices")
    return tmp_path


def plug(system: Path, name: str, usb: tuple[str, str, str | None]) -> None:
    device = system / "devices" / f"usb-{name}"
    terminal = device / "1-1:1.0" / "tty" / name
    terminal.mkdir(parents=True)
    for file, text in zip(("idVendor", "idProduct", "serial"), usb, strict=True):
        if text is not None:
            (device / file).write_text(text + "\n")
    entry = system / "class" / "tty" / name
    entry.mkdir(parents=True)
    (entry / "device").symlink_to(device / "1-1:1.0")


@pytest.mark.usefixtures("system")
@pytest.mark.parametrize(
    ("usb", "number", "path"),
    [
        ("0403:6001", None, "/dev/ttyUSB0"),
        ("0483:374b", "066AFF", "/dev/ttyACM0"),
        ("0483:374b", "066BEE", "/dev/ttyACM1"),
        (None, "066BEE", "/dev/ttyACM1"),
    ],
)
def test_a_board_is_found_by_what_its_file_says(usb: str | None, number: str | None, path: str) -> None:
    assert find_port(usb, number) == path


@pytest.mark.usefixtures("system")
@pytest.mark.parametrize(
    ("usb", "number", "words"),
    [
        (None, None, "port auto: the board file says neither 'usb' nor 'serial_number'; name the port"),
        ("1234:5678", None, "port auto: no board with USB id 1234:5678; is it plugged in? There is: /dev/ttyACM0 0483"),
        ("0483:374b", "77", "port auto: no board with USB id 0483:374b and serial number 77; is it plugged in?"),
        (
            "0483:374b",
            None,
            "port auto: several boards have USB id 0483:374b: /dev/ttyACM0 (serial number 066AFF), "
            "/dev/ttyACM1 (serial number 066BEE); name the port",
        ),
    ],
)
def test_a_board_that_is_not_found(usb: str | None, number: str | None, words: str) -> None:
    with pytest.raises(DeviceFaultError) as fault:
        find_port(usb, number)
    assert fault.value.message.startswith(words)


def test_no_port_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "TERMINALS", tmp_path)
    with pytest.raises(DeviceFaultError, match="There is: no USB port at all"):
        find_port("0483:374b", None)


def test_elsewhere_than_on_linux(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "TERMINALS", tmp_path / "none")
    monkeypatch.setattr(ports, "HAVE_PYSERIAL", False)
    with pytest.raises(DeviceFaultError, match="port auto takes pyserial on this system"):
        find_port("0483:374b", None)
