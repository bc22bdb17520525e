"""The instructions of firmware, as its toolchain's objdump tells them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

_LINE: Final = re.compile(r"^\s*([0-9a-f]+):\t([0-9a-f]{4}(?: [0-9a-f]{4})?) *[\t ]*\t([^\t ]*)(?:\t([^;@]*))?")
"""An instruction that objdump does not know has ``@`` for a name; data among the code is longer, or never executed."""
_FUNCTION: Final = re.compile(r"^([0-9a-f]+) <(.+)>:$", re.MULTILINE)
_REGISTER: Final = re.compile(r"\b(r\d+|[sdq]\d+|sp|lr|pc|ip|fp|sl|sb|vpr)\b")
_RANGE: Final = re.compile(r"([a-z]+)(\d+)-\1(\d+)")
_NUMBERED: Final = {"sb": "r9", "sl": "r10", "fp": "r11", "ip": "r12"}
_STORES: Final = re.compile(r"v?st(r|m|l|[24]\d)|push|vpush")
_READS_ALL: Final = re.compile(
    r"cmp|cmn|tst|teq|cb|b(?!f|ic)|vcmp|vpt|vpst|le|nop|it|tb[bh]|dsb|isb|dmb|msr|vmsr|cps|pld"
)
_TWO_RESULTS: Final = re.compile(
    r"[su]m(ul|la)l|umaal|smlsld|smlald|v\w*l(d|s)?a?va?x?\.[su]|[su]?q?r?sh[lr]l|asrl|lsll|lsrl|ldrd"
)
_KEEPS: Final = re.compile(
    r"[su]mlal|umaal|smls?ld|smlald|vr?ml\w*a\w*|vfm|vmla|vmls|vfnm|vq\w*mla|v\w*shru?n|v\w*movu?n|vsli|vsri|vaddl?va"
    r"|movt|bf[ic]|[su]?q?r?sh[lr]l?$"
)
"""Those that read what they write."""
_ONE_SOURCE: Final = re.compile(
    r"mov|mvn|sxt|uxt|rev|rbit|clz|ldr|vld|adr|vmov|vdup|vneg|vabs|vcvt|vrint|vmvn|vcl|neg|dls|wls|mrs"
)


@dataclass(frozen=True)
class Instruction:
    """``name`` as objdump writes it but for the width: ``ldrb``, ``vmladava.s8``; ``size`` in bytes."""

    address: int
    size: int
    name: str
    operands: str = ""

    @cached_property
    def bare(self) -> str:
        """Without the types that vectors have."""
        return self.name.partition(".")[0]

    @cached_property
    def registers(self) -> tuple[str, ...]:
        """All that are named, in order; lists and ranges one by one."""
        text = _RANGE.sub(lambda m: ", ".join(f"{m[1]}{n}" for n in range(int(m[2]), int(m[3]) + 1)), self.operands)
        return tuple(_NUMBERED.get(name, name) for name in _REGISTER.findall(text.partition("<")[0]))

    @cached_property
    def listed(self) -> int:
        """How many registers stand between braces."""
        text = self.operands[self.operands.find("{") :] if "{" in self.operands else ""
        return len(Instruction(0, 0, "", text).registers)

    @cached_property
    def is_store(self) -> bool:
        return _STORES.match(self.name) is not None

    @cached_property
    def address_registers(self) -> frozenset[str]:
        """What an access's address is computed from."""
        if "[" in self.operands:
            inside = self.operands[self.operands.index("[") : self.operands.index("]")]
            return frozenset(Instruction(0, 0, "", inside).registers)
        if self.bare.startswith(("push", "pop", "vpush", "vpop")):
            return frozenset({"sp"})
        return frozenset(self.registers[:1]) if "{" in self.operands else frozenset()

    @cached_property
    def updated(self) -> frozenset[str]:
        """The base register where the access changes it."""
        if self.bare.startswith(("push", "pop", "vpush", "vpop")):
            return frozenset({"sp"})
        changes = "!" in self.operands or re.search(r"\],", self.operands) is not None
        return frozenset(sorted(self.address_registers)[:1]) if changes else frozenset()

    @cached_property
    def writes(self) -> frozenset[str]:
        """Results, the base register apart."""
        if self.is_store or _READS_ALL.match(self.name):
            return frozenset()
        if "{" in self.operands:
            text = self.operands[self.operands.index("{") : self.operands.index("}")]
            return frozenset(Instruction(0, 0, "", text).registers)
        return frozenset(self.registers[: 2 if _TWO_RESULTS.match(self.name) else 1])

    @cached_property
    def reads(self) -> frozenset[str]:
        """Sources, those of an address apart."""
        if self.is_store or _READS_ALL.match(self.name):
            return frozenset(self.registers) - self.address_registers
        if "[" in self.operands or "{" in self.operands:
            return frozenset()
        results = 2 if _TWO_RESULTS.match(self.name) else 1
        kept = _KEEPS.match(self.name) or (self.operands.count(",") < 2 and not _ONE_SOURCE.match(self.name))
        return frozenset(self.registers[0 if kept else results :])


Code = Mapping[int, Instruction]
"""By address."""


def disassemble(elf: Path, objdump: str, options: Sequence[str] = ()) -> Code:
    """Empty where there is no such program, or it does not know the processor."""
    return parse(listed(elf, objdump, options))


def listed(elf: Path, objdump: str, options: Sequence[str] = ()) -> str:
    """What ``objdump -d`` writes."""
    try:
        return subprocess.run([objdump, "-d", *options, str(elf)], capture_output=True, text=True, check=False).stdout
    except OSError:
        return ""


def functions_in(listing: str) -> dict[int, str]:
    """Names by the address at which each begins."""
    return {int(match[1], 16): match[2] for match in _FUNCTION.finditer(listing)}


def parse(listing: str) -> Code:
    """What ``objdump -d`` wrote."""
    code = {}
    for line in listing.splitlines():
        if match := _LINE.match(line):
            name = match[3].removesuffix(".w").removesuffix(".n")
            address, size = int(match[1], 16), 4 if " " in match[2] else 2
            code[address] = Instruction(address, size, name, (match[4] or "").strip())
    return code
