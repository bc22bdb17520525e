"""The packed form byte by byte, the readable one, and the way from each to the other."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from uaccel.accelerator import AcceleratorError, constant
from uaccel.testing import example, operator

NONE = "00000000"
ONE = "01000000"

# Written by hand: a 1x1 convolution of one pixel from 2 channels to 1, and the addition of what it gives to itself.
GOLDEN = (
    # magic, format, bytes (24 + 4 * 8 + 2 * 128 + 4 = 316), places, commands, cycles (32 + 1 + 3, and 32 + 1 + 1)
    "434e5659" + ONE + "3c010000" + "04000000" + "02000000" + "46000000"
    # constants, 32 bytes; input, 2; output, 1; scratch, 1
    + NONE + "20000000" + ONE + "02000000" + "02000000" + ONE + "03000000" + ONE
    # convolve: input at 1+0, channels at 0+0, filters at 0+16, output at 3+0
    + ONE + ONE + NONE + NONE + NONE + NONE + "10000000" + "03000000" + NONE
    # batch, input 1x1x2, output 1x1x1, kernel 1x1, strides 1x1, padding 0
    + ONE + ONE + ONE + "02000000" + ONE * 3 + ONE * 2 + ONE * 2 + NONE * 2
    # dilation, groups, zero points 3 and -5, clamp -128 to 127
    + ONE * 2 + ONE + "03000000" + "fbffffff" + "80ffffff" + "7f000000" + NONE * 3
    # add: first and second at 3+0, output at 2+0
    + "02000000" + "03000000" + NONE + "03000000" + NONE + "02000000" + NONE + NONE * 2
    # elements, left shift 20, twice zero point -5, 2**30, shift 0; output 7, 2**30, -19; clamp -100 to 100
    + ONE + "14000000" + ("fbffffff" + "00000040" + NONE) * 2 + "07000000" + "00000040" + "edffffff"
    + "9cffffff" + "64000000"
    + NONE * 10
)  # fmt: skip
CHECKSUM = "4fffca23"
# bias 100 - 3 * (2 - 7) = 115, multiplier 2**30, shift -1; padding; the weights 2 and -7; padding
CONSTANTS = "73000000" + "00000040" + "ffffffff" + NONE + "02f9" + "0000" + NONE * 3


@pytest.fixture(scope="module")
def small(parts: SimpleNamespace) -> Any:
    weights: list[Any] = [
        np.array([[[[2, -7]]]], np.int8),
        np.array([100], np.int32),
        np.array([2**30], np.int32),
        np.array([-1], np.int32),
    ]
    conv2d, add = operator("conv2d"), operator("add")
    convolution = conv2d.attributes((1, 1), (0, 0, 0, 0), (1, 1), 1, 3, -5, -128, 127)
    addition = add.attributes(20, -5, 2**30, 0, -5, 2**30, 0, 7, 2**30, -19, -100, 100)

    def build(block: Any, x: Any) -> list[Any]:
        a = block.emit(conv2d(x, *[constant(array) for array in weights], attrs=convolution), "first_layer")
        return [block.emit(add(a, a, attrs=addition), "second_layer")]

    return example([(1, 1, 1, 2)], build)


@pytest.fixture(scope="module")
def files(parts: SimpleNamespace, small: Any) -> Any:
    return parts.stream.lower_region(small.region).artefacts


def test_every_byte(files: Any) -> None:
    assert files["stream.bin"][:-4].hex() == GOLDEN
    assert files["stream.bin"][-4:].hex() == CHECKSUM
    assert files["constants.bin"].hex() == CONSTANTS


def test_it_computes_what_it_says(small: Any, run: Any) -> None:
    """((10 - 3) * 2 + (-20 - 3) * -7 + 100) / 4 - 5 = 64, twice 69 halved again, 76."""
    stream = run(small, [np.array([10, -20], np.int8).reshape(1, 1, 1, 2)])
    assert stream.cycles == 70


def test_binary_to_json_and_back(parts: SimpleNamespace, files: Any) -> None:
    stream = parts.packed.unpack(files["stream.bin"])
    text = parts.readable.to_json(stream, files["constants.bin"])
    again, constants = parts.readable.from_json(text)
    assert (again, constants) == (stream, files["constants.bin"])
    assert parts.packed.pack(again) == files["stream.bin"]
    assert parts.readable.to_json(again, constants) == text


def test_saved_json_packs_to_the_same_bytes(parts: SimpleNamespace, files: Any) -> None:
    stream, constants = parts.readable.from_json(files["stream.json"])
    assert parts.packed.pack(stream) == files["stream.bin"]
    assert constants == files["constants.bin"]


def test_json_reads_well(files: Any) -> None:
    first, second = json.loads(files["stream.json"])["commands"]
    assert (first["layer"], first["operation"], second["operation"]) == ("first_layer", "convolve", "add")
    assert first["tensors"]["channels"] == {
        "place": 0, "offset": 0, "bias": [115], "multiplier": [2**30], "shift": [-1],
    }  # fmt: skip
    assert base64.b64decode(first["tensors"]["filters"]["data"]) == b"\x02\xf9"
    assert first["fields"]["output_zero_point"] == -5


def test_edited_json_computes_something_else(parts: SimpleNamespace, machine: Any, files: Any) -> None:
    edited = files["stream.json"].replace('"output_zero_point": 7', '"output_zero_point": 17')
    stream, constants = parts.readable.from_json(edited)
    data = np.array([10, -20], np.int8)
    played = machine.play(stream.places, parts.packed.pack(stream), constants, [data])
    assert (played.status, np.frombuffer(played.outputs[0], np.int8).tolist()) == (0, [86])


def word(data: bytes, number: int, value: int) -> bytes:
    """Another word, under a checksum that is right."""
    body = data[: 4 * number] + struct.pack("<I", value) + data[4 * number + 4 : -4]
    return body + struct.pack("<I", zlib.crc32(body))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data[:-4], "has 312 bytes, says 316"),
        (lambda data: data[:7], "7 bytes are no whole stream"),
        (lambda data: data[:-1] + b"?", "checksum is wrong"),
        (lambda data: word(data, 0, 1), "begins with 0x00000001"),
        (lambda data: word(data, 1, 2), "format is 2, wanted 1"),
        (lambda data: word(data, 5, 71), "says 71 cycles, and its commands take 70"),
        (lambda data: word(data, 6, 9), "no kind 9 of places"),
        (lambda data: word(data, 14, 77), "no operation 77"),
        (lambda data: word(data, 45, 1), "does not use is not 0"),
    ],
)
def test_damaged_streams_are_not_read(parts: SimpleNamespace, files: Any, change: Any, message: str) -> None:
    with pytest.raises(AcceleratorError, match=message):
        parts.packed.unpack(change(files["stream.bin"]))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("{", "[", "cannot be packed"),
        ('"format": 1', '"format": 3', "of format 3, wanted"),
        ('"convolve"', '"twist"', "no operation 'twist'"),
        ('"kind": "scratch"', '"kind": "attic"', "kind 'attic'"),
        ('"groups"', '"troops"', "'groups' is missing"),
        ('"place": 3', '"place": 4', "of place 4, and there are 4 places"),
        ('"data": "Avk="', '"data": "Avk"', "padding"),
        ('"data": "Avk="', '"data": "Avn5"', "'filters' of 'first_layer' has 3 bytes, wanted 2"),
    ],
)
def test_wrong_json_is_not_packed(parts: SimpleNamespace, files: Any, old: str, new: str, message: str) -> None:
    with pytest.raises(AcceleratorError, match=message):
        parts.readable.from_json(files["stream.json"].replace(old, new, 1))


def test_too_many_places_for_a_stream(parts: SimpleNamespace) -> None:
    stream = parts.commands.Stream((parts.commands.Place("input", 1),) * 65, ())
    with pytest.raises(AcceleratorError, match="65 tensors at its border"):
        parts.packed.pack(stream)
