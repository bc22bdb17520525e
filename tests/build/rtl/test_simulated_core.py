"""A core as RTL as a board: what the simulator is told, what is missing in words, cycles that are the core's own."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from support.device.boards import board_with_tools
from support.run.command import is_exact, process
from uaccel.board import Board, RtlRun, load_board
from uaccel.board.accelerator_devices import board_devices_source
from uaccel.build.rtl import build
from uaccel.build.rtl.build import simulator
from uaccel.cycles import CycleEstimator, Executed, ExecutedBlock, Mark, core_of, read_marks
from uaccel.cycles.instructions import parse
from uaccel.errors import BoardError, ToolError
from uaccel.runner.cycles import core_cycles, with_core_cycles
from uaccel.session.description import LayerTime
from uaccel.session.qemu import Blocks
from uaccel.session.simulated import SimulatedTransport, machine_words, rtl_run
from uaccel.util.files import data_dir

MODEL = Path(__file__).resolve().parents[2] / "models" / "gesture.tflite"
SRAM, QSPI = "rtl_vexriscv", "rtl_vexriscv_qspi"
MISSING = [name for name in ("verilator", "riscv64-unknown-elf-gcc") if shutil.which(name) is None]
MISSING += [] if importlib.util.find_spec("pythondata_cpu_vexriscv") else ["pythondata-cpu-vexriscv"]
simulates = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")
MARKS = """\
mark 100 1000 10 20 30
mark 160 1100 15 40 31
0 20000000 5 12
mark 170 1150 16 41 33
0 20000000 5 2
mark 200 1300 20 60 40
0 20000000 5 6
"""
MEMORY = """
#include <cassert>
#include "memory.h"

static uint64_t now = 1;

static int waits(uaccel::Bus &bus, uaccel::Memory *memory, bool ends, int words = 1)
{
    int cycles = 0;
    while (!bus.answers(memory, ends, now++, words)) {
        cycles++;
    }
    return cycles;
}

/* Who gets the words, if all three want all of them in bursts of two. */
static std::string turns(uaccel::Memory *memory, std::vector<uaccel::Bus> masters)
{
    std::string words;
    std::vector<int> given(masters.size());
    for (; words.size() < 12; ++now) {
        for (size_t i = 0; i < masters.size(); ++i) {
            if (masters[i].answers(memory, given[i] % 2 == 1, now)) {
                given[i]++;
                words += char('0' + i);
            }
        }
    }
    return words;
}

