"""Weights of four bits: every kernel and TFLite Micro give the same bytes, and the weights take half the flash."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from support.device.boards import board_with_tools
from support.device.hostlib import HostModel, compile_bytes
from support.models.many import Row, many
from support.models.single_op import Activation, Constant
from support.models.tflite_writer import OptionValue
from support.models.windows import spread_scales
from support.oracle.exactness import assert_exact_random, assert_same
from support.oracle.oracle import Tflm, random_inputs
from support.oracle.sanitized import assert_clean
from uaccel.board import Board, load_board
from uaccel.kernels import Target
from uaccel.kernels.choice import Selection, target_of
from uaccel.ops.kernel import Constant as Stored
from uaccel.pipeline import Compiled, compile_model
from uaccel.runner.compiled import run_compiled
from uaccel.tvm_api.executor import Executor
from uaccel.util.favour import Favour

Shape = tuple[int, ...]
Options = Mapping[str, OptionValue]
PLAIN: Options = {"padding": "SAME", "stride_w": 1, "stride_h": 1, "dilation_w_factor": 1, "dilation_h_factor": 1}


def row(operator: str, data: Shape, weights: Shape, output: Shape, options: Options, bits: int) -> Row:
    """Weights of all sixteen values, a bias, a scale a channel; TFLite Micro takes one alone of a dense layer."""
    generator = np.random.default_rng(sum(weights))
    axis = len(weights) - 1 if operator == "DEPTHWISE_CONV_2D" else 0
    channels = weights[axis]
    values = generator.integers(-8, 8, weights).astype(np.int8)
    scales = spread_scales(channels if len(weights) > 2 else 1, 3)
    bias = Constant(generator.integers(-900, 900, channels).astype(np.int32), tuple(0.05 * s for s in scales))
    given: list[Activation | Constant] = [
        Activation(data, "int8", 0.05, 11),
        Constant(values, scales, (0,) * len(scales), axis, bits),
        bias,
    ]
    return Row(operator, given, [Activation(output, "int8", 0.06, -20)], options)


def dense(rows: int, depth: int, units: int, bits: int = 4) -> Row:
    return row("FULLY_CONNECTED", (rows, depth), (units, depth), (rows, units), {}, bits)


def conv(data: Shape, channels: int, size: int, options: Options = PLAIN, *, groups: int = 1, bits: int = 4) -> Row:
    stride = int(str(options["stride_h"]))
    output = (data[0], *(-(-extent // stride) for extent in data[1:3]), channels)
    return row("CONV_2D", data, (channels, size, size, data[3] // groups), output, options, bits)


def depthwise(data: Shape, times: int, size: int, options: Options = PLAIN, *, bits: int = 4) -> Row:
    stride, channels = int(str(options["stride_h"])), data[3] * times
    output = (data[0], *(-(-extent // stride) for extent in data[1:3]), channels)
    more = {**options, "depth_multiplier": times}
    return row("DEPTHWISE_CONV_2D", data, (1, size, size, channels), output, more, bits)


STRIDED: Options = {**PLAIN, "stride_w": 2, "stride_h": 2}
DILATED: Options = {**PLAIN, "dilation_w_factor": 2, "dilation_h_factor": 2}
FUSED: Options = {**PLAIN, "fused_activation_function": "RELU6"}

ROWS = {
    "dense": dense(1, 32, 16),
    "dense, odd": dense(1, 9, 5),
    "dense, rows": dense(3, 17, 7),
    "conv": conv((1, 6, 5, 4), 8, 3),
    "conv, odd": conv((1, 5, 5, 3), 5, 3),
    "conv, strided": conv((2, 7, 6, 2), 6, 3, STRIDED),
    "conv, dilated": conv((1, 8, 7, 1), 3, 3, DILATED),
    "conv, groups": conv((1, 5, 4, 6), 4, 3, groups=2),
    "conv, relu6": conv((1, 5, 4, 3), 4, 2, FUSED),
    "pointwise": conv((1, 5, 3, 8), 6, 1),
    "pointwise, odd": conv((1, 3, 3, 7), 5, 1),
    "depthwise": depthwise((1, 6, 5, 8), 1, 3),
    "depthwise, odd": depthwise((1, 6, 5, 5), 1, 3),
    "depthwise, times 3": depthwise((1, 5, 5, 3), 3, 3, STRIDED),
    "depthwise, dilated": depthwise((2, 7, 7, 4), 1, 3, DILATED),
}


def test_portable_kernels() -> None:
    compiled = assert_exact_random(many(ROWS), runs=9, meaning=False)
    called = {call.function for layer in compiled.program.layers for call in layer.kernel.calls}
    kinds = ("fully_connected", "conv2d", "depthwise_conv2d")
    assert called == {f"uaccel_{kind}_int4_s8" for kind in kinds}


@pytest.mark.slow
def test_meaning() -> None:
    assert_exact_random(many({name: ROWS[name] for name in ("dense, odd", "conv, odd", "depthwise, odd")}), runs=9)


def compiled_for(target: Target, data: bytes, folder: Path, favour: Favour = Favour.balanced) -> Compiled:
    path = folder / "model.tflite"
    path.write_bytes(data)
    return compile_model(path, board="host", selection=Selection.on(target, favour))


def weights_in_flash(compiled: Compiled) -> int:
    return sum(
        part.data.nbytes
        for layer in compiled.program.layers
        for call in layer.kernel.calls
        for part in call.arguments
        if isinstance(part, Stored) and part.role == "weights"
    )


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["host", "mps2_an386"])
@pytest.mark.parametrize("favour", [Favour.balanced, Favour.speed])
def test_kernels_of_boards(name: str, favour: Favour, tmp_path: Path) -> None:
    """Those that compute several channels at once; where speed is favoured, those for bytes."""
    board: Board = load_board(name) if name == "host" else board_with_tools(name)
    data = many(ROWS)
    target = Target.of("native", ["embedded"]) if name == "host" else target_of(board)
    compiled = compiled_for(target, data, tmp_path, favour)
    samples = random_inputs(data, 0, 5)
    run = run_compiled(compiled, board, samples, tmp_path / "run", lambda step: None).run
    reference = Tflm(data)
    for sample, outputs in zip(samples, run.outputs, strict=True):
        for label, got, wanted in zip(ROWS, outputs, reference.run(sample), strict=True):
            assert_same(got, wanted.reshape(got.shape), label)
    functions = {call.function for layer in compiled.program.layers for call in layer.kernel.calls}
    if favour is Favour.balanced:
        assert all("_int4" in function for function in functions)
        assert sum(function.endswith("_blocked_s8_int4") for function in functions) == 5
    else:
        assert not any(function.endswith("_blocked_s8_int4") for function in functions)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["portable", "host", "mps2_an386"])
def test_single_precision(name: str, tmp_path: Path) -> None:
    """Of an ONNX model, whose meaning tests/frontend/qdq holds to ONNX Runtime."""
    pytest.importorskip("onnxruntime")
    from support.models.onnx_islands import CASES
    from support.models.onnx_models import Graph

    graph = Graph()
    for case in CASES:
        if case.bits == 4:
            case.make(graph)
    path = graph.save(tmp_path / "model.onnx", 21)
    board = board_with_tools(name) if name == "mps2_an386" else load_board("host")
    features = ["embedded"] if name == "host" else []
    target = target_of(board) if name == "mps2_an386" else Target.of("native", features)
    compiled = compile_model(path, board="host", selection=Selection.on(target, Favour.balanced))
    samples = [list(graph.samples(seed).values()) for seed in range(3)]
    run = run_compiled(compiled, board, samples, tmp_path / "run", lambda step: None).run
    meaning = Executor(compiled.stages["import"])
    for sample, outputs in zip(samples, run.outputs, strict=True):
        for got, wanted in zip(outputs, meaning.run(sample), strict=True):
            assert_same(got, wanted, name)
    functions = [call.function for layer in compiled.program.layers for call in layer.kernel.calls]
    ending = "_int4_s8_float32" if name == "portable" else "_blocked_s8_float32_int4"
    assert sum(function.endswith(ending) for function in functions) == 5


@pytest.mark.parametrize("features", [(), ("embedded",)], ids=["portable", "blocked"])
def test_weights_take_half_the_flash(features: tuple[str, ...], tmp_path: Path) -> None:
    """The same values, stored as the file has them."""
    target = Target.of("native", features)
    sizes = []
    for bits in (4, 8):
        rows = {
            "dense": dense(1, 64, 32, bits),
            "conv": conv((1, 6, 6, 8), 16, 3, bits=bits),
            "depthwise": depthwise((1, 6, 6, 16), 1, 3, bits=bits),
        }
        sizes.append(weights_in_flash(compiled_for(target, many(rows), tmp_path)))
    assert sizes == [64 * 32 // 2 + 16 * 72 // 2 + 16 * 9 // 2, 64 * 32 + 16 * 72 + 16 * 9]


def test_constants_of_other_operators_are_numbers_like_any() -> None:
    """What is no weight is unpacked when the file is read."""
    values = np.arange(-8, 7).astype(np.int8)
    given: list[Activation | Constant] = [Activation((2, 15), "int8", 0.05, 1), Constant(values, (0.3,), (0,), bits=4)]
    plain: list[Activation | Constant] = [given[0], Constant(values, (0.3,), (0,))]
    output = Activation((2, 15), "int8", 0.1, 0)
    data = np.arange(-15, 15).astype(np.int8).reshape(2, 15)
    results = [HostModel(compile_bytes(many({"row": Row("MUL", inputs, [output])})))(data) for inputs in (given, plain)]
    assert_same(results[0][0], results[1][0], "row")


@pytest.mark.slow
def test_clean_under_sanitizers() -> None:
    assert_clean(many(ROWS), runs=4)
