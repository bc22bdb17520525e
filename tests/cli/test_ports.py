"""`uaccel ports` and `uaccel monitor`: what is plugged in, and what it says."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import threading
import time
import tty
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from serial.tools import list_ports
from serial.tools.list_ports_common import ListPortInfo

from support.run.command import Call
from uaccel.session import board_ports
from uaccel.session.monitor import Heard, Monitor
from uaccel.session.protocol_ids import Boot, Fault, Log, LogLevel
from uaccel.session.transport import Packet, encode


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[ListPortInfo]:
    """The ports of a computer that has none yet, and no probe."""
    ports: list[ListPortInfo] = []
    monkeypatch.setattr(list_ports, "comports", lambda: ports)
    monkeypatch.setattr(board_ports.probes, "__defaults__", (tmp_path,))
    return ports


def usb_device(folder: Path, usb: str, product: str, serial: str = "") -> None:
    """As Linux shows it."""
    folder.mkdir()
    vendor, number = usb.split(":")
    for name, text in (("idVendor", vendor), ("idProduct", number), ("product", product), ("serial", serial)):
        if text:
            (folder / name).write_text(text + "\n")


def test_ports_and_probes_with_guesses(seen: list[ListPortInfo], call: Call, tmp_path: Path) -> None:
    own, stick = ListPortInfo("/dev/ttyS0"), ListPortInfo("/dev/ttyACM7")
    stick.vid, stick.pid, stick.serial_number, stick.description = 0x0483, 0x374B, "066A", "STM32 STLink"
    seen += [own, stick]
    usb_device(tmp_path / "1-1", "0483:374b", "STM32 STLink", "066A")
    usb_device(tmp_path / "1-2", "1366:1051", "J-Link", "683")
    usb_device(tmp_path / "1-3", "abcd:0001", "A CMSIS-DAP probe")
    usb_device(tmp_path / "1-4", "abcd:0002", "A keyboard")
    (tmp_path / "1-5").mkdir()
    report = call("ports", "--json").report
    first, second = report["ports"]
    assert "nucleo_f746zg" in first.pop("boards")
    assert first == {
        "port": "/dev/ttyACM7",
        "usb": "0483:374b",
        "serial_number": "066A",
        "description": "STM32 STLink",
    }
    assert second == {"port": "/dev/ttyS0", "usb": None, "serial_number": None, "description": "", "boards": []}
    found = [(probe["kind"], probe["usb"], probe["serial_number"]) for probe in report["probes"]]
    assert found == [
        ("ST-LINK/V2-1", "0483:374b", "066A"),
        ("J-Link", "1366:1051", "683"),
        ("CMSIS-DAP", "abcd:0001", None),
    ]
    assert "nucleo_f746zg" in report["probes"][0]["boards"]
    told = call("ports").out
    assert all(word in told for word in ("/dev/ttyACM7", "nucleo_f746zg", "J-Link", "683"))


def test_a_computer_with_nothing(seen: list[ListPortInfo], call: Call) -> None:
    assert call("ports", "--json").report == {"ports": [], "probes": []}
    assert call("ports").out == "  No serial port is here.\n  No debug probe is here.\n"
    done = call("monitor")
    assert done.status == 4
    assert done.complaint == ("the only USB port is wanted, seen none; name one with --port, or the board with --board")


def frame(kind: int, body: bytes) -> bytes:
    return encode(Packet(kind, 0, 7, body))


CUT = "the device sent Log with 0 bytes, 1 were wanted: build and flash its firmware with this uaccel"
FRAMES = [
    (frame(Log.TYPE, Log(LogLevel.WARNING, b"hot").pack()), [Heard("log", "warning", "hot")]),
    (frame(Fault.TYPE, Fault(b"bus fault: pc=0x8").pack()), [Heard("fault", "error", "bus fault: pc=0x8")]),
    (frame(Boot.TYPE, Boot(1).pack()), [Heard("boot", "info", "the firmware has started")]),
    (b"plain text\r\nand more\n", [Heard("text", "", "plain text"), Heard("text", "", "and more")]),
    (frame(0x81, b"\n" * 40), []),
    (b"\x05noise\x93\0", []),
    (frame(Log.TYPE, b""), [Heard("text", "", CUT)]),
]


@pytest.mark.parametrize("step", [1, 3, 1000])
def test_frames_and_text_in_pieces_of_any_size(step: int) -> None:
    monitor = Monitor()
    line = b"\0".join(data for data, _ in FRAMES) + b"\0"
    heard = [row for at in range(0, len(line), step) for row in monitor.feed(line[at : at + step])]
    assert heard == [row for _, rows in FRAMES for row in rows]


@pytest.fixture
def line() -> Iterator[tuple[str, Callable[[bytes], int]]]:
    """A terminal, and what writes to it from the board's side."""
    board, computer = pty.openpty()
    tty.setraw(computer)
    yield os.ttyname(computer), lambda data: os.write(board, data)
    os.close(board)
    os.close(computer)


def test_a_log_is_shown_line_by_line(line: tuple[str, Callable[[bytes], int]], call: Call) -> None:
    port, write = line
    data = b"".join(sent for sent, _ in FRAMES[:4])
    wanted = [row for _, rows in FRAMES[:4] for row in rows]
    for words in (("--json",), ()):
        timer = threading.Timer(0.2, write, (data,))
        timer.start()
        done = call("monitor", "--port", port, "--seconds", "0.6", *words)
        timer.join()
        assert done.status == 0, done.err
        if words:
            assert [json.loads(row) for row in done.out.splitlines()] == [vars(row) for row in wanted]
        else:
            assert done.out.splitlines() == [f"{row.level}: {row.text}".removeprefix(": ") for row in wanted]


def test_a_level_that_there_is_not(call: Call) -> None:
    done = call("monitor", "--port", "socket://127.0.0.1:1", "--level", "loud")
    assert (done.status, done.out) == (2, "")
    assert "--level loud: wanted one of debug, info, warning, error" in done.err


def test_ctrl_c_ends_it_and_nothing_loads_tvm(line: tuple[str, Callable[[bytes], int]]) -> None:
    port, write = line
    code = "import sys; from uaccel.cli import main; s = main(sys.argv[1:]); sys.exit(s or 'tvm' in sys.modules)"
    command = [sys.executable, "-c", code, "monitor", "-p", port]
    heeds = signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background ignore Ctrl-C
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    signal.signal(signal.SIGINT, heeds)
    assert process.stdout is not None
    heard: list[str] = []
    reader = threading.Thread(target=lambda stream: heard.append(stream.readline()), args=(process.stdout,))
    reader.start()
    end = time.monotonic() + 20
    while reader.is_alive() and time.monotonic() < end:
        write(b"hello\n")  # what comes before the port is open is nobody's
        reader.join(0.1)
    process.send_signal(signal.SIGINT)
    _, complaints = process.communicate(timeout=20)
    assert (heard, complaints, process.returncode) == (["hello\n"], "", 0)
