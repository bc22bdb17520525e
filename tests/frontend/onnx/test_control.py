"""If, Loop and Scan as C of ``if`` and ``while``, against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from frontend.onnx.onnx_flow import INTEGERS, MODELS, endless, model_of, nested
from support.device.boards import board_with_tools
from support.device.hostlib import HostModel
from support.models.onnx_rows import Array, compare, session_of
from uaccel.errors import ModelError
from uaccel.pipeline import Compiled, compile_model
from uaccel.runner.compiled import run_compiled
from uaccel.tvm_api.executor import Executor

TURNS = (0, 1, 2, 5)


def _compiled(text: str, folder: Path, board: str = "host") -> tuple[Any, Compiled]:
    model, path = model_of(text), folder / "flow.onnx"
    path.write_bytes(model.SerializeToString())
    return model, compile_model(path, board=board)


def _samples(compiled: Compiled) -> list[list[Array]]:
    """Each truth and each count with several numbers."""
    rng = np.random.default_rng(4)

    def drawn(info: Any, number: int) -> Array:
        if info.dtype == "bool":
            return np.asarray(number % 2 == 0)
        if info.dtype == "int64":
            return np.asarray(TURNS[number])
        values: Array = rng.uniform(-1, 1, info.shape).astype(np.float32)
        return values

    inputs = compiled.model.signature.inputs
    return [[drawn(spec.info, number) for spec in inputs] for number in range(len(TURNS))]


def _assert_as_runtime(
    model: Any, compiled: Compiled, samples: Sequence[Sequence[Array]], found: Any, what: str
) -> None:
    session, names = session_of(model), [spec.name for spec in compiled.model.signature.inputs]
    for number, (sample, outputs) in enumerate(zip(samples, found, strict=True)):
        for wanted, got in zip(session.run(None, dict(zip(names, sample, strict=True))), outputs, strict=True):
            compare(got, wanted, f"{what}, run {number}", relative=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_the_c_and_the_meaning_are_onnx_runtimes(name: str, tmp_path: Path) -> None:
    model, compiled = _compiled(MODELS[name], tmp_path)
    samples, host, meaning = _samples(compiled), HostModel(compiled), Executor(compiled.model.module)
    _assert_as_runtime(model, compiled, samples, [host(*sample) for sample in samples], "the C")
    _assert_as_runtime(model, compiled, samples, [meaning.run(sample) for sample in samples], "the meaning")
    assert {"if", "while"} & {layer.op for layer in compiled.program.layers}


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["a scan", "a choice in each turn"])
def test_on_a_board(name: str, tmp_path: Path) -> None:
    board = board_with_tools("mps2_an386")
    model, compiled = _compiled(MODELS[name], tmp_path, board.name)
    samples = _samples(compiled)
    run = run_compiled(compiled, board, samples, tmp_path / "p", lambda step: None).run
    _assert_as_runtime(model, compiled, samples, run.outputs, board.name)


def test_what_is_quantised_inside_is_integers(tmp_path: Path) -> None:
    model, compiled = _compiled(INTEGERS, tmp_path)
    samples, host = _samples(compiled), HostModel(compiled)
    _assert_as_runtime(model, compiled, samples, [host(*sample) for sample in samples], "the C")
    (layer,) = compiled.program.layers
    assert "fully_connected" in [inner.op for inner in layer.inner]


NO_SHAPE = "how often it turns depends on data, and so does the shape of its result; give it a number of turns"
REFUSALS = {
    "never ends": (endless(), 'node 0 Loop ("y"): it never ends'),
    "rows of who knows how many turns": (endless("n"), f'node 0 Loop ("y"): {NO_SHAPE}'),
    "an operator inside": (
        nested(1).replace("Neg(x)", "RandomNormalLike(x)"),
        'node 0 If ("u"): inside of it, node 0 RandomNormalLike ("u"): its result is random; uaccel compiles what '
        "gives the same result each time",
    ),
    "other shapes": (
        MODELS["a choice of a constant"]
        .replace("Exp(x)", "Concat<axis = 0>(x, x)")
        .replace("float[3] p", "float[N] p"),
        'node 0 If ("y"): then gives float32 [3] and otherwise gives float32 [6]',
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals(name: str, tmp_path: Path) -> None:
    text, words = REFUSALS[name]
    with pytest.raises(ModelError) as caught:
        _compiled(text, tmp_path)
    assert str(caught.value).partition("unsupported: ")[2] == words


def test_graphs_deep_in_each_other(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="graphs lie more than 8 deep in each other"):
        _compiled(nested(9), tmp_path)
    assert _compiled(nested(3), tmp_path)[1].program.layers[0].op == "if"
