"""The test support itself: what the writer writes is what two runtimes read, and the own models are sound."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import tflite

from models import gesture, motion
from support.models.single_op import Activation, Constant, single_op
from support.models.tflite_view import TensorInfo, view
from support.models.tflite_writer import ModelBuilder
from support.oracle.known_values import CASES, Case
from support.oracle.oracle import Array, Tflm, random_inputs, run_litert, run_tflm

MODELS = Path(__file__).resolve().parents[1] / "models"
OWN_MODELS = ("gesture", "residual", "branches", "int16", "mixed")


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.tflm])
def test_an_operator_has_its_meaning_on_tflite_micro(name: str) -> None:
    _check(CASES[name], run_tflm(CASES[name].data, CASES[name].inputs))


@pytest.mark.parametrize("name", CASES)
def test_an_operator_has_its_meaning_on_litert(name: str) -> None:
    """On the optimised kernels, for LiteRT's reference ones lack ELU and add up int8 SUM wrongly."""
    _check(CASES[name], run_litert(CASES[name].data, CASES[name].inputs, kernels="optimised"))


def _check(case: Case, outputs: list[Array]) -> None:
    for output, result, expected in zip(outputs, case.results, case.expected, strict=True):
        assert output.dtype == np.dtype(result.dtype)
        assert output.shape == result.shape
        np.testing.assert_array_equal(output, expected)


def two_layers() -> tuple[ModelBuilder, dict[str, int]]:
    """x * 2 + 1 for real values, with an intermediate between; tensor indices by name."""
    model = ModelBuilder()
    x = model.input("x", (3,), "int8", scale=1.0)
    two = model.constant("two", np.array([2], np.int8), scale=1.0)
    doubled = model.tensor("doubled", (3,), "int8", scale=1.0)
    one = model.constant("one", np.array([1], np.int8), scale=1.0)
    y = model.tensor("y", (3,), "int8", scale=1.0)
    lonely = model.tensor("lonely", (3,), "int8", scale=1.0)
    model.op("MUL", [x, two], [doubled])
    model.op("ADD", [doubled, one], [y])
    model.output(y)
    return model, {tensor.name: tensor.index for tensor in (x, two, doubled, one, y, lonely)}


def test_the_reference_gives_back_every_tensor_that_means_something() -> None:
    model, index = two_layers()
    reference = Tflm(model.build())
    for x in ([1, 2, 3], [-4, 0, 50]):
        (y,) = reference.run([np.array(x, np.int8)])
        np.testing.assert_array_equal(y, 2 * np.array(x) + 1)
        np.testing.assert_array_equal(reference.tensor(index["x"]), x)
        np.testing.assert_array_equal(reference.tensor(index["two"]), [2])
        intermediates = reference.intermediates()
        assert list(intermediates) == [index["doubled"], index["y"]]
        np.testing.assert_array_equal(intermediates[index["doubled"]], 2 * np.array(x))
        np.testing.assert_array_equal(intermediates[index["y"]], y)


def test_the_reference_refuses_tensors_without_a_meaning() -> None:
    model, index = two_layers()
    reference = Tflm(model.build())
    with pytest.raises(ValueError, match="before the first run"):
        reference.tensor(index["x"])
    reference.run([np.zeros(3, np.int8)])
    for unreadable in (index["lonely"], len(index), -1):
        with pytest.raises(ValueError, match=f"tensor {unreadable} is not an input"):
            reference.tensor(unreadable)
    with pytest.raises(ValueError, match="the model has 1 inputs, got 2"):
        reference.run([np.zeros(3, np.int8)] * 2)


def test_one_run_gives_outputs_and_intermediates() -> None:
    model, index = two_layers()
    (y,), intermediates = run_tflm(model.build(), [np.array([1, 2, 3], np.int8)], intermediates=True)
    np.testing.assert_array_equal(y, [3, 5, 7])
    np.testing.assert_array_equal(intermediates[index["doubled"]], [2, 4, 6])


def test_the_reference_fails_on_an_operator_that_it_lacks() -> None:
    data = single_op("RELU_N1_TO_1", [Activation((1,), "float32")], [Activation((1,), "float32")])
    with pytest.raises(RuntimeError):
        run_tflm(data, [np.zeros(1, np.float32)])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64", "float32", "bool"])
def test_constants_of_every_type_read_back(dtype: str) -> None:
    values = np.array([[0, 1], [100, 127]]).astype(dtype)
    model = ModelBuilder()
    model.constant("c", values, scales=[0.5, 0.25], zero_points=[3, -4], axis=1)
    (tensor,) = view(model.build()).tensors
    assert tensor == TensorInfo(0, "c", (2, 2), dtype, (0.5, 0.25), (3, -4), 1)
    assert tensor.data is not None
    assert tensor.data.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(tensor.data, values)


def test_a_scalar_constant_keeps_its_rank() -> None:
    model = ModelBuilder()
    model.constant("c", np.int32(7))
    (tensor,) = view(model.build()).tensors
    assert tensor.shape == ()
    assert tensor.data == 7


