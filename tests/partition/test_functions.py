"""Layers that depend on one tensor of 8 bits alone become one table, and others stay what they are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from support.models.tflite_writer import ModelBuilder, Tensor
from support.oracle.exactness import assert_exact_random
from uaccel.codegen.options import EmitOptions
from uaccel.pipeline import compile_model

TABLE, ADD, MUL = "lookup", "add", "mul"
SHAPE = (1, 8, 8, 6)


class Drawn(ModelBuilder):
    """Layers one after the other on one image."""

    def __init__(self, shape: tuple[int, ...] = SHAPE) -> None:
        super().__init__()
        self.shape, self.count = shape, 0
        self.image = self.input("image", shape, "int8", scale=0.05, zero_point=3)

    def layer(self, operator: str, *inputs: Tensor) -> Tensor:
        grid = {"LOGISTIC": (1 / 256, -128), "TANH": (1 / 128, 0)}.get(operator, (0.06, -20))
        self.count += 1
        made = self.tensor(f"t{self.count}", self.shape, "int8", scale=grid[0], zero_point=grid[1])
        self.op(operator, list(inputs), [made], {"fused_activation": "NONE"} if operator in ("ADD", "MUL") else {})
        return made


def swish(made: Drawn) -> Tensor:
    return made.layer("MUL", made.image, made.layer("LOGISTIC", made.image))


def several(made: Drawn) -> Tensor:
    """The second product joins what the first one gave with the image itself."""
    gate = swish(made)
    return made.layer("MUL", made.layer("ADD", gate, made.layer("TANH", gate)), made.image)


def square(made: Drawn) -> Tensor:
    return made.layer("MUL", made.image, made.image)


def moved_on(made: Drawn) -> Tensor:
    return made.layer("TANH", swish(made))


def shown(made: Drawn) -> Tensor:
    gate = made.layer("LOGISTIC", made.image)
    made.output(gate)
    return made.layer("MUL", made.image, gate)


def scaled(made: Drawn) -> Tensor:
    """By a number for each channel: no function of the image alone."""
    factors = made.constant("factors", np.arange(1, 7, dtype=np.int8), scale=0.2)
    return made.layer("ADD", made.layer("MUL", made.image, factors), made.image)


def of_two(made: Drawn) -> Tensor:
    other = made.input("other", made.shape, "int8", scale=0.05)
    return made.layer("MUL", made.layer("LOGISTIC", made.image), made.layer("LOGISTIC", other))


Case = tuple[Callable[[Drawn], Tensor], Drawn, list[str]]
CASES: dict[str, Callable[[], Case]] = {
    "x * sigmoid(x)": lambda: (swish, Drawn(), [TABLE]),
    "x * x": lambda: (square, Drawn(), [TABLE]),
    "a chain of them": lambda: (several, Drawn(), [TABLE]),
    "a function behind it": lambda: (moved_on, Drawn(), [TABLE]),
    "one that is an output, too": lambda: (shown, Drawn(), [TABLE, TABLE]),
    "by channels": lambda: (scaled, Drawn(), [MUL, ADD]),
    "of two tensors": lambda: (of_two, Drawn(), [TABLE, TABLE, MUL]),
    "fewer elements than a table has": lambda: (swish, Drawn((1, 5)), [TABLE, MUL]),
}


@pytest.mark.parametrize("name", CASES)
def test_functions_of_one_tensor_become_a_table(name: str, tmp_path: Path) -> None:
    build, made, wanted = CASES[name]()
    data = made.build(build(made))
    (tmp_path / "m.tflite").write_bytes(data)
    options = EmitOptions(whole_layers=True)
    layers = compile_model(tmp_path / "m.tflite", board="host", options=options).program.layers
    assert [layer.op for layer in layers] == wanted
    assert_exact_random(data)
