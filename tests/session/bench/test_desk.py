"""The stand-in on a desk: it is flashed, reset, plugged and unplugged like a board, and answers like one."""

from __future__ import annotations

import array
import fcntl
import os
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from session.bench.conftest import Firmware
from support.device.boards import board_with_tools
from support.models.networks import OWN
from support.oracle.oracle import Tflm, random_inputs
from uaccel.bench import find_port, flash, reset
from uaccel.board import Board, available_boards, load_board
from uaccel.board.toml_table import read_toml
from uaccel.errors import BoardError, DeviceError
from uaccel.session.emulated_board import Desk, is_set_up, toml_text
from uaccel.session.link import Timeouts
from uaccel.session.protocol_ids import VERSION, Hello
from uaccel.session.session import Session
from uaccel.session.tensors import ramp
from uaccel.session.transport import Packet, encode

SHORT = Timeouts(answer=0.2, silence=1.5)
"""For boards that are silent. One that answers may be slow to: it is a process of a computer that may be busy."""
PATIENT = Timeouts(silence=60)
EVERY_BOARD = [board.name for board in available_boards()]


TERMINAL_BYTES = 4095
"""What a terminal of Linux keeps for who reads late."""


def waiting(line: int) -> int:
    """Bytes that could be read."""
    count = array.array("i", [0])
    fcntl.ioctl(line, termios.FIONREAD, count)
    return count[0]


def board_on(desk: Desk) -> Board:
    return load_board(desk.board_file)


def greet(desk: Desk, firmware: Firmware, timeouts: Timeouts = PATIENT) -> Session:
    return Session.open(desk.port, expect=firmware.identity, timeouts=timeouts)


def test_a_model_runs_on_it_as_flashed_and_equals_the_reference(desk: Desk, firmware: Firmware) -> None:
    board = board_on(desk)
    assert find_port(board) == desk.port
    flash(board, firmware.elf)
    data = (OWN / "gesture.tflite").read_bytes()
    reference = Tflm(data)
    with greet(desk, firmware) as device:
        (name,) = (tensor.name for tensor in device.model.inputs)
        for (sample,) in random_inputs(data, 4, 20):
            (got,) = device.run({name: sample}).values()
            np.testing.assert_array_equal(got, reference.run([sample])[0].reshape(got.shape))


@pytest.mark.slow
def test_the_port_stays_while_the_firmware_changes(desk: Desk, firmware: Firmware, other_firmware: Firmware) -> None:
    flash(board_on(desk), firmware.elf)
    with greet(desk, firmware) as device:
        flash(board_on(desk), other_firmware.elf)
        with pytest.raises(DeviceError, match="was reset while the session was going on"):
            device.time(1)
    with pytest.raises(DeviceError, match=r"runs another model: residual .* build and flash its firmware anew"):
        greet(desk, firmware)
    greet(desk, other_firmware).close()


def test_reset_by_its_tool_and_by_a_session(desk: Desk, firmware: Firmware) -> None:
    flash(board_on(desk), firmware.elf)
    with greet(desk, firmware) as device:
        device.time(1)
        device.reset()
        device.time(1)
        reset(board_on(desk))
        with pytest.raises(DeviceError, match="was reset while the session was going on"):
            device.time(1)
    greet(desk, firmware).close()


def test_a_board_that_was_never_flashed_is_silent(desk: Desk) -> None:
    begin = time.monotonic()
    with pytest.raises(DeviceError, match=r"no answer from .* is it powered, is it the right port, is the firmware"):
        Session.open(desk.port, timeouts=SHORT)
    assert time.monotonic() - begin < 10


def test_a_cable_that_comes_out_is_told_at_once(desk: Desk, firmware: Firmware) -> None:
    flash(board_on(desk), firmware.elf)
    with greet(desk, firmware) as device:
        device.time(1)
        desk.order("unplug")
        begin = time.monotonic()
        with pytest.raises(DeviceError, match=f"^{desk.port} vanished"):
            device.time(1)
        assert time.monotonic() - begin < 10
    with pytest.raises(DeviceError, match=f"cannot open port {desk.port}: there is none of that name"):
        greet(desk, firmware)
    with pytest.raises(DeviceError, match="no debug probe found: the cable is out"):
        flash(board_on(desk), firmware.elf)
    desk.order("plug")
    greet(desk, firmware).close()


@pytest.mark.slow
def test_without_power_it_is_silent_and_with_it_still_flashed(desk: Desk, firmware: Firmware) -> None:
    flash(board_on(desk), firmware.elf)
    with greet(desk, firmware, Timeouts(silence=3)) as device:
        desk.order("off")
        with pytest.raises(DeviceError, match="stopped answering"):
            device.time(1)
    desk.order("on")
    greet(desk, firmware).close()


