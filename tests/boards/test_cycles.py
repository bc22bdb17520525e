"""Estimated cycles: short sequences held to what the manuals say of them, worked out by hand in each row."""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from support.device.boards import board_with_tools
from support.run.command import process
from uaccel.cycles import (
    CycleEstimator,
    Executed,
    ExecutedBlock,
    Mark,
    SlowMemory,
    core_of,
    disassemble,
    estimator_for,
    read_marks,
)
from uaccel.cycles.estimate import FOLDER, Core, InstructionKind, Timing, cycles
from uaccel.cycles.instructions import ExecutedInstruction
from uaccel.session.qemu import Blocks, QemuTransport
from uaccel.session.session import Session

ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / "tests/models/gesture.tflite"
FED = ROOT / "tests/models/residual.tflite"
"""Of an input that comes in several pieces."""
PEERS = ROOT.parent / "shared/peers"
FLAGS = {"cortex-m7": ["-mfpu=fpv5-sp-d16"], "cortex-m4": ["-mfpu=fpv4-sp-d16"]}
LOOP = ["entry", *10 * ["loop"], "after"]
"""Labels in the order in which their code is executed: the loop's branch is taken nine times, and falls through once.
What comes first counts for nothing, the ``nop`` behind the loop for 1."""

ROWS = [
    # Cortex-M0+, table 3-1: a load 2, the others 1; a branch that is taken 1 more.
    (
        "cortex-m0plus",
        "entry: nop; loop: ldrb r3,[r0]; adds r0,#1; muls r3,r2; subs r1,#1; bne loop; after: nop",
        LOOP,
        10 * (2 + 1 * 4) + 9 + 1,
    ),
    # PUSH 1 + N, POP with the program counter 3 + N; BL, which comes first, has its jump in its 3.
    (
        "cortex-m0plus",
        "entry: bl f; after: nop; f: push {r4,r5,lr}; pop {r4,r5,pc}",
        ["entry", "f", "after"],
        (1 + 3) + (3 + 3) + 1,
    ),
    ("cortex-m0plus", "stmia r0!,{r1,r2}; ldmia r0!,{r1,r2,r3}; str r1,[r0]; mrs r0,primask", None, 3 + 4 + 2 + 3),
    # Cortex-M3, table 3-1: MLA 2; UMULL 3 to 5, so 4; UMLAL 4 to 7, so 6; UDIV 2 to 12, so 7.
    ("cortex-m3", "mul r0,r1,r2; mla r0,r1,r2,r0; umull r0,r1,r2,r3; smlal r0,r1,r2,r3", None, 1 + 2 + 4 + 6),
    ("cortex-m3", "udiv r0,r1,r2; lsls r0,r0,#3; clz r1,r0", None, 7 + 1 + 1),
    # A load 2, and 1 behind a load; P = 2 where the branch is taken.
    (
        "cortex-m3",
        "entry: nop; loop: ldr r2,[r0],#4; ldr r3,[r1],#4; subs r4,#1; bne loop; after: nop",
        LOOP,
        10 * (2 + 1 + 1 + 1) + 9 * 2 + 1,
    ),
    # Cortex-M4: as the M3, but all multiplications 1.
    (
        "cortex-m4",
        "entry: nop; loop: ldr r2,[r0]; ldr r3,[r1]; smlad r4,r2,r3,r4; subs r5,#1; bne loop; after: nop",
        LOOP,
        10 * 6 + 9 * 2 + 1,
    ),
    ("cortex-m4", "mla r0,r1,r2,r0; smlal r0,r1,r2,r3; sxtb16 r0,r1; ssat r0,#8,r0", None, 4),
    # Its address comes from the load before it: no pipelining.
    ("cortex-m4", "ldr r2,[r0]; ldr r3,[r2]", None, 2 + 2),
    # STR with an offset always 1; with a register 2, and 1 behind a load; nothing pipelines behind a store.
    ("cortex-m4", "ldr r2,[r0]; str r2,[r1]; ldr r3,[r0]", None, 2 + 1 + 2),
    ("cortex-m4", "strb r2,[r1,r3]; ldr r2,[r0]; strb r2,[r1,r3]", None, 2 + 2 + 1),
    # LDRD and LDM 1 + N, and neither pipelines.
    ("cortex-m4", "ldrd r0,r1,[r2]; ldmia r3!,{r4-r7}; ldr r0,[r1]; push {r4,lr}", None, 3 + 5 + 2 + 3),
    # P of the BL that comes first; POP with the program counter 1 + N + P.
    ("cortex-m4", "entry: bl f; after: nop; f: push {r4,lr}; pop {r4,pc}", ["entry", "f", "after"], 2 + 3 + 5 + 1),
    ("cortex-m4", "cbz r0,after; tbb [pc,r1]; after: nop", None, 1 + 2),
    # Table 7-1: VLDR 2, VMUL 1, VMLA and VFMA 3, VDIV 14, VLDM 1 + N.
    ("cortex-m4", "vldr s0,[r0]; vmul.f32 s1,s0,s0; vmla.f32 s2,s0,s1; vfma.f32 s2,s0,s1", None, 2 + 1 + 3 + 3),
    ("cortex-m4", "vdiv.f32 s1,s0,s0; vldmia r0!,{s0-s3}; vpush {d8}; vadd.f32 s0,s0,s1", None, 14 + 5 + 3 + 1),
    # Cortex-M33: the M4's table.
    ("cortex-m33", "ldr r2,[r0]; ldr r3,[r1]; mla r4,r2,r3,r4; udiv r0,r1,r2", None, 2 + 1 + 1 + 7),
    # Cortex-M7: two a cycle where neither needs the other and units are free.
    ("cortex-m7", "adds r0,r0,#1; adds r1,r1,#1; adds r2,r2,#1; adds r3,r3,#1", None, 2),
    ("cortex-m7", "adds r0,r0,#1; adds r0,r0,#1; adds r0,r0,#1", None, 3),
    # One unit for products, each a cycle; the load beside it.
    ("cortex-m7", "smlad r4,r2,r3,r4; ldr r5,[r0]; smlad r6,r2,r3,r6; ldr r7,[r1]", None, 2),
    # An address is needed a cycle early: written in 0, read in 2.
    ("cortex-m7", "adds r0,r0,#4; ldr r1,[r0]", None, 3),
    # Cortex-M55, the two examples at the beginning of LLVM's model: starts in 1, 2, 3, 4, and in 1, 3, 4, 5.
    ("cortex-m55", "vldrw.u32 q0,[r0]; vadd.i32 q1,q2,q2; vmul.i32 q3,q4,q4; vstrw.32 q5,[r1]", None, 4),
    ("cortex-m55", "vldrw.u32 q0,[r0]; vldrb.u8 q1,[r1]; vadd.i32 q2,q3,q3; vstrw.32 q4,[r2]", None, 5),
    # The loop's LE costs nothing; loads and products overlap beat by beat.
    (
        "cortex-m55",
        "entry: nop; loop: vldrb.u8 q0,[r0],#16; vmladava.s8 r2,q0,q1; le lr,loop; after: nop",
        LOOP,
        10 * 2 + 1,
    ),
    # Two products share a pipeline: each waits for both beats of the one before; the next loop's first for the last's.
    ("cortex-m55", "vmladava.s8 r2,q0,q1; vmladava.s8 r4,q0,q2; vmladava.s8 r6,q0,q3", None, 5),
    # A product is there after two cycles: starts in 0 and 2.
    ("cortex-m55", "vmul.i32 q0,q1,q2; vadd.i32 q3,q0,q0", None, 3),
    # Narrowed vectors come after three cycles.
    ("cortex-m55", "vqmovnb.s16 q0,q1; vadd.i32 q3,q0,q0", None, 4),
    # Two of 16 bits, one an ADD of a constant: together; of 32 bits alone.
    ("cortex-m55", "ldr r2,[r0]; adds r1,#4; ldr r3,[r5]; subs r6,#1", None, 2),
    ("cortex-m55", "ldr.w r2,[r0]; adds r1,#4; add.w r8,r8,#4", None, 3),
    # A loaded word is used two cycles later.
    ("cortex-m55", "ldr r2,[r0]; ands r2,r3", None, 3),
    # A jump that is taken adds LLVM's MispredictPenalty of 3.
    ("cortex-m55", "entry: nop; loop: mul r2,r2,r3; subs r1,#1; bne loop; after: nop", LOOP, 10 * 2 + 9 * 3 + 1),
]


