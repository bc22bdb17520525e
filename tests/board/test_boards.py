"""Board files: what they give."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.device.board_files import EMULATED, HOST, REAL, changed, complaint, load
from uaccel.board import (
    CommandFlash,
    Cpu,
    HostRun,
    Memory,
    OpenOcdFlash,
    PyOcdFlash,
    QemuRun,
    SerialRun,
    StdioConsole,
    Timer,
    UartConsole,
    available_boards,
    load_board,
)
from uaccel.errors import BoardError
from uaccel.util.files import data_dir

PORTS = data_dir("firmware") / "ports"


def test_the_host_board_comes_with_uaccel() -> None:
    host = load_board("host")
    assert host.name == "host"
    assert host.cpu == Cpu(name="native", arch="native", toolchain="native")
    assert host.runs == (HostRun(),)
    assert host.console == StdioConsole()
    assert host.memories == ()
    assert host.flash is None
    assert host in available_boards()


def test_every_board_that_comes_with_uaccel_loads_by_name_and_by_path() -> None:
    for board in available_boards():
        assert load_board(board.name) == board
        assert load_board(str(board.file)) == board


def test_an_emulated_board(tmp_path: Path) -> None:
    board = load(tmp_path, EMULATED)
    assert board.name == "bench"
    assert board.file == tmp_path / "bench.toml"
    assert board.cpu.flags == ("-mcpu=cortex-m4", "-mthumb")
    assert board.cpu.features == ("fpu", "dsp")
    assert board.memories == (
        Memory("ssram1", "flash", 0, 4 << 20),
        Memory("ssram23", "ram", 0x20000000, 4 << 20),
        Memory("psram", "external", 0x21000000, 16 << 20, accelerator=True),
    )
    assert board.console == UartConsole(base=0x40004000, baud=115200, irq=0)
    assert board.timer == Timer("systick", 25_000_000)
    assert board.runs == (
        QemuRun("arm", "mps2-an386", ram_origin=0x21000000, ram_length=16 << 20, args=("-semihosting",)),
    )


def test_a_real_board(tmp_path: Path) -> None:
    board = load(tmp_path, REAL)
    assert board.cpu.link_flags == ("--specs=nano.specs",)
    assert board.console == UartConsole(base=0x40004800, baud=921600, irq=39, clock_hz=54_000_000)
    assert board.runs == (SerialRun(port="auto", usb="0483:374b"),)
    assert board.flash == OpenOcdFlash(config=("board/st_nucleo_f7.cfg",))


def test_what_a_port_asks_for_and_the_stack(tmp_path: Path) -> None:
    board = load(tmp_path, REAL)
    assert board.stack == 16 << 10
    assert board.port.name == "stm32"
    assert board.settings == {"family": 7, "hse_hz": 8_000_000, "hse_bypass": False, "tx": "PD8", "rx": "PD9"}
    assert load(tmp_path, EMULATED).stack == 8 << 10
    assert load(tmp_path, EMULATED).settings == {}


def test_a_port_of_ones_own_lies_beside_the_board_file(tmp_path: Path) -> None:
    folder = tmp_path / "my_port"
    folder.mkdir()
    manifest = 'description = "Mine"\narch = ["armv7em"]\nshared = ["cortex_m", "common"]\n'
    (folder / "port.toml").write_text(manifest)
    board = load(tmp_path, changed(EMULATED, 'port = "mps"', 'port = "./my_port"'))
    assert board.port.folder == folder
    assert [source.name for source in board.port.sources] == ["my_port", "cortex_m", "common"]


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        (None, "cannot read board file my_port/port.toml: No such file or directory"),
        (
            'description = "Mine"\narch = ["armv7em"]\nshared = ["cortex_n"]\n',
            f"my_port/port.toml:3: 'shared' in the file has 'cortex_n'; there is no such folder in {PORTS}",
        ),
        (
            'description = "Mine"\narch = ["armv7em"]\n[settings.pin]\ntype = "text"\nhelp = "it"\n',
            "my_port/port.toml:4: 'type' in [settings.pin] is 'text'; wanted one of integer, string, boolean",
        ),
        (
            'description = "Mine"\narch = ["armv7em"]\nshared = ["../ports"]\n',
            f"my_port/port.toml:3: 'shared' in the file has '../ports'; there is no such folder in {PORTS}",
        ),
        (
            'description = "Mine"\narch = ["armv7em"]\nsettings = 5\n',
            "my_port/port.toml:3: 'settings' in the file is 5 (an integer); wanted a table [settings]",
        ),
        (
            'description = "Mine"\narch = ["armv7em"]\n[settings."A 1\\n#error"]\ntype = "string"\nhelp = "it"\n',
            r"my_port/port.toml:3: a setting is called 'A 1\n#error'; "
            "wanted lower-case letters, digits and underscores",
        ),
        (
            'description = "Mine"\narch = ["armv7em"]\n[settings.pin]\ntype = "string"\nhelp = "it"\npattern = "P("\n',
            "my_port/port.toml:6: 'pattern' in [settings.pin] is no regular expression: "
            "missing ), unterminated subpattern at position 1",
        ),
        (
            'description = "Mine"\narch = ["armv7em"]\n[settings.pin]\ntype = "integer"\nhelp = "it"\npattern = "P"\n',
            "my_port/port.toml:6: 'pattern' in [settings.pin] is for settings of type string; leave it out",
        ),
    ],
)
def test_a_wrong_port_is_named_with_its_line(tmp_path: Path, manifest: str | None, message: str) -> None:
    folder = tmp_path / "my_port"
    folder.mkdir()
    if manifest is not None:
        (folder / "port.toml").write_text(manifest)
    assert complaint(tmp_path, changed(EMULATED, 'port = "mps"', 'port = "./my_port"')) == message


def test_a_ports_folder_has_a_name_that_cmake_takes(tmp_path: Path) -> None:
    folder = tmp_path / "my;port"
    folder.mkdir()
    (folder / "port.toml").write_text('description = "Mine"\narch = ["armv7em"]\n')
    assert complaint(tmp_path, changed(EMULATED, 'port = "mps"', 'port = "./my;port"')) == (
        "my;port/port.toml:1: the port's folder is called 'my;port'; wanted letters, digits, '.', '_' and '-'"
    )


def test_a_timer_in_memory_has_an_address(tmp_path: Path) -> None:
    board = load_board("qemu_riscv32")
    assert board.timer == Timer("mtime", 10_000_000, 0x0200BFF8)


def test_a_board_may_run_in_two_ways_the_usual_one_first(tmp_path: Path) -> None:
    board = load(tmp_path, REAL + '\n[run.qemu]\nsystem = "arm"\nmachine = "netduinoplus2"\n')
    assert [run.kind for run in board.runs] == ["serial", "qemu"]


@pytest.mark.parametrize(
    ("section", "wanted"),
    [
        ('tool = "pyocd"\ntarget = "stm32f746zg"', PyOcdFlash("stm32f746zg")),
        (
            'tool = "command"\ncommand = ["flashit", "{elf}"]\nreset = ["kick"]',
            CommandFlash(("flashit", "{elf}"), ("kick",)),
        ),
    ],
)
def test_other_flash_tools(tmp_path: Path, section: str, wanted: object) -> None:
    text = changed(REAL, 'tool = "openocd"\nconfig = ["board/st_nucleo_f7.cfg"]', section)
    assert load(tmp_path, text).flash == wanted


def test_where_names_file_and_line_for_later_stages(tmp_path: Path) -> None:
    board = load(tmp_path, EMULATED)
    file = tmp_path / "bench.toml"
    assert board.where("cpu", "flags") == f"{file}:8"
    assert board.where("memory", 2, "length") == f"{file}:27"
    assert board.where("memory", 1, "accelerator") == f"{file}:17", "a key left out: its table stands for it"
    assert board.where("flash", "tool") == f"{file}:1"


def test_the_name_of_the_file_must_be_fit_for_a_board(tmp_path: Path) -> None:
    assert complaint(tmp_path, HOST, name="My-Board") == (
        "board file My-Board.toml: its name is the board's and 'My-Board.toml' cannot be one; "
        "wanted lower-case letters, digits and underscores, and .toml behind them"
    )
    shown = r"a.toml\nexecute_process(COMMAND touch pwned)"
    file = tmp_path / "a.toml\nexecute_process(COMMAND touch pwned)"
    file.write_text(HOST)
    with pytest.raises(BoardError, match=re.escape(f"'{shown}' cannot be one")):
        load_board(file)


def test_an_unknown_name_lists_the_known_ones() -> None:
    known = ", ".join(board.name for board in available_boards())
    with pytest.raises(BoardError) as caught:
        load_board("hots")
    assert str(caught.value) == (
        f"no board is called 'hots'; did you mean 'host'? (known: {known}; "
        "'uaccel boards' tells their cores and which are emulated; "
        "a board of your own is given as the path of its .toml file)"
    )


@pytest.mark.parametrize(
    ("path", "what"),
    [("nowhere.toml", "No such file or directory"), ("", "Is a directory")],
)
def test_a_path_that_is_no_file(tmp_path: Path, path: str, what: str) -> None:
    with pytest.raises(BoardError) as caught:
        load_board(tmp_path / path)
    assert str(caught.value) == f"cannot read board file {tmp_path / path}: {what}"
