"""examples/ulx3s: the chip as Verilog runs firmware at its serial line; its files agree; wrong firmware is refused."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from support.oracle.exactness import assert_same
from support.oracle.oracle import Tflm
from support.run.command import process
from support.run.scripts import script_of
from uaccel.board import UartConsole, load_board
from uaccel.build.rtl.synthesis import KINDS, PARTS
from uaccel.errors import UaccelError
from uaccel.session.batch import BatchRun, run_batch
from uaccel.session.connect import ProcessTransport
from uaccel.session.session import Session
from uaccel.session.simulated import SIMULATED_TIMEOUTS
from uaccel.session.tensors import ramp

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples" / "ulx3s"
MODEL = ROOT / "tests" / "models" / "gesture.tflite"
NEEDED = ("verilator", "g++", "riscv64-unknown-elf-gcc")
MISSING = [name for name in NEEDED if shutil.which(name) is None]
MISSING += [] if importlib.util.find_spec("pythondata_cpu_vexriscv") else ["pythondata-cpu-vexriscv"]
BESIDE = ("dot4", "matrix8", "npu_tiny", "npu_small")
HALF = 12_500_000
SLOW = ("npu_small",)
"""The chips that are simulated with half the oscillator's clock."""
OPTIONS: list[tuple[str, ...]] = [(), *(("-a", name) for name in BESIDE)]
CLOCKS_PER_BIT = 8
VERILATOR = ("--cc", "--exe", "--build", "-O3", "--noassert", "--x-assign", "fast", "--x-initial", "fast")
QUIET = ("-Wno-fatal", "-Wno-lint", "-Wno-style")


def script() -> ModuleType:
    return script_of("examples/ulx3s/bitstream.py")


def firmware_for(board: str, folder: Path, *options: str) -> Path:
    archive, project = folder / "model.tar", folder / "project"
    compiling: list[str | Path] = ["compile", MODEL, "--board", board, *options, "-o", archive]
    steps: list[list[str | Path]] = [compiling, ["create", archive, project], ["build", project]]
    for words in steps:
        done = process(*words)
        assert done.status == 0, done.err
    return project / "build" / "firmware.elf"


def half_board(folder: Path) -> Path:
    text, file = load_board("ulx3s").file.read_text(), folder / "ulx3s_half.toml"
    assert text.count("hz = 25_000_000\n") == 1
    file.write_text(text.replace("hz = 25_000_000\n", "hz = 12_500_000\n"))
    return file


def chip_at_a_line(firmware: Path, folder: Path, changed: tuple[str, str] = ("", "")) -> list[str]:
    """``changed`` is what stands in the chip's Verilog, and what stands there instead."""
    half = script().parameters(script().board_of(firmware.parent.parent))["HALF"]
    pins, line = EXAMPLE / "ulx3s.v", Path(__file__).with_name("chip_on_a_line.cpp")
    sources = [*script().prepare(firmware, folder), pins, line]
    if changed[0]:
        text = sources[0].read_text()
        assert text.count(changed[0]) == 1
        sources[0] = folder / "chip.v"
        sources[0].write_text(text.replace(*changed))
    shutil.copy(sources[-1], folder)
    clocks, halves = f"CLOCKS_PER_BIT={CLOCKS_PER_BIT}", f"HALF={half}"
    words = [*VERILATOR, *QUIET, "--top-module", "ulx3s", f"-G{clocks}", f"-G{halves}"]
    words += ["-CFLAGS", f"-O2 -D{clocks} -D{halves}"]
    subprocess.run(["verilator", *words, *map(str, sources)], cwd=folder, check=True, capture_output=True)
    return ["env", "-C", str(folder), "obj_dir/Vulx3s"]


def run_exactly(command: list[str]) -> BatchRun:
    with Session(ProcessTransport(command, "the chip"), timeouts=SIMULATED_TIMEOUTS) as session:
        values = [ramp(tensor) for tensor in session.model.inputs]
        samples = [values, [value[:, ::-1].copy() for value in values]]
        run = run_batch(session, samples)
    for sample, got in zip(samples, run.outputs, strict=True):
        for one, expected in zip(got, Tflm(MODEL.read_bytes()).run(sample), strict=True):
            assert_same(one, expected.reshape(one.shape), "the chip")
    return run


@pytest.mark.slow
@pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")
@pytest.mark.parametrize("options", OPTIONS, ids=["core", *BESIDE])
def test_a_network_on_the_chip_is_exact(options: tuple[str, ...], tmp_path: Path) -> None:
    if options in OPTIONS[2:]:
        pytest.importorskip("amaranth", reason="the accelerator's RTL is in Amaranth")
    board = half_board(tmp_path) if options and options[-1] in SLOW else load_board("ulx3s").file
    run = run_exactly(chip_at_a_line(firmware_for(str(board), tmp_path, *options), tmp_path))
    assert run.seconds is not None
    assert run.instructions is not None
    cycles = run.seconds * load_board(board).timer.hz
    most = 1.8 if options in OPTIONS[:2] else 4
    assert 1.3 < cycles / run.instructions < most, "as on rtl_vexriscv, whose memories are as fast"


BUGS = {
    "writes that are lost": ("puts = goes ? a_we && a_adr[29:26] == DATA : first", "puts = first"),
    "lanes of the other": ("put_lanes = goes ? a_sel : d_sel", "put_lanes = d_sel"),
    "address of the other": ("d_at = goes ? a_adr : core_at", "d_at = goes && a_we ? a_adr : core_at"),
}


