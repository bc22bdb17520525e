"""TopK and NonMaxSuppression against ONNX Runtime: equal, with equal scores and boxes among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from support.device.boards import board_with_tools
from support.device.hostlib import HostModel
from support.models.onnx_rows import Array, Given, Row, feeds_of, model_of, row, session_of
from uaccel.errors import ModelError
from uaccel.frontend import import_model
from uaccel.pipeline import compile_model
from uaccel.runner.compiled import run_compiled
from uaccel.runner.verdict import runtime_opinion
from uaccel.tvm_api.executor import Executor

BOXES, SCORES = Given((2, 9, 4), low=0, high=1), Given((2, 3, 9), low=0, high=1)


def _k(number: int) -> Array:
    return np.asarray([number], np.int64)


def _limits(most: int, overlap: float | None = None, least: float | None = None) -> list[Array | None]:
    given = [None if value is None else np.asarray([value], np.float32) for value in (overlap, least)]
    return [_k(most), *given][: 3 if least is not None else 2 if overlap is not None else 1]


ROWS = {
    "the largest": row("TopK", Given((3, 20)), _k(4), outputs=2),
    "the smallest along an axis": row("TopK", Given((2, 7, 3)), _k(5), axis=1, largest=0, outputs=2),
    "all": row("TopK", Given((6,)), _k(6), axis=0, outputs=2),
    "one": row("TopK", Given((4, 5)), _k(1), outputs=2),
    "equal ones": row("TopK", Given((3, 30), "int64", 0, 5), _k(12), outputs=2),
    "equal small ones": row("TopK", Given((3, 30), "int32", 0, 5), _k(12), largest=0, outputs=2),
    "boxes": row("NonMaxSuppression", BOXES, SCORES, *_limits(4, 0.2)),
    "few boxes": row("NonMaxSuppression", BOXES, SCORES, *_limits(2, 0.5, 0.4)),
    "more boxes than there are": row("NonMaxSuppression", BOXES, SCORES, *_limits(50, 0.9)),
    "no overlap": row("NonMaxSuppression", BOXES, SCORES, *_limits(9)),
    "around their middles": row("NonMaxSuppression", BOXES, SCORES, *_limits(5, 0.3, 0.1), center_point_box=1),
}


def _feeds(rows: Mapping[str, Row], seed: int) -> dict[str, Array]:
    """Scores in few steps, so that many are equal, and boxes that are equal, too."""
    feeds = feeds_of(rows, seed)
    steps = {
        name: 8.0 if value.shape == SCORES.shape else 4.0 for name, value in feeds.items() if value.dtype.kind == "f"
    }
    return feeds | {name: np.round(feeds[name] * step) / np.float32(step) for name, step in steps.items()}


def _assert_equal(names: Sequence[str], found: Sequence[Array], wanted: Sequence[Array], what: str) -> None:
    """Behind the rows of ONNX Runtime there are -1."""
    for name, got, expected in zip(names, found, wanted, strict=True):
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got[: len(expected)], expected, f"{what}: {name}")
        assert (got[len(expected) :] == -1).all(), f"{what}: {name}"


@pytest.mark.parametrize("board", ["host", "mps2_an386"])
def test_the_order_is_onnx_runtimes(board: str, tmp_path: Path) -> None:
    model, path = model_of(ROWS, 17), tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    compiled, session = compile_model(path, board=board), session_of(model)
    names = [spec.name for spec in compiled.model.signature.outputs]
    feeds = [_feeds(ROWS, seed) for seed in range(4)]
    samples = [[given[spec.name] for spec in compiled.model.signature.inputs] for given in feeds]
    if board == "host":
        host, meaning = HostModel(compiled), Executor(compiled.model.module)
        found = [host(*sample) for sample in samples]
        meant = [meaning.run(sample) for sample in samples]
    else:
        run = run_compiled(compiled, board_with_tools(board), samples, tmp_path / "p", lambda step: None).run
        found = meant = run.outputs
    for given, outputs, also in zip(feeds, found, meant, strict=True):
        wanted = session.run(None, given)
        _assert_equal(names, outputs, wanted, "the C")
        _assert_equal(names, also, wanted, "the meaning")
    kept = [len(value) for name, value in zip(names, session.run(None, feeds[0]), strict=True) if "boxes" in name]
    assert len(set(kept)) > 1


def test_a_second_opinion_is_of_the_boxes_that_there_are(tmp_path: Path) -> None:
    """ONNX Runtime's result has no room behind them."""
    path = tmp_path / "m.onnx"
    path.write_bytes(model_of({"row": ROWS["no overlap"]}, 17).SerializeToString())
    compiled, feeds = compile_model(path, board="host"), _feeds({"row": ROWS["no overlap"]}, 0)
    outputs = HostModel(compiled)(*feeds.values())
    opinion, complaint, _ = runtime_opinion(compiled.model, path, [[*feeds.values()]], [outputs])
    assert (opinion is not None, complaint) == (True, "")
    assert opinion is not None
    assert 0 < opinion.elements == opinion.equal < 2 * 3 * 9 * 3


REFUSALS = {
    "how many is computed": (
        row("TopK", Given((3,)), Given((1,), "int64", 1, 1), outputs=2),
        'count "row/in1" is computed at run time; only constant count can be compiled',
    ),
    "no limit": (
        row("NonMaxSuppression", BOXES, SCORES),
        "it keeps no box of a class; give it max_output_boxes_per_class",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals(name: str, tmp_path: Path) -> None:
    entry, words = REFUSALS[name]
    path = tmp_path / "m.onnx"
    path.write_bytes(model_of({"row": entry}, 17).SerializeToString())
    with pytest.raises(ModelError) as caught:
        import_model(path)
    assert str(caught.value).partition('("row"): ')[2] == words


def test_nothing_computes_with_boxes_that_may_be_none(tmp_path: Path) -> None:
    from onnx import helper

    model = model_of({"row": row("NonMaxSuppression", BOXES, SCORES, *_limits(3, 0.5))}, 17)
    model.graph.node.append(helper.make_node("Neg", ["row/out0"], ["y"]))
    model.graph.output[0].name = "y"
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(ModelError, match="how many boxes it keeps depends on data; make it an output"):
        import_model(path)