int main()
{
    uaccel::Memory flash{0x1000, false, 20, 8, std::vector<uint8_t>(64)};
    uaccel::Memory ram{0x2000, true, 1, 0, std::vector<uint8_t>(64)};
    uaccel::Bus fetch(0), data(1), device(2);
    assert(waits(fetch, &flash, false) == 20 && waits(fetch, &flash, false) == 8);
    assert(!data.answers(&flash, true, now)); // the burst of the other bus goes on
    assert(waits(data, &ram, true) == 1 && waits(data, &ram, true) == 1);
    assert(waits(fetch, &flash, true) == 8);
    assert(waits(data, &flash, true) == 20);
    assert(waits(data, nullptr, true) == 0);
    ram.put(0x2004, 0x11223344u, 0xF);
    ram.put(0x2004, 0xAABBCCDDu, 0x6);
    assert(ram.word(0x2004) == 0x11BBCC44u);
    assert(waits(device, &ram, false, 2) == 1 && waits(device, &ram, false, 2) == 0); // a beat of two words
    assert(!data.answers(&ram, true, now));
    now += 2; // the device wants nothing more
    assert(waits(data, &ram, true) == 1);
    assert(waits(device, &flash, false, 2) == 28 && waits(device, &flash, true, 2) == 16);
    assert(turns(&ram, {fetch, data, device}) == "001122001122");
    uaccel::Memory quick{0x3000, true, 0, 0, std::vector<uint8_t>(64)};
    assert(fetch.answers(&quick, true, ++now) && !data.answers(&quick, true, now)); // a word a cycle
    assert(data.answers(&quick, true, ++now));
    assert(ram.holds(0x203C, 4) && !ram.holds(0x203D, 4) && !ram.holds(0x1FFF));
}
"""


def test_memories_answer_as_fast_as_the_board_file_says(tmp_path: Path) -> None:
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    (tmp_path / "memory.cpp").write_text(MEMORY)
    words = ["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", f"-I{data_dir('firmware') / 'simulator'}"]
    subprocess.run([*words, "-o", tmp_path / "memory", tmp_path / "memory.cpp"], check=True)
    subprocess.run([tmp_path / "memory"], check=True)


@pytest.mark.parametrize(("name", "waits"), [(SRAM, (1, 0, 1, 0)), (QSPI, (20, 8, 1, 0))])
def test_the_machine_is_told_what_the_board_file_says(
    name: str, waits: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    at = {"uaccel_uncounted_start": 0x20000100, "uaccel_uncounted_end": 0x20000200}
    monkeypatch.setattr("uaccel.session.simulated.symbols", lambda _elf: at)
    board = load_board(name)
    run = rtl_run(board)
    assert run == RtlRun("vexriscv", *waits)
    assert machine_words(board, run, Path("a.elf")) == [
        "a.elf",
        f"memory={0x2000_0000},{16 << 20},0,{waits[0]},{waits[1]}",
        f"memory={0x4000_0000},{16 << 20},1,1,0",
        f"console={0xF000_0000},0",
        f"reset={0xF000_1000}",
        f"counter={0xF000_1004}",
        f"uncounted={0x2000_0100},{0x2000_0200}",
    ]


WRONG = {
    "no such core": ('core = "vexriscv"', 'core = "z80"', "'core' in [run.rtl] is 'z80'; wanted one of vexriscv"),
    "too slow": ("flash_first = 1", "flash_first = 1001", "'flash_first' in [run.rtl] is 1001; wanted 0 to 1000"),
    "another CPU": (
        'arch = "rv32"',
        'arch = "armv7m"',
        "[run.rtl] is not for armv7m: its cores are rv32; leave it out",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_a_board_file_may_say_of_it(case: str, tmp_path: Path) -> None:
    old, new, message = WRONG[case]
    text = load_board(SRAM).file.read_text(encoding="utf-8")
    assert old in text
    file = tmp_path / "mine.toml"
    file.write_text(text.replace(old, new, 1))
    with pytest.raises(BoardError) as caught:
        load_board(file)
    assert message in str(caught.value)


def test_what_to_install_without_the_core(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.metadata.distribution

    def distribution(name: str) -> importlib.metadata.Distribution:
        if name == "pythondata-cpu-vexriscv":
            raise importlib.metadata.PackageNotFoundError(name)
        return found(name)

    monkeypatch.setattr(importlib.metadata, "distribution", distribution)
    with pytest.raises(ToolError) as caught:
        simulator(RtlRun("vexriscv"))
    assert str(caught.value).startswith(
        "pythondata-cpu-vexriscv (needed for a core as RTL): not installed; to get it: "
    )
    assert "pip install 'pythondata-cpu-vexriscv>=" in str(caught.value)


def test_what_to_install_without_verilator(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(build, "require_package", lambda _name: tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolError, match=r"verilator \(needed for .*\): verilator: not found; to get it: "):
        simulator(RtlRun("vexriscv"))


def test_cycles_are_those_between_two_readings(tmp_path: Path) -> None:
    """Of a model with two layers; of each the waits, and ticks of the core's own counter."""
    file = tmp_path / "blocks.txt"
    file.write_text(MARKS)
    board, blocks = load_board(SRAM), Blocks(file, 4)
    assert [mark.instructions for mark in read_marks(file)] == [0, 60, 10, 30]
    whole = core_cycles(board, 91_623e-8, blocks)
    assert whole is not None
    assert whole.to_json() == {"cycles": 91_623, "waited": {"code": 5, "data": 20, "devices": 1}}
    times = [LayerTime(0, "one", 110e-8, 60), LayerTime(1, "two", 160e-8, 30)]
    layers = with_core_cycles(board, blocks, times, [1, 1])
    assert [(layer.core_cycles, layer.waited) for layer in layers] == [(100, (5, 20, 1)), (150, (4, 19, 7))]
    assert core_cycles(load_board("qemu_riscv32"), 1.0, blocks) is None, "its clock is not the core's"
    assert with_core_cycles(load_board("qemu_riscv32"), blocks, times, [1, 1]) == times


