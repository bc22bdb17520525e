"""Model files that cannot be compiled: one clear line, status 1, nothing written, whatever the bytes are."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.models.networks import OWN
from support.models.tflite_writer import ModelBuilder
from support.run.command import Call, process
from uaccel.errors import ModelError
from uaccel.pipeline import Compiled, compile_model

HANG_SECONDS = 60


def refused(call: Call, model: Path, folder: Path) -> str:
    """What compile and run complain about, which must be the same; neither writes anything."""
    before = sorted(folder.iterdir())
    compiled = call("compile", model, "-o", folder / "out.tar", "--json")
    run = call("run", model, "--outputs", folder / "out.npz", "--json")
    assert (compiled.status, run.status) == (1, 1)
    assert compiled.complaint == run.complaint
    for done in (compiled, run):
        assert done.report == {"error": {"message": done.complaint, "kind": "ModelError", "status": 1}}
    assert sorted(folder.iterdir()) == before
    return compiled.complaint


def write(folder: Path, data: bytes, name: str = "model.tflite") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def test_a_file_that_is_not_there(tmp_path: Path, call: Call) -> None:
    path = tmp_path / "none.tflite"
    assert refused(call, path, tmp_path) == f"no model file {path}; check the path"


def test_a_directory(tmp_path: Path, call: Call) -> None:
    """Which run takes for a project."""
    compiled = call("compile", tmp_path, "-o", tmp_path / "out.tar", "--json")
    assert (compiled.status, compiled.complaint) == (
        1,
        f"{tmp_path} is a directory, wanted a model file (.tflite, .onnx, .pt2)",
    )
    run = call("run", tmp_path, "--json")
    assert run.status == 1
    assert run.complaint.startswith(f"{tmp_path} is no project and no template: it has neither microtvm_api_server.py ")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("name", "seen"), [("m.pb", "'.pb' is not known"), ("model", "missing")])
def test_another_suffix(name: str, seen: str, tmp_path: Path, call: Call) -> None:
    path = write(tmp_path, b"anything", name)
    complaint = refused(call, path, tmp_path)
    assert complaint.startswith(f"{path}: suffix ")
    assert seen in complaint
    assert complaint.endswith("wanted .tflite, .onnx, .pt2")


@pytest.mark.parametrize(
    ("data", "seen"),
    [(b"", b""), (b"TFL3", b""), (b"PK\x03\x04 an archive", b" an "), (b"\x1c\0\0\0ONNX" + bytes(99), b"ONNX")],
    ids=["empty", "four bytes", "zip", "other flatbuffer"],
)
def test_what_is_no_tflite_file(data: bytes, seen: bytes, tmp_path: Path, call: Call) -> None:
    path = write(tmp_path, data)
    assert refused(call, path, tmp_path) == (
        f"{path} is not a TFLite file: bytes 4 to 8 are {seen!r}, wanted b'TFL3'; "
        "give a .tflite file as the TFLite converter writes it"
    )


def test_a_file_that_may_not_be_read(tmp_path: Path, call: Call) -> None:
    path = tmp_path / "loop.tflite"
    path.symlink_to(path)
    assert str(path) in refused(call, path, tmp_path)


def test_a_file_without_permission(small: Path, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    opening = os.open

    def opened(path: Any, *how: Any, **more: Any) -> int:
        if path == small:
            raise PermissionError(13, "Permission denied", str(path))
        return opening(path, *how, **more)

    monkeypatch.setattr("os.open", opened)  # root may read anything
    monkeypatch.setattr("os.access", path_is_a_folder)
    assert refused(call, small, tmp_path) == f"cannot read model {small}: Permission denied"


def path_is_a_folder(path: Path, _mode: int) -> bool:
    return Path(path).is_dir()


def test_every_unsupported_operator_is_named_at_once(tmp_path: Path, call: Call) -> None:
    builder = ModelBuilder()
    x = builder.input("x", (1, 4), "int8", scale=0.5)
    middle = builder.tensor("looked up", (1, 4), "int8", scale=0.5)
    fine = builder.tensor("fine", (1, 4), "int8", scale=0.5)
    last = builder.tensor("my own", (1, 4), "int8", scale=0.5)
    builder.op("HASHTABLE_LOOKUP", [x], [middle])
    builder.op("RELU", [middle], [fine])
    builder.op("CUSTOM", [fine], [last], custom_code="Fancy")
    path = write(tmp_path, builder.build(last))
    complaint = refused(call, path, tmp_path)
    assert complaint.startswith(f"cannot import {path}: 2 unsupported: ")
    first, second = complaint.split("2 unsupported: ")[1].split("; operator 2 ")
    assert first.startswith('operator 0 HASHTABLE_LOOKUP ("looked up"): ')
    assert "rewrite the layer" in first
    assert second == (
        'CUSTOM:Fancy ("my own"): the file names this custom operator and does not say what it computes; '
        "convert the model without custom operators"
    )


def test_an_empty_graph(tmp_path: Path, call: Call) -> None:
    builder = ModelBuilder()
    path = write(tmp_path, builder.build(builder.input("x", (1, 4), "int8", scale=0.5)))
    assert refused(call, path, tmp_path) == f"{path} is empty: its graph has no operators; nothing to compile"


def test_a_graph_without_outputs(tmp_path: Path, call: Call) -> None:
    builder = ModelBuilder()
    x = builder.input("x", (1, 4), "int8", scale=0.5)
    builder.op("RELU", [x], [builder.tensor("y", (1, 4), "int8", scale=0.5)])
    path = write(tmp_path, builder.build())
    assert refused(call, path, tmp_path) == f"{path} has no outputs; convert the model again"


def relu(shape: tuple[int, ...], signature: tuple[int, ...] | None = None, output: tuple[int, ...] = ()) -> bytes:
    builder = ModelBuilder()
    x = builder.input("x", shape, "int8", scale=0.5, signature=signature)
    y = builder.tensor("y", output or shape, "int8", scale=0.5)
    builder.op("RELU", [x], [y])
    return builder.build(y)


@pytest.mark.parametrize(
    ("data", "shape", "which", "example"),
    [
        (relu((1, 8), (1, -1)), "1,?", " 1", "1,1, or with the extent"),
        (relu((1, 8, 8, 3), (-1, -1, -1, 3)), "?,?,?,3", "s 0, 1, 2", "1,1,1,3, or with the extents"),
        (relu((1, -1)), "1,?", " 1", "1,1, or with the extent"),
    ],
    ids=["signature", "image", "shape"],
)
def test_open_inputs(data: bytes, shape: str, which: str, example: str, tmp_path: Path, call: Call) -> None:
    path = write(tmp_path, data)
    assert refused(call, path, tmp_path) == (
        f'{path}: input "x" [{shape}] has the dynamic dimension{which}; firmware needs every extent fixed: '
        f"add --input-shape x:{example} you want"
    )


def test_a_shape_below_zero_behind_a_fixed_input(tmp_path: Path, call: Call) -> None:
    path = write(tmp_path, relu((1, 8), None, (-1, 8)))
    assert refused(call, path, tmp_path) == (
        f'{path}: tensor "y" has the dynamic shape [?,8]; firmware needs every extent fixed: '
        "set the input shape before converting the model to TFLite"
    )


def test_a_free_batch_is_taken_as_the_file_has_it(tmp_path: Path, call: Call) -> None:
    path = write(tmp_path, relu((1, 8), (-1, 8)))
    report = call("compile", path, "-o", tmp_path / "x.tar", "--json").report
    assert report["inputs"]["x"]["shape"] == [1, 8]


def test_a_tensor_too_large(tmp_path: Path, call: Call) -> None:
    path = write(tmp_path, relu((1, 1 << 16, 1 << 15)))
    assert refused(call, path, tmp_path) == (
        f'{path}: tensor "x" (int8 [1,65536,32768]) has 2147483648 bytes; at most 2147483647 can be compiled'
    )


def test_a_name_cannot_drive_the_terminal_or_add_a_line(tmp_path: Path, call: Call) -> None:
    builder = ModelBuilder()
    x = builder.input("x\n\x1b[31m", (1, 4), "int8", scale=0.5)
    y = builder.tensor("y\nz", (1, 4), "int8", scale=0.5)
    builder.op("HASHTABLE_LOOKUP", [x], [y])
    done = call("compile", write(tmp_path, builder.build(y)), "-o", tmp_path / "x.tar")
    assert done.status == 1
    assert "\x1b" not in done.err
    assert '("y z")' in done.complaint


@contextmanager
def no_hang(what: str) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TimeoutError(f"{what} took more than {HANG_SECONDS} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(HANG_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def outcome(path: Path, data: bytes, what: str) -> Compiled | str:
    """What comes of these bytes, or the one line that refuses them; any other exception fails the test."""
    path.write_bytes(data)
    with no_hang(what):
        try:
            return compile_model(path, board="host")
        except ModelError as error:
            return str(error)


def test_every_prefix_of_a_file_is_refused_or_whole(small: Path, tmp_path: Path) -> None:
    """A file's last bytes may be such that nobody reads them; then the model is the same."""
    data, path = small.read_bytes(), tmp_path / "cut.tflite"
    whole = outcome(path, data, "the whole file")
    assert isinstance(whole, Compiled)
    constants = [array.data.tobytes() for array in whole.generated.arrays]
    refusals = 0
    for length in range(len(data)):
        result = outcome(path, data[:length], f"the first {length} bytes")
        if isinstance(result, str):
            assert result.startswith((f"{path} is not a TFLite file: ", f"{path} is damaged or truncated ({length} "))
            refusals += 1
        else:
            assert [array.data.tobytes() for array in result.generated.arrays] == constants
    assert refusals > len(data) - 32


