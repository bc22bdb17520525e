"""Which boards and ports a run is for, what a test needs, and what is missing here."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from serial.tools import list_ports

from uaccel.board import Board, load_board
from uaccel.errors import UaccelError
from uaccel.testing.needs import absence, lacks, over_line, ports_of

UNKNOWN = "--uaccel-port nucleo_f746z=/dev/x: no board is called 'nucleo_f746z'; did you mean 'nucleo_f746zg'? (known: "
HOST, QEMU, SERIAL, BOTH = "host", "mps2_an386", "nucleo_f746zg", "netduino_plus_2"


def boards(*names: str) -> list[Board]:
    return [load_board(name) for name in names]


@pytest.fixture(autouse=True)
def no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UACCEL_PORT", raising=False)


@pytest.mark.parametrize(
    ("names", "options", "ports"),
    [
        ([HOST], [], {}),
        ([SERIAL], [], {}),
        ([SERIAL], ["/dev/x"], {SERIAL: "/dev/x"}),
        ([HOST, QEMU, SERIAL], ["/dev/x"], {SERIAL: "/dev/x"}),
        ([SERIAL, BOTH], ["auto"], {SERIAL: "auto", BOTH: "auto"}),
        ([SERIAL, BOTH], [f"{BOTH}=/dev/b"], {BOTH: "/dev/b"}),
        ([SERIAL, BOTH], ["auto", f"{BOTH}=/dev/b"], {SERIAL: "auto", BOTH: "/dev/b"}),
        ([QEMU], [f"{QEMU}=socket://h:1"], {QEMU: "socket://h:1"}),
        ([HOST], [f"{SERIAL}=/dev/a"], {SERIAL: "/dev/a"}),
        ([SERIAL], ["loop://?a=b"], {SERIAL: "loop://?a=b"}),
        ([SERIAL], ["/dev/a=b"], {SERIAL: "/dev/a=b"}),
    ],
)
def test_ports_of_boards(
    names: list[str], options: list[str], ports: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ports_of(boards(*names), options) == ports
    monkeypatch.setenv("UACCEL_PORT", " ".join(options))
    assert ports_of(boards(*names), []) == ports
    if options:
        monkeypatch.setenv("UACCEL_PORT", "/dev/another")
        assert ports_of(boards(*names), options) == ports


@pytest.mark.parametrize(
    ("names", "option", "said"),
    [
        (
            [SERIAL, BOTH],
            "/dev/x",
            f"--uaccel-port /dev/x: for which of {SERIAL}, {BOTH}? Say {SERIAL}=/dev/x",
        ),
        ([HOST, QEMU], "/dev/x", f"--uaccel-port /dev/x: none of {HOST}, {QEMU} has a serial line; see --uaccel-board"),
        ([HOST], "nucleo_f746z=/dev/x", UNKNOWN),
        ([HOST], "host=/dev/x", "--uaccel-port host=/dev/x: board host has no serial line; name the board that has it"),
        ([HOST], "no.toml=/dev/x", "--uaccel-port no.toml=/dev/x: cannot read board file no.toml: No such file"),
    ],
)
def test_a_port_that_fits_no_board(names: list[str], option: str, said: str) -> None:
    with pytest.raises(UaccelError) as caught:
        ports_of(boards(*names), [option])
    assert said in str(caught.value)


@pytest.mark.parametrize("text", ["nucleo_f746z=/dev/x", "host=/dev/x"])
def test_the_variable_is_held_to_the_same(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UACCEL_PORT", text)
    with pytest.raises(UaccelError, match=f"^UACCEL_PORT {text}: .*board "):
        ports_of(boards(HOST), [])


def test_a_board_that_only_a_test_names_may_be_given_by_its_file(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(load_board(SERIAL).file.read_text())
    assert ports_of(boards(HOST), [f"{tmp_path}/mine.toml=/dev/x"]) == {"mine": "/dev/x"}


def test_a_variable_for_other_boards_does_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UACCEL_PORT", "/dev/x")
    assert ports_of(boards(HOST, QEMU), []) == {}


@pytest.mark.parametrize(
    ("name", "port", "serial"),
    [(HOST, "", False), (QEMU, "", False), (QEMU, "/dev/x", True), (SERIAL, "", True), (BOTH, "", False)],
)
def test_a_port_decides_how_a_board_runs(name: str, port: str, serial: bool) -> None:
    assert over_line(load_board(name), port) is serial


# ------------------------------------------------------------------------------------------------ what is missing


@pytest.fixture
def few_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A computer that has what builds for itself, and no more."""
    for program in ("cmake", "ninja", "make", "gcc", "as", "ld"):
        path = shutil.which(program)
        if path is not None:
            (tmp_path / program).symlink_to(path)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(list_ports, "comports", list)
    return tmp_path


