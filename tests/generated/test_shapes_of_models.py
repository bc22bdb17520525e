"""Models whose inputs and outputs are unusual: none, unused, passed through, named twice, constant, of every type."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from support.command import call_in
from support.generated import Unpacked, archive, cc
from support.oracle import Tflm, random_inputs
from support.sanitized import compile_pooled, run_sanitized
from support.tflite_writer import ModelBuilder, Tensor
from uaccel.resources import data_dir

RAMP = np.array([[-125, -118, -111, -104]], np.int8)


def activation(builder: ModelBuilder, name: str) -> Tensor:
    return builder.tensor(name, (1, 4), "int8", scale=0.5)


def no_input() -> bytes:
    builder = ModelBuilder()
    constant = builder.constant("c", np.array([[-3, 5, -7, 9]], np.int8), scale=0.5)
    y = activation(builder, "y")
    builder.op("RELU", [constant], [y])
    builder.output(y)
    return builder.build()


def unused_input() -> bytes:
    builder = ModelBuilder()
    builder.input("unused", (1, 4), "int8", scale=0.5)
    x, y = builder.input("x", (1, 4), "int8", scale=0.5), activation(builder, "y")
    builder.op("RELU", [x], [y])
    builder.output(y)
    return builder.build()


def passed_through() -> bytes:
    builder = ModelBuilder()
    x, y = builder.input("x", (1, 4), "int8", scale=0.5), activation(builder, "y")
    builder.op("RELU", [x], [y])
    builder.output(x)
    builder.output(y)
    return builder.build()


def named_twice() -> bytes:
    builder = ModelBuilder()
    x, y = builder.input("x", (1, 4), "int8", scale=0.5), activation(builder, "y")
    builder.op("RELU", [x], [y])
    builder.output(y)
    builder.output(y)
    return builder.build()


def used_further() -> bytes:
    """An output that the next layer reads, and a view of it that is an output too."""
    builder = ModelBuilder()
    x, y, z = builder.input("x", (1, 4), "int8", scale=0.5), activation(builder, "y"), activation(builder, "z")
    view = builder.tensor("view", (4, 1), "int8", scale=0.5)
    builder.op("RELU", [x], [y])
    builder.op("RESHAPE", [y, builder.constant("shape", np.array([4, 1], np.int32))], [view], {"new_shape": [4, 1]})
    builder.op("ADD", [y, y], [z])
    for tensor in (y, view, z):
        builder.output(tensor)
    return builder.build()


def only_a_view() -> bytes:
    builder = ModelBuilder()
    x = builder.input("x", (1, 4), "int8", scale=0.5)
    view = builder.tensor("view", (2, 2), "int8", scale=0.5)
    builder.op("RESHAPE", [x, builder.constant("shape", np.array([2, 2], np.int32))], [view], {"new_shape": [2, 2]})
    builder.output(view)
    return builder.build()


def constant_output() -> bytes:
    builder = ModelBuilder()
    x, y = builder.input("x", (1, 4), "int8", scale=0.5), activation(builder, "y")
    constant = builder.constant("c", np.array([[1, 2, 3, 4]], np.int8), scale=0.5)
    builder.op("RELU", [x], [y])
    builder.output(constant)
    builder.output(y)
    return builder.build()


MODELS: list[Callable[[], bytes]] = [
    no_input,
    unused_input,
    passed_through,
    named_twice,
    used_further,
    only_a_view,
    constant_output,
]
each_model = pytest.mark.parametrize("make", MODELS, ids=lambda make: make.__name__)


@each_model
def test_outputs_are_exact_and_sanitizers_find_nothing(make: Callable[[], bytes]) -> None:
    data = make()
    reference, inputs = Tflm(data), random_inputs(data, 0, 3)
    for values, outputs in zip(inputs, run_sanitized(compile_pooled(data), inputs), strict=True):
        for got, wanted in zip(outputs, reference.run(values), strict=True):
            np.testing.assert_array_equal(got, wanted.reshape(got.shape))


@each_model
def test_the_archive_compiles_without_a_warning(make: Callable[[], bytes], tmp_path: Path) -> None:
    model = tmp_path / "model.tflite"
    model.write_bytes(make())
    tree = Unpacked(tmp_path / "tree", archive(model))
    for source in (*tree.sources, *tree.descriptions):
        include = [tree.include, data_dir("firmware") / "include"]
        cc(source, "-fsyntax-only", "-DUACCEL_OBSERVE", include=include)


@each_model
def test_the_command_runs_it_and_reports_every_output(
    make: Callable[[], bytes], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "model.tflite"
    model.write_bytes(make())
    report = call_in(capfd)("run", model, "--verify", "--json").report
    assert report["verify"]["bit_exact"] is True
    outputs = Tflm(model.read_bytes()).run([RAMP] * len(report["inputs"]))
    assert len(report["outputs"]) == len(outputs)
    for entry, wanted in zip(report["outputs"].values(), outputs, strict=True):
        assert entry["data"] == wanted.ravel().tolist()
