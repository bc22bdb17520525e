"""The instructions in what ``objdump -d`` wrote, for whichever processor."""

from __future__ import annotations

from uaccel.cycles import code, riscv

_FIRST_LINES = 200


def parse(listing: str) -> code.Code:
    """By the processor that the listing names."""
    if riscv.NAMED not in listing[:_FIRST_LINES]:
        return code.parse(listing)
    found = {}
    for line in listing.splitlines():
        if match := riscv.LINE.match(line):
            address = int(match[1], 16)
            found[address] = riscv.RiscvInstruction(address, len(match[2]) // 2, match[3], (match[4] or "").strip())
    return found
