"""uint8 as TensorFlow quantised before 2019: the generated C and the meaning give LiteRT's bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from support.device.boards import board_with_tools
from support.device.hostlib import HostModel, compile_bytes
from support.models.single_op import Activation, Constant, single_op
from support.models.tflite_writer import ModelBuilder, OptionValue, Tensor
from support.oracle.oracle import Array, LiteRt, random_inputs
from uaccel.errors import ModelError
from uaccel.runner.compiled import run_compiled
from uaccel.tvm_api.executor import Executor

IMAGE = (1, 7, 6, 4)
Options = dict[str, OptionValue]
STRIDED: Options = {"stride_h": 2, "stride_w": 1, "padding": "SAME"}
WINDOW: Options = {**STRIDED, "filter_height": 3, "filter_width": 2}


def _activation(*shape: int, scale: float = 0.047, zero_point: int = 117) -> Activation:
    return Activation(shape, "uint8", scale, zero_point)


def _weights(*shape: int, zero_point: int, low: int = 0, high: int = 255) -> Constant:
    values = np.random.RandomState(1).randint(low, high + 1, shape).astype(np.uint8)
    return Constant(values, (0.0031,), (zero_point,))


def _bias(count: int) -> Constant:
    values = np.random.RandomState(2).randint(-3000, 3000, count).astype(np.int32)
    return Constant(values, (float(np.float32(0.047) * np.float32(0.0031)),), (0,))


X = _activation(*IMAGE)
Y = _activation(*IMAGE, scale=0.031, zero_point=90)
NARROW = {"zero_point": 130, "low": 10, "high": 250}
WIDE = {"zero_point": 90}
DEPTH: Options = {**STRIDED, "depth_multiplier": 2}
OUT = _activation(1, 4, 6, 5, scale=0.09, zero_point=131)
OUT_8 = _activation(1, 4, 6, 8, scale=0.05, zero_point=121)
UNITS = _activation(2, 5, scale=0.08, zero_point=140)
MIDDLES = (1749300, 4756870, 4818249, 4879628)
"""Sums so near to the middle between two results that a product of scales in double precision gives the other one."""
ROWS: dict[str, bytes] = {
    "conv": single_op("CONV_2D", [X, _weights(5, 3, 3, 4, **NARROW), _bias(5)], [OUT], STRIDED),
    "conv, wide weights": single_op(
        "CONV_2D", [X, _weights(5, 3, 3, 4, **WIDE), _bias(5)], [OUT], {**STRIDED, "fused_activation": "RELU6"}
    ),
    "depthwise": single_op("DEPTHWISE_CONV_2D", [X, _weights(1, 3, 3, 8, **NARROW), _bias(8)], [OUT_8], DEPTH),
    "depthwise, wide weights": single_op(
        "DEPTHWISE_CONV_2D", [X, _weights(1, 3, 3, 8, **WIDE), _bias(8)], [OUT_8], DEPTH
    ),
    "fully connected": single_op(
        "FULLY_CONNECTED", [_activation(2, 30), _weights(5, 30, **NARROW), _bias(5)], [UNITS], {}
    ),
    "fully connected, wide weights": single_op(
        "FULLY_CONNECTED", [_activation(2, 30), _weights(5, 30, **WIDE), None], [UNITS], {"fused_activation": "RELU"}
    ),
    "the product of two scales is a float32": single_op(
        "FULLY_CONNECTED",
        [
            _activation(1, 4, scale=0.0473, zero_point=0),
            Constant(np.full((4, 4), 100, np.uint8), (0.0031,), (100,)),
            Constant(np.asarray(MIDDLES, np.int32), (0.0473 * 0.0031,), (0,)),
        ],
        [_activation(1, 4, scale=9.0, zero_point=0)],
        {},
    ),
    "add": single_op("ADD", [X, Y], [_activation(*IMAGE, scale=0.07, zero_point=100)], {}),
    "mul": single_op("MUL", [X, Y], [_activation(*IMAGE, scale=0.2, zero_point=128)], {}),
    "relu": single_op("RELU", [X], [Y], {}),
    "relu of the same grid": single_op("RELU", [X], [X], {}),
    "relu6": single_op("RELU6", [X], [Y], {}),
    "max pool": single_op("MAX_POOL_2D", [X], [_activation(1, 4, 6, 4)], WINDOW),
    "average pool": single_op("AVERAGE_POOL_2D", [X], [_activation(1, 4, 6, 4)], WINDOW),
    "softmax": single_op(
        "SOFTMAX", [_activation(3, 12)], [_activation(3, 12, scale=1 / 256, zero_point=0)], {"beta": 1.0}
    ),
    "reshape": single_op(
        "RESHAPE", [X, Constant(np.asarray([1, 168], np.int32))], [_activation(1, 168)], {"new_shape": [1, 168]}
    ),
    "pad": single_op(
        "PAD", [X, Constant(np.asarray([[0, 0], [1, 2], [0, 1], [0, 0]], np.int32))], [_activation(1, 10, 7, 4)], {}
    ),
    "concatenation": single_op("CONCATENATION", [X, X], [_activation(1, 7, 6, 8)], {"axis": 3}),
}


@pytest.mark.parametrize("name", ROWS)
def test_operators_give_litert_s_bytes(name: str) -> None:
    data = ROWS[name]
    compiled, reference = compile_bytes(data), LiteRt(data)
    host, meaning = HostModel(compiled), Executor(compiled.model.module)
    for inputs in random_inputs(data, 3, 6):
        wanted = reference.run(inputs)
        np.testing.assert_array_equal(host(*inputs)[0], wanted[0])
        np.testing.assert_array_equal(meaning.run(inputs)[0], wanted[0])
    assert not compiled.warnings


def _network() -> bytes:
    model = ModelBuilder()

    def constant(name: str, given: Constant) -> Tensor:
        return model.constant(name, given.values, scales=given.scales, zero_points=given.zero_points)

    def tensor(name: str, given: Activation) -> Tensor:
        return model.tensor(name, given.shape, given.dtype, scale=given.scale, zero_point=given.zero_point)

    x = model.input("x", X.shape, "uint8", scale=X.scale, zero_point=X.zero_point)
    first, second = tensor("first", OUT), tensor("second", _activation(1, 140, scale=0.09, zero_point=131))
    last = tensor("last", _activation(1, 5, scale=0.3, zero_point=128))
    result = tensor("result", _activation(1, 5, scale=1 / 256, zero_point=0))
    weights = constant("w", _weights(5, 3, 3, 4, **NARROW)), constant("b", _bias(5))
    model.op("CONV_2D", [x, *weights], [first], STRIDED)
    padded = tensor("padded", _activation(1, 4, 7, 5, scale=0.09, zero_point=131))
    ends = model.constant("ends", np.asarray([[0, 0], [0, 0], [0, 1], [0, 0]], np.int32))
    model.op("PAD", [first, ends], [padded], {})
    model.op(
        "RESHAPE", [padded, model.constant("s", np.asarray([1, 140], np.int32))], [second], {"new_shape": [1, 140]}
    )
    model.op("FULLY_CONNECTED", [second, constant("v", _weights(5, 140, **WIDE)), None], [last], {})
    model.op("SOFTMAX", [last], [result], {"beta": 1.0})
    return model.build(result)


def _samples(data: bytes) -> list[list[Array]]:
    return [list(sample) for sample in random_inputs(data, 5, 4)]


@pytest.mark.parametrize("name", ["host", "mps2_an386"])
def test_a_network_is_int8_inside(name: str, tmp_path: Path) -> None:
    data = _network()
    compiled, reference, samples = compile_bytes(data), LiteRt(data), _samples(data)
    board = board_with_tools(name) if name != "host" else None
    if board is None:
        found = [HostModel(compiled)(*sample) for sample in samples]
    else:
        found = run_compiled(compiled, board, samples, tmp_path / "p", lambda step: None).run.outputs
    for sample, outputs in zip(samples, found, strict=True):
        np.testing.assert_array_equal(outputs[0], reference.run(sample)[0])
    layers = [layer.op for layer in compiled.program.layers if not layer.is_view]
    assert layers == ["requantize", "conv2d", "nn.pad", "fully_connected_given", "softmax", "requantize"]


def test_weights_that_are_computed_are_refused() -> None:
    data = single_op("FULLY_CONNECTED", [_activation(2, 30), _activation(5, 30), None], [UNITS], {})
    with pytest.raises(
        ModelError, match='weights "input_1" is computed at run time; only constant weights can be comp'
    ):
        compile_bytes(data)
