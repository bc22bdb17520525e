"""Board files: what they give, and the full text of every complaint about a wrong one."""

from __future__ import annotations

from pathlib import Path

import pytest

from uaccel.board import (
    Board,
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
from uaccel.board.source import key_lines
from uaccel.errors import BoardError
from uaccel.resources import data_dir

PORTS = data_dir("firmware") / "ports"

EMULATED = """\
description = "Arm MPS2 with a Cortex-M4, under QEMU"
port = "mps"

[cpu]
name = "cortex-m4"
arch = "armv7em"
toolchain = "arm-none-eabi"
flags = ["-mcpu=cortex-m4", "-mthumb"]
features = ["fpu", "dsp"]

[[memory]]
name = "ssram1"
kind = "flash"
origin = 0x0000_0000
length = "4M"

[[memory]]
name = "ssram23"
kind = "ram"
origin = 0x2000_0000
length = 0x40_0000

[[memory]]
name = "psram"
kind = "external"
origin = 0x2100_0000
length = "16M"
accelerator = true

[console]
kind = "uart"
base = 0x4000_4000
baud = 115200
irq = 0

[timer]
kind = "systick"
hz = 25_000_000

[run.qemu]
system = "arm"
machine = "mps2-an386"
ram_origin = 0x2100_0000
ram_length = "16M"
args = ["-semihosting"]
"""

REAL = """\
description = "ST Nucleo with an STM32F746"
port = "stm32"
stack = "16K"

[settings]
family = 7
hse_hz = 8_000_000
tx = "PD8"
rx = "PD9"

[cpu]
name = "cortex-m7"
arch = "armv7em"
toolchain = "arm-none-eabi"
flags = ["-mcpu=cortex-m7"]
link_flags = ["--specs=nano.specs"]

[[memory]]
name = "flash"
kind = "flash"
origin = 0x0800_0000
length = "1M"

[[memory]]
name = "sram"
kind = "ram"
origin = 0x2001_0000
length = "256K"

[console]
kind = "uart"
base = 0x4000_4800
baud = 921600
irq = 39
clock_hz = 54_000_000

[timer]
kind = "systick"
hz = 216_000_000

[run.serial]
usb = "0483:374b"

[flash]
tool = "openocd"
config = ["board/st_nucleo_f7.cfg"]
"""

HOST = """\
description = "This computer"
port = "host"

[cpu]
name = "native"
arch = "native"
toolchain = "native"

[console]
kind = "stdio"

[timer]
kind = "host"

[run.host]
"""


def load(folder: Path, text: str | bytes, name: str = "bench") -> Board:
    file = folder / f"{name}.toml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_board(file)


def complaint(folder: Path, text: str | bytes, name: str = "bench") -> str:
    """What the loader says, with the folder taken off the front."""
    with pytest.raises(BoardError) as caught:
        load(folder, text, name)
    message = str(caught.value)
    assert "\n" not in message
    return message.replace(f"{folder}/", "")


def changed(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1, f"{old!r} must be there once"
    return text.replace(old, new)


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
        (None, "cannot read board file my_port/port.toml: there is no such file"),
        (
            'description = "Mine"\narch = ["armv7em"]\nshared = ["cortex_n"]\n',
            f"my_port/port.toml:3: 'shared' in the file has 'cortex_n'; there is no such folder in {PORTS}",
        ),
        (
            'description = "Mine"\narch = ["armv7em"]\n[settings.pin]\ntype = "text"\nhelp = "it"\n',
            "my_port/port.toml:4: 'type' in [settings.pin] is 'text'; wanted one of integer, string, boolean",
        ),
    ],
)
def test_a_wrong_port_is_named_with_its_line(tmp_path: Path, manifest: str | None, message: str) -> None:
    folder = tmp_path / "my_port"
    folder.mkdir()
    if manifest is not None:
        (folder / "port.toml").write_text(manifest)
    assert complaint(tmp_path, changed(EMULATED, 'port = "mps"', 'port = "./my_port"')) == message


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


