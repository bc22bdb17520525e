"""Models of ``ai.onnx.ml`` against ONNX Runtime: scikit-learn's as they are exported, and trees of every kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from support.device.boards import board_with_tools
from support.device.hostlib import HostModel
from support.models.onnx_rows import Array, Given, Row, compare, model_of, row, session_of
from uaccel.errors import ModelError
from uaccel.frontend import import_model
from uaccel.frontend.onnx.graph import LEARNING
from uaccel.ops.kernel import Constant
from uaccel.pipeline import compile_model
from uaccel.runner.compiled import run_compiled
from uaccel.runner.verdict import runtime_opinion

LEARNED = Path(__file__).with_name("learned")
NAMES = sorted(path.stem for path in LEARNED.glob("*.onnx"))
SHAPE = {"X": (1, 4)}
NOISY = {"vectors_of_two": 1e-3}
"""Sums that are a thousandth of their largest terms; others agree to a part of ten thousand."""
COLUMNS, BATCH = 5, 40
ROWS = Given((BATCH, COLUMNS))


def _wanted(value: Any) -> Array:
    """Maps from labels to scores, one a row, as rows of scores."""
    return np.asarray([list(entry.values()) for entry in value], np.float32) if isinstance(value, list) else value


def test_there_are_models_of_every_kind() -> None:
    assert len(NAMES) == 15


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", NAMES)
def test_scikit_learns_models_give_what_onnx_runtime_gives(name: str) -> None:
    path = LEARNED / f"{name}.onnx"
    host, session = HostModel(compile_model(path, board="host", input_shapes=SHAPE)), session_of(path)
    for sample in np.load(LEARNED / "rows.npy"):
        for number, (got, wanted) in enumerate(
            zip(host(sample[None]), session.run(None, {"X": sample[None]}), strict=True)
        ):
            compare(got, _wanted(wanted), f"output {number}", relative=NOISY.get(name, 1e-4))


def test_a_file_of_such_operators_alone_states_no_opset_of_others(tmp_path: Path) -> None:
    model, path = onnx.load(LEARNED / "line.onnx"), tmp_path / "line.onnx"
    del model.opset_import[:]
    model.opset_import.add(domain=LEARNING, version=1)
    onnx.save(model, path)
    sample = np.load(LEARNED / "rows.npy")[:1]
    (got,) = HostModel(compile_model(path, board="host", input_shapes=SHAPE))(sample)
    (wanted,) = session_of(path).run(None, {"X": sample})
    compare(got, wanted, "output")


def test_a_board_decides_as_onnx_runtime_does(tmp_path: Path) -> None:
    path, samples = LEARNED / "forest.onnx", [[sample[None]] for sample in np.load(LEARNED / "rows.npy")[::5]]
    compiled = compile_model(path, board="mps2_an386", input_shapes=SHAPE)
    done = run_compiled(compiled, board_with_tools("mps2_an386"), samples, tmp_path / "p", lambda step: None)
    session = session_of(path)
    for sample, outputs in zip(samples, done.run.outputs, strict=True):
        for got, wanted in zip(outputs, session.run(None, {"X": sample[0]}), strict=True):
            compare(got, _wanted(wanted), "output")
    opinion, complaint, _ = runtime_opinion(compiled.model, path, samples, done.run.outputs)
    assert (opinion is not None, complaint) == (True, "")
    assert opinion is not None
    assert (opinion.equal, opinion.more) == (len(samples), 0)


def _nodes(depth: int, modes: Sequence[str], tree: int, rng: np.random.Generator) -> list[tuple[Any, ...]]:
    """Tree, number, mode, feature, threshold, true and false branch, whether what is no number takes the true one."""
    inner = 2**depth - 1
    found = []
    for number in range(2 * inner + 1):
        mode, feature = modes[int(rng.integers(len(modes)))], int(rng.integers(COLUMNS))
        threshold, branches = float(rng.integers(-3, 4)) / 2, (2 * number + 1, 2 * number + 2)
        if number >= inner:
            mode, feature, threshold, branches = "LEAF", 0, 0.0, (0, 0)
        found.append((tree, number, mode, feature, threshold, *branches, int(rng.integers(2))))
    return found


def _forest(role: str, scores: int, modes: Sequence[str], *, shared: bool = False, low: float = -1.0) -> dict[str, Any]:
    """Attributes of three trees; ``shared``: leaves give something to every score."""
    rng = np.random.default_rng(len(modes) + scores)
    nodes = [node for tree in range(3) for node in _nodes(3, modes, tree, rng)]
    fields = ("treeids", "nodeids", "modes", "featureids", "values", "truenodeids", "falsenodeids")
    made = {f"nodes_{name}": list(column) for name, column in zip(fields, zip(*nodes, strict=True), strict=False)}
    made["nodes_missing_value_tracks_true"] = [node[-1] for node in nodes]
    leaves = [node for node in nodes if node[2] == "LEAF"]
    pairs = [(leaf, score) for leaf in leaves for score in (range(scores) if shared else [leaf[0] % scores])]
    made[f"{role}_treeids"], made[f"{role}_nodeids"] = ([leaf[i] for leaf, _ in pairs] for i in range(2))
    made[f"{role}_ids"] = [score for _, score in pairs]
    made[f"{role}_weights"] = [float(weight) for weight in rng.uniform(low, 1, len(pairs)).astype(np.float32)]
    return made


def _trees(op: str, **attributes: Any) -> Row:
    return row(op, ROWS, outputs=1 if op.endswith("Regressor") else 2, domain=LEARNING, **attributes)


def _regressor(scores: int, modes: Sequence[str], shared: bool = False, **more: Any) -> Row:
    return _trees("TreeEnsembleRegressor", n_targets=scores, **_forest("target", scores, modes, shared=shared), **more)


def _classifier(labels: Sequence[int], scores: int = 0, shared: bool = False, low: float = -1.0, **more: Any) -> Row:
    forest = _forest("class", scores or len(labels), ["BRANCH_LEQ"], shared=shared, low=low)
    return _trees("TreeEnsembleClassifier", classlabels_int64s=list(labels), **forest, **more)


def _weights(*shape: int) -> list[float]:
    return [float(value) for value in np.random.default_rng(3).uniform(-1, 1, shape).astype(np.float32).reshape(-1)]


def _linear(labels: Sequence[int], scores: int, how: str) -> Row:
    return row(
        *("LinearClassifier", ROWS),
        outputs=2,
        domain=LEARNING,
        classlabels_ints=list(labels),
        coefficients=_weights(scores, COLUMNS),
        intercepts=_weights(scores),
        post_transform=how,
    )


def _vectors(op: str, kernel: str, **more: Any) -> Row:
    return row(
        *(op, ROWS),
        domain=LEARNING,
        kernel_type=kernel,
        kernel_params=[0.3, 0.5, 3.0],
        support_vectors=_weights(6, COLUMNS),
        **more,
    )


def _changed(entry: Row, **attributes: Any) -> Row:
    return row(
        entry.op, *entry.inputs, outputs=entry.outputs, domain=entry.domain, **{**entry.attributes, **attributes}
    )


def _plain(op: str, given: Given = ROWS, **attributes: Any) -> Row:
    return row(op, given, domain=LEARNING, **attributes)


KEYS: dict[str, Any] = {"keys_floats": [0.25, float("nan")], "values_floats": [0.5, 2.5], "default_float": 7.0}
SHARING, TWO = _regressor(2, ["BRANCH_LT"], True), _classifier([5, 3], 1)
UNDEFINED = "its two classes share the second's score, or have a base value each, which ONNX gives no meaning"
NUMBERS = Given((4, 3), "int64", 0, 5)
TABLE = {
    "trees": _regressor(1, ["BRANCH_LEQ"]),
    "trees of every mode": _regressor(1, ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GT", "BRANCH_GTE"], base_values=[0.5]),
    "trees of two targets": _regressor(2, ["BRANCH_LT"]),
    "trees that share targets": _regressor(3, ["BRANCH_GTE"], True, base_values=[0.5, -1.0, 2.0]),
    "trees on average": _regressor(1, ["BRANCH_GT"], aggregate_function="AVERAGE", base_values=[3.0]),
    "trees with two weights of a leaf": _changed(SHARING, target_ids=[0] * len(SHARING.attributes["target_ids"])),
    "classes": _classifier([0, 1, 2]),
    "classes that share": _classifier([4, 2, 7, 9], shared=True, post_transform="SOFTMAX"),
    "classes with a base": _classifier([0, 1, 2], base_values=[0.5, 0.25, -0.5], post_transform="LOGISTIC"),
    "two classes": _classifier([5, 3], 1, post_transform="LOGISTIC"),
    "two likely classes": _classifier([0, 1], 1, low=0.0),
    "line": _plain("LinearRegressor", coefficients=_weights(2, COLUMNS), intercepts=_weights(2), targets=2),
    "linear classes": _linear([0, 1, 2], 3, "SOFTMAX"),
    "two linear classes": _linear([-1, 1], 2, "LOGISTIC"),
    "scaled": _plain("Scaler", offset=_weights(COLUMNS), scale=_weights(COLUMNS)),
    "by the maximum": _plain("Normalizer", norm="MAX"),
    "by the sum": _plain("Normalizer", norm="L1"),
    "by the root": _plain("Normalizer", norm="L2"),
    "filled in": _plain("Imputer", imputed_value_floats=_weights(COLUMNS), replaced_value_float=float("nan")),
    "filled in for zeros": _plain("Imputer", NUMBERS, imputed_value_int64s=[9], replaced_value_int64=0),
    "above": _plain("Binarizer", threshold=0.25),
    "some features": row("ArrayFeatureExtractor", ROWS, np.asarray([3, 0, 3], np.int64), domain=LEARNING),
    "numbers for numbers": _plain("LabelEncoder", NUMBERS, keys_int64s=[1, 3], values_int64s=[10, 30], default_int64=7),
    "reals for numbers": _plain("LabelEncoder", NUMBERS, keys_int64s=[0, 2], values_floats=[0.5, 2.5]),
    "reals for reals": _plain("LabelEncoder", keys_floats=[0.25, 1.5], values_floats=[0.5, 2.5], default_float=7.0),
    "near vectors": _vectors("SVMRegressor", "RBF", n_supports=6, coefficients=_weights(6), rho=[0.25]),
    "vectors of three classes": _vectors(
        *("SVMClassifier", "RBF"),
        outputs=2,
        classlabels_ints=[0, 1, 2],
        vectors_per_class=[2, 2, 2],
        coefficients=_weights(2, 6),
        rho=_weights(3),
    ),
    "inside or not": _vectors(
        "SVMRegressor", "SIGMOID", n_supports=6, coefficients=_weights(6), rho=[0.1], one_class=1
    ),
}


def _model(rows: Mapping[str, Row]) -> Any:
    return model_of(rows, 17)


def _feeds(rows: Mapping[str, Row]) -> dict[str, Array]:
    """In few steps, so that features lie on thresholds; some are no numbers, but where that is not defined."""
    rng, feeds = np.random.default_rng(0), {}
    for name, entry in rows.items():
        given = entry.inputs[0]
        assert isinstance(given, Given)
        value = given.values(rng)
        if value.dtype == np.float32:
            value = np.round(value * 2) / np.float32(2)
            if entry.op in ("Binarizer", "LabelEncoder"):
                value[:2] = 0.25  # the threshold itself, and a key
            if "Ensemble" in entry.op or entry.op in ("Imputer", "LabelEncoder"):
                value[rng.random(value.shape) < 0.1] = np.nan
            if entry.op == "Normalizer":
                value = np.abs(value)
                value[3] = 0
        feeds[f"{name}/in0"] = value
    return feeds


def test_every_operator_gives_what_onnx_runtime_gives(tmp_path: Path) -> None:
    model, path = _model(TABLE), tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    compiled, feeds = compile_model(path, board="host"), _feeds(TABLE)
    outputs = HostModel(compiled)(*(feeds[spec.name] for spec in compiled.model.signature.inputs))
    names = [spec.name for spec in compiled.model.signature.outputs]
    for name, got, wanted in zip(names, outputs, session_of(model).run(None, feeds), strict=True):
        compare(got, wanted, name, relative=1e-4)


def test_what_is_no_number_is_a_key(tmp_path: Path) -> None:
    """As ONNX has it; ONNX Runtime does so from version 4 on."""
    model, path = model_of({"keys": _plain("LabelEncoder", **KEYS)}, 17), tmp_path / "m.onnx"
    for version in model.opset_import:
        version.version = 4 if version.domain == LEARNING else version.version
    path.write_bytes(model.SerializeToString())
    value = np.resize(np.asarray([0.25, np.nan, 1, np.inf], np.float32), ROWS.shape)
    (got,) = HostModel(compile_model(path, board="host"))(value)
    compare(got, session_of(model).run(None, {"keys/in0": value})[0], "keys")


def _ensemble(targets: int, modes: Sequence[int], **more: Any) -> Row:
    """Three trees and one of a leaf alone, in the form of version 5: nodes and leaves are counted apart."""
    rng, depth = np.random.default_rng(len(modes)), 3
    inner, ends = 2**depth - 1, 2**depth
    ways: list[list[tuple[int, int]]] = []
    for tree in range(3):
        for number in range(inner):
            below = [2 * number + 1, 2 * number + 2]
            ways.append([(n >= inner, tree * ends + n - inner if n >= inner else tree * inner + n) for n in below])
    ways.append([(1, 3 * ends)] * 2)
    count, leaves = len(ways), 3 * ends + 1
    kinds, splits = rng.choice(modes, count).astype(np.uint8), (rng.integers(-3, 4, count) / 2).astype(np.float32)
    tensors = {"nodes_modes": kinds, "nodes_splits": splits, "leaf_weights": rng.uniform(-1, 1, leaves)}
    given: dict[str, Any] = {
        name: onnx.numpy_helper.from_array(value if name == "nodes_modes" else value.astype(np.float32), name)
        for name, value in tensors.items()
    }
    for which, way in enumerate(("true", "false")):
        given[f"nodes_{way}leafs"] = [int(pair[which][0]) for pair in ways]
        given[f"nodes_{way}nodeids"] = [pair[which][1] for pair in ways]
    given["nodes_featureids"] = rng.integers(COLUMNS, size=count).tolist()
    given["nodes_missing_value_tracks_true"] = rng.integers(2, size=count).tolist()
    given |= {"leaf_targetids": rng.integers(targets, size=leaves).tolist(), "n_targets": targets}
    given["tree_roots"] = [0, inner, 2 * inner, 3 * inner]
    return row("TreeEnsemble", ROWS, domain=LEARNING, **(given | more))


def _of_version_5(entry: Row) -> Any:
    model = model_of({"trees": entry}, 21, {"trees/out0": np.float32})
    for version in model.opset_import:
        version.version = 5 if version.domain == LEARNING else version.version
    return model


ENSEMBLES = {
    "one target": _ensemble(1, [0]),
    "modes": _ensemble(2, [0, 1, 2, 3]),
    "average": _ensemble(3, [0, 2], aggregate_function=0),
}


@pytest.mark.parametrize("name", ENSEMBLES)
def test_trees_with_numbered_kinds(name: str, tmp_path: Path) -> None:
    model, path = _of_version_5(ENSEMBLES[name]), tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    feeds = _feeds({"trees": ENSEMBLES[name]})
    (got,) = HostModel(compile_model(path, board="host"))(*feeds.values())
    compare(got, session_of(model).run(None, feeds)[0], name, relative=1e-5)


REFUSED = {
    "membership": (_ensemble(1, [6]), "a node branches by 6; BRANCH_LEQ, BRANCH_LT, BRANCH_GT, BRANCH_GTE can be"),
    "the least": (_ensemble(1, [0], aggregate_function=2), "it aggregates by MIN; SUM and AVERAGE can be compiled"),
    "a logistic function": (
        _ensemble(1, [0], post_transform=2),  # ONNX Runtime 1.31 computes a softmax
        "its post_transform is 2, which ONNX and ONNX Runtime take for different functions",
    ),
    "no such target": (_ensemble(1, [0], leaf_targetids=[1] * 25), "a leaf is of none of its 1 targets"),
    "fewer splits": (_ensemble(1, [0], nodes_featureids=[0]), "its lists of nodes differ in length, or are empty"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_trees_with_numbered_kinds_that_cannot_be(name: str, tmp_path: Path) -> None:
    entry, words = REFUSED[name]
    path = tmp_path / "m.onnx"
    path.write_bytes(_of_version_5(entry).SerializeToString())
    with pytest.raises(ModelError, match=rf"TreeEnsemble \(\"trees\"\): {words}"):
        import_model(path)


ONE_TREE = _regressor(1, ["BRANCH_LEQ"])
REFUSALS = {
    "the second's score": (_changed(TWO, class_ids=[1] * len(TWO.attributes["class_ids"])), UNDEFINED),
    "two base values": (_changed(TWO, base_values=[0.25, 0.25]), UNDEFINED),
    "texts": (
        row(
            "LinearClassifier",
            ROWS,
            outputs=2,
            domain=LEARNING,
            coefficients=_weights(2, COLUMNS),
            intercepts=[0.0, 0.0],
            classlabels_strings=["a", "b"],
        ),
        "its labels are texts; fit the model with numbers, and keep their names in the application",
    ),
    "equality": (
        _changed(ONE_TREE, nodes_modes=["BRANCH_EQ", *ONE_TREE.attributes["nodes_modes"][1:]]),
        "a node branches by BRANCH_EQ; BRANCH_LEQ, BRANCH_LT, BRANCH_GT, BRANCH_GTE can be compiled",
    ),
    "feature beyond": (
        _changed(ONE_TREE, nodes_featureids=[5, *ONE_TREE.attributes["nodes_featureids"][1:]]),
        "a node reads feature 5 of 5",
    ),
    "circle": (
        _changed(ONE_TREE, nodes_truenodeids=[0, *ONE_TREE.attributes["nodes_truenodeids"][1:]]),
        "node 0 of tree 0 is reached twice",
    ),
    "no such node": (
        _changed(ONE_TREE, nodes_truenodeids=[99, *ONE_TREE.attributes["nodes_truenodeids"][1:]]),
        "tree 0 has no node 99",
    ),
    "short list": (
        _changed(ONE_TREE, nodes_values=ONE_TREE.attributes["nodes_values"][1:]),
        "its lists of nodes differ in length",
    ),
    "weight of a branch": (
        _changed(ONE_TREE, target_nodeids=[0, *ONE_TREE.attributes["target_nodeids"][1:]]),
        "a weight is of no leaf or of score 0 of 1",
    ),
    "minimum": (_changed(ONE_TREE, aggregate_function="MIN"), "it aggregates by MIN; SUM and AVERAGE can be compiled"),
    "another transform": (
        _changed(ONE_TREE, post_transform="PROBIT"),
        "its post_transform is PROBIT; NONE, SOFTMAX, LOGISTIC can be compiled",
    ),
    "probabilities of vectors": (
        row(
            *("SVMClassifier", ROWS),
            outputs=2,
            domain=LEARNING,
            classlabels_ints=[0, 1],
            vectors_per_class=[3, 3],
            coefficients=_weights(6),
            rho=[0.1],
            prob_a=[0.1],
            prob_b=[0.2],
        ),
        "its probabilities are iterated; fit it without them (probability=False)",
    ),
    "texts encoded": (
        _plain("LabelEncoder", NUMBERS, keys_int64s=[1], values_strings=["one"]),
        "it encodes texts; only numbers can be compiled",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals_have_one_reason(name: str, tmp_path: Path) -> None:
    """Also where other nodes read what the refused one would have given."""
    from onnx import helper

    entry, words = REFUSALS[name]
    path, sample = tmp_path / "m.onnx", entry.inputs[0]
    assert isinstance(sample, Given)
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(sample.dtype))
    made = [f"y{number}" for number in range(entry.outputs)]
    nodes = [helper.make_node(entry.op, ["x"], made, name="row", domain=entry.domain, **entry.attributes)]
    nodes.append(helper.make_node("Transpose", [made[-1]], ["z"], perm=[1, 0]))
    outputs = [helper.make_tensor_value_info("z", 1, None)]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", kind, sample.shape)], outputs)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(LEARNING, 3)]
    path.write_bytes(helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString())
    with pytest.raises(ModelError) as caught:
        import_model(path)
    assert str(caught.value) == f'cannot import {path}: 1 unsupported: node 0 {entry.op} ("row"): {words}'


def test_a_node_takes_six_bytes_where_there_are_few() -> None:
    (layer, *_) = compile_model(LEARNED / "forest.onnx", board="host", input_shapes=SHAPE).program.layers
    given = [entry.data for call in layer.kernel.calls for entry in call.arguments if isinstance(entry, Constant)]
    nodes = max(data.size for data in given if data.dtype == np.int8)
    assert sum(data.itemsize for data in given if data.shape == (nodes,)) == 6


def test_nobody_is_told_to_quantise_trees() -> None:
    compiled = compile_model(LEARNED / "forest.onnx", board="host", input_shapes=SHAPE)
    assert compiled.warnings == []
