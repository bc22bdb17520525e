"""The full text of every complaint about a wrong board file."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.device.board_files import EMULATED, HOST, REAL, changed, complaint

FLAGS = "wanted flags that start with '-', one to a string, of letters, digits and _ . , : = + / @ % ^ ~ -"

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
        "(known: description, port, stack, settings, cpu, memory, fixed, device, console, timer, run, flash)",
    ),
    (
        'name = "psram"',
        'name = "psram"\ncolour = "red"',
        "bench.toml:25: unknown key 'colour' in [[memory]] number 3 "
        "(known: name, kind, origin, length, accelerator, wait_states, line, code_cache, data_cache, cache, prefetch)",
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
        '"-mcpu=cortex-m4", "-mthumb"',
        '"-mthumb"',
        "bench.toml:8: 'flags' in [cpu] tell the compiler no CPU: -mthumb; wanted such as -mcpu=cortex-m4",
    ),
    (
        '"-mthumb"',
        '"-mthumb -O3"',
        f"bench.toml:8: 'flags' in [cpu] has '-mthumb -O3'; {FLAGS}",
    ),
    (
        '"-mthumb"',
        '"-DX=$(touch${IFS}pwned)"',
        f"bench.toml:8: 'flags' in [cpu] has '-DX=$(touch${{IFS}}pwned)'; {FLAGS}",
    ),
    (
        '"-mthumb"',
        '"-Wl,-a;-b"',
        f"bench.toml:8: 'flags' in [cpu] has '-Wl,-a;-b'; {FLAGS}",
    ),
    (
        'toolchain = "arm-none-eabi"',
        r'toolchain = "arm-none-eabi\")\nexecute_process(COMMAND touch pwned)\nset(X \""',
        "bench.toml:7: 'toolchain' in [cpu] has "
        """'arm-none-eabi")\\nexecute_process(COMMAND touch pwned)\\nset(X "'; """
        "wanted one line without control characters",
    ),
    (
        'toolchain = "arm-none-eabi"',
        'toolchain = "arm;${X}"',
        "bench.toml:7: 'toolchain' in [cpu] is 'arm;${X}'; wanted what stands before '-gcc' in the compiler's name",
    ),
    (
        'name = "cortex-m4"',
        r'name = "\u001b[2J"',
        r"bench.toml:5: 'name' in [cpu] has '\x1b[2J'; wanted one line without control characters",
    ),
    (
        'args = ["-semihosting"]',
        r'args = ["-d\n"]',
        r"bench.toml:45: 'args' in [run.qemu] has '-d\n'; wanted one line without control characters",
    ),
    (
        'name = "psram"',
        'name = "psram } >"',
        "bench.toml:24: 'name' in [[memory]] number 3 is 'psram } >'; "
        "wanted lower-case letters, digits and underscores",
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
        "bench.toml:37: 'kind' in [timer] is 'mtime'; armv7em has: systick, none",
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
        'name = "psram"',
        'name = "org"',
        "bench.toml:24: 'name' in [[memory]] number 3 is 'org', a word of the linker's; wanted another name",
    ),
    (
        "origin = 0x2000_0000",
        "origin = 0x2000_0004",
        "bench.toml:20: 'origin' in [[memory]] number 2 is 0x20000004; wanted a multiple of 16",
    ),
    (
        'length = "4M"',
        "length = 1000",
        "bench.toml:15: 'length' in [[memory]] number 1 is 0x3e8; wanted a multiple of 16",
    ),
    (
        "origin = 0x0000_0000",
        "origin = 0x80",
        "bench.toml:14: memory 'ssram1' (0x00000080 to 0x0040007f) begins with the vector table; "
        "wanted a multiple of 0x100 with interrupts up to 31",
    ),
    (
        "irq = 0",
        "irq = 480",
        "bench.toml:34: 'irq' in [console] is 480; wanted 0 to 479",
    ),
    (
        'kind = "ram"',
        'kind = "flash"',
        "bench.toml:1: no [[memory]] is of kind 'ram'; wanted at least one flash and one ram",
    ),
    (
        'length = "16M"\naccelerator',
        'length = "16M"\nwait_states = 64\naccelerator',
        "bench.toml:28: 'wait_states' in [[memory]] number 3 is 64; wanted 0 to 63",
    ),
    (
        'length = "16M"\naccelerator',
        'length = "16M"\nwait_states = 5\nline = 12\naccelerator',
        "bench.toml:29: 'line' in [[memory]] number 3 is 12 bytes; wanted a power of two",
    ),
    (
        'length = "16M"\naccelerator',
        'length = "16M"\nwait_states = 5\nline = 128\naccelerator',
        "bench.toml:29: 'line' in [[memory]] number 3 is 128; wanted 4 to 64",
    ),
    (
        'length = "16M"\naccelerator',
        'length = "16M"\nwait_states = 5\nline = 16\ndata_cache = 136\naccelerator',
        "bench.toml:30: 'data_cache' in [[memory]] number 3 holds no whole lines of 16 bytes",
    ),
    (
        'length = "16M"\naccelerator',
        'length = "16M"\nwait_states = 5\ncode_cache = "1K"\ncache = "8K"\naccelerator',
        "bench.toml:30: 'cache' in [[memory]] number 3 keeps code and data; wanted no cache of one kind beside it",
    ),
    (
        'length = "16M"\naccelerator',
        'length = "16M"\nprefetch = true\naccelerator',
        "bench.toml:28: 'prefetch' in [[memory]] number 3 matters where the CPU waits; wanted 'wait_states', too",
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
        "bench.toml:40: [run.host] is not for armv7em; wanted [run.qemu], [run.rtl] or [run.serial]",
    ),
    (
        '[run.qemu]\nsystem = "arm"',
        "[run]",
        "bench.toml:41: unknown key 'machine' in [run] (known: host, qemu, rtl, serial)",
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
        "[console]",
        "[[fixed]]\naddress = 0x400\nwords = []\n[console]",
        "bench.toml:32: 'words' in [[fixed]] number 1 holds [] (an array); "
        "wanted an array of 32-bit integers such as [0xFFFF_FFFE]",
    ),
    (
        "[console]",
        "[[fixed]]\naddress = 0x400\nwords = [0x1_0000_0000]\n[console]",
        "bench.toml:32: 'words' in [[fixed]] number 1 holds 4294967296 (an integer); "
        "wanted an array of 32-bit integers such as [0xFFFF_FFFE]",
    ),
    (
        "[console]",
        "[[fixed]]\naddress = 0x402\nwords = [1]\n[console]",
        "bench.toml:31: 'address' in [[fixed]] number 1 is 0x402; wanted a multiple of 4",
    ),
    (
        "[console]",
        "[[fixed]]\naddress = 0xBC\nwords = [1, 2]\n[console]",
        "bench.toml:31: fixed words (0x000000bc to 0x000000c3) overlap the vector table (0x00000000 to 0x000000bf); "
        "wanted them behind it",
    ),
    (
        "[console]",
        "[[fixed]]\naddress = 0x3F_FFFC\nwords = [1, 2]\n[console]",
        "bench.toml:31: fixed words (0x003ffffc to 0x00400003) lie outside the memories of kind flash "
        "('ssram1' (0x00000000 to 0x003fffff)); move them",
    ),
    (
        "[console]",
        "[[fixed]]\naddress = 0x404\nwords = [1]\n[[fixed]]\naddress = 0x400\nwords = [1, 2]\n[console]",
        "bench.toml:31: fixed words (0x00000404 to 0x00000407) overlap fixed words (0x00000400 to 0x00000407); "
        "wanted them apart",
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
        "bench.toml:2: there is no port 'stm23'; did you mean 'stm32'? (known: host, mps, riscv_virt, rp2, rtt, "
        "semihosting, stm32, vexriscv; "
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
        "bench.toml:5: port 'stm32' wants 'tx' in [settings]: the pin that sends, PA0 to PK15, such as \"PD8\"",
    ),
    *(
        (
            'tx = "PD8"',
            f'tx = "{pin}"',
            f"bench.toml:8: 'tx' in [settings] is '{pin}'; wanted the pin that sends, PA0 to PK15, such as \"PD8\"",
        )
        for pin in ("PZ99", "PA16", "PA", "pa1", "PA01", "PD8 ")
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
        "bench.toml:46: unknown key 'config' in [flash] (known: tool, target, options, pack)",
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
        "bench.toml:15: [run] is empty; wanted [run.host], [run.qemu], [run.rtl] or [run.serial]",
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