def place(folder: Path, name: str) -> None:
    """A program that tells a version."""
    (folder / name).write_text(f"#!/bin/sh\necho '{name} 99.0'\n")
    (folder / name).chmod(0o755)


def test_tools_that_are_absent_are_named_one_after_the_other(
    few_programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert absence(load_board(HOST), "") is None
    gcc = absence(load_board(QEMU), "")
    assert gcc is not None
    assert gcc.startswith("arm-none-eabi-gcc (needed for firmware for Arm boards): arm-none-eabi-gcc: not found")
    place(few_programs, "arm-none-eabi-gcc")
    qemu = absence(load_board(QEMU), "")
    assert qemu is not None
    assert qemu.startswith("qemu-system-arm (needed for ")
    openocd = absence(load_board(BOTH), "auto")
    assert openocd is not None
    assert openocd.startswith("openocd (needed for flashing boards through OpenOCD): openocd: not found; to get it: ")
    place(few_programs, "qemu-system-arm")
    assert absence(load_board(QEMU), "") is None
    (few_programs / "cmake").unlink()
    monkeypatch.setattr("sys.executable", str(few_programs / "python"))  # where pip puts another
    assert "cmake (needed for building firmware): cmake: not found" in (absence(load_board(HOST), "") or "")


def test_a_board_that_is_not_plugged_in_is_absent(few_programs: Path) -> None:
    for program in ("arm-none-eabi-gcc", "openocd"):
        place(few_programs, program)
    board = load_board(SERIAL)
    assert (absence(board, "") or "").startswith(f"board {SERIAL} is at no USB port: wanted 0483:374b; seen none")
    device = few_programs / "ttyACM0"
    assert absence(board, str(device)) == (
        f"board {SERIAL}: there is no port {device}; plug the board in, or name its port with --uaccel-port"
    )
    device.touch()
    assert absence(board, str(device)) is None
    assert absence(board, "socket://bench:3333") is None, "who knows before it is tried"


def test_a_flash_command_that_is_absent(few_programs: Path) -> None:
    place(few_programs, "arm-none-eabi-gcc")
    text = load_board(SERIAL).file.read_text().partition("[flash]")[0]
    file = few_programs / "mine.toml"
    file.write_text(text + '[flash]\ntool = "command"\ncommand = ["./burn"]\n')
    said = f"./burn (needed for flashing board mine) is not there; see [flash] in {file}"
    assert absence(load_board(file), "socket://h:1") == said
    place(few_programs, "burn")
    assert absence(load_board(file), "socket://h:1") is None


# ------------------------------------------------------------------------------------------------ needs


@pytest.mark.parametrize(
    ("name", "port", "need", "reason"),
    [
        (HOST, "", "memory=4G", None),
        (HOST, "", "accelerator", None),
        (HOST, "", "host", None),
        (HOST, "", "fpu", "native has no fpu"),
        (QEMU, "", "accelerator", None),
        (QEMU, "", "memory=16M", None),
        (QEMU, "", "memory=17M", "its largest RAM has 16,777,216 bytes, wanted 17,825,792"),
        (QEMU, "", "flash=4M", None),
        (QEMU, "", "flash=5000K", "its largest flash has 4,194,304 bytes, wanted 5,120,000"),
        (QEMU, "", "helium", "cortex-m4 has no helium"),
        (QEMU, "", "dsp", None),
        (QEMU, "", "serial", "it runs by qemu"),
        (QEMU, "socket://h:1", "serial", None),
        ("mps3_an547", "", "helium", None),
        (BOTH, "", "accelerator", "no memory of it is for an accelerator"),
        (BOTH, "", "memory=131072", None),
        (BOTH, "", "qemu", None),
        (BOTH, "auto", "qemu", "it runs by serial"),
    ],
)
def test_needs(name: str, port: str, need: str, reason: str | None) -> None:
    assert lacks(load_board(name), port, need) == reason


@pytest.mark.parametrize(
    ("need", "said"),
    [
        ("heliun", "uaccel_needs: there is no need 'heliun'; did you mean 'helium'? (known: fpu, "),
        ("memory", "uaccel_needs: there is no need 'memory'"),
        ("memory=lots", "uaccel_needs: 'memory=lots' names no size; wanted a number of bytes such as 4096, 64K or 16M"),
        ("memory=-1", "names no size"),
        ("speed=3", "uaccel_needs: there is no need 'speed=3'"),
    ],
)
def test_needs_that_nobody_knows(need: str, said: str) -> None:
    with pytest.raises(UaccelError) as caught:
        lacks(load_board(HOST), "", need)
    assert said in str(caught.value)
