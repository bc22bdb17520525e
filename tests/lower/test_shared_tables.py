"""A table of entries that is also the weights of a product lies in flash once, and both layers compute the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from support.device.boards import board_with_tools
from support.device.hostlib import HostModel
from support.run.command import process
from uaccel.lower.program import Layer
from uaccel.lower.shared_tables import share_tables
from uaccel.pipeline import Compiled, compile_model

DEPTH = 12
Array = NDArray[Any]
Product = Callable[[Array], tuple[Array | None, list[onnx.NodeProto]]]


def transposed(_table: Array) -> tuple[Array | None, list[onnx.NodeProto]]:
    turn = helper.make_node("Transpose", ["table"], ["turned"], perm=[1, 0])
    return None, [turn, helper.make_node("MatMul", ["x", "turned"], ["scores"])]


def gemm(_table: Array) -> tuple[Array | None, list[onnx.NodeProto]]:
    return None, [helper.make_node("Gemm", ["x", "table"], ["scores"], transB=1)]


def copied(table: Array) -> tuple[Array | None, list[onnx.NodeProto]]:
    """As exporters write it that transpose the weights themselves."""
    return table.T, [helper.make_node("MatMul", ["x", "other"], ["scores"])]


def untied(table: Array) -> tuple[Array | None, list[onnx.NodeProto]]:
    other = table.T.copy()
    other[3, -1] += 1
    return other, [helper.make_node("MatMul", ["x", "other"], ["scores"])]


def tied(folder: Path, table: Array, product: Product = transposed, count: int = 1, kind: str = "int32") -> Path:
    """Picks entries, and multiplies the first of them with all."""
    other, nodes = product(table)
    first = np.array([0], np.int64)
    given = {"table": table, "first": first} | ({} if other is None else {"other": np.ascontiguousarray(other)})
    nodes = [
        helper.make_node("Gather", ["table", "tokens"], ["picked"], axis=0),
        helper.make_node("Gather", ["picked", "first"], ["x"], axis=0),
        *nodes,
    ]
    tokens = helper.make_tensor_value_info("tokens", TensorProto.DataType.Value(kind.upper()), [count])
    results = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (("picked", [count, DEPTH]), ("scores", [1, len(table)]))
    ]
    initializers = [numpy_helper.from_array(array, name) for name, array in given.items()]
    model = helper.make_model(
        helper.make_graph(nodes, "tied", [tokens], results, initializers), opset_imports=[helper.make_opsetid("", 18)]
    )
    path = folder / "tied.onnx"
    onnx.save(model, path)
    return path


def table_of(entries: int, *, halves: bool = False) -> Array:
    drawn = np.random.default_rng(entries).standard_normal((entries, DEPTH)).astype(np.float32)
    drawn[0, :2] = (-0.0, 0.0)
    return drawn.astype(np.float16).astype(np.float32) if halves else drawn


def gather(compiled: Compiled) -> Layer:
    (layer,) = (layer for layer in compiled.program.layers if layer.kernel.calls and "entries" in _fields(layer))
    return layer


def _fields(layer: Layer) -> Mapping[str, Any]:
    return layer.kernel.calls[0].parameters


@pytest.mark.parametrize("halves", [False, True])
@pytest.mark.parametrize(("product", "entries", "count", "kind"), [
    (transposed, 200, 1, "int32"), (gemm, 203, 3, "int64"), (copied, 202, 2, "int32"),
])  # fmt: skip
def test_a_tied_table_lies_in_flash_once(
    product: Product, entries: int, count: int, kind: str, halves: bool, tmp_path: Path
) -> None:
    table = table_of(entries, halves=halves)
    compiled = compile_model(tied(tmp_path, table, product, count, kind), board="host")
    stored = [array for array in compiled.generated.arrays if array.data.nbytes > 1000]
    assert [len(array.users) for array in stored] == [2]
    assert stored[0].data.nbytes == -(-entries // 4) * 4 * DEPTH * (2 if halves else 4)
    assert gather(compiled).reason == f"CPU kernel {gather(compiled).kernel.calls[0].function} (portable)"
    run = HostModel(compiled)
    drawn = np.random.default_rng(1).integers(0, entries, (4, count)).tolist()
    for tokens in [*drawn, [entries - 1] * count]:
        picked, scores = run(np.array(tokens))
        assert picked.tobytes() == table[tokens].tobytes()
        np.testing.assert_allclose(scores, table[tokens[:1]] @ table.T, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("board", ["mps2_an386", "mps3_an547", "qemu_riscv32"])
@pytest.mark.parametrize("halves", [False, True])
def test_boards_pick_the_same_entries(board: str, halves: bool, tmp_path: Path) -> None:
    board_with_tools(board)
    table = table_of(202, halves=halves)
    path, tokens = tied(tmp_path, table, count=2), np.array([201, 5], np.int32)
    np.savez(tmp_path / "in.npz", tokens=tokens)
    words = ("--inputs", tmp_path / "in.npz", "--outputs", tmp_path / "out.npz", "--verify", "--json")
    done = process("run", path, "--board", board, *words, cwd=tmp_path)
    assert done.status == 0, done.err
    assert np.load(tmp_path / "out.npz")["picked"].tobytes() == table[tokens].tobytes()


@pytest.mark.parametrize(("product", "entries", "count"), [
    (untied, 200, 1),  # one number differs
    (transposed, 20, 1),  # too small to pay for a kernel of its own
    (transposed, 200, 5),  # the gather would be a large part of the time
])  # fmt: skip
def test_a_table_stays_where_sharing_does_not_pay(product: Product, entries: int, count: int, tmp_path: Path) -> None:
    compiled = compile_model(tied(tmp_path, table_of(entries), product, count), board="host")
    assert gather(compiled).kernel.calls[0].function == "uaccel_gather_s32"


def test_numbers_that_only_compare_as_equal_are_not_shared(tmp_path: Path) -> None:
    """Zero and minus zero."""
    table = table_of(200)
    path = tied(tmp_path, table, lambda table: (np.abs(table.T) * np.sign(table.T), copied(table)[1]))
    assert gather(compile_model(path, board="host")).kernel.calls[0].function == "uaccel_gather_s32"


def test_a_shared_program_is_left_as_it_is(tmp_path: Path) -> None:
    program = compile_model(tied(tmp_path, table_of(200)), board="host").program
    assert share_tables(program).layers == program.layers
