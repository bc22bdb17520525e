"""ONNX files made to crash, fill or hold what reads them: one line says what is wrong, before native code meets it."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.device.hostlib import HostModel
from uaccel.errors import ModelError
from uaccel.frontend import import_model
from uaccel.pipeline import compile_model

onnx = pytest.importorskip("onnx", reason="the onnx package is not installed")
helper, TensorProto = onnx.helper, onnx.TensorProto
AGAIN = "export the model again"


def model(*nodes: Any, constants: dict[str, Any] | None = None, shape: Any = (1, 3), functions: Any = ()) -> Any:
    """From x to what the last node makes."""
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    outputs = [helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.FLOAT, None)]
    held = [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, held)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("mine", 1)]
    return helper.make_model(graph, opset_imports=opsets, functions=functions, ir_version=10)


def node(op: str, *inputs: str, output: str = "y", **attributes: Any) -> Any:
    return helper.make_node(op, list(inputs), [output], name="n", **attributes)


def refusal(made: Any, folder: Path) -> str:
    path = folder / "m.onnx"
    path.write_bytes(made if isinstance(made, bytes) else made.SerializeToString())
    with pytest.raises(ModelError) as caught:
        import_model(path)
    text = str(caught.value)
    assert "\n" not in text
    return text.replace(str(folder), "DIR").replace("DIR/m.onnx", "m.onnx")


def function(name: str, *body: Any, attributes: Any = (), inputs: Any = ("a",), outputs: Any = ("b",)) -> Any:
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("mine", 1)]
    return helper.make_function("mine", name, list(inputs), list(outputs), list(body), opsets, list(attributes))


def call(name: str, source: str = "x", output: str = "y") -> Any:
    return helper.make_node(name, [source], [output], name="n", domain="mine")


def _changed(made: Any, change: Callable[[Any], None]) -> Any:
    change(made)
    return made


def _one_attribute(**fields: Any) -> Any:
    made = model(node("LeakyRelu", "x", alpha=0.5))
    attribute = made.graph.node[0].attribute[0]
    attribute.Clear()
    for name, value in fields.items():
        setattr(attribute, name, value)
    return made


WHERE = 'm.onnx: node 0 {} ("n")'
LETTERS = 'wanted letters, commas, "..." and one "->"'
NODES: dict[str, tuple[Any, str]] = {
    "a part of a concatenation": (
        model(node("Concat", "x", "", axis=0)),
        f'{WHERE.format("Concat")} leaves out input 1 ("inputs"), which it needs; {AGAIN}',
    ),
    "an operand": (
        model(node("Add", "x", "")),
        f'{WHERE.format("Add")} leaves out input 1 ("B"), which it needs; {AGAIN}',
    ),
    "too few": (model(node("Add", "x")), f"{WHERE.format('Add')} has 1 inputs, wanted 2; {AGAIN}"),
    "too many": (model(node("Relu", *"xx")), f"{WHERE.format('Relu')} has 2 inputs, wanted 1; {AGAIN}"),
    "none at all": (model(node("Max")), f"{WHERE.format('Max')} has 0 inputs, wanted 1 or more; {AGAIN}"),
    "a result": (
        model(helper.make_node("Relu", ["x"], [""], name="n"), node("Relu", "x")),
        f'{WHERE.format("Relu")} leaves out output 0 ("Y"), which it needs; {AGAIN}',
    ),
    "a required attribute": (
        model(node("Cast", "x")),
        f'{WHERE.format("Cast")} lacks attribute "to", which it needs; {AGAIN}',
    ),
    "an attribute of another kind": (
        model(node("Softmax", "x", axis=1.5)),
        f'{WHERE.format("Softmax")}: attribute "axis" is of kind FLOAT, wanted INT; {AGAIN}',
    ),
    "an attribute without its value": (
        _one_attribute(name="alpha", type=1, i=3),
        f'{WHERE.format("LeakyRelu")}: attribute "alpha" of kind FLOAT has no value of that kind; {AGAIN}',
    ),
    "an attribute of no kind": (
        _one_attribute(name="alpha", f=3.0),
        f'{WHERE.format("LeakyRelu")}: attribute "alpha" of kind UNDEFINED has no value of that kind; {AGAIN}',
    ),
    "a reference outside a function": (
        _one_attribute(name="alpha", type=1, ref_attr_name="slope"),
        f'{WHERE.format("LeakyRelu")}: attribute "alpha" refers to attribute "slope" of a function, and there is none; '
        f"{AGAIN}",
    ),
    "a stride of 0": (
        model(node("MaxPool", "x", kernel_shape=[1, 1], strides=[0, 1]), shape=(1, 1, 4, 4)),
        f'{WHERE.format("MaxPool")}: attribute "strides" holds 0, wanted numbers from 1 to 2147483647',
    ),
    "a number too large": (
        model(node("Softmax", "x", axis=-(2**63))),
        f'{WHERE.format("Softmax")}: attribute "axis" holds -9223372036854775808, '
        "wanted numbers from -2147483647 to 2147483647",
    ),
    "an equation with an end of text": (
        model(node("Einsum", "x", equation=b"\0")),
        f"{WHERE.format('Einsum')}: attribute \"equation\" is '\\x00', {LETTERS}",
    ),
    "an equation with a digit": (
        model(node("Einsum", "x", "x", equation="i1,ij->j")),
        f"{WHERE.format('Einsum')}: attribute \"equation\" is 'i1,ij->j', {LETTERS}",
    ),
    "inside a branch": (
        model(
            node(
                "If",
                "c",
                then_branch=helper.make_graph(
                    [node("Concat", "", axis=0)], "t", [], [helper.make_tensor_value_info("y", 1, None)]
                ),
                else_branch=helper.make_graph(
                    [node("Relu", "x")], "e", [], [helper.make_tensor_value_info("y", 1, None)]
                ),
            ),
            constants={"c": True},
        ),
        f'{WHERE.format("If")}: then_branch: node 0 Concat ("n") leaves out input 0 ("inputs"), which it '
        f"needs; {AGAIN}",
    ),
    "inside a function": (
        model(call("F"), functions=[function("F", node("Concat", "a", "", output="b", axis=0))]),
        f'm.onnx: function "F": node 0 Concat ("n") leaves out input 1 ("inputs"), which it needs; {AGAIN}',
    ),
}


@pytest.mark.parametrize("name", NODES)
def test_a_node_that_is_none_of_its_operators(name: str, tmp_path: Path) -> None:
    made, wanted = NODES[name]
    assert refusal(made, tmp_path) == wanted


def _input_type(kind: int) -> Any:
    return _changed(model(node("Relu", "x")), lambda m: setattr(m.graph.input[0].type.tensor_type, "elem_type", kind))


def _weights(change: Callable[[Any], None]) -> Any:
    """An initialiser of three numbers, changed."""
    made = model(node("Add", "x", "w"), constants={"w": np.zeros(3, np.float32)})
    change(made.graph.initializer[0])
    return made


def _cast_to(kind: int) -> Any:
    return model(node("Cast", "x", to=kind))


START = 'cannot import m.onnx: 1 unsupported: node 0 {} ("n"): '
TYPES: dict[str, tuple[Any, str]] = {
    "unknown, of an input": (_input_type(29), 'm.onnx: input "x" has type type 29, which cannot be compiled'),
    "none, of an input": (_input_type(0), 'm.onnx: input "x" has type undefined, which cannot be compiled'),
    "unknown, of weights": (
        _weights(lambda t: setattr(t, "data_type", 29)),
        'm.onnx: initialiser "w" has type type 29, which cannot be compiled',
    ),
    "of four bits, too many": (
        _weights(lambda t: setattr(t, "data_type", 21)),
        'm.onnx: initialiser "w" (uint4 [3]) has 12 bytes, wanted 2; export the model again',
    ),
    "of four bits with a point": (
        _weights(lambda t: setattr(t, "data_type", 23)),
        'm.onnx: initialiser "w" has type float4e2m1, which cannot be compiled',
    ),
    "in an attribute": (
        model(node("Constant", value=helper.make_tensor("v", TensorProto.STRING, [1], [b"text"]))),
        'm.onnx: node 0 Constant ("n"): attribute "value" has type string, which cannot be compiled',
    ),
    "of an identity": (
        model(node("EyeLike", "x", dtype=29)),
        f"{START.format('EyeLike')}against ONNX's rules: Attribute dtype does not specify a valid type in "
        f"node EyeLike (n)",
    ),
    "that the operator does not take": (
        model(node("Relu", "x"), node("And", "y", "y", output="z")),
        'cannot import m.onnx: 1 unsupported: node 1 And ("n"): input 0 ("y") is float32, which the operator '
        "does not take",
    ),
    "that differ": (
        model(node("Add", "x", "w"), constants={"w": np.zeros(3, np.int64)}),
        f'{START.format("Add")}"x" is float32 and "w" is int64, wanted one type',
    ),
}


@pytest.mark.parametrize("name", TYPES)
def test_types_of_elements(name: str, tmp_path: Path) -> None:
    made, wanted = TYPES[name]
    assert refusal(made, tmp_path) == wanted


@pytest.mark.parametrize("kind", [0, 17, 29, 99, -1])
def test_types_to_cast_to(kind: int, tmp_path: Path) -> None:
    assert refusal(_cast_to(kind), tmp_path).startswith(START.format("Cast"))


SHAPES: dict[str, tuple[Any, str]] = {
    "scatter into a scalar": (
        model(node("ScatterND", "x", "i", "u"), constants={"i": np.int64(0), "u": np.float32(1)}, shape=()),
        f'{START.format("ScatterND")}the indices "i" are a scalar, wanted points',
    ),
    "too many axes": (
        model(node("Relu", "x"), shape=(1,) * 40),
        'm.onnx: "x" has 40 dimensions; at most 32 can be compiled',
    ),
    "less than nothing": (
        model(node("Relu", "x"), shape=(2, -3)),
        'm.onnx: input "x" (float32 [2,-3]) has an extent below 0; export the model again',
    ),
    "an input beyond 32 bits": (
        model(node("Relu", "x"), shape=(1 << 20, 1 << 20)),
        'm.onnx: input "x" (float32 [1048576,1048576]) has 4398046511104 bytes; at most 2147483647 can be compiled',
    ),
    "weights of a negative shape": (
        _weights(lambda t: t.dims.append(-1)),
        f'm.onnx: initialiser "w" has shape [3,-1]; wanted at most 32 extents from 0; {AGAIN}',
    ),
    "weights that claim more": (
        _weights(lambda t: t.dims.append(1 << 40)),
        'm.onnx: initialiser "w" (float32 [3,1099511627776]) has 12 bytes, wanted 13194139533312; export the '
        "model again",
    ),
    "weights twice": (
        _weights(lambda t: t.float_data.extend([1, 2, 3])),
        f'm.onnx: initialiser "w" (float32 [3]) has 12 bytes, wanted 12, and float_data besides; {AGAIN}',
    ),
    "a part of weights": (
        _weights(lambda t: setattr(t.segment, "end", 2)),
        f'm.onnx: initialiser "w" is a part of a tensor alone; {AGAIN}',
    ),
    "a name that is no text": (
        model(node("Relu", "x", output="QQQQ")).SerializeToString().replace(b"QQQQ", b"Q\xff\xfeQ"),
        f"m.onnx: name b'Q\\xff\\xfeQ' is no UTF-8 text; {AGAIN}",
    ),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_and_names(name: str, tmp_path: Path) -> None:
    made, wanted = SHAPES[name]
    assert refusal(made, tmp_path) == wanted


def test_halves_that_are_quantised(tmp_path: Path) -> None:
    """They are the floats that they come from."""
    steps = [("Cast", ["x"], "h", {"to": 10}), ("QuantizeLinear", ["h", "s", "z"], "q", {})]
    nodes = [helper.make_node(op, names, [made], **attributes) for op, names, made, attributes in steps]
    made = model(*nodes, node("DequantizeLinear", "q", "s", "z"), constants={"s": np.float32(1), "z": np.int8(0)})
    made.opset_import[0].version = 23
    path = tmp_path / "m.onnx"
    path.write_bytes(made.SerializeToString())
    (got,) = HostModel(compile_model(path, board="host"))(np.array([[2.5, -3.5, 700]], np.float32))
    assert got.tolist() == [[2, -4, 127]]


def test_a_version_beyond_32_bits(tmp_path: Path) -> None:
    made = model(call("F"))
    made.opset_import[1].version = 1 << 40
    assert refusal(made, tmp_path) == (
        "m.onnx is no valid ONNX model: Opset import version 1099511627776 is out of supported range; export it again"
    )


def _nested(levels: int, calls: int) -> Any:
    functions = []
    for level in range(levels):
        names = [*("a", *(f"t{number}" for number in range(1, calls))), "b"]
        pairs = list(itertools.pairwise(names))
        if level:
            body = [call(f"F{level - 1}", source, made) for source, made in pairs]
        else:
            body = [node("Relu", source, output=made) for source, made in pairs]
        functions.append(function(f"F{level}", *body))
    return model(call(f"F{levels - 1}"), functions=functions)


def _circle(*names: str) -> Any:
    pairs = zip(names, (*names[1:], names[0]), strict=True)
    return model(call(names[0]), functions=[function(name, call(other, "a", "b")) for name, other in pairs])


NODES_TOO_MANY = (
    "m.onnx has more than 10000 nodes, those of a function counted at each call of it; "
    "cut the model, or compile its parts"
)
FUNCTIONS: dict[str, tuple[Any, str]] = {
    "that multiply": (_nested(9, 10), NODES_TOO_MANY),
    "that multiply by two": (_nested(30, 2), NODES_TOO_MANY),
    "that go deep": (_nested(33, 1), f"m.onnx has functions that call functions more than 32 deep; {AGAIN}"),
    "that call themselves": (_circle("F"), f'm.onnx has a function that calls itself: "F" calls "F"; {AGAIN}'),
    "that go round": (
        _circle("F", "G", "H"),
        f'm.onnx has a function that calls itself: "F" calls "G" calls "H" calls "F"; {AGAIN}',
    ),
    "twice": (
        model(call("F"), functions=[function("F", node("Relu", "a", output="b"))] * 2),
        'm.onnx has two functions "F"; names must differ',
    ),
    "with other inputs": (
        model(
            helper.make_node("F", ["x", "x"], ["y"], name="n", domain="mine"),
            functions=[function("F", node("Relu", "a", output="b"))],
        ),
        f'm.onnx: node 0 F ("n") has 2 inputs, its function takes 1; {AGAIN}',
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str, tmp_path: Path) -> None:
    made, wanted = FUNCTIONS[name]
    assert refusal(made, tmp_path) == wanted


def _constant(op: str, *inputs: Any, **attributes: Any) -> Any:
    """A node that is computed at import, and its result added to x."""
    held = {f"c{number}": value for number, value in enumerate(inputs)}
    return model(node(op, *held, **attributes), node("Add", "x", "y", output="z"), constants=held)


LARGE = np.asarray([1 << 14, 1 << 14], np.int64)
ONES = np.ones(1000, np.float32)
NUMBERS = np.ones((64, 64), np.float32)
MANY = (
    "import of m.onnx would make more than 268435456 bytes of constants that are not in the file; "
    "firmware has no room for them"
)
LONG = "its inputs are constant, and computing it would take too long; compute it before you export the model"
EFFORTS: dict[str, tuple[Any, str]] = {
    "a filled tensor": (_constant("ConstantOfShape", LARGE), MANY),
    "a range": (_constant("Range", np.float32(0), np.float32(1e8), np.float32(1)), MANY),
    "a broadcast": (_constant("Expand", np.float32(1), LARGE), MANY),
    "tiles": (_constant("Tile", np.ones((1, 1), np.float32), LARGE), MANY),
    "padding": (_constant("Pad", np.ones((1,), np.float32), np.asarray([1 << 28, 0])), MANY),
    "an outer product": (_constant("Add", np.ones((20000, 1), np.float32), np.ones((1, 20000), np.float32)), MANY),
    "a sum over many indices": (_constant("Einsum", *[ONES] * 4, equation="a,b,c,d->"), LONG),
    "a slow operator": (_constant("Resize", np.ones((1, 1, 512, 512), np.float32), ONES[:0], ONES[:4] * 1), LONG),
    "an unknown extent": (
        _constant("NonMaxSuppression", np.ones((1, 4, 4), np.float32), np.ones((1, 1, 4), np.float32)),
        "its inputs are constant, and how large its result is cannot be told beforehand",
    ),
}


@pytest.mark.parametrize("name", EFFORTS)
def test_what_is_not_computed_at_import(name: str, tmp_path: Path) -> None:
    made, wanted = EFFORTS[name]
    assert wanted in refusal(made, tmp_path)


GIVEN: dict[str, tuple[Any, str]] = {
    "an identity": (model(node("EyeLike", "x"), shape=(20000, 20000)), MANY),
    "a depth": (
        model(
            node("Cast", "x", output="i", to=7),
            node("OneHot", "i", "d", "v"),
            constants={"d": np.int64(1 << 33), "v": np.array([0, 1], np.float32)},
        ),
        "bytes; at most 2147483647 can be compiled",
    ),
}


@pytest.mark.parametrize("name", GIVEN)
def test_what_is_made_for_inputs(name: str, tmp_path: Path) -> None:
    made, wanted = GIVEN[name]
    assert wanted in refusal(made, tmp_path)


def test_a_chain_of_many_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uaccel.frontend.checks.MOST_NODES", 3)
    names = ["x", "a", "b", "c", "y"]
    made = model(*(node("Relu", source, output=out) for source, out in itertools.pairwise(names)))
    assert refusal(made, tmp_path) == NODES_TOO_MANY.replace("10000", "3")


def test_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UACCEL_IMPORT_SECONDS", "1e-9")
    assert refusal(model(node("Relu", "x")), tmp_path) == (
        "importing m.onnx takes more than 1e-09 s; the variable UACCEL_IMPORT_SECONDS gives it more, if you "
        "trust the file"
    )
    monkeypatch.setenv("UACCEL_IMPORT_SECONDS", "soon")
    assert refusal(model(node("Relu", "x")), tmp_path) == "UACCEL_IMPORT_SECONDS is 'soon'; wanted a number of seconds"


def _outside(**entries: str) -> Any:
    def change(tensor: Any) -> None:
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in entries.items():
            tensor.external_data.add(key=key, value=value)

    return _weights(change)


PLACES: dict[str, tuple[dict[str, str], str]] = {
    "absolute": ({"location": "/etc/passwd"}, "/etc/passwd lies outside of the model's folder"),
    "above": ({"location": "../w.bin"}, "../w.bin lies outside of the model's folder"),
    "through a link": ({"location": "link/passwd"}, "link/passwd lies outside of the model's folder"),
    "a folder": ({"location": "."}, ". is no regular file"),
    "a pipe": ({"location": "pipe"}, "pipe is no regular file"),
    "none": ({}, "it names the file ''"),
    "zero bytes in it": ({"location": "w\0.bin"}, "it names the file 'w\\x00.bin'"),
    "digits": (
        {"location": "w.bin", "offset": "9" * 5000},
        f"offset is '{'9' * 40}', wanted a number of bytes",
    ),
    "negative": ({"location": "w.bin", "offset": "-4"}, "offset is '-4', wanted a number of bytes"),
    "short": ({"location": "w.bin", "offset": "4"}, "12 bytes are wanted at 4 of w.bin, which has 12"),
    "another length": ({"location": "w.bin", "length": "4"}, "12 bytes are wanted at 0 of w.bin, which has 12"),
}


@pytest.mark.parametrize("name", PLACES)
def test_weights_in_places_that_are_no_place_for_them(name: str, tmp_path: Path) -> None:
    entries, reason = PLACES[name]
    (tmp_path / "w.bin").write_bytes(bytes(12))
    (tmp_path / "link").symlink_to("/etc")
    os.mkfifo(tmp_path / "pipe")
    assert refusal(_outside(**entries), tmp_path) == (
        f'cannot read the weights "w" that m.onnx keeps in a file of their own: {reason}; put this file into DIR'
    )


def test_weights_in_a_branch_are_not_read_from_where_the_command_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "w.bin").write_bytes(bytes(12))
    monkeypatch.chdir(other)
    inner = _outside(location="w.bin").graph.initializer[0]
    ends = [helper.make_tensor_value_info("b", 1, None)]
    branch = helper.make_graph([node("Add", "x", "w", output="b")], "b", [], ends, [inner])
    made = model(node("If", "c", then_branch=branch, else_branch=branch), constants={"c": True})
    assert "w.bin is not there; put this file into DIR" in refusal(made, tmp_path)


def test_a_model_that_is_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "m.onnx")
    with pytest.raises(ModelError, match="it is a pipe and no regular file"):
        import_model(tmp_path / "m.onnx")


def test_a_model_too_large(tmp_path: Path) -> None:
    with (tmp_path / "m.onnx").open("wb") as stream:
        stream.truncate((1 << 29) + 1)
    with pytest.raises(ModelError, match=r"m\.onnx: it has 536,870,913 bytes, and at most 536,870,912 are read"):
        import_model(tmp_path / "m.onnx")
