"""Reads which blocks of instructions were executed, and what each instruction reads and writes.

The counting plugin's file has the blocks, a listing of objdump has the instructions: of Arm's Thumb, and of RISC-V.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

from uaccel.util import incoming

# The counting plugin's file: which blocks of instructions were executed between two readings of the counter.


@dataclass(frozen=True)
class ExecutedBlock:
    """Names instructions in a row, of which all are executed or none."""

    address: int
    instructions: int


@dataclass(frozen=True)
class Executed:
    """Says how often a block was executed, and in ``before`` how often directly behind which other block.

    Not all predecessors need be known: the counts in ``before`` may add up to less than ``times``.
    """

    block: ExecutedBlock
    times: int
    before: Mapping[ExecutedBlock, int] = field(default_factory=dict)
    code_waits: int = 0  # Cycles that all executions waited for slow memory, as the plugin's model of it tells.
    data_waits: int = 0


@dataclass(frozen=True)
class Mark:
    """Holds a reading of the counter: ``count`` instructions so far, and what was executed since the last reading."""

    count: int
    executed: tuple[Executed, ...]
    # From a simulated core: its cycles, and those that it waited for code, for data and for devices.
    told: tuple[int, ...] = ()

    @property
    def instructions(self) -> int:
        """The instructions executed since the last reading."""
        return sum(row.times * row.block.instructions for row in self.executed)

    @property
    def waits(self) -> tuple[int, int]:
        """The cycles that the CPU waited for code and for data in slow memory since the last reading."""
        return sum(row.code_waits for row in self.executed), sum(row.data_waits for row in self.executed)


def read_marks(file: Path) -> list[Mark]:
    """All readings in the file; none where nothing was written, or not to its end."""
    known: dict[int, ExecutedBlock] = {}
    marks: list[tuple[list[int], list[list[int]], dict[int, list[int]]]] = []
    try:
        for line in incoming.read_text(file, incoming.MODEL).splitlines():
            if line.startswith("mark "):
                marks.append(([int(word) for word in line.split()[1:]], [], {}))
            elif line.startswith("waits "):
                block, *waits = map(int, line.split()[1:])
                marks[-1][2][block] = waits
            else:
                number, address, *numbers = line.split()
                known[int(number)] = ExecutedBlock(int(address, 16), int(numbers[0]))
                marks[-1][1].append([int(number), *map(int, numbers[1:])])
        return [
            Mark(head[0], tuple(_executed(row, known, waits.get(row[0], ())) for row in rows), tuple(head[1:]))
            for head, rows, waits in marks
        ]
    except (OSError, ValueError, LookupError):
        return []


def _executed(row: list[int], known: Mapping[int, ExecutedBlock], waits: Sequence[int]) -> Executed:
    number, times, *before = row
    pairs = zip(before[::2], before[1::2], strict=True)
    counts: dict[ExecutedBlock, int] = {}
    for other, count in pairs:  # QEMU may have translated the same instructions more than once
        counts[known[other]] = counts.get(known[other], 0) + count
    return Executed(known[number], times, counts, *waits)


# Arm's Thumb instructions, as objdump prints them: name, operands, and the registers that they read and write.
#
# The tables below are regular expressions for names. They tell what the text of an instruction does not: which of its
# registers are results, and which results are read as well.

# An instruction that objdump does not know has ``@`` for a name; data among the code is longer, or never executed.
_LINE: Final = re.compile(r"^\s*([0-9a-f]+):\t([0-9a-f]{4}(?: [0-9a-f]{4})?) *[\t ]*\t([^\t ]*)(?:\t([^;@]*))?")
_FUNCTION: Final = re.compile(r"^([0-9a-f]+) <(.+)>:$", re.MULTILINE)
_REGISTER_THUMB: Final = re.compile(r"\b(r\d+|[sdq]\d+|sp|lr|pc|ip|fp|sl|sb|vpr)\b")
_RANGE: Final = re.compile(r"([a-z]+)(\d+)-\1(\d+)")
_NUMBERED_THUMB: Final = {"sb": "r9", "sl": "r10", "fp": "r11", "ip": "r12"}
_STORES_THUMB: Final = re.compile(r"v?st(r|m|l|[24]\d)|push|vpush")
# Instructions without a result in a register.
_READS_ALL: Final = re.compile(
    r"cmp|cmn|tst|teq|cb|b(?!f|ic)|vcmp|vpt|vpst|le|nop|it|tb[bh]|dsb|isb|dmb|msr|vmsr|cps|pld"
)
# Instructions whose first two registers are results.
_TWO_RESULTS: Final = re.compile(
    r"[su]m(ul|la)l|umaal|smlsld|smlald|v\w*l(d|s)?a?va?x?\.[su]|[su]?q?r?sh[lr]l|asrl|lsll|lsrl|ldrd"
)
# Instructions that also read their results: accumulations, and insertions into a part of a register.
_KEEPS: Final = re.compile(
    r"[su]mlal|umaal|smls?ld|smlald|vr?ml\w*a\w*|vfm|vmla|vmls|vfnm|vq\w*mla|v\w*shru?n|v\w*movu?n|vsli|vsri|vaddl?va"
    r"|movt|bf[ic]|[su]?q?r?sh[lr]l?$"
)
# Instructions whose result is no source, though they have two operands only.
_ONE_SOURCE: Final = re.compile(
    r"mov|mvn|sxt|uxt|rev|rbit|clz|ldr|vld|adr|vmov|vdup|vneg|vabs|vcvt|vrint|vmvn|vcl|neg|dls|wls|mrs"
)


@dataclass(frozen=True)
class ExecutedInstruction:
    """Describes an instruction: its ``name`` as objdump writes it, without ``.w`` and ``.n``; its size in bytes."""

    address: int
    size: int
    name: str
    operands: str = ""

    @cached_property
    def bare(self) -> str:
        """The name without the types that vectors have: ``vmladava`` of ``vmladava.s8``."""
        return self.name.partition(".")[0]

    @cached_property
    def registers(self) -> tuple[str, ...]:
        """All registers that are named, in order; those of lists and ranges one by one."""
        text = _RANGE.sub(lambda m: ", ".join(f"{m[1]}{n}" for n in range(int(m[2]), int(m[3]) + 1)), self.operands)
        return tuple(_NUMBERED_THUMB.get(name, name) for name in _REGISTER_THUMB.findall(text.partition("<")[0]))

    @cached_property
    def listed(self) -> int:
        """How many registers stand between braces."""
        text = self.operands[self.operands.find("{") :] if "{" in self.operands else ""
        return len(ExecutedInstruction(0, 0, "", text).registers)

    @cached_property
    def is_store(self) -> bool:
        return _STORES_THUMB.match(self.name) is not None

    @cached_property
    def address_registers(self) -> frozenset[str]:
        """The registers from which the address of an access is computed."""
        if "[" in self.operands:
            inside = self.operands[self.operands.index("[") : self.operands.index("]")]
            return frozenset(ExecutedInstruction(0, 0, "", inside).registers)
        if self.bare.startswith(("push", "pop", "vpush", "vpop")):
            return frozenset({"sp"})
        return frozenset(self.registers[:1]) if "{" in self.operands else frozenset()

    @cached_property
    def updated(self) -> frozenset[str]:
        """The base register, where the access changes it: ``[r0]!`` and ``[r0], #4``."""
        if self.bare.startswith(("push", "pop", "vpush", "vpop")):
            return frozenset({"sp"})
        changes = "!" in self.operands or re.search(r"\],", self.operands) is not None
        return frozenset(sorted(self.address_registers)[:1]) if changes else frozenset()

    @cached_property
    def writes(self) -> frozenset[str]:
        """Registers that it gives a result to, the base register apart."""
        if self.is_store or _READS_ALL.match(self.name):
            return frozenset()
        if "{" in self.operands:
            text = self.operands[self.operands.index("{") : self.operands.index("}")]
            return frozenset(ExecutedInstruction(0, 0, "", text).registers)
        return frozenset(self.registers[: 2 if _TWO_RESULTS.match(self.name) else 1])

    @cached_property
    def reads(self) -> frozenset[str]:
        """Registers that it reads, those of an address apart.

        With fewer than three operands the first is usually a source as well: ``adds r0, #1`` means r0 = r0 + 1.
        """
        if self.is_store or _READS_ALL.match(self.name):
            return frozenset(self.registers) - self.address_registers
        if "[" in self.operands or "{" in self.operands:
            return frozenset()
        results = 2 if _TWO_RESULTS.match(self.name) else 1
        kept = _KEEPS.match(self.name) or (self.operands.count(",") < 2 and not _ONE_SOURCE.match(self.name))
        return frozenset(self.registers[0 if kept else results :])