# Each row: what a line becomes, and the whole complaint.
WRONG_EMULATED = [
    (
        'machine = "mps2-an386"',
        'machin = "mps2-an386"',
        "bench.toml:42: unknown key 'machin' in [run.qemu]; did you mean 'machine'? "
        "(known: system, machine, cpu, ram_origin, ram_length, serial, args)",
    ),
    (
        "[timer]",
        "[tmier]",
        "bench.toml:36: unknown key 'tmier' in the file; did you mean 'timer'? "
        "(known: description, port, stack, settings, cpu, memory, device, console, timer, run, flash)",
    ),
    (
        'name = "psram"',
        'name = "psram"\ncolour = "red"',
        "bench.toml:25: unknown key 'colour' in [[memory]] number 3 (known: name, kind, origin, length, accelerator)",
    ),
    (
        'machine = "mps2-an386"',
        "",
        "bench.toml:40: [run.qemu] lacks 'machine': wanted a string",
    ),
    (
        'port = "mps"',
        "",
        "bench.toml:1: the file lacks 'port': wanted a string",
    ),
    (
        'kind = "systick"\nhz = 25_000_000',
        'kind = "systick"',
        "bench.toml:36: [timer] lacks 'hz': wanted an integer",
    ),
    (
        'arch = "armv7em"',
        'arch = "armv7"',
        "bench.toml:6: 'arch' in [cpu] is 'armv7'; wanted one of native, armv6m, armv7m, armv7em, armv8m, "
        "armv8.1m, rv32; did you mean 'armv7m'?",
    ),
    (
        'arch = "armv7em"',
        'arch = "native"',
        "bench.toml:7: 'toolchain' in [cpu] is 'arm-none-eabi' and 'arch' is 'native'; "
        "wanted 'native' for both or for neither",
    ),
    (
        'features = ["fpu", "dsp"]',
        'features = ["fpu", "helium"]',
        "bench.toml:9: 'features' in [cpu] has 'helium'; armv7em can have: fpu, dsp",
    ),
    (
        'features = ["fpu", "dsp"]',
        'features = ["fpu", "fpu"]',
        "bench.toml:9: 'features' in [cpu] has 'fpu' twice; once is enough",
    ),
    (
        'flags = ["-mcpu=cortex-m4", "-mthumb"]',
        'flags = "-mcpu=cortex-m4"',
        "bench.toml:8: 'flags' in [cpu] is '-mcpu=cortex-m4' (a string); wanted an array of strings",
    ),
    (
        'flags = ["-mcpu=cortex-m4", "-mthumb"]',
        'flags = [\n  "-mthumb",\n  4,\n]',
        "bench.toml:8: 'flags' in [cpu] holds 4 (an integer); wanted an array of strings",
    ),
    (
        '"-mthumb"',
        '"-mthumb -O3"',
        "bench.toml:8: 'flags' in [cpu] has '-mthumb -O3'; wanted flags that start with '-', one to a string",
    ),
    (
        "baud = 115200",
        'baud = "fast"',
        "bench.toml:33: 'baud' in [console] is 'fast' (a string); wanted an integer",
    ),
    (
        "baud = 115200",
        "baud = true",
        "bench.toml:33: 'baud' in [console] is True (a boolean); wanted an integer",
    ),
    (
        "baud = 115200",
        "baud = 300",
        "bench.toml:33: 'baud' in [console] is 300; wanted 1200 to 20000000",
    ),
    (
        "base = 0x4000_4000",
        "base = -1",
        "bench.toml:32: 'base' in [console] is -0x1; wanted an address of 32 bits",
    ),
    (
        "base = 0x4000_4000",
        "base = 2026-01-01",
        "bench.toml:32: 'base' in [console] is datetime.date(2026, 1, 1) (a date or time); "
        "wanted an address such as 0x2000_0000",
    ),
    (
        'kind = "uart"',
        'kind = "stdio"',
        "bench.toml:31: 'kind' in [console] is 'stdio'; armv7em wants 'uart'",
    ),
    (
        'kind = "systick"',
        'kind = "mtime"',
        "bench.toml:37: 'kind' in [timer] is 'mtime'; armv7em has: systick",
    ),
    (
        'length = "4M"',
        'length = "4 MB"',
        "bench.toml:15: 'length' in [[memory]] number 1 is '4 MB' (a string); "
        "wanted a size in bytes such as 4096, '64K' or '16M'",
    ),
    (
        'length = "4M"',
        "length = 1.5",
        "bench.toml:15: 'length' in [[memory]] number 1 is 1.5 (a float); "
        "wanted a size in bytes such as 4096, '64K' or '16M'",
    ),
    (
        'length = "4M"',
        "length = 0",
        "bench.toml:15: 'length' in [[memory]] number 1 is 0 bytes; wanted 1 to 4294967296",
    ),
    (
        'length = "16M"\naccelerator',
        'length = "4G"\naccelerator',
        "bench.toml:27: memory 'psram' (0x21000000 to 0x120ffffff) ends beyond 32 bits; wanted it shorter",
    ),
    (
        "length = 0x40_0000",
        'length = "17M"',
        "bench.toml:26: memory 'psram' (0x21000000 to 0x21ffffff) overlaps memory 'ssram23' "
        "(0x20000000 to 0x210fffff); wanted them apart",
    ),
    (
        'name = "psram"',
        'name = "ssram1"',
        "bench.toml:24: a second memory is called 'ssram1'; wanted another name",
    ),
    (
        'name = "psram"',
        'name = "PSRAM"',
        "bench.toml:24: 'name' in [[memory]] number 3 is 'PSRAM'; wanted lower-case letters, digits and underscores",
    ),
    (
        'kind = "ram"',
        'kind = "flash"',
        "bench.toml:1: no [[memory]] is of kind 'ram'; wanted at least one flash and one ram",
    ),
    (
        "accelerator = true",
        "accelerator = 1",
        "bench.toml:28: 'accelerator' in [[memory]] number 3 is 1 (an integer); wanted true or false",
    ),
    (
        "ram_origin = 0x2100_0000",
        "ram_origin = 0x2200_0000",
        "bench.toml:28: memory 'psram' (0x21000000 to 0x21ffffff) is for an accelerator but lies outside "
        "QEMU's shared RAM (0x22000000 to 0x22ffffff); move it, or correct [run.qemu]",
    ),
    (
        'ram_origin = 0x2100_0000\nram_length = "16M"',
        "",
        "bench.toml:28: memory 'psram' (0x21000000 to 0x21ffffff) is for an accelerator but lies outside "
        "QEMU's shared RAM (no ram_origin given); move it, or correct [run.qemu]",
    ),
    (
        'ram_length = "16M"',
        "",
        "bench.toml:43: [run.qemu] has 'ram_origin' alone; wanted both ram_origin and ram_length",
    ),
    (
        "[run.qemu]",
        "[run.host]\n[run.qemu]",
        "bench.toml:40: [run.host] is not for armv7em; wanted [run.qemu] or [run.serial]",
    ),
    (
        '[run.qemu]\nsystem = "arm"',
        "[run]",
        "bench.toml:41: unknown key 'machine' in [run] (known: host, qemu, serial)",
    ),
    (
        'system = "arm"',
        'system = ""',
        "bench.toml:41: 'system' in [run.qemu] is empty; wanted a string",
    ),
    (
        'description = "Arm MPS2 with a Cortex-M4, under QEMU"',
        'description = ["Arm"]',
        "bench.toml:1: 'description' in the file is ['Arm'] (an array); wanted a string",
    ),
    (
        "[cpu]",
        "[[cpu]]",
        "bench.toml:4: 'cpu' in the file is [{'name': 'cortex-m4', 'arch': 'armv7... (an array); wanted a table [cpu]",
    ),
]

