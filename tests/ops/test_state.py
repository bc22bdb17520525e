"""What lasts between inferences: SVDF, LSTM, variables. Sequences of frames against TFLite Micro, to the bit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from support.device.hostlib import HostModel, compile_bytes
from support.models.stateful import Circular, Lstm, Ring, Svdf
from support.models.stateful_float import FloatCells, FloatLstm, FloatSvdf
from support.models.tflite_writer import ModelBuilder
from support.oracle.exactness import assert_exact_random, assert_same
from support.oracle.oracle import LiteRt, Tflm, random_inputs
from support.oracle.refusal import refused
from support.oracle.sanitized import assert_clean
from support.run.command import call_in
from uaccel.ops import kernel
from uaccel.pipeline import Compiled
from uaccel.tvm_api.executor import Executor

FRAMES = 9
FIRST = np.arange(18).reshape(1, 6, 3)
FINE = np.arange(-32, 32)

SVDF = {
    "int16 state": Svdf(),
    "int8 state": Svdf("int8", scales=(0.1, 0.01, 0.1, 0.02, 0.2)),
    "a zero point, which wraps": Svdf("int8", zero_point=9, scales=(0.1, 0.01, 0.05, 0.02, 0.2)),
    "batches": Svdf(batch=3, rank=1, memory=3),
    "no memory": Svdf(memory=1),
    "multipliers of double precision": Svdf(
        "int8", filters=64, rank=1, memory=1, scales=(0.1, 0.01, 0.0173, 1.73e-5, 1.3), bias=436546656 + FINE * 2
    ),
}
LSTM = {
    "batch major": Lstm(),
    "time major": Lstm(time_major=True),
    "clipped": Lstm(clip=0.5, steps=2),
    "a fine cell state": Lstm(cell_power=-15, batch=1),
    "a coarse cell state": Lstm(cell_power=-9, batch=1),
    "int16": Lstm("int16"),
    "int16, time major and clipped": Lstm("int16", time_major=True, clip=0.25),
}
VARIABLES = {
    "as the reference begins": Ring(),
    "assigned once": Ring(first=FIRST),
    "int16": Ring("int16", first=FIRST + 300),
    "also an output": Ring(first=FIRST, shown=True),
}
FRAMES_KEPT = {
    "four": Circular(),
    "one": Circular(rows=1),
    "without options": Circular(rows=5, period=0),
    "also an output": Circular(shown=True),
}
MODELS: dict[str, Svdf | Lstm | Ring | Circular] = {
    **{f"SVDF, {name}": model for name, model in SVDF.items()},
    **{f"LSTM, {name}": model for name, model in LSTM.items()},
    **{f"variable, {name}": model for name, model in VARIABLES.items()},
    **{f"circular buffer, {name}": model for name, model in FRAMES_KEPT.items()},
}
COMPILED_SLOWLY = ("LSTM, clipped", "LSTM, a coarse cell state")
"""By TVM; other rows hold the same of the exact meaning."""


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", MODELS)
def test_sequences_are_exact(name: str) -> None:
    compiled = assert_exact_random(MODELS[name].build(), runs=FRAMES, meaning=name not in COMPILED_SLOWLY)
    tensors = sum(entry.before.info.size for entry in compiled.program.state)
    assert 4 <= compiled.placement.state - tensors < 4 + 4 * len(compiled.program.state), "a mark, and what aligns"


@pytest.mark.parametrize(
    "model",
    [
        FloatSvdf(),
        FloatSvdf(activation="RELU", batch=1, rank=1),
        FloatLstm(),
        FloatLstm(time_major=True, clip=0.2),
    ],
    ids=["SVDF", "SVDF, relu", "LSTM", "LSTM, time major and clipped"],
)
def test_sequences_of_floats(model: FloatSvdf | FloatLstm) -> None:
    data = model.build()
    assert_near(data, Tflm(data), 1e-5)


def assert_near(data: bytes, reference: Tflm | LiteRt, rtol: float) -> None:
    compiled = compile_bytes(data)
    host, executor = HostModel(compiled), Executor(compiled.model.module, state=compiled.model.state)
    for values in random_inputs(data, 1, FRAMES, (-1.0, 1.0)):
        (wanted,) = reference.run(values)
        np.testing.assert_allclose(host(*values)[0], wanted, rtol=rtol, atol=1e-6)
        np.testing.assert_allclose(executor.run(values)[0], wanted, rtol=rtol, atol=1e-6)


IN_BYTES: dict[str, FloatSvdf | FloatLstm | FloatCells] = {
    "SVDF": FloatSvdf(activation="RELU", in_bytes=True),
    "SVDF, zero points": FloatSvdf(activation="RELU", in_bytes=True, asymmetric=True),
    "LSTM": FloatLstm(in_bytes=True),
    "LSTM, zero points": FloatLstm(in_bytes=True, asymmetric=True),
    "LSTM, time major and clipped": FloatLstm(in_bytes=True, time_major=True, clip=0.2, steps=5),
    "LSTM, one step": FloatLstm(in_bytes=True, batch=1, steps=1),
    "LSTM, many steps": FloatLstm(in_bytes=True, asymmetric=True, steps=200),
    "cells": FloatCells("TANH", in_bytes=True, steps=100),
    "cells, time major and zero points": FloatCells("RELU6", time_major=True, in_bytes=True, asymmetric=True),
}


@pytest.mark.parametrize("model", IN_BYTES.values(), ids=IN_BYTES)
def test_sequences_of_floats_by_weights_of_bytes(model: FloatSvdf | FloatLstm | FloatCells) -> None:
    """Frames become bytes in each run, as LiteRT's reference kernels do it."""
    data = model.build()
    assert_near(data, LiteRt(data), 1e-6)