def damaged(data: bytes, generator: random.Random) -> bytes:
    """The bytes with one to four of them changed."""
    changed = bytearray(data)
    for _ in range(generator.choice([1, 1, 1, 2, 4])):
        position = generator.randrange(len(changed))
        bit = changed[position] ^ 1 << generator.randrange(8)
        changed[position] = generator.choice([0, 1, 0x7F, 0x80, 0xFF, bit])
    return bytes(changed)


FILES = ["small", "branches", "int16", "mixed", "gesture", "residual", "stream"]


def try_damage(data: bytes, path: Path, seeds: range) -> None:
    refusals = 0
    for seed in seeds:
        result = outcome(path, damaged(data, random.Random(seed)), f"seed {seed}")
        if isinstance(result, str):
            assert "\n" not in result
            refusals += 1
    assert 0 < refusals < len(seeds)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", FILES)
def test_damage_is_refused_or_harmless(name: str, small: Path, tmp_path: Path) -> None:
    source = small if name == "small" else OWN / f"{name}.tflite"
    try_damage(source.read_bytes(), tmp_path / "damaged.tflite", range(60))


@pytest.mark.long
@pytest.mark.parametrize("name", FILES)
def test_much_damage_is_refused_or_harmless(name: str, small: Path, tmp_path: Path) -> None:
    source = small if name == "small" else OWN / f"{name}.tflite"
    try_damage(source.read_bytes(), tmp_path / "damaged.tflite", range(1000, 2500))


