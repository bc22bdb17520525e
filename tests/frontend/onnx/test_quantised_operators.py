"""Operators on integers against ONNX Runtime, as TVM executes the imported module and as generated C."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.device.hostlib import HostModel
from support.models.onnx_rows import Array, Given, Row, compare, feeds_of, model_of, row, session_of
from uaccel.pipeline import compile_model
from uaccel.tvm_api.executor import Executor

FOUR_BITS = pytest.importorskip("ml_dtypes", reason="onnx, which brings it, is not installed")
MICROSOFT = "com.microsoft"


def _f(*numbers: float) -> Array:
    return np.asarray(numbers if len(numbers) > 1 else numbers[0], np.float32)


def _i(dtype: str, *numbers: int) -> Array:
    return np.asarray(numbers if len(numbers) > 1 else numbers[0], dtype)


def _weights(*shape: int, dtype: str = "int8") -> Array:
    info = np.iinfo(dtype)
    return np.random.default_rng(1).integers(info.min, info.max, shape, endpoint=True).astype(dtype)


def _bias(count: int) -> Array:
    return np.random.default_rng(2).integers(-2000, 2000, count).astype(np.int32)


def _halved(*shape: int) -> Array:
    """Weights of four bits, two of them in a byte."""
    return np.asarray((_weights(*shape) >> 4).astype(FOUR_BITS.int4))


def _scales(*shape: int) -> Array:
    return np.random.default_rng(3).uniform(0.01, 0.1, shape).astype(np.float32)


U8, I8 = (_f(0.03), _i("uint8", 117)), (_f(0.02), _i("int8", -5))
REAL = Given((2, 3, 4))
IMAGE_U8, IMAGE_I8 = Given((1, 4, 5, 5), "uint8"), Given((1, 4, 5, 5), "int8")
ROWS_U8, ROWS_I8 = Given((3, 8), "uint8"), Given((3, 8), "int8")
SCALES = np.asarray([0.01, 0.02, 0.015, 0.03, 0.011], np.float32)
POOL: dict[str, Any] = {"kernel_shape": [3, 3], "pads": [1, 1, 0, 0], "strides": [2, 2]}

ROWS = {
    "quantize": row("QuantizeLinear", REAL, *U8),
    "quantize plain": row("QuantizeLinear", REAL, _f(0.03)),
    "quantize signed": row("QuantizeLinear", REAL, *I8),
    "quantize axis": row("QuantizeLinear", REAL, _f(0.02, 0.03, 0.04), _i("int8", 1, -2, 3)),
    "quantize last": row("QuantizeLinear", REAL, _f(0.02, 0.03, 0.04, 0.05), _i("uint8", 1, 2, 3, 200), axis=-1),
    "quantize wide": row("QuantizeLinear", REAL, _f(0.0001), _i("int16", 12)),
    "quantize unsigned wide": row("QuantizeLinear", REAL, _f(0.0001), _i("uint16", 30000)),
    "dequantize": row("DequantizeLinear", ROWS_U8, *U8),
    "dequantize plain": row("DequantizeLinear", ROWS_I8, _f(0.5)),
    "dequantize axis": row("DequantizeLinear", Given((4, 3), "int8"), _f(0.02, 0.03, 0.04), _i("int8", 1, -2, 3)),
    "dequantize wide": row("DequantizeLinear", Given((4, 3), "int16"), _f(0.001)),
    "dequantize sums": row("DequantizeLinear", Given((4, 3), "int32"), _f(0.001)),
    "dequantize weights": row("DequantizeLinear", _weights(5, 4), SCALES, np.zeros(5, np.int8), axis=0),
    "dequantize four bits": row("DequantizeLinear", _halved(5, 3), SCALES, _halved(5), axis=0),
    "dequantize blocks": row("DequantizeLinear", _halved(6, 5), _scales(3, 5), _halved(3, 5), axis=0, block_size=2),
    "dequantize blocks of bytes": row("DequantizeLinear", _weights(4, 6), _scales(4, 2), axis=-1, block_size=3),
    "dynamic": row("DynamicQuantizeLinear", REAL, outputs=3),
    "dynamic zeros": row("DynamicQuantizeLinear", Given((4,), low=0, high=0), outputs=3),
    "conv integer": row("ConvInteger", IMAGE_U8, _weights(5, 4, 3, 3, dtype="uint8"), _i("uint8", 9), _i("uint8", 130)),
    "conv integer padded": row("ConvInteger", IMAGE_U8, _weights(5, 4, 3, 3), _i("uint8", 9), pads=[1, 1, 1, 1]),
    "matmul integer": row("MatMulInteger", ROWS_U8, _weights(8, 4), _i("uint8", 12), _i("int8", 1, -2, 3, 0)),
    "matmul integer given": row("MatMulInteger", ROWS_I8, Given((8, 2), "int8")),
    "conv": row("QLinearConv", IMAGE_U8, *U8, _weights(5, 4, 3, 3), _f(0.01), _i("int8", 0), _f(0.3), _i("uint8", 99)),
    "conv bias": row(
        *("QLinearConv", IMAGE_U8, *U8, _weights(5, 4, 3, 3), SCALES, np.zeros(5, np.int8)),
        *(_f(0.3), _i("uint8", 99), _bias(5)),
        pads=[1, 1, 1, 1],
        strides=[2, 2],
    ),
    "conv signed": row(
        *(
            "QLinearConv",
            IMAGE_I8,
            *I8,
            _weights(8, 1, 3, 3),
            _f(0.01),
            _i("int8", 0),
            _f(0.1),
            _i("int8", 3),
            _bias(8),
        ),
        group=4,
    ),
    "matmul": row("QLinearMatMul", ROWS_U8, *U8, _weights(8, 4), _f(0.01), _i("int8", 0), _f(0.2), _i("uint8", 128)),
    "matmul both": row("QLinearMatMul", ROWS_I8, *I8, Given((8, 2), "int8"), *I8, _f(0.2), _i("int8", 1)),
    "gemm": row(
        *("QGemm", ROWS_I8, *I8, _weights(5, 8), SCALES, np.zeros(5, np.int8), _bias(5), _f(0.2), _i("int8", 1)),
        transB=1,
        domain=MICROSOFT,
    ),
    "gemm real": row(
        "QGemm", ROWS_U8, *U8, _weights(8, 4), _f(0.01), _i("int8", 0), None, None, None, domain=MICROSOFT, alpha=0.5
    ),
    "add": row("QLinearAdd", ROWS_U8, *U8, Given((8,), "uint8"), _f(0.05), _i("uint8", 3), *U8, domain=MICROSOFT),
    "add constant": row("QLinearAdd", ROWS_I8, *I8, _weights(8), *I8, _f(0.03), _i("int8", 0), domain=MICROSOFT),
    "multiply": row("QLinearMul", ROWS_I8, *I8, ROWS_I8, *I8, _f(0.05), _i("int8", -3), domain=MICROSOFT),
    "global average": row("QLinearGlobalAveragePool", IMAGE_U8, *U8, *U8, domain=MICROSOFT),
    "average": row("QLinearAveragePool", IMAGE_U8, *U8, _f(0.017), _i("uint8", 110), domain=MICROSOFT, **POOL),
    "concat": row(
        "QLinearConcat",
        *I8,
        ROWS_I8,
        _f(0.03),
        _i("int8", 2),
        ROWS_I8,
        _f(0.01),
        _i("int8", 0),
        axis=1,
        domain=MICROSOFT,
    ),
    "leaky": row("QLinearLeakyRelu", ROWS_I8, *I8, *I8, alpha=0.1, domain=MICROSOFT),
    "sigmoid": row("QLinearSigmoid", ROWS_U8, *U8, _f(1 / 256), _i("uint8", 0), domain=MICROSOFT),
    "softmax": row("QLinearSoftmax", ROWS_U8, *U8, _f(1 / 256), _i("uint8", 0), axis=-1, opset=13, domain=MICROSOFT),
    "where": row("QLinearWhere", Given((3, 8), "bool"), ROWS_I8, *I8, ROWS_I8, *I8, *I8, domain=MICROSOFT),
}
PATH = ("by TVM", "in C")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Array, Array, Array]]:
    """By output: what TVM, the generated C and ONNX Runtime give."""
    model = model_of(ROWS, 21)
    path = tmp_path_factory.mktemp("rows") / "rows.onnx"
    path.write_bytes(model.SerializeToString())
    compiled = compile_model(path, board="host")
    feeds = feeds_of(ROWS)
    values = [feeds[spec.name] for spec in compiled.model.signature.inputs]
    ran = (Executor(compiled.stages["import"]).run(values), HostModel(compiled)(*values))
    names = [spec.name for spec in compiled.model.signature.outputs]
    return dict(zip(names, zip(*ran, session_of(model).run(None, feeds), strict=True), strict=True))


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", ROWS)
def test_operators_on_integers(name: str, results: dict[str, tuple[Array, Array, Array]]) -> None:
    """Sums are exact; where real numbers are rounded, TVM rounds halves the other way, so a step may be lost."""
    entry: Row = ROWS[name]
    steps = 0 if "Integer" in entry.op or "Dynamic" in entry.op else 1
    for number in range(entry.outputs):
        *ours, wanted = results[f"{name}/out{number}"]
        for got, how in zip(ours, PATH, strict=True):
            apart = compare(got, wanted, f"{name} {how}", steps=steps)
            assert apart <= 0.05 * wanted.size, f"{name} {how}: {apart} of {wanted.size} are a step apart"


def test_half_precision_between_integers_is_no_float(tmp_path: Path) -> None:
    """What comes out in half precision is float32 in C."""
    from onnx import helper, numpy_helper

    parts = {"s": np.float16(0.05), "z": np.int8(3), "n": np.int8(0), "w": np.eye(4, 3, dtype=np.int8) * 20}
    nodes = [("DequantizeLinear", "xsz", "a"), ("DequantizeLinear", "wsn", "b"), ("MatMul", "ab", "c")]
    nodes += [("QuantizeLinear", "csz", "y"), ("DequantizeLinear", "ysz", "q")]
    path = tmp_path / "half.onnx"
    for last, kind in (("y", 3), ("q", 10)):
        graph = helper.make_graph(
            [helper.make_node(op, list(given), [made]) for op, given, made in nodes[: 4 if last == "y" else 5]],
            "g",
            [helper.make_tensor_value_info("x", 3, [2, 4])],
            [helper.make_tensor_value_info(last, kind, [2, 3])],
            [numpy_helper.from_array(np.asarray(value), name) for name, value in parts.items()],
        )
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
        path.write_bytes(made.SerializeToString())
        value = np.arange(8, dtype=np.int8).reshape(2, 4) * 9
        (got,) = HostModel(compile_model(path, board="host"))(value)
        (wanted,) = session_of(made).run(None, {"x": value})
        if last == "y":
            compare(got, wanted, "y", steps=1)
        else:
            np.testing.assert_allclose(got, wanted.astype(np.float32), rtol=2**-10, atol=0.05)
