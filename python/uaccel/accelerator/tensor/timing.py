"""How long a schedule takes: the three engines, each with its commands in order, and the banks that they share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from uaccel.accelerator.tensor.loops import Issued, Statement, run
from uaccel.accelerator.tensor.machine import Machine
from uaccel.basics.numbers import pieces, round_up
from uaccel.machines.timeline import Engines, Timeline

ENGINES: Final = {"load": "load", "fill": "load", "multiply": "compute", "store": "store"}


def cost(machine: Machine, time: Timeline) -> int:
    """The total, and the CPU's part in it: a piece too small costs it more than the engines save."""
    return time.total + time.commands * machine.issue


@dataclass(frozen=True)
class Use:
    """Bytes of an on-chip memory that a command reads or writes."""

    memory: str
    offset: int
    bytes: int


def time_of(machine: Machine, statements: Sequence[Statement]) -> Timeline:
    """What the machine would take if commands came without delay."""
    engines = Engines()
    banks: dict[tuple[str, int], int] = {}
    window: dict[str, int] = {}
    for issued in run(statements):
        if issued.intrinsic == "window":
            window = dict(issued.numbers)
        engine = ENGINES.get(issued.intrinsic)
        if engine is None or is_empty(issued):
            continue
        held = [bank for use in uses(machine, issued, window) for bank in banks_of(machine, use)]
        awaited = [banks.get(bank, 0) for bank in held]
        span = engines.run(engine, cycles_of(machine, issued, window), awaited)
        banks |= dict.fromkeys(held, span.end)
    return engines.timeline


def is_empty(issued: Issued) -> bool:
    """Whether it loads nothing."""
    return issued.intrinsic == "load" and 0 in (issued.numbers["rows"], issued.numbers["bytes"])


def cycles_of(machine: Machine, issued: Issued, window: dict[str, int]) -> int:
    """Of one command alone."""
    numbers = issued.numbers
    if issued.intrinsic == "load":
        return machine.load.cycles(numbers["bytes"], numbers["rows"])
    if issued.intrinsic == "fill":
        return pieces(numbers["bytes"], machine.fill_bytes_per_cycle)
    if issued.intrinsic == "store":
        width = min(machine.store.bytes_per_cycle, machine.columns)
        return machine.store.start_up + numbers["pixels"] * pieces(numbers["channels"], width)
    outputs = numbers["rows"] * numbers["columns"] * numbers["blocks"]
    return machine.start_up + outputs * runs(machine, window)


def runs(machine: Machine, window: dict[str, int]) -> int:
    """Cycles of the array for one pixel and one block of channels."""
    return window["kernel_rows"] * window["kernel_columns"] * pieces(window["run"], machine.depth)


def uses(machine: Machine, issued: Issued, window: dict[str, int]) -> list[Use]:
    """The on-chip memory that a command touches, first to last byte."""
    numbers = issued.numbers
    if issued.intrinsic == "load":
        extent = (numbers["rows"] - 1) * numbers["pitch"] + numbers["bytes"]
        return [Use(issued.names["memory"], numbers["offset"], extent)]
    if issued.intrinsic == "fill":
        return [Use(issued.names["memory"], numbers["offset"], numbers["bytes"])]
    if issued.intrinsic == "store":
        blocks = pieces(numbers["channels"], machine.columns)
        sums = Use("accumulators", numbers["accumulators"], numbers["pixels"] * blocks * machine.pixel_bytes)
        return [sums, Use("parameters", numbers["parameters"], blocks * machine.parameter_bytes)]
    pixels, blocks = numbers["rows"] * numbers["columns"], numbers["blocks"]
    extent = (numbers["rows"] - 1) * window["row_pitch"] + (numbers["columns"] - 1) * window["column_pitch"]
    extent += (window["kernel_rows"] - 1) * window["kernel_row_pitch"]
    extent += (window["kernel_columns"] - 1) * window["kernel_column_pitch"]
    extent += round_up(window["run"], machine.depth)
    return [
        Use("activations", numbers["activations"], extent),
        Use("weights", numbers["weights"], blocks * runs(machine, window) * machine.block_bytes),
        Use("accumulators", numbers["accumulators"], pixels * blocks * machine.pixel_bytes),
    ]


def banks_of(machine: Machine, use: Use) -> list[tuple[str, int]]:
    size = machine.memory(use.memory).bank_bytes
    first, last = use.offset // size, (use.offset + use.bytes - 1) // size
    return [(use.memory, bank) for bank in range(first, last + 1)]