WRONG_REAL = [
    (
        'port = "stm32"',
        'port = "stm23"',
        "bench.toml:2: there is no port 'stm23'; did you mean 'stm32'? (known: host, mps, riscv_virt, stm32; "
        "a port of your own is given as a path that begins with './')",
    ),
    (
        'port = "stm32"',
        'port = "riscv_virt"',
        "bench.toml:2: port 'riscv_virt' is for rv32; this board is armv7em",
    ),
    (
        'stack = "16K"',
        "stack = 1001",
        "bench.toml:3: 'stack' is 1001 bytes; wanted a multiple of 16, at least 1024",
    ),
    (
        "family = 7",
        'family = "F7"',
        "bench.toml:6: 'family' in [settings] is 'F7' (a string); wanted an integer: 4 for STM32F4, 7 for STM32F7",
    ),
    (
        'tx = "PD8"',
        "",
        "bench.toml:5: port 'stm32' wants 'tx' in [settings]: the pin that sends, such as \"PD8\"",
    ),
    (
        'tx = "PD8"',
        'txd = "PD8"',
        "bench.toml:8: unknown key 'txd' in [settings]; did you mean 'tx'? (known: family, hse_hz, hse_bypass, tx, rx)",
    ),
    (
        "hz = 216_000_000",
        "hz = 216_000_000\nbase = 0xE000_E010",
        "bench.toml:40: 'base' in [timer] is not for a timer of kind 'systick'; leave it out",
    ),
    (
        'usb = "0483:374b"',
        'usb = "0483"',
        "bench.toml:42: 'usb' in [run.serial] is '0483'; wanted vendor:product as in '0483:374b'",
    ),
    (
        'tool = "openocd"',
        'tool = "opencd"',
        "bench.toml:45: 'tool' in [flash] is 'opencd'; wanted one of openocd, pyocd, command; did you mean 'openocd'?",
    ),
    (
        'tool = "openocd"',
        'tool = "pyocd"',
        "bench.toml:46: unknown key 'config' in [flash] (known: tool, target, options)",
    ),
    (
        'config = ["board/st_nucleo_f7.cfg"]',
        "config = []",
        "bench.toml:44: [flash] lacks 'config': wanted an array of strings, not empty",
    ),
    (
        '[run.serial]\nusb = "0483:374b"',
        '[run.qemu]\nsystem = "arm"\nmachine = "netduinoplus2"',
        "bench.toml:45: [flash] without [run.serial]: wanted both, since a flashed board runs by itself",
    ),
]