Code = Mapping[int, ExecutedInstruction]  # By address.


def disassemble(elf: Path, objdump: str, options: Sequence[str] = ()) -> Code:
    """The instructions of an ELF file; none where objdump is missing or does not know the processor."""
    return parse_instructions(listed(elf, objdump, options))


def listed(elf: Path, objdump: str, options: Sequence[str] = ()) -> str:
    """The text that ``objdump -d`` writes; empty where there is no such program."""
    try:
        return subprocess.run([objdump, "-d", *options, str(elf)], capture_output=True, text=True, check=False).stdout
    except OSError:
        return ""


def functions_in(listing: str) -> dict[int, str]:
    """The names of functions by the address at which each begins."""
    return {int(match[1], 16): match[2] for match in _FUNCTION.finditer(listing)}


def parse_instructions(listing: str) -> Code:
    """The Thumb instructions in a listing, by address; two words of 16 bits make one of 4 bytes."""
    code = {}
    for line in listing.splitlines():
        if match := _LINE.match(line):
            name = match[3].removesuffix(".w").removesuffix(".n")
            address, size = int(match[1], 16), 4 if " " in match[2] else 2
            code[address] = ExecutedInstruction(address, size, name, (match[4] or "").strip())
    return code


# Instructions of RISC-V, as objdump prints them.

