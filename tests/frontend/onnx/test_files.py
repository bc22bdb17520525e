"""What ONNX files may look like: weights beside them, functions of their own, constants in nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.models.onnx_rows import compare, session_of
from uaccel.frontend import import_model
from uaccel.frontend.onnx.importer import import_onnx
from uaccel.tvm_api import main_bindings
from uaccel.tvm_api.executor import Executor

onnx = pytest.importorskip("onnx", reason="the onnx package is not installed")
X = np.asarray([[-1.0, 0.5, 2.0]], np.float32)


def model_of(nodes: list[Any], weights: dict[str, Any], functions: list[Any] | None = None, shape: Any = (1, 3)) -> Any:
    helper = onnx.helper
    inputs = [helper.make_tensor_value_info("x:0", 1, shape)]
    outputs = [helper.make_tensor_value_info("y", 1, None)]
    constants = [onnx.numpy_helper.from_array(value, name) for name, value in weights.items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]
    return helper.make_model(graph, opset_imports=opsets, functions=functions or [], ir_version=10)


def check(path: Path, *, bindings: int) -> None:
    """The import means what ONNX Runtime makes of the file."""
    model = import_onnx(path, {})
    (got,) = Executor(model.module).run([X])
    compare(got, session_of(path).run(None, {"x:0": X})[0], path.name)
    assert len([var for var, _ in main_bindings(model.module)[1] if var.name != "gv"]) == bindings


def test_weights_in_a_file_of_their_own_are_part_of_the_model(tmp_path: Path) -> None:
    path, node = tmp_path / "m.onnx", onnx.helper.make_node("Add", ["x:0", "w"], ["y"])
    model = model_of([node], {"w": np.arange(3, dtype=np.float32)})
    onnx.save(model, path, save_as_external_data=True, location="w.bin", size_threshold=0)
    check(path, bindings=1)
    first = import_model(path)
    (tmp_path / "w.bin").write_bytes(bytes(range(12)))
    second = import_model(path)
    assert first.digest != second.digest
    assert first.file is not None
    assert "w.bin" not in str(onnx.ModelProto.FromString(first.file.data).graph.initializer)


def test_functions_of_the_file_are_looked_into(tmp_path: Path) -> None:
    helper = onnx.helper
    body = [helper.make_node("Relu", ["a"], ["b"]), helper.make_node("Neg", ["b"], ["c"])]
    function = helper.make_function("mine", "Fall", ["a"], ["c"], body, [helper.make_opsetid("", 17)])
    path = tmp_path / "m.onnx"
    nodes = [helper.make_node("Fall", ["x:0"], ["y"], domain="mine")]
    path.write_bytes(model_of(nodes, {}, [function]).SerializeToString())
    check(path, bindings=2)


def test_what_is_constant_vanishes(tmp_path: Path) -> None:
    helper = onnx.helper
    nodes = [
        helper.make_node("Constant", [], ["one"], value_float=1.0),
        helper.make_node("Add", ["one", "w"], ["two"]),
        helper.make_node("Identity", ["x:0"], ["i"]),
        helper.make_node("Dropout", ["i"], ["d"]),
        helper.make_node("Mul", ["d", "two"], ["y"]),
    ]
    path = tmp_path / "m.onnx"
    path.write_bytes(model_of(nodes, {"w": np.arange(3, dtype=np.float32)}).SerializeToString())
    check(path, bindings=1)


@pytest.mark.parametrize("taken", [True, False])
def test_a_branch_that_is_known_is_taken(taken: bool, tmp_path: Path) -> None:
    helper = onnx.helper
    out = helper.make_tensor_value_info("b", 1, None)
    inner = onnx.numpy_helper.from_array(np.float32(2), "w")
    branches = [
        helper.make_graph([helper.make_node("Mul", ["r", "w"], ["b"])], "t", [], [out], [inner]),
        helper.make_graph([helper.make_node("Neg", ["r"], ["b"])], "e", [], [out]),
    ]
    nodes = [
        helper.make_node("Relu", ["x:0"], ["r"]),
        helper.make_node("If", ["c"], ["y"], then_branch=branches[0], else_branch=branches[1]),
    ]
    path = tmp_path / "m.onnx"
    path.write_bytes(model_of(nodes, {"c": np.asarray(taken)}).SerializeToString())
    check(path, bindings=2)


def test_integers_of_weights_stay_visible(tmp_path: Path) -> None:
    helper = onnx.helper
    nodes = [
        helper.make_node("QuantizeLinear", ["w", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        helper.make_node("Add", ["x:0", "d"], ["y"]),
    ]
    weights = {"w": X[0], "s": np.float32(0.02).reshape(()), "z": np.asarray(3, np.int8)}
    path = tmp_path / "m.onnx"
    path.write_bytes(model_of(nodes, weights).SerializeToString())
    check(path, bindings=2)
    (_, dequantised), *_ = main_bindings(import_onnx(path, {}).module)[1]
    assert dequantised.op.name == "relax.dequantize"
    np.testing.assert_array_equal(dequantised.args[0].value.numpy(), np.asarray([-47, 28, 103], np.int8))


def test_weights_that_are_moved_after_they_are_dequantised_stay_integers(tmp_path: Path) -> None:
    helper = onnx.helper
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s", "z"], ["d"], axis=0),
        helper.make_node("Transpose", ["d"], ["t"]),
        helper.make_node("MatMul", ["x:0", "t"], ["y"]),
    ]
    stored = np.arange(-6, 6, dtype=np.int8).reshape(4, 3)
    weights = {"w": stored, "s": np.asarray([0.1, 0.2, 0.3, 0.4], np.float32), "z": np.zeros(4, np.int8)}
    path = tmp_path / "m.onnx"
    path.write_bytes(model_of(nodes, weights).SerializeToString())
    check(path, bindings=3)
    moved = next(expr for var, expr in main_bindings(import_onnx(path, {}).module)[1] if var.name == "transpose_1")
    assert moved.op.name == "relax.dequantize"
    np.testing.assert_array_equal(moved.args[0].value.numpy(), stored.T)


def test_the_signature_is_the_files(tmp_path: Path) -> None:
    path, node = tmp_path / "m.onnx", onnx.helper.make_node("Relu", ["x:0"], ["y"])
    path.write_bytes(model_of([node], {}, shape=("N", 3)).SerializeToString())
    model = import_model(path, {"x:0": (2, 3)})
    assert [spec.name for spec in (*model.signature.inputs, *model.signature.outputs)] == ["x:0", "y"]
    assert [spec.info.shape for spec in (*model.signature.inputs, *model.signature.outputs)] == [(2, 3), (2, 3)]
    assert model.module["main"].params[0].name == "x_0"
    assert model.file is not None
    again = tmp_path / "again.onnx"
    again.write_bytes(model.file.data)  # as an archive holds it, with the shapes that were given
    assert import_model(again).signature == model.signature