@pytest.fixture(scope="module")
def toolchain() -> None:
    if shutil.which("arm-none-eabi-gcc") is None:
        pytest.skip("arm-none-eabi-gcc is not installed")


def assembled(core: str, text: str, folder: Path) -> Path:
    lines = re.sub(r"(\w+):", r"\n\1:\n", text.replace(";", "\n"))
    head = ".syntax unified\n.thumb\n.text\n"
    (folder / "code.s").write_text(f"{head}{lines}\n")
    options = [f"-mcpu={core}", "-mthumb", "-mfloat-abi=hard" if core in FLAGS else "-mfloat-abi=soft"]
    if core == "cortex-m55":
        options = ["-mcpu=cortex-m55", "-mthumb", "-mfloat-abi=hard"]
    command = ["arm-none-eabi-gcc", *options, *FLAGS.get(core, []), "-c", "code.s", "-o", "code.o"]
    subprocess.run(command, check=True, cwd=folder)
    return folder / "code.o"


def labels(elf: Path) -> dict[str, int]:
    told = subprocess.run(["arm-none-eabi-nm", str(elf)], check=True, capture_output=True, text=True).stdout
    return {
        name: int(address, 16) for address, _, name in (line.split() for line in told.splitlines() if line[0] != " ")
    }


def mark_of(estimator: CycleEstimator, at: dict[str, int], path: list[str]) -> Mark:
    """The path as blocks, each from its label to the next label; what comes first counts for nothing."""
    ends = [*at.values(), max(estimator.code) + 1]

    def block(label: str) -> ExecutedBlock:
        end = min(end for end in ends if end > at[label])
        return ExecutedBlock(at[label], sum(at[label] <= address < end for address in estimator.code))

    pairs = Counter((block(one), block(other)) for one, other in pairwise(path))
    rows = {other: {one: times for (one, to), times in pairs.items() if to == other} for _, other in pairs}
    return Mark(0, tuple(Executed(to, sum(before.values()), before) for to, before in rows.items()))


