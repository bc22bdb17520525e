"""Instructions of RISC-V, as objdump tells them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from uaccel.cycles.code import Instruction

NAMED: Final = "littleriscv"
"""In the first line of a listing."""
LINE: Final = re.compile(r"^\s*([0-9a-f]+):\t([0-9a-f]{8}|[0-9a-f]{4}) *[\t ]*\t([^\t ]*)(?:\t([^#]*))?")
_REGISTER: Final = re.compile(r"\b(ra|sp|gp|tp|[ast]\d+)\b")
_STORES: Final = re.compile(r"s[bhw]")
_UNNAMED: Final = (".4byte", ".insn")
_CUSTOM: Final = (0x0B, 0x2B, 0x5B, 0x7B)
_NUMBERED: Final = ("zero ra sp gp tp t0 t1 t2 s0 s1 " + " ".join(f"a{n}" for n in range(8))).split()
_NUMBERED.extend([*(f"s{n}" for n in range(2, 12)), *(f"t{n}" for n in range(3, 7))])
_NO_RESULT: Final = re.compile(r"b\w+|j|jr|ret|csr[wsc]i?|fence.*|wfi|mret|ecall|ebreak")


@dataclass(frozen=True)
class RiscvInstruction(Instruction):
    """Registers are called as functions use them: ``a0``, ``s1``."""

    @cached_property
    def registers(self) -> tuple[str, ...]:
        if self.name in _UNNAMED:
            return self._numbered
        return tuple(_REGISTER.findall(self.operands.partition("<")[0]))

    @cached_property
    def _numbered(self) -> tuple[str, ...]:
        """Of a custom instruction, which objdump gives as its number: the result and both sources."""
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
        """Sources, those of an address apart; a result is a source, too, where it is named again."""
        if self.name == "ret":
            return frozenset({"ra"})
        return frozenset(self.registers[len(self.writes) :]) - self.address_registers - {"zero"}
