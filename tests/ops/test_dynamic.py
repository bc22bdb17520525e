"""What begins or lies where a run says, and types that only the tensors tell: as TFLite Micro computes it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from support.device.boards import board_with_tools
from support.device.hostlib import HostModel, compile_bytes
from support.models.many import Row, many
from support.models.single_op import Activation, Constant
from support.models.tflite_writer import ModelBuilder, OptionValue
from support.oracle.exactness import assert_exact, assert_same
from support.oracle.oracle import Array, Tflm, random_inputs
from support.oracle.refusal import refused
from uaccel.pipeline import compile_model
from uaccel.runner.compiled import run_compiled

I8 = Activation((4, 5), "int8", 0.1, 3)
BEGIN = Activation((2,), "int32")
TABLE = np.arange(-20, 20).astype(np.int8).reshape(10, 4)
IDS = Activation((3,), "int32")
ROWS = {
    "SLICE": Row("SLICE", [I8, BEGIN, Constant(np.array([2, 3], np.int32))], [Activation((2, 3), "int8", 0.1, 3)]),
    "SLICE, whole axis": Row(
        "SLICE", [I8, BEGIN, Constant(np.array([2, 5], np.int32))], [Activation((2, 5), "int8", 0.1, 3)]
    ),
    "update": Row("DYNAMIC_UPDATE_SLICE", [I8, Activation((2, 3), "int8", 0.1, 3), BEGIN], [I8]),
    "update of floats": Row(
        "DYNAMIC_UPDATE_SLICE",
        [Activation((4, 5), "float32"), Activation((1, 5), "float32"), BEGIN],
        [Activation((4, 5), "float32")],
    ),
    "batches": Row(
        "GATHER",
        [Activation((2, 5, 3), "int8", 0.1), Activation((2, 4), "int32")],
        [Activation((2, 4, 3), "int8", 0.1)],
        {"axis": 1, "batch_dims": 1},
    ),
    "batches, later axis": Row(
        "GATHER",
        [Activation((2, 3, 5, 2), "int8", 0.1), Activation((2, 4), "int32")],
        [Activation((2, 3, 4, 2), "int8", 0.1)],
        {"axis": 2, "batch_dims": 1},
    ),
    "embedding": Row("EMBEDDING_LOOKUP", [IDS, Constant(TABLE, (0.1,), (0,))], [Activation((3, 4), "int8", 0.1)]),
    "embedding, float": Row(
        "EMBEDDING_LOOKUP", [IDS, Constant(TABLE.astype(np.float32))], [Activation((3, 4), "float32")]
    ),
    "embedding, hybrid": Row("EMBEDDING_LOOKUP", [IDS, Constant(TABLE, (0.1,), (0,))], [Activation((3, 4), "float32")]),
}
LARGEST = {"SLICE": 2, "SLICE, whole axis": 0, "update": 6, "batches": 4, "batches, later axis": 4}
"""What an index of a row can be; the reference clamps those of an update alone."""


def inputs_of(name: str, runs: int) -> list[list[Array]]:
    data, largest = many({name: ROWS[name]}), LARGEST.get(name, 6)
    return [
        [np.abs(v % (largest + 1)) if v.dtype == np.int32 else v for v in run] for run in random_inputs(data, 1, runs)
    ]


@pytest.mark.parametrize("name", ROWS)
def test_as_the_reference(name: str) -> None:
    assert_exact(many({name: ROWS[name]}), inputs_of(name, 6), meaning=False)


@pytest.mark.sample(1)
def test_on_a_board(tmp_path: Path) -> None:
    chosen = {name: ROWS[name] for name in ("SLICE", "update", "batches, later axis", "embedding, hybrid")}
    path = tmp_path / "model.tflite"
    path.write_bytes(many(chosen))
    sample = [value for name in chosen for value in inputs_of(name, 1)[0]]
    board = board_with_tools("mps2_an500")
    compiled = compile_model(path, board="mps2_an500")
    run = run_compiled(compiled, board, [sample], tmp_path / "run", lambda step: None).run
    for name, got, wanted in zip(chosen, run.outputs[0], Tflm(path.read_bytes()).run(sample), strict=True):
        assert_same(got, wanted, name)


@pytest.mark.parametrize("operator", ["ARG_MAX", "ARG_MIN"])
def test_position_in_floats(operator: str) -> None:
    inputs: list[Activation | Constant] = [Activation((4, 6), "float32"), Constant(np.array(1, np.int32))]
    data = many({"row": Row(operator, inputs, [Activation((4,), "int32")], {"output_type": 2})})
    equal = np.array([[1, 3, 3, 0, 0, 2]] * 4, np.float32)
    assert_exact(data, [*random_inputs(data, 0, 3), [equal]], meaning=False)


def test_casts_go_by_the_tensors() -> None:
    """The options say int8 on both sides."""
    options = {"in_data_type": 9, "out_data_type": 9}
    values = np.array([[-100.7, -1.5, 0.0, 0.9, 3.2, 100.1]], np.float32)
    rows = {
        "to int32": Row("CAST", [Activation((1, 6), "float32")], [Activation((1, 6), "int32")], options),
        "to float": Row("CAST", [Activation((1, 6), "int8")], [Activation((1, 6), "float32")], options),
    }
    assert_exact(many(rows), [[values, np.arange(-3, 3).astype(np.int8).reshape(1, 6)]], meaning=False)


def test_unsigned_tensors() -> None:
    """They are stored, moved and cast; TFLite Micro casts uint32 as well."""
    inputs = [Activation((1, 3), "uint32")]
    row = Row("CAST", inputs, [Activation((1, 3), "int32")])
    moved = Row(
        "RESHAPE", [Activation((1, 3), "uint64"), Constant(np.array([3], np.int32))], [Activation((3,), "uint64")]
    )
    model = HostModel(compile_bytes(many({"cast": row, "moved": moved})))
    numbers, wide = np.array([[1, 2**31 + 5, 7]], np.uint32), np.array([[1, 2**63 + 5, 7]], np.uint64)
    got = model(numbers, wide)
    assert got[0].tolist() == numbers.astype(np.int32).tolist()
    assert got[1].tolist() == wide[0].tolist()


def test_an_update_that_does_not_fit() -> None:
    row = Row("DYNAMIC_UPDATE_SLICE", [I8, Activation((5, 3), "int8", 0.1, 3), BEGIN], [I8])
    assert refused(row) == (
        'operator 0 DYNAMIC_UPDATE_SLICE ("row: output 0"): update int8 [5,3] does not fit into int8 [4,5]'
    )


def test_batches_that_differ() -> None:
    inputs = [Activation((2, 5, 3), "int8", 0.1), Activation((3, 4), "int32")]
    row = Row("GATHER", inputs, [Activation((2, 4, 3), "int8", 0.1)], {"axis": 1, "batch_dims": 1})
    assert refused(row) == (
        'operator 0 GATHER ("row: output 0"): the first 1 extents of int8 [2,5,3] and indices int32 [3,4] differ'
    )


def test_a_quantised_file_is_not_told_to_quantise() -> None:
    floats = Row("CONCAT_EMBEDDINGS", [Activation((4,), "float32")], [Activation((4,), "float32")])
    quantised = Row("CONCAT_EMBEDDINGS", [I8], [I8])
    assert refused(floats).endswith("; rewrite the layer with supported operators, or quantise the model to int8")
    assert refused(quantised).endswith("; rewrite the layer with supported operators")


def test_a_file_with_quantised_weights_alone_is_told_to_quantise_the_rest() -> None:
    """Where LiteRT has no such layer."""
    weights = Constant(np.ones((2, 3, 3, 2), np.int8), (0.02,), (0,))
    image = Activation((1, 4, 4, 2), "float32")
    inputs: list[Activation | Constant] = [Constant(np.array([1, 4, 4, 2], np.int32)), weights, image]
    options: dict[str, OptionValue] = {"stride_w": 1, "stride_h": 1}
    assert refused(Row("TRANSPOSE_CONV", inputs, [image], options)).endswith(
        'weights "row: input 1" are int8 beside an input of float32; have the TFLite converter quantise '
        "activations as well (a representative_dataset)"
    )


def test_a_file_of_vela_is_told_of_the_file_before() -> None:
    model = ModelBuilder()
    data = model.input("x", (4,), "int8", scale=0.1)
    result = model.tensor("y", (4,), "int8", scale=0.1)
    model.op("CUSTOM", [data], [result], custom_code="ethos-u")
    assert refused(model.build(result)) == (
        'operator 0 CUSTOM:ethos-u ("y"): Vela compiled this file for an Ethos-U; '
        "give the .tflite file that Vela was given"
    )
