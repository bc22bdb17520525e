"""docs/reference/npu.md: its examples of time, played on the model, and its tables against the sources."""

from __future__ import annotations

import re
import struct
from math import prod
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).resolve().parents[3] / "docs/reference/npu.md"
WINDOWED = {"stride_y": 1, "stride_x": 1, "dilation_y": 1, "dilation_x": 1, "clamp_min": -128, "clamp_max": 127}
NOBODY = 0xFFFFFFFF

pytestmark = pytest.mark.skipif(not PAGE.is_file(), reason="the documentation is not here")


def lines_of(pattern: str) -> list[tuple[str, ...]]:
    return re.findall(pattern, PAGE.read_text(), re.MULTILINE) if PAGE.is_file() else []


BY_HAND = lines_of(r"^\| `([^`]+)` \| .* \| (\d+) \|$")
STREAM = lines_of(r"^((?:load|store|add) .*?)((?: ?[<>][PN])*) +(\d+)\.\.(\d+)$")


def command(text: str) -> tuple[str, dict[str, int]]:
    kind, *words = text.split()
    fields = {name: int(value) for name, value in (word.split("=") for word in words)}
    return kind, (WINDOWED if kind in ("convolve", "depthwise", "pool") else {}) | fields


def test_there_are_examples() -> None:
    assert len(BY_HAND) >= 10
    assert len(STREAM) == 6


@pytest.mark.parametrize(("text", "cycles"), BY_HAND)
def test_a_duration_by_hand(player: Any, text: str, cycles: str) -> None:
    played = player.play([command(text)], [bytes(65536)])
    assert (played.error, played.command) == (0, NOBODY)
    begin, end = played.span(0)
    assert end - begin == int(cycles)
    assert sum(played.busy) == int(cycles)


def test_the_stream_by_hand(player: Any) -> None:
    commands = [(*command(text), tokens.replace(" ", "")) for text, tokens, *_ in STREAM]
    played = player.play(commands, [bytes(800), bytes(400)])
    assert played.error == 0
    assert [played.span(number) for number in range(6)] == [(int(begin), int(end)) for *_, begin, end in STREAM]
    told = lines_of(r"takes (\d+) cycles. Load was busy for (\d+) of them, compute for (\d+) and store for (\d+)")
    assert [str(number) for number in (played.cycles, *played.busy)] == list(told[0])


def test_every_field_is_on_the_page(player: Any) -> None:
    text = PAGE.read_text()
    for kind, layout in player.formats.items():
        missing = [field.name for field in layout.fields if f"`{field.name}`" not in text]
        assert missing == [], kind


SCALES = lines_of(r"^\| (-?\d+) \| ([\dx^ ]+), (-?\d+) \| .* \| (-?\d+) \| (-?\d+) \|$")


def power(text: str) -> int:
    base, _, exponent = text.partition("^")
    return int(int(base) ** int(exponent or 1))


def test_there_are_examples_of_rounding() -> None:
    assert len(SCALES) == 6


@pytest.mark.parametrize(("total", "multiplier", "shift", "single", "plain"), SCALES)
def test_a_rounding_by_hand(player: Any, total: str, multiplier: str, shift: str, single: str, plain: str) -> None:
    """A channel of which the bias is the sum."""
    factors = [power(factor) for factor in multiplier.split(" x ")]
    numbers = [[int(total)] * 16, [prod(factors)] * 16, [int(shift)] * 16]
    parameters = struct.pack("<48i", *(number for row in numbers for number in row))
    ones = dict.fromkeys(("input_row", "input_pixel", "run", "input_rows", "input_columns", "kernel_rows"), 1)
    ones |= dict.fromkeys(("kernel_columns", "output_row", "output_pixel", "channels", "rows", "columns"), 1)
    window = {**WINDOWED, **ones, "steps": 1, "output": 16, "parameters": 512}
    whole = {"runs": 1, "planes": 1}
    for way, result in enumerate((plain, single)):
        commands = [
            ("load", {"memory": 1, "address": 512, "run": 192, **whole}, ">N"),
            ("convolve", {**window, "float32": way}, "<P>N"),
            ("store", {"place": 1, "address": 16, "run": 1, **whole}, "<P"),
        ]
        played = player.play(commands, [parameters, bytes(1)])
        assert (played.error, played.places[1]) == (0, struct.pack("<b", int(result)))


SUMS = lines_of(r"^\| (-?\d+), (-?\d+) \| (-?\d+), (-?\d+), (\d+), (\d+) \| .* \| (-?\d+) \|$")


def test_there_are_examples_of_sums() -> None:
    assert len(SUMS) == 5


@pytest.mark.parametrize("row", SUMS)
def test_a_sum_rounded_once_by_hand(player: Any, row: tuple[str, ...]) -> None:
    first, second, ratio1, ratio2, shift, tolerance, result = map(int, row)
    numbers = struct.pack("<12i", shift, 0, ratio1, 0, 0, ratio2, 0, 0, tolerance, 0, -128, 127)
    whole = {"runs": 1, "planes": 1}
    fields = {"second": 1, "output": 16, "bytes": 1, "rows": 1, "addition": 512, "once": 1}
    commands = [
        ("load", {"memory": 1, "address": 512, "run": 48, **whole}),
        ("load", {"place": 1, "run": 2, **whole}, ">N"),
        ("add", fields, "<P>N"),
        ("store", {"place": 2, "address": 16, "run": 1, **whole}, "<P"),
    ]
    played = player.play(commands, [numbers, struct.pack("<2b", first, second), bytes(1)])
    assert (played.error, played.places[2]) == (0, struct.pack("<b", result))


def test_registers_are_where_the_page_says() -> None:
    folder = Path(__file__).resolve().parents[1]
    page = {name: int(offset, 16) for offset, name in lines_of(r"^\| (0x\w\w) \| (\w+) \|")}
    model = re.findall(r"^    REG_(\w+),$", (folder / "device/npu_device.c").read_text(), re.MULTILINE)
    assert {name: 4 * index for index, name in enumerate(model)} == page
    driver = re.findall(r"NPU_(\w+)_AT = (0x\w+)", (folder / "driver/npu_registers.h").read_text())
    assert len(driver) > 8
    assert {name: int(offset, 16) for name, offset in driver}.items() <= page.items()


def test_errors_are_what_the_page_says() -> None:
    header = (Path(__file__).resolve().parents[1] / "device/npu_device.h").read_text()
    names = re.search(r"enum npu_error \{(.*?)\}", header, re.DOTALL)
    assert names is not None
    numbers = {name: str(number) for number, name in enumerate(re.findall(r"NPU_(\w+)", names[1]))}
    page = {name: number for number, name in lines_of(r"^\| (\d) \| ([A-Z]+) \|")}
    assert page == {name: number for name, number in numbers.items() if name != "OK"}
