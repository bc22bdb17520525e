"""The machine in Amaranth has the numbers of the C model's header."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from uaccel.build.rtl.description import read_rtl
from uaccel.util.files import data_dir

FOLDERS = {name: data_dir("accelerators") / name for name in ("npu", "npu_small", "npu_tiny", "npu_flash")}

CONSTANTS = {
    ("bus", "LARGEST"): "BURST",
    ("loader", "AHEAD"): "UNDER_WAY",
    ("fetch", "BURST"): "FETCHED",
    ("fetch", "BEATS"): "FETCH_ROOM",
}
"""Of the generator, by file and name, and what the header calls them."""


def constant(file: str, name: str) -> int:
    """``name = 1`` or, of several, ``other, name = 2, 1``."""
    text = (FOLDERS["npu"] / f"rtl/npu_rtl/{file}.py").read_text()
    (names, values) = re.findall(rf"^((?:\w+, )*{name}(?:, \w+)*)(?:: Final)? = ([\d, ]+)$", text, re.MULTILINE)[0]
    return int(values.split(", ")[names.split(", ").index(name)])


@pytest.mark.parametrize("folder", FOLDERS.values(), ids=FOLDERS)
def test_its_numbers_are_the_headers(folder: Path) -> None:
    text = (folder / "device/npu_machine.h").read_text()
    header = {name: int(value) for name, value in re.findall(r"#define NPU_(\w+) (\d+)", text)}
    rtl = read_rtl(folder)
    numbers = dict(word.split("=") for word in rtl.generate[3:])
    assert {"unpack": 0} | {name: int(number) for name, number in numbers.items()} == {
        "width": header["ROWS"],
        "ports": header["PORTS"],
        "activations": header["ACTIVATION_BYTES"],
        "weights": header["WEIGHT_BYTES"],
        "sums": header["SUM_BYTES"],
        "bus": header["BUS_BYTES"],
        "queue": header["QUEUE"],
        "unpack": header["UNPACK"],
    }
    assert header["COLUMNS"] == header["ROWS"]
    assert {name: constant(file, name) for file, name in CONSTANTS} == {
        name: header[number] for (_, name), number in CONSTANTS.items()
    }
    flash = (header["FLASH_FIRST"], header["FLASH_NEXT"])
    assert rtl.memories[0].flash == (flash if flash != (header["RAM_FIRST"], header["RAM_NEXT"]) else (0, 0))