def test_activations_and_operators_read_back() -> None:
    x, y = Activation((1, 2), "int8", 0.5, -3), Activation((1, 1), "int16")
    seen = view(single_op("FULLY_CONNECTED", [x, Constant(np.ones((1, 2), np.int8)), None], [y]))
    assert seen.inputs == (TensorInfo(0, "input_0", (1, 2), "int8", (0.5,), (-3,)),)
    assert seen.outputs == (TensorInfo(2, "output_0", (1, 1), "int16"),)
    assert [tensor.is_constant for tensor in seen.tensors] == [False, True, False]
    (operator,) = seen.operators
    assert (operator.name, operator.inputs, operator.outputs) == ("FULLY_CONNECTED", (0, 1, -1), (2,))


def test_a_dynamic_shape_is_in_the_signature() -> None:
    model = ModelBuilder()
    model.input("x", (1, 8), "int8", scale=1.0, signature=(-1, 8))
    tensor = tflite.Model.GetRootAs(model.build(), 0).Subgraphs(0).Tensors(0)
    assert tensor.ShapeAsNumpy().tolist() == [1, 8]
    assert tensor.ShapeSignatureAsNumpy().tolist() == [-1, 8]


def test_operator_codes_are_shared_and_carry_both_numbers() -> None:
    model = ModelBuilder()
    x = model.input("x", (1,), "float32")
    for name, version, custom in (
        ("ADD", 1, None),
        ("RELU_0_TO_1", 3, None),
        ("ADD", 1, None),
        ("ADD", 2, None),
        ("CUSTOM", 1, "Mine"),
    ):
        model.op(name, [x], [x], version=version, custom_code=custom)
    file = tflite.Model.GetRootAs(model.build(), 0)
    codes = [file.OperatorCodes(k) for k in range(file.OperatorCodesLength())]
    assert [(c.DeprecatedBuiltinCode(), c.BuiltinCode(), c.Version(), c.CustomCode()) for c in codes] == [
        (0, 0, 1, None),
        (127, 152, 3, None),
        (0, 0, 2, None),
        (32, 32, 1, b"Mine"),
    ]
    assert [file.Subgraphs(0).Operators(k).OpcodeIndex() for k in range(5)] == [0, 1, 0, 2, 3]


def test_constants_are_aligned_and_the_file_repeats() -> None:
    def build() -> bytes:
        model = ModelBuilder()
        for length in (1, 3, 17):
            model.constant(f"c{length}", np.full(length, 0x5A, np.uint8))
        return model.build()

    data = build()
    assert data == build()
    assert data[4:8] == b"TFL3"
    for length in (1, 3, 17):
        start = data.index(length.to_bytes(4, "little") + b"\x5a" * length) + 4
        assert start % 16 == 0


@pytest.mark.parametrize(
    ("operator", "options", "message"),
    [
        ("SOFTMAX", {"gamma": 1.0}, "option 'gamma' is not in SoftmaxOptions; it has Beta"),
        ("RELU", {"beta": 1.0}, r"RELU takes no options, got \['beta'\]"),
        ("CONV_2D", {"padding": "HALF"}, "option 'padding' cannot be 'HALF'"),
        ("CONV_3", {}, "operator 'CONV_3' is not in the TFLite schema"),
    ],
)
def test_a_wrong_operator_or_option_is_refused(operator: str, options: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        single_op(operator, [Activation((1,))], [Activation((1,))], options)


def test_a_wrong_dtype_is_refused() -> None:
    with pytest.raises(ValueError, match="tensor 'x': dtype 'int2' is not one of int4"):
        ModelBuilder().input("x", (1,), "int2")


def test_random_inputs_start_with_the_ramp_and_reach_every_corner() -> None:
    spec = TensorInfo(0, "x", (2, 300), "int8", (0.5,), (-7,))
    drawn = [arrays[0] for arrays in random_inputs([spec], seed=1, n=40)]
    index = np.arange(600).reshape(2, 300)
    np.testing.assert_array_equal(drawn[0], (7 * index + 3) % 256 - 128)
    assert [set(np.unique(x)) for x in drawn[1:5]] == [{-128}, {127}, {-128, 127}, {-7}]
    noise = drawn[6:]
    assert {x.dtype for x in drawn} == {np.dtype(np.int8)}
    assert len(np.unique(noise[0])) > 200
    assert np.abs(noise[1].astype(int) + 7).max() <= 16
    assert np.isin(noise[2], (-128, 127)).mean() > 0.3
    again = [arrays[0] for arrays in random_inputs([spec], seed=1, n=40)]
    assert all(np.array_equal(a, b) for a, b in zip(drawn, again, strict=True))
    assert not np.array_equal(noise[0], random_inputs([spec], seed=2, n=7)[6][0])


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "int64", "float32", "bool"])
def test_random_inputs_span_each_type(dtype: str) -> None:
    low, high = {"float32": (-8, 8), "bool": (0, 1)}.get(dtype) or (np.iinfo(dtype).min, np.iinfo(dtype).max)
    drawn = np.stack([x for (x,) in random_inputs([TensorInfo(0, "x", (64,), dtype)], seed=3, n=12)])
    assert drawn.dtype == np.dtype(dtype)
    assert drawn.min() == low
    # The highest int64 that a float64 can hold is short of the highest int64.
    assert drawn.max() == (high - 1023 if dtype == "int64" else high)
    limited = np.stack([x for (x,) in random_inputs([TensorInfo(0, "x", (64,), dtype)], 3, 12, limits=(0, 1))])
    assert (limited.min(), limited.max()) == (0, 1)


