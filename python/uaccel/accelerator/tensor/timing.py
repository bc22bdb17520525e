"""How long a schedule takes: the three engines, each with its commands in order, and the banks that they share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from uaccel.accelerator.tensor.loops import Issued, Statement, run
from uaccel.accelerator.tensor.machine import Dma, Machine, Memory

ENGINES: Final = {"load": "load", "fill": "load", "multiply": "compute", "store": "store"}


@dataclass
class Time:
    """Cycles from the first command to the end of the last, and of each engine's work."""

    total: int = 0
    busy: dict[str, int] = field(default_factory=lambda: {"load": 0, "compute": 0, "store": 0})
    commands: int = 0

    def with_issue(self, machine: Machine) -> int:
        """The total, and the CPU's part in it: a piece too small costs it more than the engines save."""
        return self.total + self.commands * machine.issue


@dataclass(frozen=True)
class Use:
    """Bytes of an on-chip memory that a command reads or writes."""

    memory: str
    offset: int
    bytes: int


def time_of(machine: Machine, statements: Sequence[Statement]) -> Time:
    """What the machine would take if commands came without delay."""
    time = Time()
    engines = dict.fromkeys(time.busy, 0)
    banks: dict[tuple[str, int], int] = {}
    window: dict[str, int] = {}
    for issued in run(statements):
        if issued.intrinsic == "window":
            window = dict(issued.numbers)
        engine = ENGINES.get(issued.intrinsic)
        if engine is None or is_empty(issued):
            continue
        needed = cycles_of(machine, issued, window)
        held = [bank for use in uses(machine, issued, window) for bank in banks_of(machine, use)]
        start = max([engines[engine], *(banks.get(bank, 0) for bank in held)])
        engines[engine] = start + needed
        banks |= dict.fromkeys(held, start + needed)
        time.busy[engine] += needed
        time.commands += 1
    time.total = max(engines.values())
    return time


def is_empty(issued: Issued) -> bool:
    """Whether it loads nothing."""
    return issued.intrinsic == "load" and 0 in (issued.numbers["rows"], issued.numbers["bytes"])


def cycles_of(machine: Machine, issued: Issued, window: dict[str, int]) -> int:
    """Of one command alone."""
    numbers = issued.numbers
    if issued.intrinsic == "load":
        return transfer(machine.load, numbers["rows"], numbers["bytes"])
    if issued.intrinsic == "fill":
        return -(-numbers["bytes"] // machine.fill_bytes_per_cycle)
    if issued.intrinsic == "store":
        width = min(machine.store.bytes_per_cycle, machine.columns)
        return machine.store.start_up + numbers["pixels"] * -(-numbers["channels"] // width)
    outputs = numbers["rows"] * numbers["columns"] * numbers["blocks"]
    return machine.start_up + outputs * runs(machine, window)


def transfer(dma: Dma, rows: int, row_bytes: int) -> int:
    return dma.start_up + rows * -(-row_bytes // dma.bytes_per_cycle)


def runs(machine: Machine, window: dict[str, int]) -> int:
    """Cycles of the array for one pixel and one block of channels."""
    return window["kernel_rows"] * window["kernel_columns"] * -(-window["run"] // machine.depth)


def uses(machine: Machine, issued: Issued, window: dict[str, int]) -> list[Use]:
    """The on-chip memory that a command touches, first to last byte."""
    numbers = issued.numbers
    if issued.intrinsic == "load":
        extent = (numbers["rows"] - 1) * numbers["pitch"] + numbers["bytes"]
        return [Use(issued.names["memory"], numbers["offset"], extent)]
    if issued.intrinsic == "fill":
        return [Use(issued.names["memory"], numbers["offset"], numbers["bytes"])]
    if issued.intrinsic == "store":
        blocks = -(-numbers["channels"] // machine.columns)
        sums = Use("accumulators", numbers["accumulators"], numbers["pixels"] * blocks * machine.pixel_bytes)
        return [sums, Use("parameters", numbers["parameters"], blocks * machine.parameter_bytes)]
    pixels, blocks = numbers["rows"] * numbers["columns"], numbers["blocks"]
    extent = (numbers["rows"] - 1) * window["row_pitch"] + (numbers["columns"] - 1) * window["column_pitch"]
    extent += (window["kernel_rows"] - 1) * window["kernel_row_pitch"]
    extent += (window["kernel_columns"] - 1) * window["kernel_column_pitch"]
    extent += -(-window["run"] // machine.depth) * machine.depth
    return [
        Use("activations", numbers["activations"], extent),
        Use("weights", numbers["weights"], blocks * runs(machine, window) * machine.block_bytes),
        Use("accumulators", numbers["accumulators"], pixels * blocks * machine.pixel_bytes),
    ]


def banks_of(machine: Machine, use: Use) -> list[tuple[str, int]]:
    memory: Memory = getattr(machine, use.memory)
    first, last = use.offset // memory.bank_bytes, (use.offset + use.bytes - 1) // memory.bank_bytes
    return [(use.memory, bank) for bank in range(first, last + 1)]
