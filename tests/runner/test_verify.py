"""What verification compares: each sample's outputs, tensors that outputs hide, layers, and pieces of a region."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from fastjsonschema import JsonSchemaValueException

from support.models.partitioned import accelerator, chain, compile_on, model_of, operation
from support.run.schema import judge
from uaccel.pipeline import Compiled
from uaccel.runner.compare import FLOAT_TOLERANCE, Mismatch
from uaccel.runner.verdict import CompiledSubject
from uaccel.runner.verify import (
    Reference,
    WrongLayer,
    before_what_hides,
    changed_meaning,
    exact_layers,
    find_inside,
    first_wrong_layer,
    layers_verdict,
    rounding,
    tensors_of_layers,
    verify,
)
from uaccel.tvm_api import relax

OP = relax.op
SAMPLES = [[np.full((2, 3), value, np.float32)] for value in (0.25, 0.5, 0.75)]


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    return compile_on(chain("exp", "sin", "tanh"), [])


@pytest.fixture(scope="module")
def _layers(compiled: Compiled) -> Any:
    return [exact_layers(compiled, inputs) for inputs in SAMPLES]


@pytest.fixture
def computed(_layers: Any) -> Any:
    """What the layers give for each sample, to be changed at will."""
    return deepcopy(_layers)


@pytest.fixture
def outputs(computed: Any) -> list[list[Any]]:
    return [[layers[2, 0]] for layers in deepcopy(computed)]


def test_each_sample_is_compared(compiled: Compiled, outputs: list[list[Any]]) -> None:
    reference, got = Reference.of(compiled), outputs
    found = verify(reference, SAMPLES, got)
    assert (found.bit_exact, found.compared) == (True, 18)
    got[2][0][1, 1] += 1
    found = verify(reference, SAMPLES, got)
    assert found.first is not None
    assert (found.first.sample, found.first.output, found.first.mismatch.index) == (2, "y0", (1, 1))


def test_watched_tensors_are_compared_where_they_were_read(
    compiled: Compiled, computed: Any, outputs: list[list[Any]]
) -> None:
    reference = Reference.of(compiled)
    hidden = {(1, 0): ("sin_1", 0)}
    found = verify(reference, SAMPLES, outputs, watched=hidden, computed=computed[:2])
    assert (found.bit_exact, found.compared, found.tensors) == (True, 18 + 12, ["sin_1"])
    computed[1][1, 0] = computed[1][1, 0] + np.float32(1)
    found = verify(reference, SAMPLES, outputs, watched=hidden, computed=computed)
    assert found.first is not None
    assert (found.first.sample, found.first.output, found.first.kind) == (1, "sin_1", "tensor")


NEAR_ONE = [[np.full((2, 3), 1 + step / 1000, np.float32)] for step in (1, 2, 3)]
"""Rounding 1.001 moves its logarithm, 0.001, by a part of ten thousand."""


@pytest.mark.parametrize(
    ("operator", "off", "right"), [("log", 2e-4, True), ("log", 5e-3, False), ("exp", 2e-4, False)]
)
def test_floats_have_the_room_that_rounding_takes(operator: str, off: float, right: bool) -> None:
    reference = Reference(chain(operator))
    wanted = [reference.run(inputs)[0] for inputs in NEAR_ONE]
    found = verify(reference, NEAR_ONE, [[value * np.float32(1 + off) for value in row] for row in wanted])
    assert (found.beyond is None) == right
    assert FLOAT_TOLERANCE <= found.to_json()["tolerance"] <= 1e-3
    assert found.to_json()["within_tolerance"] == right


def test_there_is_no_room_where_integers_are_computed() -> None:
    reference = Reference(chain("log"))
    meant: Any = [{("log_0", "tensor"): [np.ones(3, np.float32)], ("q", "tensor"): [np.ones(3, np.int8)]}]
    assert rounding(reference, NEAR_ONE[:1], meant) == {}


class Counts:
    """Means the number of runs since it was reset."""

    model = chain("tanh")

    def __init__(self) -> None:
        self.runs = 0

    def run(self, inputs: Sequence[Any], *, continues: bool = False) -> tuple[list[Any], dict[str, Any]]:
        self.runs = self.runs + 1 if continues else 1
        return [np.array([self.runs])], {}


@pytest.mark.parametrize(("sequence", "wanted"), [(False, [1, 1, 1]), (True, [1, 2, 3])])
def test_a_sequence_goes_on_from_sample_to_sample(sequence: bool, wanted: list[int]) -> None:
    means: Any = Counts()
    for _ in range(2):
        assert verify(means, SAMPLES, [[np.array([n])] for n in wanted], sequence=sequence).bit_exact

    assert verify(means, SAMPLES, [[np.array([1])] for _ in SAMPLES]).bit_exact, "samples by themselves, unless told"


def test_each_run_begins_anew_unless_told() -> None:
    class Keeps:
        runs = 0

        def reset(self) -> None:
            self.runs = 0

        def run_all(self, _inputs: Any) -> Any:
            self.runs += 1
            return self.runs

    kept: Any = Keeps()
    means = Reference(chain("tanh"))
    means._executor = kept
    found: list[Any] = [means.run([]), means.run([]), means.run([], continues=True), means.run([])]
    assert found == [1, 1, 2, 1]


def test_an_output_that_is_missing_is_no_right_one(compiled: Compiled) -> None:
    with pytest.raises(ValueError, match="shorter"):
        verify(Reference.of(compiled), SAMPLES[:1], [[]])


def test_what_hides_is_watched_at_its_input() -> None:
    def body(block: Any, inputs: list[Any]) -> Any:
        first = block.emit(OP.tanh(inputs[0]), "of_the_input")
        even = block.emit(OP.exp(first), "before_a_view")
        view = block.emit(OP.reshape(even, (6,)), "view")
        hides = block.emit(OP.sigmoid(view), "hides")
        plain = block.emit(OP.sin(hides), "plain")
        return block.emit(OP.tanh(plain), "last")

    compiled = compile_on(model_of(body), [])
    layers = {layer.name: layer.index for layer in compiled.program.layers}
    watched = before_what_hides(compiled)
    wanted = {(layers[name], 0): (name, 0) for name in ("before_a_view", "plain")}
    assert watched == wanted
    assert CompiledSubject(compiled).stated.to_read(every_layer=False) == sorted(layer for layer, _ in wanted)
    names = ("of_the_input", "before_a_view", "hides", "plain", "last")
    assert tensors_of_layers(compiled).items() >= {(layers[name], 0): (name, 0) for name in names}.items()


def test_a_pass_over_the_module_leaves_names_without_a_meaning() -> None:
    asked = [accelerator("a", operation("exp"), before_partition=[lambda module: module])]
    assert not tensors_of_layers(compile_on(chain("exp", "tanh"), asked))


@pytest.mark.parametrize(
    ("fields", "exact"), [({}, True), ({"tolerance": 1}, False), ({"golden": lambda *values: values}, False)]
)
def test_an_engine_with_arithmetic_of_its_own_is_not_exact(fields: dict[str, Any], exact: bool) -> None:
    tolerance = {"tolerance": fields.pop("tolerance")} if "tolerance" in fields else {}
    asked = accelerator("a", operation("exp", **fields), **tolerance)
    stated = CompiledSubject(compile_on(chain("exp", "tanh"), [asked])).stated
    assert (stated.exact, stated.tolerance) == (exact, tolerance.get("tolerance", 0))
    assert stated.to_read(every_layer=False) == ([0] if exact else range(2))
    nothing = CompiledSubject(compile_on(chain("sin", "tanh"), [asked])).stated
    assert (nothing.exact, nothing.tolerance) == (True, 0), "it computes nothing"


def test_an_expansion_that_changes_the_meaning_is_told() -> None:
    def expand(expansion: Any, region: Any, inputs: list[Any]) -> Any:
        return expansion.engine(OP.negative, [expansion.engine(OP.tanh, inputs, "first")], "second")

    compiled = compile_on(chain("exp", "tanh"), [accelerator("a", operation("tanh", expand=expand))])
    told = changed_meaning(compiled, Reference.of(compiled), SAMPLES)
    assert "expand of operation 'tanh' changes what the model means: sample 0, tensor tanh_1, " in told
    for asked in ([], [accelerator("a", operation("tanh"))]):
        right = compile_on(chain("exp", "tanh"), asked)
        assert changed_meaning(right, Reference.of(right), SAMPLES) == ""


def test_the_first_wrong_layer_of_all_samples(compiled: Compiled, computed: Any) -> None:
    assert first_wrong_layer(compiled, SAMPLES, []) is None
    assert first_wrong_layer(compiled, SAMPLES, [{}, {}, {}]) is None
    assert first_wrong_layer(compiled, SAMPLES, computed) is None
    assert first_wrong_layer(compiled, SAMPLES, computed[:2]) is None
    computed[2][0, 0] = computed[2][0, 0] + np.float32(1)
    computed[1][1, 0] = computed[1][1, 0] + np.float32(1)
    wrong = first_wrong_layer(compiled, SAMPLES, computed, [])
    assert wrong is not None
    assert (wrong.sample, wrong.name) == (1, "sin_1")


@pytest.mark.parametrize("together", [(), ("sin_1", "exp")])
def test_a_wrong_layer_is_described(together: tuple[str, ...]) -> None:
    """What few layers tell, such as those judged together, is part of the schema, too."""
    wrong = WrongLayer(3, "tanh_2", "tanh", "npu", 0, Mismatch((0, 1), 1, 2, 1, 6), part_of="r", together=together)
    told = layers_verdict(4, wrong)["first_wrong_layer"]
    judge("verify/properties/first_wrong_layer")(told)
    assert told.get("together_with", []) == list(together)
    with pytest.raises(JsonSchemaValueException, match="more"):
        judge("verify/properties/first_wrong_layer")(told | {"more": 1})


# Pieces of a region

LAYERS = ("a", "b", "c", "d", "e")


def piece(*covers: str) -> WrongLayer:
    return WrongLayer(0, f"{covers[0]}_to_{covers[-1]}", "region", "x", 0, Mismatch((0,), 1, 2, 1, 1), covers=covers)


def pieces_of(layers: Sequence[str], cuts: Sequence[str]) -> list[list[str]]:
    """The layers, in pieces that end after each of the cuts."""
    found: list[list[str]] = [[]]
    for layer in layers:
        found[-1].append(layer)
        found += [[]] if layer in cuts else []
    return [one for one in found if one]


@pytest.mark.parametrize("culprit", LAYERS)
@pytest.mark.parametrize("length", range(1, 6))
def test_the_layer_inside_a_region_that_is_wrong_is_found(culprit: str, length: int) -> None:
    layers, runs = LAYERS[:length], []
    if culprit not in layers:
        return

    def run(cuts: tuple[str, ...]) -> WrongLayer | None:
        runs.append(cuts)
        return next(piece(*one) for one in pieces_of(layers, cuts) if culprit in one)

    found = find_inside(piece(*layers), run)
    assert found.covers == (culprit,)
    assert found.part_of == (f"a_to_{layers[-1]}" if length > 1 else "")
    assert len(runs) <= 3, "by halves"


def test_a_region_that_is_right_in_pieces() -> None:
    region = piece(*LAYERS)
    assert find_inside(region, lambda cuts: None) == region
    assert find_inside(region, lambda cuts: piece("z")) == region
    assert find_inside(region, lambda cuts: region).covers == LAYERS, "an engine that cuts nothing"