@pytest.mark.long
@pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")
@pytest.mark.parametrize("bug", BUGS)
def test_bugs_are_found_where_core_and_accelerator_share_memory(bug: str, tmp_path: Path) -> None:
    pytest.importorskip("amaranth", reason="the accelerator's RTL is in Amaranth")
    command = chip_at_a_line(firmware_for("ulx3s", tmp_path, "-a", "matrix8"), tmp_path, BUGS[bug])
    with pytest.raises((AssertionError, UaccelError)):
        run_exactly(command)


def test_the_files_of_the_board_agree(tmp_path: Path) -> None:
    board, chip = load_board("ulx3s"), (EXAMPLE / "chip.v").read_text()
    top, pins = (EXAMPLE / "ulx3s.v").read_text(), (EXAMPLE / "ulx3s.lpf").read_text()
    assert isinstance(board.console, UartConsole)
    sizes = {memory.kind: memory.length for memory in board.memories}
    assert f"CODE_BITS = {(sizes['flash'] // 4 - 1).bit_length()}," in chip
    assert f"DATA_BITS = {(sizes['ram'] // 4 - 1).bit_length()}," in chip
    given = script().parameters(board)
    assert {f"parameter {name} = {value}," in top for name, value in given.items()} == {True}
    assert script().parameters(load_board(half_board(tmp_path))) == {"CLOCKS_PER_BIT": 109, "HALF": 1}
    assert board.timer.hz == 2 * HALF == script().OSCILLATOR
    assert f'FREQUENCY PORT "clk_25mhz" {board.timer.hz / 1e6:g} MHZ;' in pins
    assert f'FREQUENCY NET "half_clock" {HALF / 1e6:g} MHZ;' in pins
    assert "reg half_clock" in top
    ports = {name for width, name in re.findall(r"(?:in|out)put +wire +(\[1:0\])? *(\w+)", top) if not width}
    ports |= {"led[0]", "led[1]"}
    assert set(re.findall(r'LOCATE COMP "([^"]+)"', pins)) == ports == set(re.findall(r'IOBUF PORT "([^"]+)"', pins))
    assert "CABGA381" in (EXAMPLE / "bitstream.py").read_text()
    assert "ecp5-85k" in PARTS


def test_the_page_shows_what_was_placed_and_that_it_is_fast_enough() -> None:
    stored = json.loads((ROOT / "benchmarks" / "ulx3s.json").read_text())
    page = (ROOT / "docs" / "reference" / "chip.md").read_text(encoding="utf-8")
    for name, row in stored["chips"].items():
        told = re.sub(r"(?<=with )\w+", r"`\g<0>`", name)
        cells = [told, *(f"{row['area'][kind]:,}" for kind in KINDS), f"{row['runs_at_mhz']:g}"]
        cells.append(str(row["clock_mhz"] or "not routed"))
        assert f"| {' | '.join(cells)} |" in page
        assert all(row["area"][kind] <= PARTS["ecp5-85k"].has[kind] for kind in KINDS)
        assert row["runs_at_mhz"] * 1e6 == (HALF if name.removeprefix("with ") in SLOW else 2 * HALF)
        assert row["clock_mhz"] is None or row["clock_mhz"] > row["runs_at_mhz"]
    assert all(f"{tool} {version}" in page for tool, version in stored["tools"].items())


def test_firmware_for_another_board_is_refused(tmp_path: Path) -> None:
    header = struct.pack("<5s23xI10x2H6x", b"\x7fELF\1", 52, 32, 1)
    data = header + struct.pack("<8I", 1, 0, 0, 0x0800_0000, 8, 8, 5, 4)
    (tmp_path / "a.elf").write_bytes(data)
    with pytest.raises(UaccelError) as caught:
        script().words_of(tmp_path / "a.elf", 0x2000_0000, 16)
    assert str(caught.value) == (
        f"{tmp_path}/a.elf: 8 bytes at 0x08000000; wanted them in the code memory, 0x20000000 and 16 bytes; "
        "build the firmware for board ulx3s"
    )
    assert script().words_of(tmp_path / "a.elf", 0x0800_0000, 16)[:2] == [0x464C457F, 1]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (None, "no such file; wanted the firmware.elf that 'uaccel build' made for board ulx3s"),
        (b"MZ" * 40, "no ELF file of 32 bits; wanted the firmware.elf that 'uaccel build' made for board ulx3s"),
        (b"\x7fELF\1" + bytes(20), "cut short, 25 bytes; build it again"),
        (
            struct.pack("<5s23xI10x2H6x", b"\x7fELF\1", 52, 32, 1) + struct.pack("<8I", 1, 0, 0, 0, 99, 99, 5, 4),
            "cut short, 84 bytes; build it again",
        ),
    ],
)
def test_what_is_no_firmware(data: bytes | None, said: str, tmp_path: Path) -> None:
    file = tmp_path / "a.elf"
    if data is not None:
        file.write_bytes(data)
    with pytest.raises(UaccelError) as caught:
        script().words_of(file, 0, 256)
    assert str(caught.value) == f"{file}: {said}"


def test_a_clock_that_the_chip_cannot_have_is_refused(tmp_path: Path) -> None:
    board = half_board(tmp_path)
    board.write_text(board.read_text().replace("hz = 12_500_000", "hz = 10_000_000"))
    with pytest.raises(UaccelError) as caught:
        script().parameters(load_board(board))
    assert str(caught.value) == f"{board}: the chip has a UART, and a clock of 25000000 Hz or of half that"


def test_for_a_person() -> None:
    words: list[str | Path] = [sys.executable, EXAMPLE / "bitstream.py", "--help"]
    assert "built for board ulx3s" in subprocess.run(words, capture_output=True, text=True, check=True).stdout
