"""Whole models: which layers conveyor takes, in how many regions, and that each region gives the model's own bytes."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from uaccel.accelerator import Accelerator
from uaccel.testing import Executor, compile_model, exact_layers

FOLDERS = [Path(__file__).resolve().parents[3] / "tests/models", Path(os.environ.get("UACCEL_MODELS") or os.devnull)]
REGIONS = {
    "ad": 1,
    "ic": 1,
    "kws": 1,
    "sww": 1,
    "vww": 1,
    "gesture": 1,
    "mixed": 1,
    "branches": 4,
    "residual": 3,
    "int16": 0,
}


def compiled(name: str, conveyor: Accelerator) -> Any:
    path = next((path for folder in FOLDERS if (path := folder / f"{name}.tflite").is_file()), None)
    if path is None:
        pytest.skip(f"there is no {name}.tflite; UACCEL_MODELS may name its folder")
    return compile_model(path, board="host", accelerators=[conveyor])


def random_inputs(model: Any) -> list[Any]:
    generator = np.random.default_rng(0)
    infos = [spec.info for spec in model.model.signature.inputs]
    return [
        generator.integers(-128, 128, info.shape).astype(info.dtype)
        if info.dtype != "float32"
        else generator.uniform(-1, 1, info.shape).astype(np.float32)
        for info in infos
    ]


def tensors(model: Any, inputs: list[Any]) -> dict[str, Any]:
    """What every tensor of the program should hold, by its name."""
    layers, exact = model.program.layers, exact_layers(model, inputs)
    values = {layers[layer].outputs[output].name: value for (layer, output), value in exact.items()}
    return values | {value.name: data for value, data in zip(model.program.inputs, inputs, strict=True)}


@pytest.mark.sample(1)
@pytest.mark.parametrize(("name", "regions"), REGIONS.items())
def test_regions_of_a_model(
    parts: SimpleNamespace, machine: Any, conveyor: Accelerator, name: str, regions: int
) -> None:
    model = compiled(name, conveyor)
    layers = [layer for layer in model.program.layers if layer.on_accelerator]
    assert len(layers) == regions
    inputs = random_inputs(model)
    values = tensors(model, inputs)
    for layer in layers:
        files = layer.artefacts
        stream, constants = parts.packed.unpack(files["stream.bin"]), files.get("constants.bin", b"")
        assert parts.readable.from_json(files["stream.json"]) == (stream, constants)
        given = [values[value.name] for value in layer.inputs]
        played = machine.play(stream.places, files["stream.bin"], constants, given)
        assert (played.status, played.calls) == (0, len(stream.commands))
        assert played.outputs == [values[value.name].tobytes() for value in layer.outputs]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["branches", "mixed", "residual"])
def test_stages_mean_the_same(conveyor: Accelerator, name: str) -> None:
    model = compiled(name, conveyor)
    inputs = random_inputs(model)
    wanted, *others = [
        [output.tobytes() for output in Executor(module).run(inputs)] for module in model.stages.values()
    ]
    assert others == [wanted] * len(others)


def test_reasons(conveyor: Accelerator) -> None:
    """Of a model with 16-bit activations nothing can be taken, and every layer says why."""
    reasons = {d.layer: d.reason for d in compiled("int16", conveyor).partitioned.decisions}
    assert reasons["conv_2d_0"] == "conveyor: its input is int16, wanted int8"
    assert reasons["add_3"] == "conveyor: its operand 1 is int16, wanted int8"
    assert reasons["max_pool_2d_1"] == "conveyor: its input is int16, wanted int8"
