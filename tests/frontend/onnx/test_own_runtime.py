"""ONNX Runtime as the oracle of sums: right on processors, too, on which it would saturate them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="the onnx package is not installed")
pytest.importorskip("onnxruntime", reason="the reference, onnxruntime, is not installed")

from support.models.onnx_rows import Array, Given, Row, feeds_of, model_of, row  # noqa: E402  # after the skips
from uaccel.runner.onnx_runtime import session_of, unsigned_sums  # noqa: E402

ONE, MANY = np.asarray(1, np.float32), np.asarray(2000, np.float32)


def _most(dtype: str, *shape: int) -> Array:
    return np.full(shape, np.iinfo(dtype).max, dtype)


def _zero(dtype: str, *number: int) -> Array:
    return np.asarray(number if number else 0, dtype)


BYTES, SIGNED = Given((2, 8), "uint8", 255, 255), Given((1, 8, 2, 2), "int8", 127, 127)
IMAGE = Given((1, 8, 2, 2), "uint8", 255, 255)
BACK = (MANY, _zero("uint8"))
"""A result of 255 * 127 * 8 in steps of 2000 is 130; of saturated sums, 66."""
ROWS: dict[str, tuple[Row, int]] = {
    "MatMulInteger": (row("MatMulInteger", BYTES, _most("int8", 8, 3)), 255 * 127 * 8),
    "its zero points": (
        row("MatMulInteger", BYTES, _most("int8", 8, 3), _zero("uint8"), _zero("int8", 1, 1, 1)),
        255 * 126 * 8,
    ),
    "the lowest": (row("MatMulInteger", BYTES, np.full((8, 3), -128, np.int8)), -255 * 128 * 8),
    "both given": (row("MatMulInteger", BYTES, Given((8, 3), "int8", 127, 127)), 255 * 127 * 8),
    "ConvInteger": (row("ConvInteger", SIGNED, _most("uint8", 3, 8, 1, 1)), 255 * 127 * 8),
    "unsigned image": (row("ConvInteger", IMAGE, _most("int8", 3, 8, 1, 1)), 255 * 127 * 8),
    "QLinearMatMul": (
        row("QLinearMatMul", BYTES, ONE, _zero("uint8"), _most("int8", 8, 3), ONE, _zero("int8"), *BACK),
        130,
    ),
    "QLinearConv": (
        row("QLinearConv", IMAGE, ONE, _zero("uint8"), _most("int8", 3, 8, 1, 1), ONE, _zero("int8"), *BACK),
        130,
    ),
    "QGemm": (
        row(
            *("QGemm", BYTES, ONE, _zero("uint8"), _most("int8", 8, 3), ONE, _zero("int8"), None, *BACK),
            domain="com.microsoft",
        ),
        130,
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_sums_are_not_saturated(name: str) -> None:
    rows = {name: ROWS[name][0]}
    (result,) = session_of(model_of(rows, 21)).run(None, feeds_of(rows))
    assert np.unique(result).tolist() == [ROWS[name][1]]


@pytest.mark.parametrize("name", ROWS)
def test_no_sum_of_a_signed_and_an_unsigned_operand(name: str) -> None:
    """On a processor with VNNI no sum is saturated, so that the test above cannot fail there."""
    assert _operands(model_of({name: ROWS[name][0]}, 21)) == {"uint8", "int8"}
    assert _operands(unsigned_sums(model_of({name: ROWS[name][0]}, 21))) == {"uint8"}


def test_a_sum_inside_a_branch() -> None:
    """The inner graph's operand is the outer graph's."""
    inner = model_of({"sum": row("MatMulInteger", BYTES, Given((8, 3), "int8", 127, 127))}, 21).graph
    outer = list(inner.input)
    del inner.input[:]
    chosen = onnx.helper.make_tensor_value_info("chosen", onnx.TensorProto.BOOL, [])
    result = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.INT32, None)
    branch = onnx.helper.make_node("If", ["chosen"], ["y"], then_branch=inner, else_branch=inner)
    graph = onnx.helper.make_graph([branch], "g", [chosen, *outer], [result])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 21)], ir_version=10)
    feeds = {"sum/in0": np.full((2, 8), 255, np.uint8), "sum/in1": np.full((8, 3), 127, np.int8)}
    (found,) = session_of(model).run(None, {"chosen": np.asarray(True), **feeds})
    assert np.unique(found).tolist() == [255 * 127 * 8]
    assert _operands(unsigned_sums(model), inside=True) == {"uint8"}


def _operands(model: Any, inside: bool = False) -> set[str]:
    """Types of what the sum multiplies."""
    graph = onnx.shape_inference.infer_shapes(model).graph
    typed = {value.name: value.type.tensor_type.elem_type for value in graph.input}
    typed |= {constant.name: constant.data_type for constant in graph.initializer}
    graph = graph.node[-1].attribute[0].g if inside else graph
    typed |= {value.name: value.type.tensor_type.elem_type for value in graph.value_info}
    node = graph.node[-1]
    second = 1 if "Integer" in node.op_type else 3
    kinds = {typed[node.input[place]] for place in (0, second)}
    return {onnx.helper.tensor_dtype_to_np_dtype(kind).name for kind in kinds}