WRONG_HOST = [
    (
        'kind = "stdio"',
        'kind = "stdio"\nbaud = 9600',
        "bench.toml:11: unknown key 'baud' in [console] (known: kind)",
    ),
    (
        'kind = "host"',
        'kind = "host"\nhz = 1000',
        "bench.toml:14: 'hz' in [timer] is not for a timer of kind 'host'; leave it out",
    ),
    (
        "[run.host]",
        "[run]",
        "bench.toml:15: [run] is empty; wanted [run.host], [run.qemu] or [run.serial]",
    ),
    (
        "[run.host]",
        "[run.serial]",
        "bench.toml:15: [run.serial] is not for native; wanted [run.host] alone",
    ),
    (
        'port = "host"',
        'port = "host"\nmemory = [4]',
        "bench.toml:3: 'memory' in the file holds 4 (an integer); wanted tables [[memory]]",
    ),
]


@pytest.mark.parametrize(
    ("text", "old", "new", "message"),
    [
        *[(EMULATED, *row) for row in WRONG_EMULATED],
        *[(REAL, *row) for row in WRONG_REAL],
        *[(HOST, *row) for row in WRONG_HOST],
    ],
)
def test_a_wrong_file_is_named_with_its_line(tmp_path: Path, text: str, old: str, new: str, message: str) -> None:
    assert complaint(tmp_path, changed(text, old, new)) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "a = 1\nb 2\n",
            "bench.toml:2: not valid TOML: Expected '=' after a key in a key/value pair (column 3)",
        ),
        ("a = 1\na = 2\n", "bench.toml:2: not valid TOML: Cannot overwrite a value (column 6)"),
        ('a = "', "bench.toml:1: not valid TOML: Unterminated string"),
        (b"a = 1\n# caf\xe9\n", "bench.toml:2: not UTF-8 text, as TOML must be"),
        (
            "a = " + "[" * 100_000,
            "bench.toml:1: not a board file: values are nested too deeply",
        ),
        ("", "bench.toml:1: the file lacks 'cpu': wanted a table [cpu]"),
    ],
)
def test_a_file_that_is_no_toml(tmp_path: Path, text: str | bytes, message: str) -> None:
    assert complaint(tmp_path, text).startswith(message)