@pytest.mark.usefixtures("toolchain")
@pytest.mark.parametrize(("core", "text", "path", "expected"), ROWS, ids=[f"{row[0]}-{row[1][:24]}" for row in ROWS])
def test_a_sequence_takes_what_the_manual_says(
    core: str, text: str, path: list[str] | None, expected: int, tmp_path: Path
) -> None:
    timings = core_of(core)
    assert timings is not None
    elf = assembled(core, text, tmp_path)
    code = disassemble(elf, "arm-none-eabi-objdump", timings.objdump)
    at = labels(elf)
    if path is None:
        first = at.get("after", max(code) + 1)
        assert cycles(timings, [code[address] for address in sorted(code) if address < first]) == expected
        return
    estimator = CycleEstimator(timings, code)
    assert estimator.of([mark_of(estimator, at, path)]) == expected


def test_every_core_has_a_source() -> None:
    names = sorted(file.stem for file in FOLDER.glob("*.toml"))
    assert names == [*(f"cortex-{name}" for name in ("m0plus", "m3", "m33", "m4", "m55", "m7")), "vexriscv"]
    for name in names:
        core = core_of(name)
        assert core is not None
        assert re.search(r"DDI 0\d{3}|LLVM 16|its RTL", core.source)


def test_waits_add_to_cycles() -> None:
    """Three words of code at 0x100: a constant from among it (2), a move (1), a jump there (2)."""
    core = core_of("cortex-m4")
    assert core is not None
    row = [ExecutedInstruction(0x100, 2, "ldr", "r0, [pc, #8]"), ExecutedInstruction(0x102, 2, "movs", "r1, #0")]
    block, far = ExecutedBlock(0x100, 2), ExecutedBlock(0x200, 1)
    code = {instruction.address: instruction for instruction in [*row, ExecutedInstruction(0x200, 2, "b", "100 <f>")]}
    estimator, before = CycleEstimator(core, code), {far: 3}
    assert estimator.of([Mark(0, (Executed(block, 3, before),))]) == 3 * (2 + 1 + 2)
    mark = Mark(0, (Executed(block, 3, before, code_waits=7, data_waits=20),))
    assert estimator.of([mark]) == 3 * (2 + 1 + 2) + 27
    assert estimator.each(mark) == [3 * (2 + 1 + 2) + 27], "the loops that take most have their waits"
    assert mark.waits == (7, 20)


