"""A bitstream for a ULX3S: a VexRiscv core with firmware of uaccel in its memory.

    python examples/ulx3s/bitstream.py PROJECT/build/firmware.elf -o chip.bit

The core's Verilog comes from the Python package pythondata-cpu-vexriscv. yosys, nextpnr-ecp5 and ecppack do the rest.
Where the project's model uses custom instructions, their unit stands in the core. An accelerator with RTL behind APB,
with one AXI4 master, stands beside it. The chip has the clock and the baud rate of the board file that the firmware was
built for: the oscillator's 25 MHz, or half of that.
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from uaccel.accelerator import load_accelerator
from uaccel.board import Board, UartConsole, load_board
from uaccel.build.archive_reader import project_devices, project_unit
from uaccel.build.doctor import require_package
from uaccel.build.programs import find_program
from uaccel.build.rtl.build import UNIT
from uaccel.build.rtl.description import read_rtl, sources_of
from uaccel.build.rtl.synthesis import ECP5, NETLIST, WITHOUT_NAMES, clocks, packer_of, part_of
from uaccel.build.rtl.wrapper import MODULE, device_module, unit_module
from uaccel.errors import UaccelError
from uaccel.util.files import data_dir

HERE = Path(__file__).resolve().parent
HEX = "firmware.hex"
CORE = ("pythondata-cpu-vexriscv", "verilog/VexRiscv_FullCfu.v")
PLACED, REPORT, PACKED = "placed.config", "report.json", "chip.bit"
OSCILLATOR = 25_000_000
ELF = b"\x7fELF\1"
WANTED = "wanted the firmware.elf that 'uaccel build' made for board ulx3s"
LOADED = 1
"""The kind of a program header whose bytes lie in memory."""


def read_elf(firmware: Path) -> bytes:
    if not firmware.is_file():
        raise UaccelError(f"{firmware}: no such file; {WANTED}")
    data = firmware.read_bytes()
    if data[:5] != ELF:
        raise UaccelError(f"{firmware}: no ELF file of 32 bits; {WANTED}")
    return data


def words_of(firmware: Path, origin: int, length: int) -> list[int]:
    """The memory's words: what an ELF file puts there, and zeros."""
    data, memory = read_elf(firmware), bytearray(length)
    try:
        (first,), (size, count) = struct.unpack_from("<I", data, 28), struct.unpack_from("<2H", data, 42)
        headers = [struct.unpack_from("<8I", data, first + index * size) for index in range(count)]
    except struct.error:
        raise UaccelError(f"{firmware}: cut short, {len(data)} bytes; build it again") from None
    for kind, offset, _, address, stored, *_ in headers:
        if kind == LOADED and stored:
            if not origin <= address <= address + stored <= origin + length:
                raise UaccelError(
                    f"{firmware}: {stored} bytes at 0x{address:08x}; wanted them in the code memory, "
                    f"0x{origin:08x} and {length} bytes; build the firmware for board ulx3s"
                )
            if offset + stored > len(data):
                raise UaccelError(f"{firmware}: cut short, {len(data)} bytes; build it again")
            memory[address - origin : address - origin + stored] = data[offset : offset + stored]
    return [word for (word,) in struct.iter_unpack("<I", memory)]


def beside_the_core(project: Path) -> Path | None:
    """The folder of the accelerator with a device that the project's model uses, if it uses one."""
    names = [device.name for device in project_devices(project)]
    if len(names) > 1:
        raise UaccelError(f"{project}: its model uses {' and '.join(names)}; the chip has room for one of them")
    return load_accelerator(names[0]).folder if names else None


def board_of(project: Path) -> Board:
    files = sorted((project / "board").glob("*.toml"))
    return load_board(files[0]) if files else load_board("ulx3s")


