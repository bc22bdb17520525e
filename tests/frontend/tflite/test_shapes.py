"""Extents that a file leaves open: a shape for its inputs gives all others, as LiteRT works them out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from support.models.tflite_writer import ModelBuilder, OptionValue, Tensor
from uaccel.errors import ModelError
from uaccel.frontend import import_model
from uaccel.tvm_api.executor import Executor

Array = npt.NDArray[Any]
WINDOW = {"stride_h": 2, "stride_w": 1}


def _ints(*values: int) -> Array:
    return np.array(values, np.int32)


def _weights(*shape: int) -> Array:
    return np.random.default_rng(shape).normal(size=shape).astype(np.float32)


@dataclass(frozen=True)
class Row:
    """An operator: the shapes that its open inputs get, its constants, and the rank of what it gives."""

    operator: str
    inputs: Sequence[tuple[int, ...]]
    rank: int
    constants: Sequence[Array] = ()
    options: Mapping[str, OptionValue] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return "_".join([self.operator, *map(str, self.options.values())])


ROWS = (
    Row("TANH", [(2, 5)], 2),
    Row("SUB", [(2, 5), (1, 5)], 2),
    Row("RESHAPE", [(2, 6)], 3, [_ints(-1, 3, 2)], {"new_shape": [-1, 3, 2]}),
    Row("EXPAND_DIMS", [(2, 6)], 3, [_ints(-1)]),
    Row("SQUEEZE", [(1, 3, 1, 5)], 3, options={"squeeze_dims": [2]}),
    Row("SQUEEZE", [(1, 3, 4)], 2, options={"squeeze_dims": [-3]}),
    Row("TRANSPOSE", [(2, 3, 4)], 3, [_ints(2, 0, 1)]),
    Row("CONCATENATION", [(2, 3), (2, 4)], 2, options={"axis": -1}),
    Row("PACK", [(2, 3), (2, 3)], 3, options={"axis": 1, "values_count": 2}),
    Row("SLICE", [(4, 9)], 2, [_ints(1, 2), _ints(2, -1)]),
    Row("STRIDED_SLICE", [(4, 9)], 2, [_ints(0, 1), _ints(0, -1), _ints(1, 3)], {"begin_mask": 1, "end_mask": 1}),
    Row("STRIDED_SLICE", [(4, 9)], 1, [_ints(2, 0), _ints(3, 9), _ints(1, 2)], {"shrink_axis_mask": 1}),
    Row("PAD", [(2, 3)], 2, [np.array([[0, 0], [2, 3]], np.int32)]),
    Row("MEAN", [(2, 3, 4)], 2, [_ints(-1)], {"keep_dims": False}),
    Row("REDUCE_MAX", [(2, 3, 4)], 3, [_ints(0, 2)], {"keep_dims": True}),
    Row("CONV_2D", [(1, 9, 7, 2)], 4, [_weights(5, 3, 2, 2), _weights(5)], {**WINDOW, "padding": "SAME"}),
    Row("CONV_2D", [(1, 9, 7, 2)], 4, [_weights(5, 3, 2, 2), _weights(5)], {**WINDOW, "padding": "VALID"}),
    Row(
        "CONV_2D",
        [(1, 9, 7, 2)],
        4,
        [_weights(5, 3, 2, 2), _weights(5)],
        {"padding": "VALID", "stride_h": 1, "stride_w": 1, "dilation_h_factor": 2, "dilation_w_factor": 3},
    ),
    Row(
        "DEPTHWISE_CONV_2D",
        [(1, 8, 7, 3)],
        4,
        [_weights(1, 3, 2, 3), _weights(3)],
        {**WINDOW, "padding": "SAME", "depth_multiplier": 1},
    ),
    Row(
        "MAX_POOL_2D", [(1, 8, 7, 3)], 4, options={**WINDOW, "padding": "VALID", "filter_height": 3, "filter_width": 2}
    ),
    Row("FULLY_CONNECTED", [(3, 4)], 2, [_weights(5, 4), _weights(5)], {"keep_num_dims": False}),
    Row("FULLY_CONNECTED", [(2, 3, 4)], 3, [_weights(5, 4), _weights(5)], {"keep_num_dims": True}),
    Row("BATCH_MATMUL", [(2, 3, 4), (2, 5, 4)], 3, options={"adj_x": False, "adj_y": True}),
    Row("GATHER", [(5, 3)], 2, [_ints(4, 0, 1, 1)], {"axis": 0}),
)


def _open(builder: ModelBuilder, name: str, rank: int, *, given: bool = False) -> Tensor:
    """A tensor as the converter writes it where it knows no extent."""
    make = builder.input if given else builder.tensor
    return make(name, (1,) * rank, "float32", signature=(-1,) * rank)


def _model(row: Row) -> bytes:
    builder = ModelBuilder()
    inputs = [_open(builder, f"x{number}", len(shape), given=True) for number, shape in enumerate(row.inputs)]
    constants = [builder.constant(f"c{number}", value) for number, value in enumerate(row.constants)]
    y = _open(builder, "y", row.rank)
    builder.op(row.operator, [*inputs, *constants], [y], row.options)
    return builder.build(y)


def _by_litert(data: bytes, values: Sequence[Array]) -> Array:
    interpreter = Interpreter(model_content=data, experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    places = interpreter.get_input_details()
    for place, value in zip(places, values, strict=True):
        interpreter.resize_tensor_input(place["index"], value.shape)
    interpreter.allocate_tensors()
    for place, value in zip(places, values, strict=True):
        interpreter.set_tensor(place["index"], value)
    interpreter.invoke()
    return np.array(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))


def _compare(data: bytes, shapes: Mapping[str, tuple[int, ...]], path: Path) -> None:
    path.write_bytes(data)
    rng = np.random.default_rng(0)
    values = [rng.normal(size=shape).astype(np.float32) for shape in shapes.values()]
    (got,) = Executor(import_model(path, shapes).module).run(values)
    wanted = _by_litert(data, values)
    assert np.asarray(got).shape == wanted.shape
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_an_open_shape_follows_from_the_inputs(row: Row, tmp_path: Path) -> None:
    _compare(_model(row), {f"x{number}": shape for number, shape in enumerate(row.inputs)}, tmp_path / "m.tflite")


def _frames(signature: tuple[int, int]) -> bytes:
    """Cuts rows into frames of four, as many as there are: the shape is computed of the input's own."""
    builder = ModelBuilder()
    x = builder.input("x", (1, 10), "float32", signature=signature)
    zero, four = (builder.constant(name, np.int32(n)) for name, n in (("0", 0), ("4", 4)))
    lists = [builder.constant(f"at{n}", _ints(n)) for n in range(3)]
    named = [("shape", (2,)), *((name, ()) for name in ("rows", "all", "each", "count", "length")), ("take", (2,))]
    shape, rows, whole, each, count, length, take = (builder.tensor(name, of, "int32") for name, of in named)
    builder.op("SHAPE", [x], [shape], {"out_type": "INT32"})
    builder.op("STRIDED_SLICE", [shape, lists[0], lists[1], lists[1]], [rows], {"shrink_axis_mask": 1})
    builder.op("REDUCE_PROD", [shape, zero], [whole], {"keep_dims": False})
    builder.op("FLOOR_DIV", [whole, rows], [each])
    builder.op("FLOOR_DIV", [each, four], [count])
    builder.op("MUL", [count, four], [length])
    builder.op("PACK", [rows, length], [take], {"axis": 0, "values_count": 2})
    part = builder.tensor("part", (1, 1), "float32", signature=(-1, -1))
    builder.op("SLICE", [x, builder.constant("from", _ints(0, 0)), take], [part])
    wanted = builder.tensor("wanted", (3,), "int32")
    builder.op("PACK", [rows, count, four], [wanted], {"axis": 0, "values_count": 3})
    y = builder.tensor("y", (1, 1, 4), "float32", signature=(-1, -1, 4))
    builder.op("RESHAPE", [part, wanted], [y], {"new_shape": []})
    return builder.build(y)


