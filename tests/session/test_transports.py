"""Real lines: pipes, terminals, sockets and serial ports, to firmware that runs as a process."""

from __future__ import annotations

import fcntl
import os
import resource
import signal
import socket
import subprocess
import sys
import termios
import threading
import time
import tty
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from serial.tools import list_ports
from serial.tools.list_ports_common import ListPortInfo

from support.device.device import include_flags, known_inputs, known_outputs, runtime_sources
from uaccel.bench import find_port
from uaccel.board import load_board
from uaccel.cli import main
from uaccel.errors import DeviceError
from uaccel.session.connect import ProcessTransport, open_port
from uaccel.session.link import Timeouts
from uaccel.session.session import Session
from uaccel.session.transport import StreamTransport, connect_tcp
from uaccel.util.files import data_dir

SUPPORT = Path(__file__).resolve().parents[1] / "support"
INPUTS = known_inputs(1)
SHORT = Timeouts(answer=0.1, silence=0.6, run=0.6)


@pytest.fixture(scope="session")
def firmware(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("firmware") / "firmware"
    port = data_dir("firmware") / "ports" / "host"
    sources = [*runtime_sources(), *sorted(port.glob("*.c")), SUPPORT / "device" / "process.c"]
    strict = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Wconversion", "-Werror", "-O1", "-DUACCEL_OBSERVE"]
    command = ["gcc", *strict, *include_flags(), f"-I{port}", *map(str, sources), "-o", str(program), "-pthread"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return program


def check(session: Session) -> None:
    for name, got in session.run(INPUTS).items():
        np.testing.assert_array_equal(got, known_outputs(INPUTS)[name])


@pytest.fixture
def on_a_terminal(firmware: Path) -> Iterator[str]:
    """The path of a serial port at whose other end the firmware listens."""
    port, other = os.openpty()
    tty.setraw(port)
    process = subprocess.Popen([str(firmware)], stdin=port, stdout=port, close_fds=True)
    yield os.ttyname(other)
    process.kill()
    process.wait()
    os.close(port)
    os.close(other)


@pytest.fixture
def on_tcp(firmware: Path) -> Iterator[int]:
    """The number of a port at which each connection gets firmware of its own."""
    server = socket.create_server(("127.0.0.1", 0))
    processes = []

    def accept() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            processes.append(subprocess.Popen([str(firmware)], stdin=connection.fileno(), stdout=connection.fileno()))
            connection.close()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    yield server.getsockname()[1]
    server.shutdown(socket.SHUT_RDWR)
    server.close()
    thread.join()
    for process in processes:
        process.kill()
        process.wait()


def test_a_process(firmware: Path) -> None:
    with Session.start([str(firmware)]) as session:
        check(session)
        assert session.time(3).seconds is not None
        assert 256 <= next(session.stream([INPUTS])).stack < 20_000


def test_the_process_ends_with_the_session(firmware: Path) -> None:
    transport = ProcessTransport([str(firmware)])
    with Session(transport):
        os.kill(transport.pid, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(transport.pid, 0)


def test_a_process_that_does_not_listen_is_ended_all_the_same() -> None:
    transport = ProcessTransport([sys.executable, "-c", "import time; time.sleep(60)"])
    begun = time.monotonic()
    with pytest.raises(DeviceError, match=r"^no answer from the firmware within 0\.\d s: is it powered"):
        Session(transport, timeouts=SHORT)
    assert time.monotonic() - begun < 5
    with pytest.raises(ProcessLookupError):
        os.kill(transport.pid, 0)


def test_reset_starts_the_process_anew(firmware: Path) -> None:
    transport = ProcessTransport([str(firmware)])
    with Session(transport) as session:
        check(session)
        session.reset()
        check(session)


@pytest.mark.parametrize(
    ("does", "message"),
    [
        ("crash", r"^the firmware ended with signal 11: it said nothing$"),
        ("exit", r"^the firmware ended with exit status 3: I give up$"),
        ("fault", r"^the firmware stopped: usage fault at 0x00000042$"),
        (
            "hang",
            r'^the firmware: "run" did not finish within 0\.6 s: allow more time, or reset the board if it hangs$',
        ),
    ],
)
def test_a_process_that_fails(firmware: Path, monkeypatch: pytest.MonkeyPatch, does: str, message: str) -> None:
    monkeypatch.setenv("DEVICE_DOES", does)
    with pytest.raises(DeviceError, match=message), Session.start([str(firmware)], timeouts=SHORT) as session:
        session.run(INPUTS)


ODD = ("print", "read", "close", "start", "fork", "fork and sleep", "fork and print")


@pytest.mark.parametrize("does", ODD)
def test_a_device_model_that_takes_the_process_for_its_own(
    firmware: Path, monkeypatch: pytest.MonkeyPatch, does: str
) -> None:
    """Neither what it prints nor what it starts reaches the session, nor keeps its line open."""
    monkeypatch.setenv("DEVICE_DOES", does)
    begun = time.monotonic()
    with Session.start([str(firmware)], timeouts=SHORT) as session:
        check(session)
        check(session)
        session.reset()
        check(session)
    assert time.monotonic() - begun < 30


def is_group(number: int) -> bool:
    """Whether a process group has members."""
    try:
        os.killpg(number, 0)
    except ProcessLookupError:
        return False
    return True


def test_what_a_device_model_has_started_ends_with_the_session(firmware: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEVICE_DOES", "fork and sleep")
    transport = ProcessTransport([str(firmware)])
    with Session(transport) as session:
        check(session)
        assert os.getpgid(transport.pid) == transport.pid
    until = time.monotonic() + 10
    while is_group(transport.pid) and time.monotonic() < until:
        time.sleep(0.05)
    assert not is_group(transport.pid)


def test_a_process_that_takes_its_time(firmware: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Longer than a dead device may be silent."""
    monkeypatch.setenv("DEVICE_DOES", "sleep")
    with Session.start([str(firmware)], timeouts=Timeouts(answer=0.05, silence=0.3, run=10)) as session:
        check(session)


def test_a_log_line_of_a_process(firmware: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEVICE_DOES", "log")
    with Session.start([str(firmware)]) as session:
        check(session)
        assert [line.text for line in session.log] == ["computing"]


def test_a_process_that_is_killed(firmware: Path) -> None:
    transport = ProcessTransport([str(firmware)])
    with Session(transport) as session:
        os.kill(transport.pid, signal.SIGKILL)
        with pytest.raises(
            DeviceError, match=r"^the firmware (ended with signal 9: it said nothing|vanished: Broken pipe)$"
        ):
            session.run(INPUTS)


def test_a_process_that_does_not_start() -> None:
    with pytest.raises(DeviceError, match=r"^cannot start /nowhere/firmware: No such file or directory$"):
        Session.start(["/nowhere/firmware"])


def test_a_closed_session_says_so(firmware: Path) -> None:
    session = Session.start([str(firmware)])
    session.close()
    session.close()
    with pytest.raises(DeviceError, match=r"^the firmware is closed$"):
        session.run(INPUTS)


def test_a_serial_port(on_a_terminal: str) -> None:
    with Session.open(on_a_terminal, baud=115200) as session:
        check(session)
        session.layers()
    with Session.open(on_a_terminal, baud=115200) as session:
        check(session)


def test_a_serial_port_whose_board_is_reset(on_a_terminal: str) -> None:
    with Session.open(on_a_terminal) as session:
        session.reset()
        check(session)


def test_a_port_in_use(on_a_terminal: str) -> None:
    with Session.open(on_a_terminal) as first:
        with pytest.raises(DeviceError, match=rf"^cannot open port {on_a_terminal}: another program has it open$"):
            Session.open(on_a_terminal)
        check(first)


def test_no_such_port() -> None:
    with pytest.raises(DeviceError) as caught:
        Session.open("/dev/ttyNOWHERE7")
    assert str(caught.value) == (
        "cannot open port /dev/ttyNOWHERE7: there is none of that name; is the board plugged in?"
    )


def test_a_serial_port_that_vanishes() -> None:
    """As when a cable is pulled."""
    ours, theirs = os.openpty()
    tty.setraw(ours)
    transport = open_port(os.ttyname(theirs))
    os.close(theirs)
    os.close(ours)
    with pytest.raises(DeviceError, match=r"^/dev/\S+ vanished: ") as caught:
        Session(transport, timeouts=SHORT)
    assert "\n" not in str(caught.value)


def test_a_serial_port_that_vanishes_in_the_middle(firmware: Path) -> None:
    port, other = os.openpty()
    tty.setraw(port)
    process = subprocess.Popen([str(firmware)], stdin=port, stdout=port)
    with Session.open(os.ttyname(other), timeouts=SHORT) as session:
        check(session)
        process.kill()
        process.wait()
        os.close(port)
        os.close(other)
        with pytest.raises(DeviceError, match=r"^/dev/\S+ vanished: (Input/output error|the other end has closed)"):
            check(session)


def test_an_echoing_port() -> None:
    with pytest.raises(DeviceError, match=r"^loop:// sends back what uaccel sends: "):
        Session.open("loop://", timeouts=SHORT)


@pytest.mark.parametrize("url", ["nonsense://x", "rfc2217://127.0.0.1:1"])
def test_an_url_that_leads_nowhere(url: str) -> None:
    with pytest.raises(DeviceError, match=rf"^cannot open port {url}: \S") as caught:
        Session.open(url)
    assert "\n" not in str(caught.value)


def test_tcp(on_tcp: int) -> None:
    with Session.open(f"socket://127.0.0.1:{on_tcp}") as session:
        check(session)
        session.reset()
        check(session)


def test_a_monitor_may_ask_for_more_of_the_log(on_tcp: int, capfd: pytest.CaptureFixture[str]) -> None:
    words = ["monitor", "--port", f"socket://127.0.0.1:{on_tcp}", "--level", "debug", "--seconds", "0.3"]
    assert main(words) == 0, capfd.readouterr().err


@pytest.mark.parametrize("url", ["socket://", "socket://host", "socket://host:x", "socket://:1"])
def test_no_address(url: str) -> None:
    with pytest.raises(DeviceError) as caught:
        Session.open(url)
    assert str(caught.value) == f"port {url} is no address; wanted socket://HOST:NUMBER"


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        number = server.getsockname()[1]
    with pytest.raises(DeviceError) as caught:
        Session.open(f"socket://127.0.0.1:{number}")
    assert str(caught.value) == (f"cannot connect to socket://127.0.0.1:{number}: Connection refused; is it running?")


def silent_server(talk: Callable[[socket.socket], None]) -> int:
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = server.accept()
        with connection, server:
            talk(connection)

    threading.Thread(target=serve, daemon=True).start()
    number: int = server.getsockname()[1]
    return number


def test_a_connection_that_closes() -> None:
    number = silent_server(lambda connection: connection.close())
    with pytest.raises(DeviceError, match=rf"^127\.0\.0\.1:{number} vanished: "):
        Session(connect_tcp("127.0.0.1", number), timeouts=SHORT)


@pytest.mark.parametrize("half", [socket.SHUT_RD, socket.SHUT_WR], ids=["takes no more", "says no more"])
def test_a_connection_of_which_half_closes(half: int) -> None:
    """The other end stays open meanwhile."""
    done = threading.Event()

    def talk(connection: socket.socket) -> None:
        connection.shutdown(half)
        done.wait(20)

    number, begun = silent_server(talk), time.monotonic()
    line = connect_tcp("127.0.0.1", number)
    with pytest.raises(DeviceError) as caught:
        Session(line, timeouts=SHORT)
    line.close()
    done.set()
    words = "vanished: the other end has closed the line" if half == socket.SHUT_WR else "is it powered"
    assert words in str(caught.value)
    assert time.monotonic() - begun < 5


def test_a_serial_port_that_returns_under_another_name(firmware: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The session ends with the port; the board's USB identity leads to the next one."""
    board, lines = load_board("nucleo_f746zg"), [os.openpty() for _ in range(2)]
    names = [os.ttyname(other) for _, other in lines]
    for (port, other), name in zip(lines, names, strict=True):
        tty.setraw(port)
        info = ListPortInfo(name)
        info.vid, info.pid = 0x0483, 0x374B
        monkeypatch.setattr(list_ports, "comports", lambda info=info: [info])
        process = subprocess.Popen([str(firmware)], stdin=port, stdout=port)
        with Session.open(find_port(board), timeouts=SHORT) as session:
            check(session)
            process.kill()
            process.wait()
            os.close(port)
            os.close(other)
            with pytest.raises(DeviceError, match=rf"^{name} vanished: "):
                check(session)
    assert len(set(names)) == 2


def test_a_line_that_takes_nothing_does_not_hold_the_host() -> None:
    """The other end reads nothing: the pipe is full, and the write has to give up."""
    reading, writing = os.pipe()
    quiet, talking = os.pipe()
    fcntl.fcntl(writing, 1031, 4096)  # F_SETPIPE_SZ
    transport = StreamTransport("the pipe", quiet, writing, lambda: None)
    with pytest.raises(DeviceError, match=r"^the pipe took 4096 of 1048576 bytes within 0\.2 s: is its line held\?$"):
        transport.write(bytes(1 << 20), 0.2)
    for descriptor in (reading, writing, quiet, talking):
        os.close(descriptor)


def test_two_full_pipes_do_not_wait_for_each_other(firmware: Path) -> None:
    """A hundred thousand damaged frames, each of which is answered, and nobody reads before the last is written."""
    transport = ProcessTransport([str(firmware)])
    with Session(transport) as session:
        transport.write(b"\1\0" * 100_000)
        check(session)


def test_speed_of_a_serial_port_is_its_bauds() -> None:
    ours, theirs = os.openpty()
    transport = open_port(os.ttyname(theirs), 921600)
    assert transport.bytes_per_second == 92160
    attributes = termios.tcgetattr(theirs)
    assert attributes[4] == attributes[5] == termios.B921600
    transport.close()
    os.close(ours)
    os.close(theirs)


def test_among_very_many_open_files(firmware: Path) -> None:
    """More than select() knows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2000:
        pytest.skip(f"only {hard} files may be open here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2000), hard))
    others = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    try:
        with Session.start([str(firmware)]) as session:
            check(session)
    finally:
        for other in others:
            os.close(other)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