def test_projects_of_older_versions_have_memories_of_three_numbers() -> None:
    timing = Timing.from_json({"core": "cortex-m4", "objdump": "objdump", "slow": [[0, 0x100, 5]]})
    assert timing.slow == [SlowMemory(0, 0x100, 5, line=4)]
    assert Timing.from_json(timing.to_json()) == timing


def test_code_that_the_listing_lacks_is_not_estimated() -> None:
    core = core_of("cortex-m3")
    assert core is not None
    assert CycleEstimator(core, {}).of([Mark(0, (Executed(ExecutedBlock(0x100, 2), 1),))]) is None


def test_it_is_said_why_there_is_no_estimate(tmp_path: Path) -> None:
    (tmp_path / "firmware.elf").write_bytes(b"")
    assert estimator_for("rv32imac", tmp_path / "firmware.elf", "objdump") == (
        None,
        "the timings of rv32imac are not published, or not known here",
    )
    assert estimator_for("cortex-m4", tmp_path / "firmware.elf", "no-such-objdump") == (
        None,
        "no-such-objdump is missing or does not read firmware.elf; install the binutils of the board's toolchain",
    )


def run_json(*arguments: str) -> dict[str, Any]:
    return process(*arguments, "--json").report


@pytest.mark.parametrize(
    ("board", "more"), [("mps2_an386", ()), ("mps3_an547", ()), ("qemu_riscv32", ()), ("mps2_an386", ("--feed",))]
)
@pytest.mark.slow
def test_a_run_tells_cycles_beside_instructions(board: str, more: tuple[str, ...]) -> None:
    cpu = board_with_tools(board).cpu.name
    report = run_json("run", str(FED if more else MODEL), "--board", board, *more)
    layers = [layer for layer in report["layers"] if layer["instructions"] is not None]
    by = report["cycles_estimated_by"]
    assert by["core"] == cpu
    if cpu.startswith("rv"):
        assert report["cycles_estimated"] is by["source"] is None
        assert by["missing"] == f"the timings of {cpu} are not published, or not known here"
        assert all(layer["cycles_estimated"] is None for layer in layers)
        return
    assert (by["source"], by["missing"]) == (getattr(core_of(cpu), "source", ""), None)
    each = sum(layer["cycles_estimated"] for layer in layers)
    assert 0.99 * each < report["cycles_estimated"] < 1.1 * each, "the calls of the layers come on top"
    assert all(0.9 < layer["cycles_estimated"] / layer["instructions"] < 2 for layer in layers)


@pytest.mark.slow
@pytest.mark.parametrize("board", ["mps2_an386", "netduino_plus_2"])
def test_a_project_tells_the_same_cycles_as_its_model(board: str, tmp_path: Path) -> None:
    board_with_tools(board)
    one = run_json("run", str(MODEL), "--board", board, "--project", str(tmp_path / "project"))
    other = run_json("run", str(tmp_path / "project"))
    keys = ("instructions", "cycles_estimated", "cycles_estimated_by", "waited")
    assert [one.get(key) for key in keys] == [other.get(key) for key in keys]
    assert (one.get("waited") is not None) == (board == "netduino_plus_2")
    assert [row["cycles_estimated"] for row in one["layers"]] == [row["cycles_estimated"] for row in other["layers"]]


