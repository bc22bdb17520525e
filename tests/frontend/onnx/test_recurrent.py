"""LSTM, GRU and RNN: one layer for each direction, in float and with integer weights, against ONNX Runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.device.boards import board_with_tools
from support.device.hostlib import HostModel
from support.models.onnx_rows import Array, Given, Row, compare, feeds_of, model_of, row, session_of
from uaccel.ops.kernel import Constant
from uaccel.pipeline import Compiled, compile_model
from uaccel.runner.compiled import run_compiled

STEPS, BATCH, DEPTH, UNITS = 5, 3, 4, 3
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
SEQUENCE = Given((STEPS, BATCH, DEPTH))
MICROSOFT = "com.microsoft"


def _drawn(*shape: int, seed: int = 1) -> Array:
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


def _layer(op: str, *more: Given | Array | None, bias: bool = True, **attributes: Any) -> Row:
    """``more``: from the lengths of the sequences on."""
    directions, rows = 2 if attributes.get("direction") == "bidirectional" else 1, GATES[op] * UNITS
    matrices = _drawn(directions, rows, DEPTH), _drawn(directions, rows, UNITS, seed=2)
    added = _drawn(directions, 2 * rows, seed=3) if bias else None
    outputs = 3 if op == "LSTM" else 2
    return row(op, SEQUENCE, *matrices, added, *more, outputs=outputs, hidden_size=UNITS, **attributes)


BOTH: dict[str, Any] = {"direction": "bidirectional"}
STATE = Given((1, BATCH, UNITS))
STATES = Given((2, BATCH, UNITS))
LENGTHS = np.full(BATCH, STEPS, np.int32)
SOME_STEPS, GIVEN_STEPS = np.asarray([2, STEPS, 1], np.int32), Given((BATCH,), "int32", 1, STEPS)
FLOATS = {
    "lstm": _layer("LSTM"),
    "lstm without bias, backwards": _layer("LSTM", bias=False, direction="reverse"),
    "lstm both ways with states": _layer("LSTM", LENGTHS, STATES, STATES, **BOTH),
    "lstm known states": _layer("LSTM", None, _drawn(2, BATCH, UNITS), _drawn(2, BATCH, UNITS, seed=5), **BOTH),
    "lstm of three lengths": _layer("LSTM", SOME_STEPS, STATE, STATE),
    "lstm of given lengths, both ways": _layer("LSTM", GIVEN_STEPS, STATES, STATES, **BOTH),
    "gru of three lengths, backwards": _layer("GRU", SOME_STEPS, direction="reverse"),
    "rnn of given lengths": _layer("RNN", GIVEN_STEPS, STATE),
    "lstm peepholes": _layer("LSTM", None, STATE, STATE, _drawn(1, 3 * UNITS, seed=4)),
    "lstm clipped": _layer("LSTM", clip=0.3),
    "lstm other functions": _layer("LSTM", activations=["HardSigmoid", "Relu", "Tanh"]),
    "gru": _layer("GRU"),
    "gru resets after": _layer("GRU", None, STATE, linear_before_reset=1),
    "gru both ways": _layer("GRU", None, STATES, linear_before_reset=1, **BOTH),
    "gru both ways, before": _layer("GRU", None, STATES, **BOTH),
    "rnn": _layer("RNN", None, STATE),
    "rnn relu both ways": _layer("RNN", activations=["Relu", "Tanh"], **BOTH),
}


FEW = ("lstm of given lengths, both ways", "gru resets after", "rnn")


def _compiled(model: Any, path: Path, board: str = "host") -> Compiled:
    path.write_bytes(model.SerializeToString())
    return compile_model(path, board=board)


@pytest.mark.parametrize("board", ["host", "mps2_an386"])
def test_layers_give_what_onnx_runtime_gives(board: str, tmp_path: Path) -> None:
    """A few of them on the emulated board."""
    rows = FLOATS if board == "host" else {name: FLOATS[name] for name in FEW}
    model, feeds = model_of(rows, 14), feeds_of(rows)
    compiled = _compiled(model, tmp_path / "m.onnx", board)
    values = [feeds[spec.name] for spec in compiled.model.signature.inputs]
    if board == "host":
        outputs = HostModel(compiled)(*values)
    else:
        run = run_compiled(compiled, board_with_tools(board), [values], tmp_path / "p", lambda step: None)
        (outputs,) = run.run.outputs
    names = [spec.name for spec in compiled.model.signature.outputs]
    for name, got, wanted in zip(names, outputs, session_of(model).run(None, feeds), strict=True):
        compare(got, wanted, name, relative=3e-5)
    layers = [layer.op for layer in compiled.program.layers]
    assert layers.count("recurrent") == sum(1 + (BOTH.items() <= entry.attributes.items()) for entry in rows.values())


def test_a_float_layer_is_not_called_quantised(tmp_path: Path) -> None:
    (warning,) = _compiled(model_of({"row": _layer("LSTM")}, 14), tmp_path / "m.onnx").warnings
    assert warning.startswith("it computes in float; quantised to int8, its float weights would take")


def _split(model: Any, name: str, axis: int | None, most: int = 127) -> tuple[Array, Array, Array]:
    """Weights of the model, which no longer has them: integers, their scale (one, or along an axis) and zero point."""
    from onnx import numpy_helper

    (weights,) = [tensor for tensor in model.graph.initializer if tensor.name == name]
    model.graph.initializer.remove(weights)
    value = numpy_helper.to_array(weights)
    others = None if axis is None else tuple({0, 1, 2} - {axis})
    scale = np.asarray(np.abs(value).max(axis=others, keepdims=True) / most, np.float32)
    stored = np.round(value / scale).astype(np.int8)
    scale = scale.reshape(() if axis is None else -1)
    return stored, scale, np.zeros(scale.shape, np.int8)


def _dequantised(entry: Row, axis: int | None) -> Any:
    """Weights through DequantizeLinear."""
    from onnx import helper, numpy_helper

    model = model_of({"row": entry}, 14)
    for name in ("row/in1", "row/in2"):
        parts = dict(zip([f"{name}/{part}" for part in "qsz"], _split(model, name, axis), strict=True))
        model.graph.initializer.extend(numpy_helper.from_array(value, key) for key, value in parts.items())
        model.graph.node.insert(0, helper.make_node("DequantizeLinear", list(parts), [name], axis=axis or 0))
    return model


def _dynamic(entry: Row, per_row: bool) -> Any:
    """As ONNX Runtime's dynamic quantisation writes it, of 7 bits: on a computer without VNNI it saturates sums of two
    products to 16 bits."""
    model = model_of({"row": entry}, 14)
    parts = [_split(model, name, 1 if per_row else None, 63) for name in ("row/in1", "row/in2")]
    (first, *scales), (second, *more) = parts
    wide = [value.reshape(1, -1) if per_row else value.reshape(1) for value in (*scales, *more)]
    weights = [np.ascontiguousarray(value.transpose(0, 2, 1)) for value in (first, second)]
    given = [*entry.inputs, *[None] * (8 - len(entry.inputs))]
    inputs = [given[0], *weights, *given[3:8], *wide]
    attributes = dict(entry.attributes)
    return model_of({"row": row("DynamicQuantizeLSTM", *inputs, outputs=3, domain=MICROSOFT, **attributes)}, 14)


def _integers(compiled: Compiled) -> int:
    """How many weights lie in flash as int8."""
    kernels = [layer.kernel for layer in compiled.program.layers if layer.op == "recurrent"]
    found = [
        entry.data
        for kernel in kernels
        for call in kernel.calls
        for entry in call.arguments
        if isinstance(entry, Constant)
    ]
    return sum(data.size for data in found if data.dtype == np.int8)


QUANTISED = {
    "lstm": (_dequantised(_layer("LSTM"), None), 2e-5),
    "lstm by rows": (_dequantised(_layer("LSTM", None, STATE, STATE), 1), 2e-5),
    "gru by rows": (_dequantised(_layer("GRU", linear_before_reset=1), 1), 2e-5),
    "rnn": (_dequantised(_layer("RNN"), None), 2e-5),
    "rnn by directions": (_dequantised(_layer("RNN", **BOTH), 0), 2e-5),
    "dynamic": (_dynamic(_layer("LSTM", None, STATE, STATE), per_row=False), 2e-2),
    "dynamic by rows": (_dynamic(_layer("LSTM", bias=False), per_row=True), 2e-2),
}
"""With what they may differ from ONNX Runtime, which rounds activations of a dynamic layer to eight bits."""


@pytest.mark.parametrize("name", QUANTISED)
def test_integer_weights_stay_integers(name: str, tmp_path: Path) -> None:
    model, relative = QUANTISED[name]
    compiled = _compiled(model, tmp_path / "m.onnx")
    rng = np.random.default_rng(3)
    feeds = {
        spec.name: rng.uniform(-1, 1, spec.info.shape).astype(np.float32) for spec in compiled.model.signature.inputs
    }
    outputs = HostModel(compiled)(*feeds.values())
    for number, (got, wanted) in enumerate(zip(outputs, session_of(model).run(None, feeds), strict=True)):
        compare(got, wanted, f"output {number}", relative=relative)
    op = model.graph.node[-1].op_type
    weights = GATES[op.removeprefix("DynamicQuantize")] * UNITS * (DEPTH + UNITS)
    assert _integers(compiled) == weights * (1 + name.endswith("directions"))
