"""npu in front of a slow flash: times and codes by hand, weights that come as a code, and what is planned for it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from accelerator.npu_family import FLASH, SMALL, Family, check, part
from uaccel.accelerator import load_accelerator
from uaccel.accelerator.streams.machine import packed
from uaccel.pipeline import compile_model
from uaccel.streams import Tokens, pack
from uaccel.testing.layers import Example, Layers, example

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/reference/npu.md").read_text()
BY_HAND = re.findall(r"^\| npu_flash: `load ([^`]+)` \| .* \| (\d+) \|$", PAGE, re.MULTILINE)
CODES = re.findall(r"^\| `([\d -]+)` \| .* \| `([\dA-F ]+)` \|$", PAGE, re.MULTILINE)
WHOLE = {"runs": 1, "planes": 1}
COMMAND, SHAPE, BUS = 2, 4, 6


@pytest.fixture(scope="module")
def flash(tmp_path_factory: pytest.TempPathFactory) -> Family:
    return Family(tmp_path_factory.mktemp("flash"), FLASH)


def commands(*some: tuple[str, dict[str, int], Tokens]) -> bytes:
    formats = part("commands").FORMATS
    return b"".join(pack(formats[kind], WHOLE | fields, tokens) for kind, fields, tokens in some)


def test_the_numbers_are_those_of_its_header() -> None:
    """And all others are npu's."""
    numbers = {
        name: part("machine").read_machine(load_accelerator(name).folder).numbers for name in ("npu", "npu_flash")
    }
    changed = {name: value for name, value in numbers["npu_flash"].items() if numbers["npu"][name] != value}
    assert changed == {name: value for name, value in FLASH.items() if name != "NAME"}


def test_there_are_lines_by_hand() -> None:
    assert (len(BY_HAND), len(CODES)) == (4, 3)


@pytest.mark.parametrize(("text", "cycles"), BY_HAND)
def test_a_duration_by_hand(flash: Family, text: str, cycles: str) -> None:
    fields = {name: int(value) for name, value in (word.split("=") for word in text.split())}
    assert flash.start(commands(("load", fields, Tokens())), [bytes(1000), bytes(1000)]) == (0, 0xFFFFFFFF)
    (span,) = flash.device.spans
    assert span.end - span.begin == int(cycles)


@pytest.mark.parametrize(("numbers", "code"), CODES)
def test_a_code_by_hand(flash: Family, numbers: str, code: str) -> None:
    data, wanted = bytes(int(number) % 256 for number in numbers.split()), bytes.fromhex(code)
    assert packed(data) == wanted
    assert brought(flash, wanted, len(data)) == data


@pytest.mark.parametrize("spread", [0.1, 5, 40, 500])
def test_the_load_engine_unpacks(flash: Family, spread: float) -> None:
    drawn = np.random.default_rng(3).normal(0, spread, 1234).round().astype(np.int64)
    data = (drawn % 256).astype(np.uint8).tobytes()
    assert brought(flash, packed(data), len(data)) == data


def test_a_code_that_ends_early_goes_on_with_zeros(flash: Family) -> None:
    assert brought(flash, b"\x89", 3) == b"\x01\xff\x00"


def brought(family: Family, code: bytes, size: int) -> bytes:
    """Unpacked into the memory of activations, and stored from there."""
    load = {"run": len(code), "pitch_run": size, "coded": 1}
    stream = commands(
        ("load", load, Tokens(push_next=True)),
        ("sync", {}, Tokens(wait_previous=True, push_next=True)),
        ("store", {"place": 1, "run": size}, Tokens(wait_previous=True)),
    )
    assert family.start(stream, [code, bytes(size)]) == (0, 0xFFFFFFFF)
    return bytes(list(family.device.memory.pieces.values())[1])


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"runs": 2, "stride_run": 8}, SHAPE),
        ({"planes": 2, "stride_plane": 8}, SHAPE),
        ({"pitch_run": 0}, SHAPE),
        ({"pitch_run": 65537}, 3),
        ({"run": 65}, 3),
    ],
)
def test_what_no_code_can_be(flash: Family, changed: dict[str, int], error: int) -> None:
    fields = {"run": 8, "pitch_run": 64, "coded": 1} | changed
    assert flash.start(commands(("load", fields, Tokens())), [bytes(64)]) == (error, 0)


def test_a_code_where_there_is_no_memory(flash: Family) -> None:
    stream = commands(("load", {"run": 8, "pitch_run": 64, "coded": 1}, Tokens()))
    flash.start(stream, [bytes(64)])
    for register, value in ((0x48, 0), (0x4C, 0x55000000), (0x18, 1)):
        flash.device.write(register, value)
    assert (flash.device.read(0x20), flash.device.read(0x24)) == (BUS, 0)


def test_a_machine_without_an_unpacker_refuses_codes(tmp_path: Path) -> None:
    fields = {"run": 8, "pitch_run": 64, "coded": 1}
    assert Family(tmp_path, SMALL).start(commands(("load", fields, Tokens())), [bytes(64)]) == (COMMAND, 0)


def two_layers() -> Example:
    layers = Layers(5)
    return example(
        [(1, 12, 12, 16)],
        lambda block, x: [block.emit(layers.same(block.emit(layers.same(x, 48), "first"), 32), "second")],
    )


def test_what_is_planned_is_what_it_takes(flash: Family) -> None:
    """To the cycle."""
    data = np.random.default_rng(4).integers(-128, 128, (1, 12, 12, 16)).astype(np.int8)
    played = check(flash, two_layers(), [data])
    assert played.cycles > len(played.planned.constants), "a byte a cycle at most"


@pytest.mark.parametrize(("accelerator", "coded"), [("npu", False), ("npu_flash", True)])
def test_weights_are_coded_where_that_is_faster(accelerator: str, coded: bool) -> None:
    model = compile_model(
        ROOT / "tests/models/gesture.tflite", board="host", accelerators=[load_accelerator(accelerator)]
    )
    (layer,) = [layer for layer in model.program.layers if layer.engine == accelerator]
    assert (" bytes, unpacked to " in str(layer.artefacts["stream.txt"])) == coded


STORED = json.loads((ROOT / "benchmarks/npu.json").read_text())
ASKED = {("npu", "ic"): 0.9, ("npu", "kws"): 0.65, ("npu", "vww"): 0.5}
"""Of the peak; where transfers bind, 90 % of the roofline, and 85 % of it in front of a flash."""
LEAST = {"npu": 0.9, "npu_flash": 0.85}


@pytest.mark.parametrize("accelerator", LEAST)
@pytest.mark.parametrize("network", ["ic", "kws", "vww", "sww", "ad"])
def test_the_stored_figures_are_close_to_the_roofline(accelerator: str, network: str) -> None:
    row = STORED["accelerators"][accelerator][network]
    assert row["bit_exact"]
    assert abs(row["predicted"] - row["cycles"]) <= 0.03 * row["cycles"]
    asked = ASKED.get((accelerator, network))
    assert row["roofline"] >= LEAST[accelerator] if asked is None else row["utilisation"] >= asked


def test_the_stored_estimates_of_vela_are_on_the_page() -> None:
    rows = re.findall(r"^\| (\w+) \| ([\d,]+) \| ([\d,]+) \| [\d.]+ % \| ([\d,]+) \|$", PAGE, re.MULTILINE)
    assert len(rows) == 5
    for network, sram, slow, vela in rows:
        shown = [STORED["accelerators"][name][network]["cycles"] for name in ("npu", "npu_flash")]
        assert [f"{cycles:,}" for cycles in (*shown, STORED["vela"][network])] == [sram, slow, vela]