def test_progress_tells_what_is_simulated_in_a_second(tmp_path: Path) -> None:
    core, told = SimulatedTransport.__new__(SimulatedTransport), list[str]()
    core._status, core._progress, core._hz = tmp_path / "status", told.append, 100_000_000
    core._status.write_text(f"{12_500_000:020}\n")
    core._begun = core._told = time.monotonic() - 25
    core._tell()
    core._tell()
    assert told == ["simulated 12,500,000 cycles (125.0 ms at 100 MHz), 0.50 million a second"]


LISTING = """
a.elf:     file format elf32-littleriscv

20000000 <f>:
20000000:\t0005a783          \tlw\ta5,0(a1)
20000004:\t02f787b3          \tmul\ta5,a5,a5
20000008:\t00f60633          \tadd\ta2,a2,a5
2000000c:\t00458593          \tadd\ta1,a1,4 # 4 <x>
20000010:\tfea598e3          \tbne\ta1,a0,20000000 <f>
20000014:\t00c5a023          \tsw\ta2,0(a1)
20000018:\t00008067          \tret
"""


def test_a_loop_takes_what_the_stages_of_the_core_make_it_take() -> None:
    """A load and a product are there two cycles late; a jump empties two stages."""
    core, code = core_of("vexriscv"), parse(LISTING)
    assert core is not None
    loop, end = ExecutedBlock(0x2000_0000, 5), ExecutedBlock(0x2000_0014, 2)
    once = 1 + 2 + 1 + 2 + 1 + 1 + 1
    executed = (Executed(loop, 10, {loop: 9}), Executed(end, 1, {loop: 1}))
    estimated = CycleEstimator(core, code).of([Mark(0, executed)])
    assert estimated == 2 + 10 * once + 9 * 2 + 2, "something jumped to the loop"
    store, add = code[0x2000_0014], code[0x2000_0008]
    none: frozenset[str] = frozenset()
    assert store.is_store
    assert (store.reads, store.address_registers, store.writes) == (frozenset({"a2"}), frozenset({"a1"}), none)
    assert (add.reads, add.writes) == (frozenset({"a2", "a5"}), frozenset({"a2"}))


CUSTOM = """
a.elf:     file format elf32-littleriscv

20000000 <f>:
20000000:\t00f7370b          \t.4byte\t0xf7370b
20000004:\t0ff7000b          \t.insn\t4, 0x0ff7000b
20000008:\t0000500f          \t.4byte\t0x500f
2000000c:\t00e787b3          \tadd\ta5,a5,a4
"""


def test_custom_instructions_have_registers_and_are_late() -> None:
    core, code = core_of("vexriscv"), parse(CUSTOM)
    assert core is not None
    dot, silent, flush, _ = code.values()
    assert (set(dot.reads), set(dot.writes)) == ({"a4", "a5"}, {"a4"})
    assert (set(silent.reads), set(silent.writes)) == ({"a4", "t6"}, set()), "its result goes nowhere"
    assert not flush.reads | flush.writes
    whole = Executed(ExecutedBlock(0x2000_0000, 4), 1, {})
    assert CycleEstimator(core, code).of([Mark(0, (whole,))]) == 2 + 3 + 1 + 1 + 1, "something jumped there"


def test_devices_lie_one_behind_the_other() -> None:
    text = board_devices_source(load_board(SRAM), ["zeta", "alpha"])
    assert '{"zeta", 0xf1010000u, UACCEL_NO_INTERRUPT}' in text
    assert '{"alpha", 0xf1000000u, UACCEL_NO_INTERRUPT}' in text
    assert '{"zeta", 0, ' in board_devices_source(load_board("qemu_riscv32"), ["zeta"])


