"""IF and WHILE: generated C, exact meaning and TFLite Micro give the same bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.device.hostlib import compile_bytes
from support.models.flow import SHAPE, Choice, Loop, given_weights
from support.models.tflite_writer import ModelBuilder
from support.oracle.exactness import assert_exact
from support.oracle.oracle import Array
from support.oracle.refusal import refused
from support.oracle.sanitized import assert_clean
from support.run.command import call_in
from uaccel.tvm_api.executor import Executor

IMAGE = np.arange(-24, 24).astype(np.int8).reshape(SHAPE)


def images(number: int) -> list[Array]:
    generator = np.random.RandomState(number)
    return [IMAGE, *(generator.randint(-128, 128, SHAPE).astype(np.int8) for _ in range(2))]


@pytest.mark.parametrize(
    "model", [Choice(), Choice(two=True), Choice(same=True)], ids=["one", "two outputs", "what it was given"]
)
def test_a_choice(model: Choice) -> None:
    inputs = [[np.array([chosen]), image] for image in images(1) for chosen in (True, False)]
    assert_exact(model.build(), inputs)


@pytest.mark.parametrize("model", [Loop(), Loop(nested=True)], ids=["loop", "a choice in each turn"])
def test_a_loop(model: Loop) -> None:
    inputs = [[np.array([times], np.int32), image] for image in images(2) for times in (0, 1, 2, 5)]
    compiled = assert_exact(model.build(), inputs)
    (layer,) = [layer for layer in compiled.program.layers if layer.op == "while"]
    assert layer.origin.index == 0
    assert layer.reason == "C of while"


def test_the_functions_of_a_choice_share_their_memory() -> None:
    compiled = compile_bytes(Choice().build())
    (layer,) = [layer for layer in compiled.program.layers if layer.op == "if"]
    whole = sum(each.outputs[0].info.size for each in layer.inner) + 2 * 48
    assert 48 * 2 <= layer.kernel.scratch < whole


def test_constants_that_a_choice_is_given_are_folded_in_its_functions() -> None:
    """Transposed weights are constants, and take no scratch memory: it holds input, product and result at most."""
    compiled = compile_bytes(given_weights())
    (layer,) = [layer for layer in compiled.program.layers if layer.op == "if"]
    assert {inner.op for inner in layer.inner} == {"fully_connected_float", "add"}
    assert layer.kernel.scratch <= 4 * 2 * (16 + 24 + 24)
    run = [np.random.RandomState(4).randn(2, 16).astype(np.float32)]
    assert_exact(given_weights(), [[np.array([chosen]), *run] for chosen in (True, False)])


@pytest.mark.slow
@pytest.mark.parametrize("model", [Choice(two=True), Choice(same=True)], ids=["two outputs", "what it was given"])
def test_clean_under_sanitizers(model: Choice) -> None:
    assert_clean(model.build())


def bare(operator: str, parts: tuple[str, str], numbers: tuple[int, int], shape: tuple[int, ...] = (1, 4)) -> bytes:
    """Of one operator whose subgraphs give what they take."""
    model = ModelBuilder()
    x = model.input("x", (1, 4), "float32")
    y = model.tensor("y", (1, 4), "float32")
    options = {f"{part}_subgraph_index": number for part, number in zip(parts, numbers, strict=True)}
    model.op(operator, [x], [y], {**options})
    model.output(y)
    for _ in range(2):
        part = model.subgraph()
        part.output(part.input("a", shape, "float32"))
    return model.build()


IF, WHILE = ("then", "else"), ("cond", "body")
REFUSALS = {
    "no bool": (bare("IF", IF, (1, 2)), 'operator 0 IF ("y"): its condition is float32 [1,4], wanted one bool'),
    "gives no bool": (
        bare("WHILE", WHILE, (1, 2)),
        'operator 0 WHILE ("y"): its condition gives float32 [1,4], wanted one bool',
    ),
    "itself": (bare("WHILE", WHILE, (0, 1)), 'operator 0 WHILE ("y"): its subgraph 0 runs itself'),
    "inside": (
        Choice(refused="RFFT2D").build(),
        'operator 1 IF ("y0"): in subgraph 2, operator 0 RFFT2D ("double"): there is no converter for this operator; '
        "rewrite the layer with supported operators",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals(name: str) -> None:
    data, words = REFUSALS[name]
    assert refused(data) == words


def test_a_loop_of_constants_runs_on_the_device() -> None:
    model = ModelBuilder()
    x = model.input("x", (1,), "int32")
    zero, three = model.constant("zero", np.zeros(1, np.int32)), model.constant("three", np.full(1, 3, np.int32))
    turned, most = model.tensor("turned", (1,), "int32"), model.tensor("most", (1,), "int32")
    y = model.tensor("y", (1,), "int32")
    model.op("WHILE", [zero, three], [turned, most], {"cond_subgraph_index": 1, "body_subgraph_index": 2})
    model.op("ADD", [x, turned], [y])
    model.output(y)
    condition, body = model.subgraph(), model.subgraph()
    turn, last = (condition.input(name, (1,), "int32") for name in ("turn", "last"))
    goes_on = condition.tensor("goes on", (1,), "bool")
    condition.op("LESS", [turn, last], [goes_on])
    condition.output(goes_on)
    turn, last = (body.input(name, (1,), "int32") for name in ("turn", "last"))
    one, following = body.constant("one", np.ones(1, np.int32)), body.tensor("following", (1,), "int32")
    body.op("ADD", [turn, one], [following])
    body.output(following)
    body.output(last)
    compiled = assert_exact(model.build(), [[np.array([39], np.int32)]])
    assert "while" in [layer.op for layer in compiled.program.layers]


def test_verification_gives_up_on_an_endless_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uaccel.ops.control.MOST_TURNS", 100)
    compiled = compile_bytes(Loop(endless=True).build())
    with pytest.raises(RuntimeError, match="a loop turns more than 100 times; nobody can tell whether it ends"):
        Executor(compiled.model.module).run([np.ones(1, np.int32), IMAGE])


@pytest.mark.sample(1)
@pytest.mark.parametrize("model", [Choice(two=True), Loop(nested=True)], ids=["choice", "loop"])
def test_the_command_line_has_it_as_one_layer(
    model: Choice | Loop, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Verified layer by layer, in the explanation, the profile and the page."""
    path, page = tmp_path / "flow.tflite", tmp_path / "page.html"
    path.write_bytes(model.build())
    name, first, values = ("while_0", "times", [3, 0]) if isinstance(model, Loop) else ("if_1", "chosen", [1, 0])
    given = np.array(values, np.int32 if first == "times" else bool).reshape(2, 1)
    arrays: dict[str, Any] = {first: given, "x": np.stack([IMAGE, -1 - IMAGE])}
    np.savez(tmp_path / "in.npz", **arrays)
    call, inputs = call_in(capfd), tmp_path / "in.npz"
    run = call("run", path, "--inputs", inputs, "--verify", "layers", "--profile", "--report", page, "--json")
    assert run.status == 0, run.err
    assert name in [layer["name"] for layer in run.report["layers"]]
    assert name in page.read_text()
    assert name in call("explain", path).out
