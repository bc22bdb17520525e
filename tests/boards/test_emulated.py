"""QEMU as a board on the bench: its port, its reset button, and every way in which it fails to start or dies."""

from __future__ import annotations

import gc
import os
import re
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
import serial

from support.device.boards import board_with_tools
from uaccel.board import Board, QemuRun, load_board
from uaccel.errors import BoardError, DeviceError
from uaccel.session.connect import open_port
from uaccel.session.qemu import EmulatedBoard, QemuTransport, qemu_run
from uaccel.session.transport import Transport

PATIENCE = 20.0


@pytest.fixture(scope="module")
def one() -> Board:
    """One board will do: the others differ only in QEMU's options."""
    return board_with_tools("mps2_an386")


@pytest.fixture
def firmware(one: Board, selftest: Callable[[Board], Path]) -> Path:
    return selftest(one)


def running(pid: int) -> bool:
    """A process that has ended but was not waited for counts as running."""
    return Path(f"/proc/{pid}").exists()


def be_quiet(line: Transport) -> None:
    """Take what is still under way."""
    while line.read(0.5):
        pass


def ask(line: Transport, question: bytes, answer: bytes) -> None:
    """Until the answer comes: what is sent before the line is open at both ends is lost."""
    end, got = time.monotonic() + PATIENCE, b""
    while not got.endswith(answer):
        assert time.monotonic() < end, got
        line.write(question)
        got += line.read(0.3)


def echo(line: Transport) -> None:
    ask(line, b"e\x02\0\0\0hi", b"hi")
    be_quiet(line)


@pytest.mark.sample(1)
@pytest.mark.parametrize("console", ["tcp", "pty"])
def test_anyone_may_open_its_port_one_after_the_other(
    one: Board, firmware: Path, console: Literal["tcp", "pty"]
) -> None:
    with EmulatedBoard(one, firmware, console=console, counting="off") as emulated:
        assert re.fullmatch(r"socket://127\.0\.0\.1:\d+" if console == "tcp" else r"/dev/pts/\d+", emulated.port)
        for _ in range(2):
            line = open_port(emulated.port)
            echo(line)
            line.close()
        with serial.serial_for_url(emulated.port, timeout=PATIENCE) as plain:
            plain.write(b"u\x03\0\0\0")
            assert plain.read(3) == b"\0\1\2"
        pid = emulated.pid
    assert not running(pid)


def test_the_reset_button(one: Board, firmware: Path) -> None:
    with EmulatedBoard(one, firmware) as emulated:
        line = open_port(emulated.port)
        echo(line)
        for _ in range(2):
            emulated.reset()
            end, got = time.monotonic() + PATIENCE, b""
            while not got.endswith(b"!\0"):
                assert time.monotonic() < end, got
                got += line.read(0.3)
        line.close()


LATE = """#!{python}
import os, pathlib, socket, sys, time
if "--version" in sys.argv:
    sys.exit(print("QEMU emulator version 9.0.0"))
(number,) = [word.rpartition("=")[2] for word in sys.argv if word.startswith("socket,id=control")]
control = socket.socket(fileno=int(number))
control.sendall(b'{{"QMP": {{}}}}\\n')
for line in control.makefile():
    control.sendall(b'{{"return": {{}}}}\\n')
    if "system_reset" in line:
        control.sendall(b'{{"event": "STOP"}}\\n')
        time.sleep(0.5)
        pathlib.Path({file!r}).touch()
        control.sendall(b'{{"event": "RESET"}}\\n')
"""
"""QEMU on a busy computer: it promises to reset the board, and does so later."""


def test_after_a_reset_the_board_is_reset(one: Board, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And not a moment later: a session that has begun meanwhile would see it."""
    done = tmp_path / "done"
    qemu = tmp_path / "qemu-system-arm"
    qemu.write_text(LATE.format(python=sys.executable, file=str(done)))
    qemu.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with EmulatedBoard(one, tmp_path / "firmware.elf", counting="off") as emulated:
        emulated.reset()
        assert done.exists()


def test_stopping_twice_and_forgetting_it(one: Board, firmware: Path) -> None:
    emulated = EmulatedBoard(one, firmware)
    pid = emulated.pid
    emulated.stop()
    emulated.stop()
    assert not running(pid)
    forgotten = EmulatedBoard(one, firmware)
    pid = forgotten.pid
    del forgotten
    gc.collect()
    assert not running(pid)


def with_machine(board: Board, **changes: Any) -> Board:
    return replace(board, runs=(replace(qemu_run(board), **changes),))


def test_qemus_own_words_when_it_does_not_start(one: Board, firmware: Path) -> None:
    wrong = with_machine(one, machine="mps2-an999")
    words = r"exit status 1: qemu-system-arm: unsupported machine type"
    with pytest.raises(DeviceError, match=rf"^QEMU has ended: {words}"):
        EmulatedBoard(wrong, firmware)
    transport = QemuTransport(wrong, firmware)
    with pytest.raises(DeviceError, match=rf"^board mps2_an386 under QEMU ended with {words}"):
        transport.read(PATIENCE)
    transport.close()


def test_firmware_that_is_not_there(one: Board, tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match=r"^QEMU has ended: exit status 1: .*none\.elf: No such file"):
        EmulatedBoard(one, tmp_path / "none.elf", counting="off")


def test_a_board_that_dies_is_noticed(one: Board, firmware: Path) -> None:
    with EmulatedBoard(one, firmware) as emulated:
        line = open_port(emulated.port)
        echo(line)
        os.kill(emulated.pid, signal.SIGKILL)
        with pytest.raises(DeviceError, match=r"^socket://127\.0\.0\.1:\d+ vanished"):
            line.read(PATIENCE)
        line.close()
        with pytest.raises(DeviceError, match=r"^QEMU has ended: exit status -9: it said nothing$"):
            emulated.reset()


def test_a_board_that_qemu_does_not_know(tmp_path: Path) -> None:
    board = load_board("nucleo_f746zg")
    with pytest.raises(BoardError) as caught:
        QemuTransport(board, tmp_path / "firmware.elf")
    wanted = f"{board.file}: board nucleo_f746zg does not run under QEMU: there is no [run.qemu]"
    assert str(caught.value) == wanted


def test_another_cpu_and_further_arguments_reach_qemu(one: Board, firmware: Path) -> None:
    from uaccel.session.qemu import qemu_command

    run = QemuRun("arm", "mps2-an386", cpu="cortex-m4", serial=2, args=("-semihosting",))
    command = qemu_command(replace(one, runs=(run,)), firmware, chardev="stdio", counting="off")
    text = " ".join(command[1:])
    wanted = "-machine mps2-an386 -display none -monitor none -cpu cortex-m4 -semihosting"
    assert text.startswith(f"{wanted} -serial null -serial null -chardev stdio,id=console,mux=on")
    assert text.endswith(f"-serial chardev:console -kernel {firmware}")