@pytest.mark.slow
def test_damage_outside_this_process(tmp_path: Path) -> None:
    """What libraries print meanwhile goes nowhere but stderr."""
    data = bytearray((OWN / "gesture.tflite").read_bytes())
    path = write(tmp_path, bytes(data[: len(data) // 2]))
    done = process("compile", path, "--json", cwd=tmp_path)
    assert done.status == 1
    assert done.report["error"]["message"] == done.complaint
    assert done.complaint.startswith(f"{path} is damaged or truncated ({len(data) // 2} bytes): ")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["model.tflite"]


def test_weights_that_are_not_quantised_as_the_layer_needs(tmp_path: Path, call: Call) -> None:
    """A refusal inside a converter names the operator."""
    builder = ModelBuilder()
    x = builder.input("x", (1, 2), "int8", scale=0.5)
    weights = builder.constant("w", np.ones((3, 2), np.int8), scales=[0.5] * 3, zero_points=[4, 5, 6])
    y = builder.tensor("y", (1, 3), "int8", scale=0.5)
    builder.op("FULLY_CONNECTED", [x, weights], [y])
    path = write(tmp_path, builder.build(y))
    assert refused(call, path, tmp_path) == (
        f'cannot import {path}: 1 unsupported: operator 0 FULLY_CONNECTED ("y"): '
        "the weights have 3 zero points; one for all, or none, can be compiled"
    )
