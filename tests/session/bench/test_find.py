"""Finding a board's port by its USB identity."""

from __future__ import annotations

from pathlib import Path

import pytest
from serial.tools import list_ports
from serial.tools.list_ports_common import ListPortInfo

from uaccel.bench import BoardAbsentError, find_port, port_of_project
from uaccel.board import Board, load_board
from uaccel.build.board_json import FILE, board_json
from uaccel.errors import BoardError, DeviceError, UaccelError

ST_LINK = "0483:374b"
FTDI = "0403:6001"


def plug(device: str, usb: str = "", serial_number: str | None = None) -> ListPortInfo:
    """A port as the operating system lists it; without ``usb`` one of the computer's own."""
    info = ListPortInfo(device)
    if usb:
        info.vid, info.pid = (int(part, 16) for part in usb.split(":"))
        info.serial_number = serial_number
    return info


def board_with(tmp_path: Path, *lines: str) -> Board:
    """The NUCLEO board, with other lines in its ``[run.serial]``."""
    original = load_board("nucleo_f746zg")
    file = tmp_path / "mine.toml"
    text = original.file.read_text()
    assert text.count(f'usb = "{ST_LINK}"') == 1
    file.write_text(text.replace(f'usb = "{ST_LINK}"', "\n".join(lines)))
    return load_board(file)


@pytest.fixture
def ports(monkeypatch: pytest.MonkeyPatch) -> list[ListPortInfo]:
    """What is plugged in."""
    plugged: list[ListPortInfo] = [plug("/dev/ttyS0")]
    monkeypatch.setattr(list_ports, "comports", lambda: plugged)
    return plugged


def complaint(kind: type[UaccelError], board: Board, port: str | None = None) -> str:
    with pytest.raises(UaccelError) as caught:
        find_port(board, port)
    assert type(caught.value) is kind
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_board_is_found_by_its_usb_identity(tmp_path: Path, ports: list[ListPortInfo]) -> None:
    ports += [plug("/dev/ttyUSB0", FTDI, "A"), plug("/dev/ttyACM3", ST_LINK, "B")]
    assert find_port(load_board("nucleo_f746zg")) == "/dev/ttyACM3"
    assert find_port(load_board("nucleo_f746zg"), "auto") == "/dev/ttyACM3"
    assert find_port(board_with(tmp_path, f'usb = "{FTDI}"')) == "/dev/ttyUSB0"


def test_of_two_alike_the_serial_number_decides(tmp_path: Path, ports: list[ListPortInfo]) -> None:
    ports += [plug("/dev/ttyACM0", ST_LINK, "066BFF"), plug("/dev/ttyACM1", ST_LINK, "066AAA")]
    board = board_with(tmp_path, f'usb = "{ST_LINK}"', 'serial_number = "066AAA"')
    assert find_port(board) == "/dev/ttyACM1"
    assert find_port(board_with(tmp_path, 'serial_number = "066BFF"')) == "/dev/ttyACM0"
    board = load_board("nucleo_f746zg")
    assert complaint(DeviceError, board) == (
        "2 USB ports may be board nucleo_f746zg: /dev/ttyACM0 (0483:374b, serial number 066BFF), "
        "/dev/ttyACM1 (0483:374b, serial number 066AAA); "
        f"name one with --port, or give 'serial_number' in [run.serial] of {board.file}"
    )


def test_a_board_without_identity_is_the_only_plug_there_is(ports: list[ListPortInfo]) -> None:
    board = load_board("netduino_plus_2")
    assert "wanted any device; seen none" in complaint(BoardAbsentError, board)
    ports.append(plug("/dev/ttyUSB0", FTDI))
    assert find_port(board) == "/dev/ttyUSB0"


def test_an_absent_board_is_told_with_what_is_there(tmp_path: Path, ports: list[ListPortInfo]) -> None:
    ports.append(plug("/dev/ttyUSB0", FTDI))
    assert complaint(BoardAbsentError, load_board("nucleo_f746zg")) == (
        "board nucleo_f746zg is at no USB port: wanted 0483:374b; "
        "seen /dev/ttyUSB0 (0403:6001, serial number unknown); plug it in, or name its port with --port"
    )
    board = board_with(tmp_path, f'usb = "{FTDI}"', 'serial_number = "X1"')
    assert "wanted 0403:6001 with serial number X1; seen" in complaint(BoardAbsentError, board)


def test_a_named_port_is_taken_as_it_is(tmp_path: Path, ports: list[ListPortInfo]) -> None:
    ports.append(plug("/dev/ttyACM0", ST_LINK))
    board = board_with(tmp_path, 'port = "/dev/serial/by-id/mine"')
    assert find_port(board) == "/dev/serial/by-id/mine"
    assert find_port(board, "socket://bench:3333") == "socket://bench:3333"
    assert find_port(board, "auto") == "/dev/ttyACM0"


@pytest.mark.parametrize("port", [None, "auto"])
def test_a_board_without_a_serial_line_says_so(port: str | None) -> None:
    board = load_board("mps2_an385")
    assert find_port(board, "socket://localhost:1") == "socket://localhost:1"
    assert complaint(BoardError, board, port) == (
        f"{board.file}: board mps2_an385 has no serial line: there is no [run.serial]"
    )


def test_what_pyserial_lists_here_is_understood(tmp_path: Path) -> None:
    """Of what this computer has, none is this."""
    board = board_with(tmp_path, f'usb = "{ST_LINK}"', 'serial_number = "none has this"')
    assert "wanted 0483:374b with serial number none has this; seen" in complaint(BoardAbsentError, board)


@pytest.mark.parametrize(
    ("name", "given", "found"),
    [
        ("nucleo_f746zg", "", "/dev/ttyACM3"),
        ("nucleo_f746zg", "auto", "/dev/ttyACM3"),
        ("nucleo_f746zg", "socket://bench:1", "socket://bench:1"),
        ("nucleo_f746zg", "/dev/ttyACM9", "/dev/ttyACM9"),
        ("netduino_plus_2", "", None),
        ("netduino_plus_2", "auto", None),
        ("host", "", None),
        ("host", "/dev/ttyACM9", "/dev/ttyACM9"),
    ],
)
def test_the_port_of_a_project(
    name: str, given: str, found: str | None, tmp_path: Path, ports: list[ListPortInfo]
) -> None:
    """What nothing tells is not guessed: that there is but one adapter does not make it this board's."""
    (tmp_path / FILE).parent.mkdir()
    (tmp_path / FILE).write_text(board_json(load_board(name), None))
    ports += [plug("/dev/ttyACM3", ST_LINK, "B")]
    assert port_of_project(tmp_path, given) == found
    ports += [plug("/dev/ttyACM4", ST_LINK, "C")]
    assert port_of_project(tmp_path, given) == (None if found == "/dev/ttyACM3" else found)


def test_the_port_of_somebody_elses_project(tmp_path: Path) -> None:
    assert port_of_project(tmp_path) is None
    assert port_of_project(tmp_path, "/dev/ttyACM9") == "/dev/ttyACM9"