@pytest.mark.parametrize("board", ["host", "mps2_an386"])
def test_boards_run_an_lstm_by_weights_of_bytes(board: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.tflite").write_bytes(IN_BYTES["LSTM, zero points"].build())
    done = call_in(capfd)("run", tmp_path / "m.tflite", "--board", board, "--verify", "--json")
    assert done.status == 0, done.err
    assert done.report["verify"]["against"] == ["exact meaning", "litert"]
    assert done.report["verify"]["runtime"]["largest_relative_difference"] < 1e-6


@pytest.mark.parametrize("model", [FloatLstm(in_bytes=True), FloatCells("TANH", in_bytes=True)], ids=["LSTM", "cells"])
def test_code_does_not_grow_with_the_steps(model: FloatLstm | FloatCells) -> None:
    few, many = (compile_bytes(replace(model, steps=steps).build()) for steps in (3, 300))
    assert [layer.op for layer in few.program.layers] == [layer.op for layer in many.program.layers]
    small, large = (sum(map(len, one.generated.sources.values())) for one in (few, many))
    assert large < 1.05 * small


def test_an_lstm_keeps_its_weights_once_and_as_bytes() -> None:
    model = FloatLstm(in_bytes=True, steps=5, depth=40, units=32)
    constants = {
        given.data.tobytes()
        for layer in compile_bytes(model.build()).program.layers
        for call in layer.kernel.calls
        for given in call.arguments
        if isinstance(given, kernel.Constant)
    }
    assert 4 * 32 * (40 + 32) <= sum(map(len, constants)) < 1.5 * 4 * 32 * (40 + 32)


@pytest.mark.parametrize(
    "model",
    [
        FloatCells("TANH", biased=True),
        FloatCells("RELU6", time_major=True),
        FloatCells("RELU_N1_TO_1", both=True),
        FloatCells("NONE", both=True, merged=True, time_major=True),
    ],
    ids=["forth", "forth, time major", "both ways", "both ways, merged and time major"],
)
def test_sequences_of_simple_cells(model: FloatCells) -> None:
    data = model.build()
    compiled, reference = compile_bytes(data), LiteRt(data)
    host, executor = HostModel(compiled), Executor(compiled.model.module, state=compiled.model.state)
    for values in random_inputs(data, 1, 3, (-1.0, 1.0)):
        wanted = reference.run(values)
        for got in (host(*values), executor.run(values)):
            for one, other in zip(got, wanted, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def copies(compiled: Compiled) -> list[str]:
    return [layer.name for layer in compiled.program.layers if layer.op == "copy"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [Svdf("int8", batch=2), Lstm(), Lstm("int16", time_major=True), Ring(first=FIRST, shown=True)],
    ids=["SVDF", "LSTM", "LSTM, int16", "variable"],
)
def test_clean_under_sanitizers(model: Svdf | Lstm | Ring) -> None:
    assert_clean(model.build())


@pytest.mark.parametrize(
    ("model", "copied"),
    [
        (Svdf(), []),
        (Lstm(), []),
        (FloatLstm(), []),
        (FloatLstm(in_bytes=True), []),
        (FloatCells("TANH", in_bytes=True), []),
        (Ring(first=FIRST), []),
        (Ring(first=FIRST, shown=True), ["copy_old", "copy_rows"]),
    ],
    ids=[
        *("by the kernel", "by a kernel with two", "by C of the meaning", "by C for bytes", "by C for cells of bytes"),
        *("by a layer that comes after all who read", "by a copy at the end"),
    ],
)
def test_the_state_is_updated_where_it_lies(
    model: Svdf | Lstm | FloatLstm | FloatCells | Ring, copied: list[str]
) -> None:
    assert copies(compile_bytes(model.build())) == copied


def exchanging(assigned: str, shown: str) -> bytes:
    """Variables a, b, c, which hold 0, 10, 20 at first, and what is ``assigned`` to them: one of "a", "b", "c" as they
    were, "x" (the input), "y" (the sum of input and c) or "7" (a constant); ``shown`` are the outputs."""
    model = ModelBuilder()
    x = model.input("x", (4,), "int8", scale=0.5)
    init = model.subgraph()
    model.op("CALL_ONCE", [], [], {"init_subgraph_index": 1})
    values = {"x": x, "7": model.constant("7", np.full(4, 7, np.int8), scale=0.5)}
    handles = []
    for number, name in enumerate("abc"):
        options = {"container": "", "shared_name": name}
        first = init.constant(name, np.full(4, 10 * number, np.int8), scale=0.5)
        handle = init.tensor(f"{name} handle", (1,), "resource")
        init.op("VAR_HANDLE", [], [handle], options)
        init.op("ASSIGN_VARIABLE", [handle, first], [])
        handles.append(model.tensor(f"{name} handle", (1,), "resource"))
        values[name] = model.tensor(f"{name} before", (4,), "int8", scale=0.5)
        model.op("VAR_HANDLE", [], [handles[-1]], options)
        model.op("READ_VARIABLE", [handles[-1]], [values[name]])
    values["y"] = model.tensor("y", (4,), "int8", scale=0.5)
    model.op("ADD", [x, values["c"]], [values["y"]])
    for handle, name in zip(handles, assigned, strict=True):
        model.op("ASSIGN_VARIABLE", [handle, values[name]], [])
    for name in shown:
        model.output(values[name])
    return model.build()


@pytest.mark.parametrize(
    ("assigned", "shown"),
    [("bya", "yabc"), ("bac", "yabc"), ("x7c", "yabc"), ("bca", "y"), ("yyx", "y"), ("bcy", "y"), ("abc", "y")],
)
def test_variables_exchange_what_they_hold(assigned: str, shown: str) -> None:
    assert_exact_random(exchanging(assigned, shown), runs=FRAMES, meaning=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    "model", [Svdf("int8", zero_point=9), Lstm(), Ring(first=FIRST)], ids=["SVDF", "LSTM", "variable"]
)
def test_a_reset_begins_anew(model: Svdf | Lstm | Ring) -> None:
    data = model.build()
    compiled = compile_bytes(data)
    host, frames = HostModel(compiled), random_inputs(data, 3, 5)
    executor = Executor(compiled.model.module, state=compiled.model.state)
    for _ in range(2):
        reference = Tflm(data)  # its own reset forgets what CALL_ONCE assigned
        for frame in frames:
            (wanted,) = reference.run(frame)
            assert_same(host(*frame)[0], wanted, "the generated C")
            assert_same(executor.run(frame)[0], wanted, "the exact meaning")
        host.reset()
        executor.reset()


def test_a_subgraph_that_nothing_calls_is_overlooked() -> None:
    model = ModelBuilder()
    x = model.input("x", (1, 4), "int8", scale=0.5)
    y = model.tensor("y", (1, 4), "int8", scale=0.5)
    model.op("RELU", [x], [y])
    model.output(y)
    model.subgraph().op("WHILE", [], [], {"cond_subgraph_index": 1, "body_subgraph_index": 1})
    assert_exact_random(model.build(), runs=2)


LSTM_0 = 'operator 0 UNIDIRECTIONAL_SEQUENCE_LSTM ("y"): '
REFUSALS: dict[str, tuple[bytes, str]] = {
    "peepholes": (
        Lstm(extra=(9, 10, 11)).build(),
        LSTM_0 + "it has peephole connections, which is not supported; an LSTM without can be compiled",
    ),
    "projection": (
        Lstm(extra=(16,)).build(),
        LSTM_0 + "it has a projection, which is not supported; an LSTM without can be compiled",
    ),
    "layer normalisation": (
        Lstm(extra=(20, 21, 22, 23)).build(),
        LSTM_0 + "it has layer normalisation, which is not supported; an LSTM without can be compiled",
    ),
    "activation": (
        Lstm(activation="RELU").build(),
        LSTM_0 + "activation RELU is not supported; an LSTM with TANH can be compiled",
    ),
    "zero point": (
        Svdf(zero_point=1).build(),
        'operator 0 SVDF ("y"): int16 "state" has zero point 1, which cannot be',
    ),
    "an activation of floats": (
        FloatSvdf(activation="RELU6").build(),
        'operator 0 SVDF ("y"): activation RELU6 is not supported; an SVDF with RELU or none can be compiled',
    ),
    "nothing assigns": (
        Ring(assigned=False).build(),
        'operator 1 READ_VARIABLE ("old"): nothing ever assigns the variable "rows"',
    ),
    "computed at first": (
        Ring(first=FIRST, init_operator="RELU").build(),
        'operator 0 CALL_ONCE ("no output"): its subgraph 1 holds RELU of operator 1; '
        "only constants can be assigned there",
    ),
    "every other frame": (
        Circular(period=2).build(),
        'operator 0 CUSTOM:CIRCULAR_BUFFER ("kept"): what follows it runs once in 2 frames; '
        "only cycles_max 1 can be compiled",
    ),
    "every other frame, where nothing is said and not every frame counts": (
        Circular(period=0).build(),
        'operator 0 CUSTOM:CIRCULAR_BUFFER ("kept"): what follows it runs once in 2 frames; '
        "only cycles_max 1 can be compiled",
    ),
    "a buffer that does not last": (
        Circular(is_variable=False).build(),
        'operator 0 CUSTOM:CIRCULAR_BUFFER ("kept"): output "kept" is no variable tensor',
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals(name: str) -> None:
    data, words = REFUSALS[name]
    assert refused(data) == words
