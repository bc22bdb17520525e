"""Operators in the forms of opsets before 13, as ONNX Runtime computes them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx", reason="the onnx package is not installed")
pytest.importorskip("onnxruntime", reason="the reference, onnxruntime, is not installed")

import onnx  # after the skips

from support.models.onnx_options import Drawn
from support.models.onnx_rows import Array, Given, Row, model_of, row, session_of
from support.oracle.onnx_differential import difference, executed, outcomes
from uaccel.errors import ModelError
from uaccel.frontend import import_model


def _reals(*numbers: float) -> Array:
    return np.asarray(numbers, np.float32)


S = Given((2, 3, 4))
IMAGE = Given((1, 2, 5, 6))
STATISTICS = (_reals(1.5, -2), _reals(0.5, 1), _reals(0.1, -0.2), _reals(2, 0.25))
DOUBLED = _reals(1, 1, 2, 3)
PLACES = np.array([[1, 0, 2, 1]], np.int64).reshape(1, 1, 4)

OLDER: dict[str, tuple[int, Row]] = {
    "axes to drop": (11, row("Squeeze", Given((1, 3, 1, 2)), axes=[0, 2])),
    "axes to drop from the end": (12, row("Squeeze", Given((1, 3, 1, 2)), axes=[-2])),
    "all axes of one": (9, row("Squeeze", Given((1, 3, 1, 2)))),
    "axes to add": (12, row("Unsqueeze", S, axes=[0, 3])),
    "sums": (11, row("ReduceSum", S, axes=[1], keepdims=0)),
    "sum of all": (12, row("ReduceSum", S)),
    "means": (10, row("ReduceMean", S, axes=[-1])),
    "parts": (11, row("Split", S, outputs=2, axis=2, split=[1, 3])),
    "even parts": (7, row("Split", S, outputs=3, axis=1)),
    "bounds": (7, row("Clip", S, min=-0.5, max=0.25)),
    "an upper bound": (10, row("Clip", S, max=0.25)),
    "bounds as inputs": (11, row("Clip", S, np.asarray(-0.5, np.float32), np.asarray(0.25, np.float32))),
    "bounds of float64": (6, row("Clip", Given((2, 3), "float64"), min=-0.5, max=0.25)),
    "borders": (10, row("Pad", IMAGE, pads=[0, 0, 1, 2, 0, 0, 3, 0], value=0.5)),
    "reflected": (9, row("Pad", IMAGE, mode="reflect", pads=[0, 0, 1, 2, 0, 0, 2, 1])),
    "a part": (9, row("Slice", S, starts=[1, 0], ends=[2, -1], axes=[0, 2])),
    "a part of the first axes": (7, row("Slice", S, starts=[0, 1], ends=[1, 100])),
    "the largest": (9, row("TopK", Given((2, 9)), outputs=2, k=3)),
    "the largest of an input": (10, row("TopK", Given((2, 9)), np.array([3], np.int64), outputs=2)),
    "dropped by nobody": (10, row("Dropout", S, ratio=0.9)),
    "normalised": (7, row("BatchNormalization", IMAGE, *STATISTICS, epsilon=0.01)),
    "normalised, with spatial": (8, row("BatchNormalization", IMAGE, *STATISTICS, spatial=1)),
    "normalised rows": (11, row("LayerNormalization", S, _reals(1, 2, 3, 4), _reals(0, 1, 0, -1), epsilon=0.01)),
    "normalised rows, scaled alone": (16, row("LayerNormalization", S, np.ones((3, 4), np.float32), axis=1)),
    "scaled by an attribute": (8, row("Upsample", IMAGE, scales=[1.0, 1.0, 2.0, 3.0])),
    "scaled": (9, row("Upsample", IMAGE, DOUBLED, mode="linear")),
    "scaled anew": (10, row("Resize", IMAGE, DOUBLED)),
    "scaled anew, linearly": (10, row("Resize", IMAGE, DOUBLED, mode="linear")),
    "made smaller": (10, row("Resize", IMAGE, _reals(1, 1, 0.6, 0.5))),
    "made smaller, linearly": (10, row("Resize", IMAGE, _reals(1, 1, 0.6, 0.5), mode="linear")),
    "resized by today's rule": (11, row("Resize", IMAGE, _reals(), DOUBLED, mode="linear")),
    "scattered": (10, row("Scatter", S, PLACES, Given((1, 1, 4)), axis=1)),
    "shares of a row": (9, row("Softmax", Given((3, 5)))),
    "shares of the last axis": (11, row("Softmax", S, axis=2)),
    "shares of axes together": (12, row("Softmax", S)),
    "shares of everything": (7, row("Softmax", S, axis=0)),
    "shares by an axis from the end": (11, row("Softmax", S, axis=-2)),
    "logarithms of shares": (8, row("LogSoftmax", S, axis=1)),
    "the winner": (11, row("Hardmax", S)),
    "a product with a bias": (7, row("Gemm", Given((2, 3)), Given((3, 4)), _reals(1, 2, 3, 4))),
    "a convolution": (7, row("Conv", IMAGE, np.ones((3, 2, 3, 3), np.float32), pads=[1, 1, 1, 1])),
    "windows": (8, row("MaxPool", IMAGE, kernel_shape=[2, 2], strides=[2, 2])),
    "averages": (7, row("AveragePool", IMAGE, kernel_shape=[2, 3], pads=[1, 1, 0, 1], count_include_pad=1)),
    "sums without broadcasting": (6, row("Add", S, S)),
    "the mean of the last": (6, row("GlobalAveragePool", IMAGE)),
}


def test_forms_of_older_opsets(tmp_path: Path) -> None:
    nodes = []
    for name, (opset, entry) in OLDER.items():
        given = [(i, each) for i, each in enumerate(entry.inputs) if isinstance(each, Given)]
        rng = np.random.default_rng(3)
        feeds = {f"{name}/in{i}": each.values(rng) for i, each in given}
        nodes.append(Drawn(name, opset, entry, feeds, {}))
    assert {name: said for name, said in outcomes(nodes, tmp_path).items() if said} == {}


SUM = onnx.parser.parse_graph("b (float[3,4] x) => (float[3,4] y) { y = Relu(x) }")
REFUSED = {
    "a mean for each place": (
        8,
        row("BatchNormalization", IMAGE, *STATISTICS, spatial=0),
        r'node 0 BatchNormalization \("n"\) of opset 8: it has a mean for each place \(spatial = 0\), which no later '
        "opset has; export the model again for opset 13 or later",
    ),
    "a batch of sequences": (
        8,
        row("Scan", None, IMAGE, num_scan_inputs=1, body=SUM),
        r'node 0 Scan \("n"\) of opset 8: it scans each sequence of a batch, which no later opset does; export .*',
    ),
    "both ways at once": (
        10,
        row("Resize", IMAGE, _reals(1, 1, 2, 0.5)),
        r'node 0 Resize \("n"\) of opset 10: it makes one axis smaller and another one larger; export .*',
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_forms_that_today_has_not(what: str, tmp_path: Path) -> None:
    opset, entry, words = REFUSED[what]
    path = tmp_path / "m.onnx"
    path.write_bytes(model_of({"n": entry}, opset, {"n/out0": np.float32}).SerializeToString())
    with pytest.raises(ModelError, match=rf"m.onnx: {words}"):
        import_model(path)


BRANCHES = """<ir_version: 7, opset_import: ["" : 11]> g (float[2,3,4] x, bool c) => (float[2,3,4] y) {
    y = If(c) <
        then_branch = a () => (float[2,3,4] p) {
            t = Relu(x)  u = Unsqueeze<axes = [0]>(t)  p = Squeeze<axes = [0]>(u)
        },
        else_branch = b () => (float[2,3,4] p) {
            u = Unsqueeze<axes = [3]>(x)  t = Softmax<axis = 1>(u)  p = Squeeze<axes = [3]>(t)
        }>
    }"""


@pytest.mark.parametrize("order", [(13, 11), (11, 13)])
def test_the_last_of_two_opsets_counts(order: tuple[int, int], tmp_path: Path) -> None:
    """As for ONNX Runtime: with opset 11 the shares are of two axes together."""
    model = model_of({"n": row("Softmax", S, axis=1)}, order[0], {"n/out0": np.float32})
    entry = model.opset_import.add()
    entry.domain, entry.version = "ai.onnx", order[1]
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    values = S.values(np.random.default_rng(3))
    (wanted,) = session_of(model).run(None, {"n/in0": values})
    (got,) = executed(import_model(path).module, [values])
    assert difference(got, wanted) == ""


def test_an_extent_of_minus_one_is_open(tmp_path: Path) -> None:
    """Some exporters write it for a batch of any size."""
    model = model_of({"n": row("Relu", S)}, 9, {"n/out0": np.float32})
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -1
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(ModelError, match=r"\[\?,3,4\] has the dynamic dimension 0; .* --input-shape n/in0:1,3,4, or"):
        import_model(path)
    assert import_model(path, {"n/in0": (5, 3, 4)}).signature.inputs[0].info.shape == (5, 3, 4)


@pytest.mark.parametrize("which", [True, False])
def test_branches_use_the_same_names(which: bool, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    model = onnx.parser.parse_model(BRANCHES)
    path.write_bytes(model.SerializeToString())
    values, choice = S.values(np.random.default_rng(3)), np.asarray(which)
    (wanted,) = session_of(model).run(None, {"x": values, "c": choice})
    (got,) = executed(import_model(path).module, [values, choice])
    assert difference(got, wanted) == ""
