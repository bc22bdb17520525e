"""Operators between dequantize and quantize, each against ONNX Runtime: as integers, and at most a rare step apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from frontend.qdq.onnx_real_sums import REALS, TABLES
from support.models.onnx_island import S8, TO_S8, TO_U8, U8, WIDE, Build, Case, per_channel, stored
from support.models.onnx_islands import CASES, shuffles, tokens
from support.models.onnx_models import Graph, Grid, onnx_runtime
from uaccel.frontend import import_model
from uaccel.model import ImportedModel
from uaccel.partition.partition import float_advice
from uaccel.partition.passes.simplify import simplify
from uaccel.runner.real_meaning import real_opinion
from uaccel.tvm_api import is_call, main_bindings
from uaccel.tvm_api.executor import Executor

INTEGER_PLUMBING = {"requantize"}  # uint8 at the graph's ends


def imported(case: Case, tmp_path: Path) -> tuple[Graph, Path, ImportedModel, list[Any]]:
    """The graph of a case, its file, what the importer makes of it, and the calls in that."""
    graph = Graph()
    case.make(graph)
    path = graph.save(tmp_path / "model.onnx", case.opset)
    model = import_model(path)
    return graph, path, model, [expr for _, expr in main_bindings(model.module)[1] if is_call(expr)]


def ours(calls: list[Any]) -> set[str]:
    names = {call.op.name for call in calls if call.op.name.startswith("uaccel.")}
    return {name.removeprefix("uaccel.") for name in names} - INTEGER_PLUMBING


@pytest.mark.sample(12)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_integers_compute_it(case: Case, tmp_path: Path) -> None:
    graph, path, model, calls = imported(case, tmp_path)
    assert ours(calls) == set(case.operators)
    assert {int(call.attrs["weight_bits"]) for call in calls if hasattr(call.attrs, "weight_bits")} <= {case.bits}
    assert model.warnings == ()
    executor = Executor(model.module)
    apart = elements = 0
    for seed in range(3):
        inputs = graph.samples(seed)
        for computed, wanted in zip(executor.run(list(inputs.values())), onnx_runtime(path, inputs), strict=True):
            assert computed.dtype == wanted.dtype
            assert computed.shape == wanted.shape
            difference = np.abs(computed.astype(int) - wanted.astype(int))
            assert difference.max() <= 1
            apart, elements = apart + int(difference.sum()), elements + difference.size
    assert apart <= case.rarely * elements


@pytest.mark.parametrize("case", TABLES, ids=lambda case: case.name)
def test_a_function_whose_result_is_real_is_a_table_of_it(case: Case, tmp_path: Path) -> None:
    graph, path, model, calls = imported(case, tmp_path)
    assert ours(calls) == set(case.operators)
    inputs = graph.samples(0)
    outputs = Executor(model.module).run(list(inputs.values()))
    np.testing.assert_allclose(outputs, onnx_runtime(path, inputs), rtol=0, atol=1e-6)
    opinion = real_opinion(model, [list(inputs.values())], [outputs])
    assert opinion is not None
    assert (opinion.to_json()["largest_relative_difference"] or 0) < 2e-7


@pytest.mark.sample(3)
@pytest.mark.parametrize("case", REALS, ids=lambda case: case.name)
def test_sums_of_integers_whose_result_is_real(case: Case, tmp_path: Path) -> None:
    graph, path, model, calls = imported(case, tmp_path)
    assert ours(calls) == {*case.operators, "dequantize_sums"}
    assert model.warnings == float_advice(model) == ()
    inputs = graph.samples(0)
    (computed,) = Executor(model.module).run(list(inputs.values()))
    (by_runtime,) = onnx_runtime(path, inputs)
    np.testing.assert_allclose(computed, by_runtime, rtol=1e-5, atol=1e-5 * np.abs(by_runtime).max())


def test_such_sums_are_exact(tmp_path: Path) -> None:
    """But for the output stage: the scale, its product and the sum with the bias's rest are rounded."""
    graph = Graph()
    x, grid = graph.quantized_input((2, 700), U8), Grid(0.013)
    weights, bias = stored(700, 9), stored(9).astype(np.float32) * np.float32(0.37)
    y = graph.apply("MatMul", x, graph.weights(weights, grid))
    graph.outputs.append((graph.apply("Add", y, graph.constant(bias)), "float32"))
    model = import_model(graph.save(tmp_path / "model.onnx"))
    inputs = graph.samples(0)
    (computed,) = Executor(model.module).run(list(inputs.values()))
    (data,) = inputs.values()
    sums = (data.astype(np.int64) - U8.zero_point) @ weights
    real = sums * (np.float64(U8.scales) * np.float64(grid.scales)) + bias.astype(np.float64)
    assert (np.abs(computed - real) <= 2 * np.spacing(np.abs(real).astype(np.float32))).all()


MOVED = {
    "a shuffle": (shuffles(3), 1),
    "two shuffles": (shuffles(2, 2), 1),
    "a shuffle and back": (shuffles(3, 4), 0),
    "shuffles that share no parts": (shuffles(3, 3), 2),
    "tokens": (tokens, 0),
}