def parameters(board: Board) -> dict[str, int]:
    """Of ulx3s.v."""
    hz, console = board.timer.hz, board.console
    if hz not in (OSCILLATOR, OSCILLATOR // 2) or not isinstance(console, UartConsole):
        raise UaccelError(f"{board.file}: the chip has a UART, and a clock of {OSCILLATOR} Hz or of half that")
    return {"CLOCKS_PER_BIT": round(hz / console.baud), "HALF": int(hz < OSCILLATOR)}


def prepare(firmware: Path, folder: Path) -> list[Path]:
    """The firmware's words beside where the tools run, and the Verilog sources of the chip."""
    project = firmware.absolute().parent.parent
    code = next(memory for memory in load_board("ulx3s").memories if memory.kind == "flash")
    words = words_of(firmware, code.origin, code.length)
    (folder / HEX).write_text("".join(f"{word:08x}\n" for word in words))
    machine, unit = data_dir("firmware") / "simulator", project_unit(project)
    sources = [HERE / "chip.v", machine / "uaccel_machine.v", require_package(CORE[0]) / CORE[1]]
    if unit is not None:
        rtl = read_rtl(unit)
        (folder / f"{UNIT}.v").write_text(unit_module(rtl, UNIT))
        sources += [HERE / "no_device.v", folder / f"{UNIT}.v"]
        return [*sources, *sources_of(rtl, unit.name, folder, print)]
    sources.append(machine / f"{UNIT}.v")
    accelerator = beside_the_core(project)
    if accelerator is None:
        return [*sources, HERE / "no_device.v"]
    rtl = read_rtl(accelerator)
    own = sources_of(rtl, accelerator.name, folder, print)
    (folder / f"{MODULE}.v").write_text(device_module(rtl, own))
    return [*sources, HERE / "axi4_words.v", folder / f"{MODULE}.v", *own]


def run(folder: Path, *words: str) -> None:
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = [line for line in (done.stdout + done.stderr).splitlines() if "ERROR" in line] or ["no message"]
        raise UaccelError(f"{Path(words[0]).name} failed: {said[0]}")


def build(firmware: Path, bitstream: Path, folder: Path, options: Sequence[str] = ()) -> dict[str, object]:
    """Cells of the netlist by type, and the highest clock. ``options``: of nextpnr."""
    read_elf(firmware)
    yosys, router = find_program("yosys").command, find_program("nextpnr-ecp5").command
    packer = packer_of(part_of("ecp5-85k"))
    given = parameters(board_of(firmware.absolute().parent.parent))
    names = []
    for source in [HERE / "ulx3s.v", *prepare(firmware, folder)]:
        if source.parent != folder:
            shutil.copy(source, folder)
        names.append(source.name)
    shutil.copy(HERE / "ulx3s.lpf", folder)
    print("synthesise", file=sys.stderr)
    chosen = " ".join(f"-set {name} {value}" for name, value in given.items())
    script = f"read_verilog -sv {' '.join(names)}; chparam {chosen} ulx3s; {ECP5.synthesis} -top ulx3s {WITHOUT_NAMES}"
    run(folder, *yosys, "-q", "-p", script)
    print("place and route", file=sys.stderr)
    words = ["--85k", "--package", "CABGA381", "--lpf", "ulx3s.lpf", "--json", NETLIST, *options]
    run(folder, *router, "-q", *words, "--textcfg", PLACED, "--report", REPORT)
    run(folder, str(packer), "--compress", PLACED, PACKED)
    shutil.copy(folder / PACKED, bitstream)
    report = json.loads((folder / REPORT).read_text())
    used = {kind: row["used"] for kind, row in report["utilization"].items() if row["used"]}
    return {"clock_mhz": clocks(report), "used": used}


def main(given: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("firmware", type=Path, help="built for board ulx3s, or one like it at half its clock")
    parser.add_argument("-o", "--output", type=Path, default=Path("chip.bit"))
    parser.add_argument("--nextpnr", default="", help="more options for nextpnr-ecp5, in one word", metavar="OPTIONS")
    arguments = parser.parse_args(given)
    try:
        with tempfile.TemporaryDirectory() as folder:
            options = shlex.split(arguments.nextpnr)
            print(json.dumps(build(arguments.firmware, arguments.output, Path(folder), options), indent=1))
    except UaccelError as error:
        print(f"bitstream.py: error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