@pytest.mark.parametrize("name", OWN_MODELS)
def test_an_own_model_runs_and_its_outputs_vary(name: str) -> None:
    data = (MODELS / f"{name}.tflite").read_bytes()
    assert len(data) < 60_000
    reference = Tflm(data)
    # Softmax saturates by its nature, so what goes into it counts.
    logits = {op.outputs[0]: op.inputs[0] for op in reference.view.operators if op.name == "SOFTMAX"}
    watched = [logits.get(index, index) for index in reference.view.output_indices]
    runs = []
    for inputs in random_inputs(data, seed=7, n=64):
        reference.run(inputs)
        runs.append([reference.tensor(index) for index in watched])
    for outputs in zip(*runs, strict=True):
        values = np.stack(outputs)
        assert np.isfinite(values).all()
        assert len(np.unique(values)) >= (5 if values.dtype == np.int32 else 60)
        assert np.unique(values, return_counts=True)[1].max() / values.size < 0.6
        if values.dtype in (np.int8, np.int16):
            limits = np.iinfo(values.dtype)
            assert np.isin(values, (limits.min, limits.max)).mean() < 0.5


@pytest.mark.parametrize(
    ("name", "operators"),
    [
        ("gesture", "CONV_2D DEPTHWISE_CONV_2D AVERAGE_POOL_2D RESHAPE FULLY_CONNECTED SOFTMAX"),
        ("residual", "CONV_2D ADD PAD MEAN TANH FULLY_CONNECTED"),
        (
            "branches",
            "CONV_2D DEPTHWISE_CONV_2D MAXIMUM MINIMUM LEAKY_RELU MAX_POOL_2D HARD_SWISH MUL SUB QUANTIZE"
            " CONCATENATION SPLIT TRANSPOSE STRIDED_SLICE RESIZE_NEAREST_NEIGHBOR RESIZE_BILINEAR TANH"
            " LOGISTIC MEAN RESHAPE FULLY_CONNECTED ARG_MAX",
        ),
        (
            "int16",
            "CONV_2D MAX_POOL_2D DEPTHWISE_CONV_2D ADD TANH LOGISTIC MUL SUB AVERAGE_POOL_2D RESHAPE"
            " FULLY_CONNECTED SOFTMAX",
        ),
        ("mixed", "QUANTIZE CONV_2D DEPTHWISE_CONV_2D MEAN DEQUANTIZE EXP FULLY_CONNECTED"),
    ],
)
def test_an_own_model_holds_what_it_is_for(name: str, operators: str) -> None:
    seen = view((MODELS / f"{name}.tflite").read_bytes())
    assert {operator.name for operator in seen.operators} == set(operators.split())


@pytest.mark.slow
def test_the_own_models_are_made_again_byte_for_byte(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(MODELS / "make.py"), str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    committed = {path.name for path in MODELS.iterdir() if path.suffix in (".tflite", ".npz", ".txt")}
    assert {path.name for path in tmp_path.iterdir()} == committed
    for path in sorted(tmp_path.iterdir()):
        assert path.read_bytes() == (MODELS / path.name).read_bytes(), f"{path.name} differs"


@pytest.mark.slow
def test_the_gesture_model_knows_gestures_that_it_never_saw() -> None:
    reference = Tflm((MODELS / "gesture.tflite").read_bytes())
    inputs, truth = gesture.test_set()
    guesses = np.array([reference.run([x])[0].argmax() for x in inputs])
    assert (guesses == truth).mean() > 0.95
    assert gesture.build().float_accuracy > 0.95
    assert set(Counter(guesses)) == set(range(len(motion.GESTURES)))


def test_each_gesture_sample_is_its_gesture() -> None:
    reference = Tflm((MODELS / "gesture.tflite").read_bytes())
    (spec,) = reference.view.inputs
    labels = (MODELS / "gesture_labels.txt").read_text().splitlines()
    with np.load(MODELS / "gesture_samples.npz") as samples:
        assert samples.files == [spec.name]
        recordings = samples[spec.name]
    assert recordings.shape == (len(labels), *spec.shape[1:])
    assert recordings.dtype == np.dtype(spec.dtype)
    guesses = [int(reference.run([recording[None]])[0].argmax()) for recording in recordings]
    assert [labels[guess] for guess in guesses] == list(motion.GESTURES)