def test_byte_order_mark_and_dos_line_ends_do_no_harm(tmp_path: Path) -> None:
    assert load(tmp_path, b"\xef\xbb\xbf" + HOST.replace("\n", "\r\n").encode()).port.name == "host"


def test_the_name_of_the_file_must_be_fit_for_a_board(tmp_path: Path) -> None:
    assert complaint(tmp_path, HOST, name="My-Board") == (
        "board file My-Board.toml: its name is the board's and 'My-Board' cannot be one; "
        "wanted lower-case letters, digits and underscores"
    )


def test_an_unknown_name_lists_the_known_ones() -> None:
    known = ", ".join(board.name for board in available_boards())
    with pytest.raises(BoardError) as caught:
        load_board("hots")
    assert str(caught.value) == (
        f"no board is called 'hots'; did you mean 'host'? (known: {known}; "
        "a board of your own is given as the path of its .toml file)"
    )


@pytest.mark.parametrize(
    ("path", "what"),
    [("nowhere.toml", "there is no such file"), ("", "it is not a regular file")],
)
def test_a_path_that_is_no_file(tmp_path: Path, path: str, what: str) -> None:
    with pytest.raises(BoardError) as caught:
        load_board(tmp_path / path)
    assert str(caught.value) == f"cannot read board file {tmp_path / path}: {what}"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("# head\n\na = 1\n", {("a",): 3}),
        ("a.b.c = 1", {("a",): 1, ("a", "b"): 1, ("a", "b", "c"): 1}),
        ("\"x y\" = 1\n'p.q'.r = 2", {("x y",): 1, ("p.q",): 2, ("p.q", "r"): 2}),
        ("a = [ # one\n  1,\n  [2],\n]\nb = 2", {("a",): 1, ("b",): 5}),
        ('a = """\nb = 1\n[c]\n"""\nd = 1', {("a",): 1, ("d",): 5}),
        ("a = '''\nb = 1\n'''\nc = 1", {("a",): 1, ("c",): 4}),
        ('a = "# [x] \\" = {"\nb = 1', {("a",): 1, ("b",): 2}),
        ("a = { b = 1, c = [1, 2] }\nd = 1", {("a",): 1, ("d",): 2}),
        ("[s] # note\nk = 1.5", {("s",): 1, ("s", "k"): 2}),
        ("[a.b]\nc = 1\n[a]\nd = 1", {("a",): 3, ("a", "b"): 1, ("a", "b", "c"): 2, ("a", "d"): 4}),
        (
            "[[m]]\nx = 1\n[[m]]\nx = 2\n[m.sub]\ny = 3",
            {
                ("m",): 1,
                ("m", 0): 1,
                ("m", 0, "x"): 2,
                ("m", 1): 3,
                ("m", 1, "x"): 4,
                ("m", 1, "sub"): 5,
                ("m", 1, "sub", "y"): 6,
            },
        ),
    ],
)
def test_lines_of_keys(text: str, lines: dict[tuple[str | int, ...], int]) -> None:
    assert key_lines(text) == lines
