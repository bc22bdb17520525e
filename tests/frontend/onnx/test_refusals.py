"""What is wrong with an ONNX file, or cannot be compiled: one line that says what, where, and what to do."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.models.onnx_rows import Given, Row, model_of, row
from uaccel.errors import ModelError
from uaccel.frontend import import_model

onnx = pytest.importorskip("onnx", reason="the onnx package is not installed")


def simple(shape: Any = (1, 3), opset: int = 17) -> Any:
    """Relu and Add: x to y."""
    helper = onnx.helper
    nodes = [helper.make_node("Relu", ["x"], ["r"], name="first"), helper.make_node("Add", ["r", "w"], ["y"])]
    inputs = [helper.make_tensor_value_info("x", 1, shape)]
    outputs = [helper.make_tensor_value_info("y", 1, None)]
    weights = [onnx.numpy_helper.from_array(np.zeros(3, np.float32), "w")]
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def refusal(model: Any, folder: Path, **options: Any) -> str:
    """What the importer says, without the folder."""
    path = folder / "m.onnx"
    path.write_bytes(model if isinstance(model, bytes) else model.SerializeToString())
    with pytest.raises(ModelError) as caught:
        import_model(path, **options)
    text = str(caught.value)
    assert "\n" not in text
    return text.replace(f"{folder}/", "")


def _newer_ir(model: Any) -> None:
    model.ir_version = 99


def _newer_opset(model: Any) -> None:
    model.opset_import[0].version = 999


def _no_opset(model: Any) -> None:
    del model.opset_import[:]


def _no_nodes(model: Any) -> None:
    del model.graph.node[:]


def _no_outputs(model: Any) -> None:
    del model.graph.output[:]


def _no_weights(model: Any) -> None:
    del model.graph.initializer[:]


def _weights_twice(model: Any) -> None:
    model.graph.initializer.append(model.graph.initializer[0])


def _input_twice(model: Any) -> None:
    model.graph.input.append(model.graph.input[0])


def _made_twice(model: Any) -> None:
    model.graph.node[1].output[0] = "r"


def _ring(model: Any) -> None:
    """The first node reads what the second makes of its result."""
    model.graph.node[0].input[0] = model.graph.node[1].output[0]


def _other_output(model: Any) -> None:
    model.graph.output[0].name = "z"


def _unknown(model: Any) -> None:
    model.graph.node[0].op_type = "Relou"


def _short_weights(model: Any) -> None:
    model.graph.initializer[0].raw_data = b"123"


def _outside(model: Any) -> None:
    tensor = model.graph.initializer[0]
    onnx.external_data_helper.set_external_data(tensor, "weights.bin")
    tensor.ClearField("raw_data")


def _text_input(model: Any) -> None:
    model.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.STRING


def _no_shape(model: Any) -> None:
    model.graph.input[0].type.tensor_type.ClearField("shape")


def _optional(model: Any) -> None:
    kind = model.graph.input[0].type
    kind.CopyFrom(onnx.helper.make_optional_type_proto(kind))


FILES: dict[str, tuple[Callable[[Any], None], str]] = {
    "newer IR": (_newer_ir, r"m.onnx has IR version 99; onnx \S+ knows up to \d+: pip install -U onnx, or export .*"),
    "newer opset": (_newer_opset, r"m.onnx uses opset 999; onnx \S+ knows up to \d+: pip install -U onnx, or .*"),
    "no opset": (_no_opset, "m.onnx does not say which opset of ai.onnx its operators are of; export the model again"),
    "no nodes": (_no_nodes, "m.onnx is empty: its graph has no nodes; nothing to compile"),
    "no outputs": (_no_outputs, "m.onnx has no outputs; export the model again"),
    "no weights": (
        _no_weights,
        r'm.onnx: node 1 Add \(""\) reads "w", which is no input, no initialiser and no node\'s output; export .*',
    ),
    "weights twice": (_weights_twice, 'm.onnx has more than one initialiser with the name "w"; names must differ'),
    "input twice": (_input_twice, 'm.onnx has more than one input with the name "x"; names must differ'),
    "made twice": (_made_twice, r'm.onnx: node 1 Add \(""\) makes "r", which exists already; names must differ'),
    "ring": (_ring, r'm.onnx: node 0 Relu \("first"\) reads "y", which is made only later; export the model again'),
    "other output": (_other_output, 'm.onnx: output "z" is made by no node; export the model again'),
    "unknown": (_unknown, "m.onnx is no valid ONNX model: No Op registered for Relou with domain_version of 17; .*"),
    "short weights": (
        _short_weights,
        r'm.onnx: initialiser "w" \(float32 \[3\]\) has 3 bytes, wanted 12; export the model again',
    ),
    "outside": (
        _outside,
        r'cannot read the weights "w" that m.onnx keeps in a file of their own: weights.bin is not there; put '
        r".* into .*",
    ),
    "text": (_text_input, 'm.onnx: input "x" has type string, which cannot be compiled'),
    "optional": (
        _optional,
        'm.onnx: input "x" is of optional_type, which cannot be compiled; export the model with a tensor instead',
    ),
    "no shape": (
        _no_shape,
        'm.onnx: input "x" has no shape; firmware needs every extent fixed: '
        "add --input-shape x:D0,D1,... with its extents",
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_wrong(name: str, tmp_path: Path) -> None:
    change, wanted = FILES[name]
    model = simple()
    change(model)
    assert re.fullmatch(wanted, text := refusal(model, tmp_path)), text


@pytest.mark.parametrize("data", [b"", b"no protobuf at all", b"TFL3" * 40, bytes(100)])
def test_bytes_that_are_no_model(data: bytes, tmp_path: Path) -> None:
    text = refusal(data, tmp_path)
    assert re.match(r"m.onnx (is no ONNX file, or is damaged \(\d+ bytes\)|holds no graph \(\d+ bytes\))", text), text


def test_a_file_cut_short_anywhere(tmp_path: Path) -> None:
    data = simple().SerializeToString()
    for length in range(0, len(data), 7):
        path = tmp_path / "m.onnx"
        path.write_bytes(data[:length])
        with pytest.raises(ModelError):
            import_model(path)


SHAPES: dict[str, tuple[Any, dict[str, tuple[int, ...]], str]] = {
    "free batch": (
        ("N", 3),
        {},
        'm.onnx: input "x" [N,3] has the dynamic dimension 0 ("N"); firmware needs every extent fixed: '
        "add --input-shape x:1,3, or with the extent you want",
    ),
    "several": (
        ("N", 3, None),
        {},
        'm.onnx: input "x" [N,3,?] has the dynamic dimensions 0 ("N"), 2; firmware needs every extent fixed: '
        "add --input-shape x:1,3,1, or with the extents you want",
    ),
    "another name": ((1, 3), {"z": (1, 3)}, 'm.onnx has no input "z" for --input-shape; its inputs are: x'),
    "another rank": ((1, 3), {"x": (3,)}, 'm.onnx: --input-shape x:3 has 1 extents; input "x" is [1,3]'),
    "contradiction": (
        ("N", 3),
        {"x": (2, 4)},
        'm.onnx: --input-shape x:2,4 contradicts the file: dimension 1 of input "x" [N,3] is fixed at 3',
    ),
    "nothing": ((0, 3), {}, 'm.onnx: input "x" (float32 [0,3]) holds no elements; nothing to compute'),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_that_are_not_fixed_or_do_not_fit(name: str, tmp_path: Path) -> None:
    shape, given, wanted = SHAPES[name]
    assert refusal(simple(shape), tmp_path, input_shapes=given) == wanted


REAL = Given((2, 3))
RECURRENT = Given((4, 1, 2)), np.zeros((1, 12, 2), np.float32), np.zeros((1, 12, 3), np.float32)
SCALE, POINT = np.float32(0.1).reshape(()), np.asarray(3, np.int8)
NODES: dict[str, tuple[Row, str]] = {
    "data dependent": (
        row("NonZero", REAL),
        "the shape of its result depends on data, and firmware needs every shape fixed; "
        "cut the model before it and compute it in the application",
    ),
    "random": (
        row("RandomNormalLike", REAL),
        "its result is random; uaccel compiles what gives the same result each time",
    ),
    "given shape": (
        row("Reshape", REAL, Given((2,), "int64", 1, 1)),
        'shape "row/in1" is computed at run time; only constant shape can be compiled',
    ),
    "no image": (
        row("GlobalMaxPool", Given((4, 18))),
        "its input has rank 2, and only what lies behind batch and channels is pooled; wanted rank 3",
    ),
    "coupled gates": (
        row("LSTM", *RECURRENT, hidden_size=3, input_forget=1),
        r"its gates are coupled \(input_forget\), which is not supported",
    ),
    "function of gates": (
        row("LSTM", *RECURRENT, hidden_size=3, activations=["Sigmoid", "Elu", "Tanh"]),
        "activation elu is not supported; Sigmoid, Tanh, Relu and HardSigmoid can be compiled",
    ),
    "function of its own": (
        row("LSTM", *RECURRENT, hidden_size=3, activations=["HardSigmoid", "Tanh", "Tanh"], activation_alpha=[0.3]),
        "an activation has a slope or an offset of its own, which is not supported",
    ),
    "scale given": (
        row("QuantizeLinear", REAL, Given(()), POINT),
        'scale "row/in1" is computed at run time; only constant scale can be compiled',
    ),
    "blocked": (
        row("DequantizeLinear", Given((4, 4), "int8"), np.ones((2, 4), np.float32), axis=0, block_size=2),
        "blocked quantisation is supported of constants alone; quantise per tensor or axis",
    ),
    "blocked otherwise": (
        row("DequantizeLinear", np.ones((5, 4), np.int8), np.ones((2, 4), np.float32), axis=0, block_size=2),
        r"its scales are not \[3, 4\]",
    ),
    "quantising to four bits": (
        row("QuantizeLinear", REAL, np.ones((), np.float32), np.zeros((), "int4")),
        "quantising to int4 is not supported, only to int8, uint8, int16, uint16",
    ),
    "resize mode": (
        row(
            *("Resize", Given((1, 1, 4, 4)), np.asarray([0, 0, 0, 0, 1, 1, 1, 1], np.float32), None),
            np.asarray([1, 1, 2, 2], np.int64),
            mode="linear",
            coordinate_transformation_mode="tf_half_pixel_for_nn",
        ),
        "coordinate_transformation_mode tf_half_pixel_for_nn is not supported; supported are .*",
    ),
    "index": (
        row("Gather", REAL, np.asarray([5], np.int64), axis=1),
        'an index of "row/in1" lies outside the 3 elements',
    ),
    "training": (
        row("BatchNormalization", Given((1, 2, 3)), *[np.ones(2, np.float32)] * 4, training_mode=1, outputs=3),
        "training_mode takes mean and variance from the data; export the model for inference",
    ),
}


@pytest.mark.parametrize("name", NODES)
def test_nodes_that_cannot_be_compiled(name: str, tmp_path: Path) -> None:
    entry, wanted = NODES[name]
    text = refusal(model_of({"row": entry}, 21), tmp_path)
    opening = rf'cannot import m.onnx: 1 unsupported: node 0 {entry.op} \("row"\): '
    assert re.fullmatch(opening + wanted, text), text


def test_all_nodes_that_cannot_be_compiled_are_named_at_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    rows = {name: NODES[name][0] for name in ("random", "coupled gates", "scale given")}
    text = refusal(model_of(rows, 21), tmp_path)
    assert text.startswith("cannot import m.onnx: 3 unsupported: node 0 ")
    assert all(f'("{name}"): ' in text for name in rows)
    assert capfd.readouterr() == ("", "")


def test_what_follows_a_refused_node_is_not_blamed(tmp_path: Path) -> None:
    """Its type is a guess, and what TVM makes of that says nothing about the node."""
    text = """<ir_version: 8, opset_import: ["" : 17]> g (float[4] x, int64[1] n, float[4] z) => (float[N] y) {
        s = Slice(x, n, n) y = Add(s, z) }"""
    assert refusal(onnx.parser.parse_model(text), tmp_path) == (
        'cannot import m.onnx: 1 unsupported: node 0 Slice ("s"): the shape of "s" depends on data, and firmware needs '
        "every shape fixed"
    )


def test_an_operator_of_somebody_else(tmp_path: Path) -> None:
    model = simple()
    model.graph.node[0].domain = "acme"
    model.opset_import.append(onnx.helper.make_opsetid("acme", 1))
    assert refusal(model, tmp_path) == (
        'cannot import m.onnx: 1 unsupported: node 0 Relu ("first"): its domain "acme" is not known; '
        "rewrite the layer with supported operators"
    )


def test_without_the_onnx_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = simple().SerializeToString()
    monkeypatch.setitem(sys.modules, "onnx", None)
    assert refusal(model, tmp_path) == (
        "reading ONNX models takes the onnx package, and importing it fails (import of onnx halted; "
        "None in sys.modules); install it: pip install 'uaccel[onnx]'"
    )