@pytest.fixture(scope="module")
def cached(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment with a cache of these tests' own: the core is verilated once."""
    return {**os.environ, "UACCEL_CACHE": str(tmp_path_factory.mktemp("cache"))}


@pytest.fixture(scope="module")
def run(cached: dict[str, str]) -> Callable[..., dict[str, Any]]:
    """``uaccel run``."""

    @cache
    def report(*words: str) -> dict[str, Any]:
        done = process("run", MODEL, *words, "--json", env=cached)
        assert done.status == 0, done.err
        return done.report

    return report


@pytest.fixture(scope="module")
def emulated(tmp_path_factory: pytest.TempPathFactory) -> Board:
    """QEMU's board with the simulated core's instructions."""
    text = board_with_tools("qemu_riscv32").file.read_text(encoding="utf-8")
    file = tmp_path_factory.mktemp("boards") / "same.toml"
    file.write_text(text.replace("rv32imac", "rv32im"))
    return load_board(file)


@simulates
@pytest.mark.slow
def test_a_network_is_exact_and_its_instructions_are_those_that_qemu_counts(
    run: Callable[..., dict[str, Any]], emulated: Board
) -> None:
    here, there = run("--board", SRAM, "--verify"), run("--board", str(emulated.file))
    assert is_exact(here)
    assert here["instructions"] == there["instructions"]
    rows = [layer for layer in here["layers"] if layer["instructions"] is not None]
    assert [row["instructions"] for row in rows] == [
        layer["instructions"] for layer in there["layers"] if layer["instructions"] is not None
    ]
    assert not {"cycles", "waited"} & set(there)
    assert 1.2 < here["cycles"] / here["instructions"] < 1.8
    ours = here["cycles_estimated"] + sum(here["waited"].values())
    assert abs(ours / here["cycles"] - 1) < 0.05, "estimates know no caches"
    assert 0.9 < sum(row["core_cycles"] for row in rows) / here["cycles"] < 1.1
    assert all(sum(row["waited"].values()) + row["instructions"] <= row["core_cycles"] for row in rows)
    assert run("--board", SRAM)["cycles"] == here["cycles"], "the same each time"


@simulates
@pytest.mark.slow
def test_a_slow_flash_costs_what_is_waited_for(run: Callable[..., dict[str, Any]]) -> None:
    fast, slow = run("--board", SRAM), run("--board", QSPI)
    assert slow["instructions"] == fast["instructions"]
    more = sum(slow["waited"].values()) - sum(fast["waited"].values())
    assert slow["waited"]["code"] > 5 * fast["waited"]["code"]
    assert abs(slow["cycles"] - fast["cycles"] - more) < 0.1 * more


@simulates
@pytest.mark.slow
@pytest.mark.parametrize("device", ["model", "rtl"])
def test_accelerators_on_the_cores_bus(device: str, run: Callable[..., dict[str, Any]]) -> None:
    report = run("--board", SRAM, "--verify", "--accelerator", "nuc_fpga", "--device", device)
    assert is_exact(report)
    rows = [layer for layer in report["layers"] if layer["engine"] == "nuc_fpga"]
    assert len(rows) == 6
    assert all(0 < row["cycles"] < row["core_cycles"] for row in rows), "the core waits until the device is ready"


@simulates
@pytest.mark.slow
def test_a_unit_of_custom_instructions_is_exact_and_pays(run: Callable[..., dict[str, Any]], emulated: Board) -> None:
    with_it, without = run("--board", SRAM, "--verify", "-a", "dot4"), run("--board", SRAM)
    assert is_exact(with_it)
    assert with_it["cycles"] < 0.7 * without["cycles"]
    assert with_it["instructions"] == run("--board", str(emulated.file), "-a", "dot4")["instructions"]


@simulates
@pytest.mark.slow
def test_a_device_that_fails_is_told(run: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UACCEL_DEVICE_FAULT", "nuc_fpga:error")
    done = process("run", MODEL, "--board", SRAM, "--accelerator", "nuc_fpga")
    assert done.status != 0
    assert "nuc_fpga" in done.complaint


@simulates
@pytest.mark.slow
def test_kernels_are_tuned_by_the_cores_own_cycles(
    run: Callable[..., dict[str, Any]], cached: dict[str, str], tmp_path: Path
) -> None:
    words = ("tune", MODEL, "--board", SRAM, "--json", "-j", "1")
    alone = process(*words, "-o", tmp_path / "core.json", env=cached).report
    assert alone["unit"] == "cycles"
    assert abs(alone["before"] / run("--board", SRAM)["cycles"] - 1) < 0.1, "hooks and what lies between layers"
    chosen = {layer["name"]: {one["kernel"]: one["cost"] for one in layer["candidates"]} for layer in alone["layers"]}
    assert all(chosen[layer["name"]][layer["picked"]] == layer["after"] for layer in alone["layers"])
    costs = chosen["conv_2d_0"].values()
    assert max(costs) > 2 * min(costs), "products of one output at a time"
    beside = process(*words, "-o", tmp_path / "nuc.json", "-a", "nuc_fpga", env=cached).report
    offloaded = run("--board", SRAM, "--verify", "--accelerator", "nuc_fpga", "--device", "model")
    assert abs(beside["before"] / offloaded["cycles"] - 1) < 0.02, "the accelerator's cycles count once"