@pytest.mark.parametrize(
    ("signature", "given"),
    [((-1, -1), (2, 11)), ((-1, 10), (1, 10)), ((-1, 10), (3, 10)), ((1, -1), (1, 9))],
    ids=["both", "the file's own", "batch", "length"],
)
def test_a_shape_that_is_computed_of_shapes(signature: tuple[int, int], given: tuple[int, int], tmp_path: Path) -> None:
    _compare(_frames(signature), {"x": given}, tmp_path / "m.tflite")


def test_a_file_without_open_inputs_needs_no_option(tmp_path: Path) -> None:
    """The converter leaves what lies behind an open batch open, too, and writes 1 for it."""
    path = tmp_path / "m.tflite"
    path.write_bytes(_frames((-1, 10)))
    (output,) = import_model(path).signature.outputs
    assert output.info.shape == (1, 2, 4)


SUM = _model(Row("SUB", [(2, 5), (1, 5)], 2))
REFUSED: dict[str, tuple[bytes, dict[str, tuple[int, ...]], str]] = {
    "no shape": (SUM, {}, r'input "x0" \[\?,\?\] has the dynamic dimensions 0, 1; .* add --input-shape x0:1,1, or'),
    "half of them": (SUM, {"x0": (2, 5)}, r'input "x1" \[\?,\?\] has the dynamic dimensions 0, 1'),
    "another name": (SUM, {"z": (2, 5)}, 'has no input "z" for --input-shape; its inputs are: x0, x1'),
    "another rank": (SUM, {"x0": (5,), "x1": (5,)}, r'--input-shape x0:5 has 1 extents; input "x0" is \[\?,\?\]'),
    "shapes that do not fit": (SUM, {"x0": (2, 5), "x1": (2, 4)}, "operator 0 SUB: .*broadcast"),
    "a fixed extent": (_frames((-1, 10)), {"x": (1, 9)}, r'dimension 1 of input "x" \[\?,10\] is fixed at 10'),
    "a window too large": (
        _model(ROWS[16]),
        {"x0": (1, 2, 7, 2)},
        r"operator 0 CONV_2D: its window \[3, 2\] does not fit into \[2, 7\]; give a larger --input-shape",
    ),
    "an operator without a rule": (
        _model(Row("DEPTH_TO_SPACE", [(1, 2, 2, 4)], 4, options={"block_size": 2})),
        {"x0": (1, 2, 2, 4)},
        "operator 0 DEPTH_TO_SPACE: the shape of what it gives cannot be worked out .* set the shape before",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_shapes_that_cannot_be(what: str, tmp_path: Path) -> None:
    data, shapes, words = REFUSED[what]
    path = tmp_path / "m.tflite"
    path.write_bytes(data)
    with pytest.raises(ModelError, match=words):
        import_model(path, shapes)
