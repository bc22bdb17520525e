"""The machine's commands, word by word (``docs/reference/npu.md``): one table to pack, read and print streams."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from uaccel.streams import Field, Format, halves, octets

MAGIC: Final = int.from_bytes(b"NPUS", "little")
FORMAT: Final = 1
HEADER_WORDS: Final = 8

TRANSFER: Final = (
    *octets(1, "place", "memory"),
    Field("offset", 2),
    Field("address", 3),
    Field("run", 4),
    *halves(5, "runs", "planes"),
    Field("stride_run", 6),
    Field("stride_plane", 7),
    Field("pitch_run", 8),
    Field("pitch_plane", 9),
)
WINDOW: Final = (
    Field("input", 1),
    Field("input_row", 2),
    *halves(4, "input_rows", "input_columns"),
    *halves(5, "kernel_rows", "kernel_columns"),
    *octets(6, "stride_y", "stride_x", "dilation_y", "dilation_x"),
    *halves(7, "first_row", "first_column", signed=True),
    Field("output", 8),
    Field("output_row", 9),
    *halves(10, "output_pixel", "channels"),
    *halves(11, "rows", "columns"),
)
OUTPUT: Final = (
    Field("weights", 12),
    Field("parameters", 13),
    *octets(16, "input_zero_point", "output_zero_point", "clamp_min", "clamp_max", signed=True),
    Field("residual", 17),
    Field("residual_row", 18),
    *halves(19, "residual_pixel"),
    Field("addition", 20),
)
ADDITION: Final = (
    Field("first", 1),
    Field("first_row", 2),
    Field("second", 3),
    Field("second_row", 4),
    Field("output", 5),
    Field("output_row", 6),
    Field("bytes", 7),
    Field("rows", 8),
    Field("addition", 9),
)
TABLE: Final = (
    Field("source", 1),
    Field("source_row", 2),
    Field("output", 3),
    Field("output_row", 4),
    Field("bytes", 5),
    Field("rows", 6),
    Field("table", 7),
)
SUMS: Final = (Field("sums", 14), *halves(15, "first_step", "steps"))
MATRIX: Final = (Field("source", 1), Field("source_row", 2), *halves(3, "depth", "channels"), Field("weights", 4))

FORMATS: Final[Mapping[str, Format]] = {
    "load": Format(1, "load", 10, TRANSFER, ("coded",)),
    "store": Format(2, "store", 10, TRANSFER),
    "convolve": Format(
        3,
        "compute",
        21,
        (
            *(*WINDOW, *halves(3, "input_pixel", "run"), *OUTPUT, *SUMS),
            *octets(19, "", "", "weight_zero_point", signed=True),
        ),
        ("continue", "keep", "add", "float32", "once", "shared"),
    ),
    "depthwise": Format(
        4,
        "compute",
        21,
        (*WINDOW, *halves(3, "input_pixel", "multiplier"), *OUTPUT),
        ("", "", "add", "float32", "once"),
    ),
    "pool": Format(
        5,
        "compute",
        13,
        (*WINDOW, *halves(3, "input_pixel"), *octets(12, "", "", "clamp_min", "clamp_max", signed=True)),
        ("average",),
    ),
    "add": Format(6, "compute", 10, ADDITION, ("", "", "", "", "once")),
    "sync": Format(7, "compute", 1, ()),
    "lookup": Format(8, "compute", 8, TABLE),
    "pack": Format(9, "compute", 5, MATRIX, ("turned",)),
}
