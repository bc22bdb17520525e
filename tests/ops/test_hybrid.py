"""Layers of floats whose weights are bytes give the bits of LiteRT's reference kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.device.boards import board_with_tools
from support.device.hostlib import HostModel, compile_bytes
from support.models.float_rows import assert_same_bits
from support.models.hybrid_rows import ROWS, conv, dense, depthwise, product
from support.models.many import Row, many
from support.models.overlapped import compiled_overlapped
from support.models.relax_modules import compiled_module
from support.models.single_op import Activation, Constant
from support.models.tflite_writer import ModelBuilder
from support.models.windows import Window, spread_scales
from support.oracle.oracle import Array, LiteRt
from support.oracle.refusal import refusal
from support.oracle.sanitized import POOL, run_sanitized
from uaccel import memory
from uaccel.board import load_board
from uaccel.codegen.options import EmitOptions
from uaccel.kernels.choice import ANY_CPU
from uaccel.ops import kernel
from uaccel.pipeline import compile_model
from uaccel.runner.compiled import run_compiled
from uaccel.tvm_api.executor import Executor

SHARE = ("dense, zero points, scales by channel", "conv", "conv, scales by channel", "depthwise", "dense")


def inputs_of(rows: Mapping[str, Row], seed: int) -> list[Array]:
    """Of several sizes; some rows lie on one side of zero, are all zeros, or have numbers halfway between two steps."""
    rng = np.random.default_rng(seed)
    found = []
    for row in rows.values():
        assert isinstance(row.inputs[0], Activation)
        values = rng.normal(size=row.inputs[0].shape) * 10.0 ** rng.integers(-3, 4) + rng.integers(-1, 2)
        kind = seed % 4
        values = np.abs(values) if kind == 1 else np.round(values * 8) / 8 if kind == 2 else values
        found.append((values * (rng.random() > 0.1)).astype(np.float32))
    return found


def assert_reference(results: Sequence[Array], wanted: Sequence[Array], rows: Mapping[str, Row]) -> None:
    for name, got, one in zip(rows, results, wanted, strict=True):
        np.testing.assert_array_equal(got, one, name)


def test_generated_code_and_meaning_are_the_reference_s() -> None:
    data = many(ROWS)
    compiled, reference = compile_bytes(data), LiteRt(data)
    assert {layer.kernel.family for layer in compiled.program.layers if layer.macs} == {"portable"}
    host, executor = HostModel(compiled), Executor(compiled.stages["import"])
    for seed in range(8):
        sample = inputs_of(ROWS, seed)
        wanted = reference.run(sample)
        assert_reference(host(*sample), wanted, ROWS)
        assert_reference(executor.run(sample), wanted, ROWS)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["mps2_an386", "mps3_an547", "qemu_riscv32"])
def test_boards_give_the_bits_of_the_reference(name: str, tmp_path: Path) -> None:
    board = board_with_tools(name)
    path = tmp_path / "model.tflite"
    path.write_bytes(many(ROWS))
    samples = [inputs_of(ROWS, seed) for seed in range(3)]
    done = run_compiled(compile_model(path, board=name), board, samples, tmp_path / "run", lambda step: None)
    reference = LiteRt(path.read_bytes())
    for sample, outputs in zip(samples, done.run.outputs, strict=True):
        assert_reference(outputs, reference.run(sample), ROWS)


def test_weights_stay_bytes() -> None:
    row = {"row": dense((1, 256), 64, bias=False)}
    arguments = compile_bytes(many(row)).program.layers[-1].kernel.calls[0].arguments
    sizes = {given.role: given.data.nbytes for given in arguments if isinstance(given, kernel.Constant)}
    assert sizes["weights"] == 256 * 64


def test_layers_share_the_bytes_of_an_input() -> None:
    model = ModelBuilder()
    data = model.input("x", (2, 8), "float32")
    for number in range(3):
        weights = model.constant(f"w{number}", np.full((4, 8), number + 1, np.int8), scale=0.02)
        result = model.tensor(f"y{number}", (2, 4), "float32")
        model.op("FULLY_CONNECTED", [data, weights, None], [result])
        model.output(result)
    layers = compile_bytes(model.build()).program.layers
    assert [layer.op for layer in layers].count("quantize_rows") == 1


def test_numbers_that_are_none() -> None:
    """No runtime defines them: generated code and meaning agree on them, and nothing is undefined."""
    rows = {name: ROWS[name] for name in SHARE}
    compiled = compile_bytes(many(rows))
    samples = []
    for value in (np.nan, np.inf, -np.inf, 3e38, 1e-40, -1e-45):
        sample = inputs_of(rows, 3)
        for values in sample:
            values.reshape(-1)[:: 7 if np.abs(value) > 1 or value != value else 1] = value
        samples.append(sample)
    executor = Executor(compiled.stages["import"])
    host = HostModel(compiled, optimise="-O3")
    for sample in samples:
        for name, got, one in zip(rows, host(*sample), executor.run(sample), strict=True):
            assert_same_bits(got, one, name)


@pytest.mark.slow
def test_clean_under_sanitizers() -> None:
    rows = {name: ROWS[name] for name in SHARE}
    samples = [inputs_of(rows, seed) for seed in range(2)]
    samples[1][0].reshape(-1)[:2] = [np.nan, np.inf]
    module = compile_bytes(many(rows)).stages["import"]
    run_sanitized(compiled_module(module, EmitOptions(pools=(memory.Pool(POOL),))), samples)


def test_bytes_may_lie_over_the_numbers(tmp_path: Path) -> None:
    rows = {name: ROWS[name] for name in SHARE}
    overlapped = compiled_overlapped(compile_bytes(many(rows)).stages["import"], ANY_CPU)
    sample = inputs_of(rows, 5)
    done = run_compiled(overlapped, load_board("host"), [sample], tmp_path, lambda step: None)
    assert_reference(done.run.outputs[0], LiteRt(many(rows)).run(sample), rows)


@st.composite
def drawn(draw: st.DrawFn) -> dict[str, Row]:
    """Layers of any size."""
    sizes = st.integers(1, 6)
    groups, depth, per_group = draw(st.integers(1, 3)), draw(sizes), draw(sizes)
    dilation = (draw(st.integers(1, 2)), draw(st.integers(1, 2)))
    case = Window(
        input=(draw(st.integers(1, 2)), draw(st.integers(5, 9)), draw(st.integers(5, 9)), groups * depth),
        channels=groups * per_group,
        kernel=(draw(st.integers(1, 3)), draw(st.integers(1, 3))),
        stride=(1, 1) if max(dilation) > 1 else (draw(st.integers(1, 3)),) * 2,
        dilation=dilation,
        padding=draw(st.sampled_from(["SAME", "VALID"])),
        groups=groups,
        weight_scales=spread_scales(groups * per_group),
    )
    channels = groups * depth * draw(st.integers(1, 2))
    each = replace(case, channels=channels, groups=1, weight_scales=spread_scales(channels))
    row = dense((draw(sizes), draw(st.integers(1, 70))), draw(sizes), asymmetric=draw(st.booleans()))
    return {"conv": conv(case), "depthwise": depthwise(each), "dense": row}


@settings(max_examples=5, deadline=None)
@given(drawn(), st.integers(0, 99))
def test_layers_of_any_size(rows: dict[str, Row], seed: int) -> None:
    data, sample = many(rows), inputs_of(rows, seed)
    assert_reference(HostModel(compile_bytes(data))(*sample), LiteRt(data).run(sample), rows)


def changed(name: str, number: int, given: Any) -> Row:
    inputs = list(ROWS[name].inputs)
    inputs[number] = given
    return replace(ROWS[name], inputs=inputs)


ONES = np.ones((10, 40), np.int8)
REFUSALS: Mapping[str, tuple[Row, str]] = {
    "a zero point": (
        changed("dense", 1, Constant(ONES, (0.02,), (3,))),
        'weights "row: input 1" have the zero point 3, wanted 0',
    ),
    "an integer bias": (
        changed("dense", 2, Constant(np.ones(10, np.int32), (0.02,))),
        'bias "row: input 2" is int32, supported is float32',
    ),
    "a short bias": (
        changed("dense", 2, Constant(np.ones(4, np.float32))),
        "bias float32 [4] does not fit the 10 output channels",
    ),
    "scales": (
        changed("dense", 1, Constant(ONES, (0.02, 0.03))),
        'weights "row: input 1" have 2 scales; wanted one for each of 10 channels',
    ),
    "a depthwise layer with one scale": (
        changed("depthwise", 1, Constant(np.ones((1, 3, 3, 4), np.int8), (0.02,), axis=3)),
        'weights "row: input 1" have 1 scales; wanted one for each of 4 channels',
    ),
    "scales along another axis": (
        changed("depthwise", 1, Constant(np.ones((1, 3, 3, 4), np.int8), spread_scales(4), axis=1)),
        'weights "row: input 1" have scales along axis 1, wanted 3',
    ),
    "groups with one scale": (
        changed("conv, groups", 1, Constant(np.ones((6, 3, 3, 2), np.int8), (0.02,))),
        'weights "row: input 1" have 1 scales; wanted one for each of 6 channels',
    ),
    "weights of a run": (
        changed("dense", 1, Activation((10, 40), "int8", 0.02)),
        'weights "row: input 1" is computed at run time; only constant weights can be compiled',
    ),
    "several matrices": (
        product((2, 3, 8), (2, 8, 5), (2, 3, 5)),
        "weights int8 [2,8,5] are several matrices, wanted one; split the layer",
    ),
    "rows that do not fit": (
        product((2, 3, 7), (8, 5), (2, 3, 5)),
        "rows of 7 elements do not fit columns of 8",
    ),
    "scales along rows": (
        product((3, 4), (4, 4), (3, 4), spread_scales(4)),
        'weights "row: input 1" have scales along axis 0, wanted 1',
    ),
    "a sign": (
        dense((1, 4), 2, fused_activation_function="SIGN_BIT"),
        "its activation SIGN_BIT is not supported; make it an operator of its own",
    ),
    "sums of too many products": (
        dense((1, 65794), 1),
        "hybrid_fully_connected: sums of 65794 products may overflow 32 bits; at most 65793 fit",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_is_refused(name: str) -> None:
    row, reason = REFUSALS[name]
    assert refusal(row) == reason


def test_a_tangent_of_the_sums() -> None:
    """The reference computes it with this layer's own activation alone."""
    rows = {"row": dense((2, 8), 4, fused_activation_function="TANH")}
    sample = inputs_of(rows, 0)
    (got,), (wanted,) = HostModel(compile_bytes(many(rows)))(*sample), LiteRt(many(rows)).run(sample)
    np.testing.assert_allclose(got, wanted, rtol=1e-6)
