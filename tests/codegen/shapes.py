"""Models whose inputs and outputs are unusual: none, unused, passed through, named twice, constant."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from support.models.tflite_writer import ModelBuilder, Tensor


def activation(builder: ModelBuilder, name: str) -> Tensor:
    return builder.tensor(name, (1, 4), "int8", scale=0.5)


def no_input() -> bytes:
    builder = ModelBuilder()
    constant = builder.constant("c", np.array([[-3, 5, -7, 9]], np.int8), scale=0.5)
    y = activation(builder, "y")
    builder.op("RELU", [constant], [y])
    return builder.build(y)


def unused_input() -> bytes:
    builder = ModelBuilder()
    builder.input("unused", (1, 4), "int8", scale=0.5)
    x, y = builder.input("x", (1, 4), "int8", scale=0.5), activation(builder, "y")
    builder.op("RELU", [x], [y])
    return builder.build(y)


def passed_through() -> bytes:
    builder = ModelBuilder()
    x, y = builder.input("x", (1, 4), "int8", scale=0.5), activation(builder, "y")
    builder.op("RELU", [x], [y])
    return builder.build(x, y)


def named_twice() -> bytes:
    builder = ModelBuilder()
    x, y = builder.input("x", (1, 4), "int8", scale=0.5), activation(builder, "y")
    builder.op("RELU", [x], [y])
    return builder.build(y, y)


def used_further() -> bytes:
    """An output that the next layer reads, and a view of it that is an output too."""
    builder = ModelBuilder()
    x, y, z = builder.input("x", (1, 4), "int8", scale=0.5), activation(builder, "y"), activation(builder, "z")
    view = builder.tensor("view", (4, 1), "int8", scale=0.5)
    builder.op("RELU", [x], [y])
    builder.op("RESHAPE", [y, builder.constant("shape", np.array([4, 1], np.int32))], [view], {"new_shape": [4, 1]})
    builder.op("ADD", [y, y], [z])
    return builder.build(y, view, z)


def only_a_view() -> bytes:
    builder = ModelBuilder()
    x = builder.input("x", (1, 4), "int8", scale=0.5)
    view = builder.tensor("view", (2, 2), "int8", scale=0.5)
    builder.op("RESHAPE", [x, builder.constant("shape", np.array([2, 2], np.int32))], [view], {"new_shape": [2, 2]})
    return builder.build(view)


def constant_output() -> bytes:
    builder = ModelBuilder()
    x, y = builder.input("x", (1, 4), "int8", scale=0.5), activation(builder, "y")
    constant = builder.constant("c", np.array([[1, 2, 3, 4]], np.int8), scale=0.5)
    builder.op("RELU", [x], [y])
    return builder.build(constant, y)


SHAPES: list[Callable[[], bytes]] = [
    no_input,
    unused_input,
    passed_through,
    named_twice,
    used_further,
    only_a_view,
    constant_output,
]
