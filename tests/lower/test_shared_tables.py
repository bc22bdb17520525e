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
from support.models.tflite_writer import ModelBuilder
from support.oracle.oracle import Tflm
from support.run.command import process
from uaccel.board import load_board
from uaccel.kernels.choice import selection_for
from uaccel.lower.program import Layer
from uaccel.lower.shared_tables import share_tables
from uaccel.pipeline import Compiled, compile_model
from uaccel.runner.compiled import run_compiled

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


def bytes_of(entries: int, depth: int, least: int = -127) -> Array:
    drawn = np.random.default_rng(entries).integers(least, 128, (entries, depth)).astype(np.int8)
    drawn[:4, :4] = ((-127, 127, 0, -1), (-1, 0, 127, -127), (0, -1, 1, 0), (127, -127, -127, 127))
    return drawn


def tied_bytes(folder: Path, table: Array, count: int = 1, scales: float = 0.0) -> Path:
    """The same in integers. ``scales``: channels of the product have scales of their own, up to so much apart."""
    model, (entries, depth) = ModelBuilder(), table.shape
    tokens = model.input("tokens", (count,), "int32")
    entry, first = model.constant("table", table, scale=0.01), model.constant("first", np.zeros(1, np.int32))
    apart = [0.01 * (1 + scales * unit / entries) for unit in range(entries)]
    weights = model.constant("weights", table, scales=apart, zero_points=[0] * entries) if scales else entry
    picked = model.tensor("picked", (count, depth), "int8", scale=0.01)
    x = model.tensor("x", (1, depth), "int8", scale=0.01)
    scores = model.tensor("scores", (1, entries), "int8", scale=0.05)
    model.op("GATHER", [entry, tokens], [picked], {"axis": 0})
    model.op("GATHER", [picked, first], [x], {"axis": 0})
    model.op("FULLY_CONNECTED", [x, weights, None], [scores])
    model.output(picked)
    path = folder / "bytes.tflite"
    path.write_bytes(model.build(scores))
    return path


@pytest.mark.parametrize(("board", "form"), [("mps2_an386", "pairs"), ("mps3_an547", "vectors")])
@pytest.mark.parametrize(
    ("entries", "depth", "count", "scales"), [(202, 12, 2, 0.0), (205, 64, 1, 0.0), (301, 17, 1, 0.5)]
)
def test_bytes_lie_as_the_product_reads_them(
    board: str, form: str, entries: int, depth: int, count: int, scales: float, tmp_path: Path
) -> None:
    """And boards pick the entries of the table out of them."""
    table, target = bytes_of(entries, depth), board_with_tools(board)
    path = tied_bytes(tmp_path, table, count, scales)
    compiled = compile_model(path, board=board, selection=selection_for(target))
    assert gather(compiled).kernel.calls[0].function == f"uaccel_gather_{form}_s32"
    assert sum(array.data.nbytes > 1000 for array in compiled.generated.arrays) == 1
    samples = [
        [np.resize([entry, 5], count).astype(np.int32)] for entry in (0, 1, 2, 3, entries // 2, entries - 1, 999)
    ]
    done = run_compiled(compiled, target, samples, tmp_path / "run", lambda _: None)
    for (tokens,), (picked, scores) in zip(samples, done.run.outputs, strict=True):
        nearest = np.minimum(tokens, entries - 1)
        np.testing.assert_array_equal(picked, table[nearest])
        np.testing.assert_array_equal(scores, Tflm(path.read_bytes()).run([nearest])[1])


def test_bytes_of_a_product_that_is_not_packed_stay(tmp_path: Path) -> None:
    """Where one number could not tell two weights, as with -128 beside a negative one."""
    lowest = bytes_of(202, 12, least=-128)
    lowest[6:8, 3] = (-128, -3)
    path, board = tied_bytes(tmp_path, lowest), load_board("mps2_an386")
    compiled = compile_model(path, board="mps2_an386", selection=selection_for(board))
    assert gather(compiled).kernel.calls[0].function == "uaccel_gather_s32"


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
