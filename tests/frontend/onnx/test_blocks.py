"""Products with weights of a few bits and a scale for each block: against ONNX Runtime, and to the bit on boards."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.device.boards import board_with_tools
from support.device.hostlib import HostModel
from support.models.float_rows import assert_same_bits
from support.models.onnx_models import Graph
from support.models.onnx_rows import Array, Given, Row, compare, feeds_of, model_of, row, session_of
from uaccel.errors import ModelError
from uaccel.ops.kernel import Constant
from uaccel.pipeline import Compiled, compile_model
from uaccel.runner.compiled import run_compiled
from uaccel.tvm_api.executor import Executor

FOUR_BITS = pytest.importorskip("ml_dtypes", reason="onnx, which brings it, is not installed")
OPSET = 21


def _bytes(*shape: int) -> Array:
    return np.random.default_rng(shape).integers(0, 256, shape).astype(np.uint8)


def _floats(*shape: int) -> Array:
    return np.random.default_rng(shape).uniform(0.01, 0.1, shape).astype(np.float32)


def packed(
    rows: tuple[int, ...],
    depth: int,
    units: int,
    size: int = 16,
    *,
    bits: int = 4,
    points: bool = False,
    bias: bool = False,
    **attributes: Any,
) -> Row:
    """A ``MatMulNBits`` as ONNX Runtime's quantiser writes it."""
    count = -(-depth // size)
    zeros = _bytes(units * -(-count * bits // 8)) if points else None
    inputs = [_bytes(units, count, size * bits // 8), _floats(units * count), zeros, None, _floats(units)]
    attributes |= {"K": depth, "N": units, "block_size": size, "bits": bits}
    return row("MatMulNBits", Given((*rows, depth)), *inputs[: 5 if bias else 3], domain="com.microsoft", **attributes)


ROWS: Mapping[str, Row] = {
    "four bits": packed((2,), 48, 6),
    "four bits, rank 3": packed((2, 3), 32, 5, bias=True),
    "four bits, zero points": packed((3,), 64, 7, 32, points=True),
    "four bits, a short block": packed((1,), 40, 3, points=True),
    "four bits, an odd depth": packed((2,), 37, 4),
    "two bits": packed((2,), 32, 5, bits=2, points=True),
    "eight bits": packed((2,), 32, 5, bits=8),
    "eight bits, zero points": packed((2,), 48, 4, bits=8, points=True, bias=True),
}


def compiled_of(model: Any, path: Path) -> Compiled:
    path.write_bytes(model.SerializeToString())
    return compile_model(path, board="host")


def weights_of(compiled: Compiled) -> list[Array]:
    calls = [call for layer in compiled.program.layers for call in layer.kernel.calls]
    constants = [given for call in calls for given in call.arguments if isinstance(given, Constant)]
    return [given.data for given in constants if given.role == "weights"]


def test_as_onnx_runtime(tmp_path: Path) -> None:
    model = model_of(ROWS, OPSET)
    compiled, feeds = compiled_of(model, tmp_path / "model.onnx"), feeds_of(ROWS)
    executor, host = Executor(compiled.stages["import"]), HostModel(compiled)
    assert {layer.kernel.family for layer in compiled.program.layers if layer.macs} == {"portable"}
    wanted = session_of(model).run(None, feeds)
    meant = executor.run(list(feeds.values()))
    for name, got, exact, one in zip(ROWS, host(*feeds.values()), meant, wanted, strict=True):
        assert_same_bits(got, exact, name)
        compare(got, np.asarray(one), name)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["mps2_an386", "mps3_an547"])
def test_boards_give_the_same_bits(name: str, tmp_path: Path) -> None:
    board, path = board_with_tools(name), tmp_path / "model.onnx"
    path.write_bytes(model_of(ROWS, OPSET).SerializeToString())
    compiled, sample = compile_model(path, board=name), list(feeds_of(ROWS).values())
    done = run_compiled(compiled, board, [sample], tmp_path / "run", lambda step: None)
    meant = Executor(compiled.stages["import"]).run(sample)
    for row_name, got, exact in zip(ROWS, done.run.outputs[0], meant, strict=True):
        assert_same_bits(np.asarray(got), exact, row_name)


@pytest.mark.parametrize(("bits", "size"), [(4, 2400), (8, 4800)])
def test_weights_stay_packed(bits: int, size: int, tmp_path: Path) -> None:
    compiled = compiled_of(model_of({"row": packed((1,), 96, 50, 32, bits=bits)}, OPSET), tmp_path / "model.onnx")
    assert [weights.nbytes for weights in weights_of(compiled)] == [size]


def _nibbles(*shape: int) -> Array:
    numbers = np.random.default_rng(shape).integers(-8, 8, shape)
    return np.asarray(numbers.astype(FOUR_BITS.int4))


def _unsigned(*shape: int) -> Array:
    numbers = np.random.default_rng(shape).integers(0, 16, shape)
    return np.asarray(numbers.astype(FOUR_BITS.uint4))


DEQUANTISED: Mapping[str, tuple[Array, Array | None, int, dict[str, Any]]] = {
    "four bits": (_nibbles(48, 6), None, 0, {}),
    "unsigned, zero points": (_unsigned(48, 6), _unsigned(3, 6), 0, {}),
    "bytes": (_nibbles(48, 6).astype(np.int8) * 15, None, 0, {}),
    "unsigned bytes": (_bytes(48, 6), _bytes(3, 6), 0, {}),
    "Gemm": (_nibbles(6, 48), None, 1, {"transB": 1}),
}


@pytest.mark.parametrize("name", DEQUANTISED)
def test_dequantised_blocks(name: str, tmp_path: Path) -> None:
    stored, zeros, axis, attributes = DEQUANTISED[name]
    graph = Graph()
    blocks = (3, 6) if axis == 0 else (6, 3)
    given = [graph.constant(stored), graph.constant(_floats(*blocks))]
    given += [graph.constant(zeros)] if zeros is not None else []
    weights = graph.apply("DequantizeLinear", *given, axis=axis, block_size=16)
    bias = [graph.constant(_floats(6))] if attributes else []
    made = graph.apply(
        "Gemm" if attributes else "MatMul", graph.input((3, 48), "float32"), weights, *bias, **attributes
    )
    graph.outputs.append((made, "float32"))
    path = graph.save(tmp_path / "model.onnx", OPSET, 10)
    compiled, feeds = compile_model(path, board="host"), graph.samples(0)
    bytes_each = 2 if name in ("four bits", "unsigned, zero points", "Gemm") else 1
    assert [found.nbytes for found in weights_of(compiled)] == [6 * 48 // bytes_each]
    (got,), (wanted,) = HostModel(compiled)(*feeds.values()), session_of(path).run(None, feeds)
    compare(got, np.asarray(wanted), name)


def test_blocks_that_are_no_weights_of_a_product(tmp_path: Path) -> None:
    """They are numbers at import."""
    graph = Graph()
    weights = graph.apply(
        "DequantizeLinear", graph.constant(_nibbles(4, 32)), graph.constant(_floats(4, 2)), block_size=16
    )
    added = graph.apply("Add", graph.input((4, 32), "float32"), weights)
    graph.outputs.append((graph.apply("MatMul", added, graph.apply("Transpose", weights)), "float32"))
    path = graph.save(tmp_path / "model.onnx", OPSET, 10)
    feeds = graph.samples(0)
    (got,), (wanted,) = HostModel(compile_model(path, board="host"))(*feeds.values()), session_of(path).run(None, feeds)
    compare(got, np.asarray(wanted), "product")


def one_block(depth: int, *inputs: Array | None) -> Row:
    return row("MatMulNBits", Given((1, depth)), *inputs, domain="com.microsoft", K=16, N=2, block_size=16, bits=4)


REFUSALS: Mapping[str, tuple[Row, str]] = {
    "bits": (packed((1,), 16, 2, bits=3), "its weights have 3 bits, wanted 2, 4, 8"),
    "order": (
        one_block(16, _bytes(2, 1, 8), _floats(2), None, np.zeros(16, np.int32)),
        "it has an order of groups (g_idx), which is not supported; quantise the model without one",
    ),
    "scales": (
        one_block(16, _bytes(2, 1, 8), _floats(3)),
        'scale "row/in2" is float32 [3], wanted float32 [2,1]',
    ),
    "bytes": (
        one_block(16, _bytes(2, 1, 9), _floats(2)),
        'weights "row/in1" is uint8 [2, 1, 9], wanted uint8 [2, 1, 8]',
    ),
    "rows": (one_block(8, _bytes(2, 1, 8), _floats(2)), '"row/in0" has rows of 8, wanted 16'),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_is_refused(name: str, tmp_path: Path) -> None:
    entry, reason = REFUSALS[name]
    path = tmp_path / "model.onnx"
    path.write_bytes(model_of({"row": entry}, OPSET, {"row/out0": "float32"}).SerializeToString())
    with pytest.raises(ModelError) as caught:
        compile_model(path, board="host")
    assert str(caught.value).endswith(f": {reason}"), str(caught.value)