def test_what_nobody_reads_is_lost_and_does_no_harm(desk: Desk, firmware: Firmware) -> None:
    """A client asks for more than the line's buffers hold, and never reads."""
    flash(board_on(desk), firmware.elf)
    with greet(desk, firmware) as device:
        inputs = {tensor.name: ramp(tensor) for tensor in device.model.inputs}
        expected = device.run(inputs)
    line = os.open(desk.port, os.O_RDWR | os.O_NOCTTY)
    for token in range(1, 301):
        os.write(line, encode(Packet(Hello.TYPE, 0, token, Hello(VERSION).pack())))
    deadline = time.monotonic() + 10
    while waiting(line) < TERMINAL_BYTES:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    time.sleep(1)  # longer than the desk keeps what finds no room
    os.close(line)
    with greet(desk, firmware) as device:
        for name, got in device.run(inputs).items():
            np.testing.assert_array_equal(got, expected[name])


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda data: b"hello", "firmware.elf is no ELF file for a 32-bit little-endian processor"),
        (lambda data: data[:60], "firmware.elf is cut short"),
        (lambda data: data[:18] + b"\xf3\0" + data[20:], "firmware.elf is for ELF machine 243; the chip is of 40"),
        (
            lambda data: data.replace((0x08000000).to_bytes(4, "little"), (0x10000000).to_bytes(4, "little")),
            "no flash of the chip is at 0x10000000, ",
        ),
    ],
    ids=["text", "short", "risc-v", "elsewhere"],
)
def test_what_the_chip_cannot_hold_is_refused_by_its_tool(
    desk: Desk, firmware: Firmware, tmp_path: Path, make: object, said: str
) -> None:
    assert callable(make)
    wrong = tmp_path / "firmware.elf"
    wrong.write_bytes(make(firmware.elf.read_bytes()))
    with pytest.raises(DeviceError, match="flashing board stand_in failed: ") as caught:
        flash(board_on(desk), wrong)
    assert f"ended with exit status 4: uaccel.bench: error: {said}" in str(caught.value)


def test_a_board_that_qemu_does_not_know_cannot_be_stood_in_for(tmp_path: Path) -> None:
    with pytest.raises(BoardError, match="board nucleo_f746zg does not run under QEMU"):
        Desk(tmp_path, "nucleo_f746zg")


def test_a_cleared_desk_leaves_no_port(tmp_path: Path, firmware: Firmware) -> None:
    with Desk(tmp_path / "desk") as desk:
        flash(board_on(desk), firmware.elf)
        assert is_set_up(desk.folder)
    desk.close()
    assert not is_set_up(desk.folder)
    assert not os.path.lexists(desk.port)
    with pytest.raises(DeviceError, match=rf"no desk is set up in {desk.folder}: python -m uaccel.bench start "):
        desk.order("reset")


# ------------------------------------------------------------------------------------------------ its commands


def bench(*words: str | Path, status: int = 0) -> str:
    """``python -m uaccel.bench``; what it says, in one stream."""
    command = [sys.executable, "-m", "uaccel.bench", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == status, done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Path]:
    """The folder of a desk that has its own process."""
    board_with_tools("netduino_plus_2")
    folder = tmp_path / "desk"
    said = bench("start", folder)
    assert said == f"board file: {folder}/stand_in.toml\nport: {folder}/ttyDESK\n"
    yield folder
    if is_set_up(folder):
        bench("stop", folder)


@pytest.mark.slow
def test_a_desk_of_its_own_process(started: Path, firmware: Firmware) -> None:
    assert bench("flash", started, firmware.elf) == f"{firmware.elf}: written and started\n"
    port = str(started / "ttyDESK")
    with Session.open(port, expect=firmware.identity) as device:
        device.time(1)
        for order in ("reset", "unplug", "plug", "off", "on"):
            assert bench(order, started) == ""
    Session.open(port, expect=firmware.identity).close()
    again = bench("start", started, status=4)
    assert again == (
        f"uaccel.bench: error: a desk is set up in {started} already: python -m uaccel.bench stop {started}\n"
    )
    assert bench("stop", started) == ""
    assert "no desk is set up" in bench("reset", started, status=4)
    assert not os.path.lexists(port)


def test_a_desk_that_cannot_be_says_why(tmp_path: Path) -> None:
    said = bench("start", tmp_path / "desk", "--board", "nucleo_f746zg", status=4)
    assert "error: " in said
    assert "board nucleo_f746zg does not run under QEMU: there is no [run.qemu]" in said
    assert said.count("error: ") == 1


def test_a_desk_whose_folder_goes_away_goes_too(started: Path) -> None:
    (started / "desk.json").unlink()
    deadline = time.monotonic() + 20
    while os.path.lexists(started / "ttyDESK"):
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.parametrize("name", EVERY_BOARD)
def test_board_files_written_from_data_say_the_same(name: str, tmp_path: Path) -> None:
    data = read_toml(load_board(name).file).data | {"strange key": [1, [True, 'a"b\\c\té']]}
    file = tmp_path / "again.toml"
    file.write_text(toml_text(data))
    assert read_toml(file).data == data