@pytest.mark.slow
def test_constants_in_slow_flash_are_waited_for() -> None:
    """The board's flash waits, so constants are copied into RAM; asked to leave them, the CPU waits for each pass."""
    board_with_tools("netduino_plus_2")
    words = ("run", str(FED), "--board", "netduino_plus_2", "--verify")
    copied, left = run_json(*words), run_json(*words, "--constant-pool", "flash")
    assert copied["ram"]["constants"] > left["ram"].get("constants", 0) == 0
    assert copied["verify"]["bit_exact"]
    assert left["verify"]["bit_exact"]
    assert left["waited"]["data"] > 10 * copied["waited"]["data"] > 0
    for report in (copied, left):
        own = [row["waited"] for row in report["layers"] if row["waited"]]
        waited = sum(sum(each.values()) for each in own)
        assert 0.9 * waited < sum(report["waited"].values()) < 1.2 * waited
        assert report["cycles_estimated"] > report["instructions"] + sum(report["waited"].values())


@pytest.mark.slow
def test_it_agrees_with_a_tool_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rules differ in one: behind a store nothing pipelines here."""
    if not (PEERS / "m4_cycles.py").is_file():
        pytest.skip(f"{PEERS} is not here")
    monkeypatch.syspath_prepend(str(PEERS))
    exact_count, m4_cycles = map(importlib.import_module, ("exact_count", "m4_cycles"))
    board = board_with_tools("mps2_an386")
    run_json("run", str(MODEL), "--board", board.name, "--project", str(tmp_path / "project"))
    elf, blocks = tmp_path / "project" / "build" / "firmware.elf", Blocks(tmp_path / "blocks", 2)
    with Session(QemuTransport(board, elf, blocks=blocks)) as session:
        session.run({tensor.name: tensor.unpack(bytes(tensor.size)) for tensor in session.model.inputs})
    _, mark = read_marks(blocks.file)
    estimator, missing = estimator_for("cortex-m4", elf, "arm-none-eabi-objdump")
    assert estimator is not None, missing
    times: Counter[int] = Counter()
    jumps: Counter[int] = Counter()
    for row in mark.executed:
        times.update(dict.fromkeys(addresses(estimator, row.block), row.times))
        for before, count in row.before.items():
            *_, last = addresses(estimator, before)
            jumps[last] += count * (last + estimator.code[last].size != row.block.address)
    theirs = {address: exact_count.Executed(count, jumps[address]) for address, count in times.items()}
    assert exact_count.total(theirs) == mark.instructions
    assert estimator.of([mark]) == pytest.approx(m4_cycles.estimate(m4_cycles.disassemble(elf), theirs), rel=0.01)


def addresses(estimator: CycleEstimator, block: ExecutedBlock) -> list[int]:
    found, address = [], block.address
    for _ in range(block.instructions):
        found.append(address)
        address += estimator.code[address].size
    return found


LATE = Core(
    "late",
    "",
    taken=0,
    units={"any": 2},
    issue=2,
    kinds=(
        InstructionKind("mla", latency=3, late=2),
        InstructionKind("str", late=1),
        InstructionKind("mul", latency=3),
    ),
)
"""Results after three cycles; sums are needed two cycles later than factors, and what is stored one cycle later."""


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("mul r1,r2,r3; mul r4,r1,r3", 4),  # the second begins in cycle 3
        ("mul r1,r2,r3; str r1,[r0]", 3),  # in cycle 2
        ("mul r0,r2,r3; str r1,[r0]", 4),  # an address is not late
        ("mul r1,r2,r3; mla r1,r2,r3,r1", 2),  # in cycle 1
        ("mul r2,r2,r3; mla r1,r2,r3,r1", 4),  # a factor is not late
    ],
)
def test_a_sum_and_what_is_stored_may_come_late(text: str, wanted: int) -> None:
    split = [line.strip().split(" ", 1) for line in text.split(";")]
    assert cycles(LATE, [ExecutedInstruction(4 * n, 4, *words) for n, words in enumerate(split)]) == wanted
