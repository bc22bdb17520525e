"""Layers that round in single precision: accelerators that only add up take them, others by what their stage can."""

from __future__ import annotations

from typing import Any

import pytest

from support.models.partitioned import (
    accelerator,
    assert_same_meaning,
    compile_on,
    engines,
    model_of,
    operation,
    reasons,
)
from uaccel.accelerator import FLOAT32, TFLITE, load_accelerator
from uaccel.model import ImportedModel
from uaccel.testing.layers import Layers
from uaccel.tvm_api import FunctionBlock

REASON = "it rounds once, half to even, in single precision; the output stage rounds as TFLite does"


def model_in(rounding: str) -> ImportedModel:
    """A convolution and a fully connected layer that any of the accelerators would take."""
    layers = Layers(4, rounding)

    def body(block: FunctionBlock, inputs: list[Any]) -> Any:
        image = block.emit(layers.same(inputs[0], 16), "conv")
        return block.emit(layers.fully_connected(block.emit(layers.flat(image), "flat"), 16), "dense")

    return model_of(body, [layers.int8(1, 4, 4, 16)])


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("name", "takes"), [("nuc_fpga", True), ("npu", True), ("npu_small", True), ("matrix8", True), ("conveyor", False)]
)
def test_who_takes_such_layers(name: str, takes: bool) -> None:
    model = model_in(FLOAT32)
    compiled = compile_on(model, [load_accelerator(name)])
    done = compiled.partitioned
    for layer in ("conv", "dense"):
        assert (engines(done)[layer] == name) is takes, layer
        assert (REASON in reasons(done, layer).get(name, [])) is not takes, layer
    assert_same_meaning(model, compiled.stages)


def test_a_stage_that_has_nothing_else() -> None:
    """Said of one that rounds in single precision alone."""
    asked = accelerator("a", operation("dense", "fully_connected", roundings=[FLOAT32]))
    done = compile_on(model_in(TFLITE), [asked]).partitioned
    assert reasons(done, "dense") == {"a": ["it rounds as TFLite does; the output stage rounds once, half to even"]}
    assert engines(compile_on(model_in(FLOAT32), [asked]).partitioned)["dense"] == "a"