@pytest.mark.parametrize(("build", "moves"), MOVED.values(), ids=MOVED)
def test_what_moves_in_a_row_moves_once(build: Build, moves: int, tmp_path: Path) -> None:
    """Beside the input and the output of the graph."""
    graph = Graph()
    build(graph)
    path = graph.save(tmp_path / "model.onnx")
    module = simplify(import_model(path).module)
    calls = [expr.op.name for _, expr in main_bindings(module)[1] if is_call(expr)]
    assert calls.count("relax.permute_dims") == 2 + moves
    inputs = graph.samples(0)
    difference = Executor(module).run(list(inputs.values()))[0].astype(int) - onnx_runtime(path, inputs)[0]
    assert np.abs(difference).max() <= 1


def erf_of_conv(graph: Graph) -> None:
    x = graph.quantized_input((1, 4, 8, 8), U8)
    graph.quantized_output(graph.apply("Erf", graph.apply("Conv", x, graph.weights(stored(6, 4, 3, 3), S8))), TO_U8)


def rectified_transposed(graph: Graph) -> None:
    x, w = graph.quantized_input((1, 4, 5, 5), U8), graph.weights(stored(4, 6, 3, 3), per_channel(4))
    graph.quantized_output(graph.apply("Relu", graph.apply("ConvTranspose", x, w)), TO_U8)


def half_quantised(graph: Graph) -> None:
    x, w = graph.quantized_input((1, 4, 5, 5), U8), graph.constant(np.ones((4, 6, 1, 1), np.float32))
    graph.quantized_output(graph.apply("Concat", x, graph.apply("ConvTranspose", x, w), axis=1), TO_U8)


def float_gru(graph: Graph) -> None:
    tanh = graph.apply("Tanh", graph.quantized_input((5, 1, 4), U8))
    w, r = (graph.constant(np.ones((1, 9, width), np.float32)) for width in (4, 3))
    graph.quantized_output(graph.apply("GRU", tanh, w, r, hidden_size=3), TO_U8)


def last_in_float(graph: Graph) -> None:
    x = graph.quantized_input((3, 20), WIDE)
    graph.outputs.append((graph.apply("MatMul", x, graph.weights(stored(20, 7), Grid(0.01))), "float32"))


@pytest.mark.parametrize("mode", ["half_pixel", "asymmetric"])
def test_the_real_meaning_of_a_resize_has_ties(mode: str, tmp_path: Path) -> None:
    """Of one grid for input and output: a result in the middle of two steps is there in float64, too."""
    graph = Graph()
    x = graph.quantized_input((1, 3, 6, 6), S8)
    sizes = graph.constant(np.array([1, 3, 12, 24]))
    y = graph.apply("Resize", x, "", "", sizes, mode="linear", coordinate_transformation_mode=mode)
    graph.quantized_output(y, S8)
    model = import_model(graph.save(tmp_path / "model.onnx"))
    samples = [list(graph.samples(seed).values()) for seed in range(3)]
    found = real_opinion(model, samples, [*map(Executor(model.module).run, samples)])
    assert found is not None
    assert (found.to_json()["elements"], found.to_json()["equal"]) == (3 * 864, 3 * 864)


def test_what_means_no_number_is_not_compared(tmp_path: Path) -> None:
    """0 / 0 has no nearest step."""
    graph = Graph()
    x, y = (graph.quantized_input((1, 8), S8) for _ in range(2))
    graph.quantized_output(graph.apply("Div", x, y), TO_S8)
    model = import_model(graph.save(tmp_path / "model.onnx"))
    dividend, divisor = graph.samples(0).values()
    nothing = np.full_like(dividend, S8.zero_point)
    samples = [[dividend, np.maximum(divisor, S8.zero_point + 1)], [nothing, nothing], [dividend | 1, nothing]]
    found = real_opinion(model, samples, [*map(Executor(model.module).run, samples)])
    assert found is not None
    assert (found.elements, found.equal, found.no_number) == (16, 16, 1)


NOTE = "its quantised form has no exact integer operator here and is computed in float"
UNQUANTISED = "weights are not quantised"
NAMED = {
    "behind sums": (
        erf_of_conv,
        (f'operator 3 Erf ("erf_10"): {NOTE} (Erf is no operator that integers can compute)',),
    ),
    "behind an activation": (
        rectified_transposed,
        tuple(
            f"operator {which}: {NOTE} (its weights have scales along another axis than the output channels)"
            for which in ('2 ConvTranspose ("convtranspose_9")', '3 Relu ("relu_10")')
        ),
    ),
    "with weights that are floats": (
        half_quantised,
        tuple(
            f"operator {which}: {NOTE} ({reason})"
            for which, reason in (
                ('1 ConvTranspose ("convtranspose_6")', f"its {UNQUANTISED}"),
                ('2 Concat ("concat_7")', f"one of its inputs is not quantised: its {UNQUANTISED} constants"),
            )
        ),
    ),
    "a recurrent layer of floats": (
        float_gru,
        (
            f'operator 1 Tanh ("tanh_5"): {NOTE} (what reads it computes in float)',
            f'operator 2 GRU ("gru_8"): {NOTE} (its {UNQUANTISED})',
        ),
    ),
    "without a step behind it": (
        last_in_float,
        (f'operator 2 MatMul ("matmul_9"): {NOTE} (its result is not quantised)',),
    ),
}


@pytest.mark.parametrize("name", NAMED)
def test_every_operator_that_becomes_float_is_named(name: str, tmp_path: Path) -> None:
    make, warnings = NAMED[name]
    graph = Graph()
    make(graph)
    model = import_model(graph.save(tmp_path / "model.onnx", 21))
    assert model.warnings == warnings
    assert all("though the model is quantised" in advice for advice in float_advice(model))
