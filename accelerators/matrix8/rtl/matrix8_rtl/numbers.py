"""The numbers of the machine, which ``accelerator.py`` states too, and commands once they are checked."""

from __future__ import annotations

from typing import Final

from amaranth.hdl import unsigned
from amaranth.lib import data

LANES: Final = 8
"""Output channels at once, values of each at once, bytes of the bus."""
ACTIVATIONS, WEIGHTS, ACCUMULATORS, PARAMETERS = range(4)
BYTES: Final = (16384, 16384, 16384, 6144)
BANKS: Final = 2
ALIGNMENT: Final = (1, 64, 32, 32)
BLOCK, PIXEL = 64, 32
"""Bytes of weights that a step takes; of eight sums."""

LOADER, ARRAY, STORER = range(3)
ENGINES: Final = 3
LOAD, FILL, MULTIPLY, STORE = range(1, 5)

NONE, COMMAND, RANGE, ARGUMENT, BUS, INTERNAL = range(6)
"""Errors."""

LOAD_COMMAND: Final = data.StructLayout(
    {
        "number": 32,
        "fill": 1,
        "memory": 2,
        "offset": 14,
        "pitch": 15,
        "address": 32,
        "stride": 32,
        "rows": 15,
        "bytes": 15,
        "value": 8,
    }
)
MULTIPLY_COMMAND: Final = data.StructLayout(
    {
        "number": 32,
        "accumulators": 9,
        "activations": 14,
        "weights": 8,
        "rows": 10,
        "columns": 10,
        "blocks": 10,
        "add": 1,
        "kernel_rows": 9,
        "kernel_columns": 9,
        "run": 9,
        "kernel_row_pitch": 14,
        "kernel_column_pitch": 14,
        "row_pitch": 14,
        "column_pitch": 14,
    }
)
"""Offsets in entries of their memory, ``run`` in steps."""
STORE_COMMAND: Final = data.StructLayout(
    {
        "number": 32,
        "address": 32,
        "stride": 32,
        "accumulators": 9,
        "parameters": 8,
        "pixels": 10,
        "channels": 13,
        "zero_point": 32,
        "least": 32,
        "greatest": 32,
        "single": 1,
    }
)
COMMANDS: Final = (LOAD_COMMAND, MULTIPLY_COMMAND, STORE_COMMAND)
SUMS: Final = data.ArrayLayout(unsigned(32), LANES)
