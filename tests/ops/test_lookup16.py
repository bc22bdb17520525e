"""Functions of 16 bits: each of 65,536 results is the real one, rounded once, and few bytes say so."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from support.device.hostlib import HostModel
from support.models.onnx_models import Graph, Grid
from uaccel.frontend import import_model
from uaccel.ops.kernel import Constant
from uaccel.pipeline import compile_model
from uaccel.tvm_api.executor import Executor

VALUES = np.arange(-32768, 32768)
ONE = 1 / 32768
LAST_OPSET = 21

FUNCTIONS: dict[str, tuple[str, Callable[[float], float], float, float]] = {
    "sigmoid": ("Sigmoid", lambda x: 1 / (1 + math.exp(-x)), 8 / 32768, ONE),
    "tanh": ("Tanh", math.tanh, 8 / 32768, ONE),
    "steep tanh": ("Tanh", math.tanh, 0.003, ONE),
    "gelu": ("Gelu", lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2, 0.0003, 0.00035),
    "exponential": ("Exp", math.exp, 0.0003, 0.5),
    "hard swish": ("HardSwish", lambda x: x * min(max(x / 6 + 0.5, 0), 1), 0.0005, 0.00049),
    "softplus": ("Softplus", lambda x: math.log1p(math.exp(x)), 0.0003, 0.0004),
}


def all_values(folder: Path) -> Path:
    """Of every function, over all inputs."""
    graph = Graph()
    for operator, _, given, wanted in FUNCTIONS.values():
        x = graph.quantized_input((1, len(VALUES)), Grid(given, 0, "int16"))
        graph.quantized_output(graph.apply(operator, x), Grid(wanted, 0, "int16"))
    return graph.save(folder / "functions.onnx", LAST_OPSET)


def test_every_result_is_the_real_one_rounded(tmp_path: Path) -> None:
    compiled = compile_model(all_values(tmp_path), board="host")
    given = [VALUES.astype(np.int16).reshape(1, -1)] * len(FUNCTIONS)
    for how, outputs in (("C", HostModel(compiled)(*given)), ("TVM", Executor(compiled.stages["import"]).run(given))):
        for (name, (_, function, scale, step)), got in zip(FUNCTIONS.items(), outputs, strict=True):
            reals = [function(float(value) * float(np.float32(scale))) for value in VALUES]
            wanted = np.clip(np.rint(np.array(reals) / float(np.float32(step))), -32768, 32767)
            np.testing.assert_array_equal(got.reshape(-1), wanted, err_msg=f"{name} by {how}")
    for layer in compiled.program.layers:
        given_to = [part for call in layer.kernel.calls for part in call.arguments]
        assert sum(part.data.nbytes for part in given_to if isinstance(part, Constant)) <= 12288, layer.name


def test_a_function_that_would_take_much_flash_is_float(tmp_path: Path) -> None:
    """Every other result lies in the middle between two steps, and goes to the even one."""
    graph = Graph()
    x = graph.quantized_input((1, 9), Grid(0.5, 0, "int16"))
    graph.quantized_output(graph.apply("LeakyRelu", x, alpha=0.25), Grid(1.0, 0, "int16"))
    model = import_model(graph.save(tmp_path / "leaky.onnx", LAST_OPSET))
    (warning,) = model.warnings
    wanted = "is computed in float (its results of 16 bits would take 132352 bytes, at most 32768 are worth it)"
    assert warning.endswith(wanted)