NAMED: Final = "littleriscv"  # Stands in the first lines of a listing for RISC-V.
LINE: Final = re.compile(r"^\s*([0-9a-f]+):\t([0-9a-f]{8}|[0-9a-f]{4}) *[\t ]*\t([^\t ]*)(?:\t([^#]*))?")
_REGISTER: Final = re.compile(r"\b(ra|sp|gp|tp|[ast]\d+)\b")
_STORES: Final = re.compile(r"s[bhw]")
_UNNAMED: Final = (".4byte", ".insn")
_CUSTOM: Final = (0x0B, 0x2B, 0x5B, 0x7B)  # Major opcodes custom-0 to custom-3, in the low 7 bits.
_NUMBERED: Final = ("zero ra sp gp tp t0 t1 t2 s0 s1 " + " ".join(f"a{n}" for n in range(8))).split()
_NUMBERED.extend([*(f"s{n}" for n in range(2, 12)), *(f"t{n}" for n in range(3, 7))])
_NO_RESULT: Final = re.compile(r"b\w+|j|jr|ret|csr[wsc]i?|fence.*|wfi|mret|ecall|ebreak")


@dataclass(frozen=True)
class RiscvInstruction(ExecutedInstruction):
    """Describes an instruction of RISC-V; registers have the names of the calling convention: ``a0``, ``s1``."""

    @cached_property
    def registers(self) -> tuple[str, ...]:
        if self.name in _UNNAMED:
            return self._numbered
        return tuple(_REGISTER.findall(self.operands.partition("<")[0]))

    @cached_property
    def _numbered(self) -> tuple[str, ...]:
        """The registers of a custom instruction, which objdump prints as a number: rd, rs1 and rs2, whose numbers lie
        at bits 7, 15 and 20."""
        word = int(self.operands.rpartition(" ")[2], 16)
        return tuple(_NUMBERED[word >> at & 31] for at in (7, 15, 20)) if word & 0x7F in _CUSTOM else ()

    @cached_property
    def is_store(self) -> bool:
        return _STORES.fullmatch(self.name) is not None

    @cached_property
    def address_registers(self) -> frozenset[str]:
        return frozenset(_REGISTER.findall(self.operands.partition("(")[2]))

    @cached_property
    def updated(self) -> frozenset[str]:
        return frozenset()

    @cached_property
    def writes(self) -> frozenset[str]:
        if self.is_store or _NO_RESULT.fullmatch(self.name) or self.operands.startswith("zero"):
            return frozenset()
        return frozenset(self.registers[:1]) - {"zero"}

    @cached_property
    def reads(self) -> frozenset[str]:
        """Registers that it reads, those of an address apart; a result is a source, too, where it is named again."""
        if self.name == "ret":
            return frozenset({"ra"})
        return frozenset(self.registers[len(self.writes) :]) - self.address_registers - {"zero"}


# The instructions in a listing, for either processor.

_FIRST_LINES = 200  # Characters in which the listing names the processor.


def parse(listing: str) -> Code:
    """The instructions in a listing, by address, read as those of the processor that the listing names."""
    if NAMED not in listing[:_FIRST_LINES]:
        return parse_instructions(listing)
    found = {}
    for line in listing.splitlines():
        if match := LINE.match(line):
            address = int(match[1], 16)
            found[address] = RiscvInstruction(address, len(match[2]) // 2, match[3], (match[4] or "").strip())
    return found
