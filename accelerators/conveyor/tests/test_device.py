"""The device model against streams that are wrong in themselves: an error and the command's number, nothing else."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from uaccel.testing import Layers, example

OUTSIDE, SHAPE, QUANTISATION = "outside its place", "a shape that", "a quantisation that"


@pytest.fixture(scope="module")
def chain(parts: SimpleNamespace) -> Any:
    """All operations: the stream, its constants and its input."""
    layers = Layers(11)

    def build(block: Any, x: Any) -> list[Any]:
        a = block.emit(layers.conv2d(x, channels=3), "a")
        b = block.emit(layers.depthwise(x), "b")
        c = block.emit(layers.add(a, a), "c")
        d = block.emit(layers.pool(c, average=True), "d")
        e = block.emit(layers.pool(c, average=False), "e")
        return [b, block.emit(layers.fully_connected(block.emit(layers.flat(d), "flat")), "f"), e]

    files = parts.stream.lower_region(example([(1, 6, 6, 2)], build).region).artefacts
    return parts.packed.unpack(files["stream.bin"]), files["constants.bin"], layers.int8(1, 6, 6, 2)


def test_any_stream_ends_in_order(parts: SimpleNamespace, machine: Any, chain: Any, tmp_path: Any) -> None:
    """Every error is found, and some of what was changed still runs."""
    program = machine.build("fuzz", [parts.machine.FOLDER / "tests/fuzz.c", *machine.device])
    stream, constants, data = chain
    path = machine.job(stream.places, parts.packed.pack(stream), constants, [data]).rename(tmp_path / "job")
    ended = machine.fuzz(program, 1, 20000, [path])
    assert sum(ended) == 20000
    assert min(ended) > 0


@pytest.mark.parametrize(
    ("number", "operation", "field", "value", "failure"),
    [
        (0, "convolve", "kernel_height", 0, SHAPE),
        (0, "convolve", "kernel_height", 256, SHAPE),
        (0, "convolve", "groups", 0, SHAPE),
        (0, "convolve", "groups", 5, SHAPE),
        (0, "convolve", "out_height", 65536, SHAPE),
        (0, "convolve", "in_width", -1, SHAPE),
        (0, "convolve", "out_width", 65535, SHAPE),
        (0, "convolve", "in_height", 7, OUTSIDE),
        (1, "convolve", "batch", 2, OUTSIDE),
        (1, "convolve", "input_zero_point", 128, QUANTISATION),
        (0, "convolve", "clamp_min", -128, ""),
        (2, "add", "elements", 0, SHAPE),
        (2, "add", "elements", 1 << 20, OUTSIDE),
        (2, "add", "shift1", -32, QUANTISATION),
        (2, "add", "left_shift", 31, QUANTISATION),
        (2, "add", "output_multiplier", -1, QUANTISATION),
        (3, "average", "pad_top", 255, SHAPE),
        (3, "average", "out_channels", 4, SHAPE),
        (4, "largest", "clamp_max", -129, QUANTISATION),
    ],
)
def test_wrong_fields(
    parts: SimpleNamespace, machine: Any, chain: Any, number: int, operation: str, field: str, value: int, failure: str
) -> None:
    stream, constants, data = chain
    commands = list(stream.commands)
    assert commands[number].operation == operation
    commands[number] = replace(commands[number], fields={**commands[number].fields, field: value})
    check(parts, machine, replace(stream, commands=tuple(commands)), constants, data, number, failure)


@pytest.mark.parametrize(
    ("role", "place", "offset", "failure"),
    [
        ("output", 0, 0, OUTSIDE),
        ("output", 1, 0, OUTSIDE),
        ("input", 9, 0, OUTSIDE),
        ("input", 1, 1, OUTSIDE),
        ("filters", 0, 0xFFFFFFF0, OUTSIDE),
        ("channels", 1, 0, ""),
    ],
)
def test_wrong_places(
    parts: SimpleNamespace, machine: Any, chain: Any, role: str, place: int, offset: int, failure: str
) -> None:
    stream, constants, data = chain
    first = stream.commands[0]
    tensors = {**first.tensors, role: parts.commands.At(place, offset)}
    commands = (replace(first, tensors=tensors), *stream.commands[1:])
    wanted = failure if role != "channels" else QUANTISATION  # whatever the input holds, it is no multiplier
    check(parts, machine, replace(stream, commands=commands), constants, data, 0, wanted)


def check(
    parts: SimpleNamespace, machine: Any, stream: Any, constants: bytes, data: Any, number: int, failure: str
) -> None:
    """The device fails at that command, in words; or, without words, runs."""
    played = machine.play(stream.places, parts.packed.pack(stream), constants, [data])
    if not failure:
        assert (played.status, played.failure) == (0, "")
        return
    assert played.status == 2
    assert played.failure.startswith(f"command {number}: ")
    assert failure in played.failure
