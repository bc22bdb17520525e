"""Operators of one input: for every value that the input can have, generated C = exact meaning = TFLite Micro."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.device.hostlib import HostModel, compile_bytes
from support.models.many import Row, many
from support.models.single_op import Activation, Constant
from support.oracle.exactness import assert_exact, assert_exact_random, assert_same
from support.oracle.oracle import Array, LiteRt
from support.oracle.refusal import refused
from support.oracle.sanitized import assert_clean
from uaccel.tvm_api.executor import Executor

UNIT = {"LOGISTIC": (1 / 256, -128), "TANH": (1 / 128, 0)}
UNIT16 = (1 / 32768, 0)
ARITHMETIC = 128  # elements of which the kernels make no table


@dataclass(frozen=True)
class Unary:
    """``output`` is scale and zero point; int16 has zero points of 0."""

    operator: str
    input: tuple[float, int] = (0.05, 4)
    output: tuple[float, int] = (0.06, -9)
    dtype: str = "int8"
    options: Mapping[str, float] = field(default_factory=dict)
    elements: int = 256

    @property
    def row(self) -> Row:
        wide = self.dtype == "int16"
        shape = (65536 if wide else self.elements,)
        given, wanted = ((scale, 0 if wide else point) for scale, point in (self.input, self.output))
        return Row(
            self.operator,
            [Activation(shape, self.dtype, *given)],
            [Activation(shape, self.dtype, *wanted)],
            self.options,
        )


def every_value(cases: Mapping[str, Unary]) -> list[list[Array]]:
    """Inputs that hold all values of the type; a second run has those that the first has no room for."""
    runs: list[list[Array]] = [[], []]
    for case in cases.values():
        info = np.iinfo(case.dtype)
        values = np.arange(info.min, info.max + 1).astype(case.dtype)
        first = case.row.inputs[0]
        assert isinstance(first, Activation)
        count = first.shape[0]
        runs[0].append(values[:count])
        runs[1].append(values[-count:])
    return runs


def assert_all(cases: Mapping[str, Unary], *, meaning: bool = True) -> None:
    data = many({name: case.row for name, case in cases.items()})
    assert_exact(data, every_value(cases), meaning=meaning)


INT8 = {
    "relu": Unary("RELU"),
    "relu of equal scales": Unary("RELU", (0.05, 4), (0.05, -128)),
    "relu, arithmetic": Unary("RELU", elements=ARITHMETIC),
    "relu, all negative": Unary("RELU", (0.05, 127), (0.05, 127)),
    "relu6": Unary("RELU6"),
    "relu6, six in range": Unary("RELU6", (0.1, -100), (0.1, -100)),
    "relu6, six a tie": Unary("RELU6", (6 / 40.5, -100), (0.1, -100)),
    "leaky relu": Unary("LEAKY_RELU", options={"alpha": 0.1}),
    "leaky relu, arithmetic": Unary("LEAKY_RELU", options={"alpha": 0.3}, elements=ARITHMETIC),
    "leaky relu, negative alpha": Unary("LEAKY_RELU", options={"alpha": -0.7}),
    "leaky relu, alpha above one": Unary("LEAKY_RELU", options={"alpha": 2.5}),
    "leaky relu, alpha zero": Unary("LEAKY_RELU", options={"alpha": 0.0}),
    "leaky relu saturates": Unary("LEAKY_RELU", (3.0, 4), (0.01, 3), options={"alpha": 0.2}),
    "abs": Unary("ABS"),
    "abs of equal scales": Unary("ABS", (0.05, -128), (0.05, -128)),
    "abs, arithmetic": Unary("ABS", elements=ARITHMETIC),
    "hard swish": Unary("HARD_SWISH"),
    "hard swish, steep": Unary("HARD_SWISH", (1.5, 0), (0.9, 0)),
    "hard swish, flat": Unary("HARD_SWISH", (0.0005, 0), (0.0003, 10)),
    "hard swish, largest ratio": Unary("HARD_SWISH", (1.0, -128), (1 / 127.5, 127)),
    "elu": Unary("ELU"),
    "elu, ties": Unary("ELU", (0.5, 0), (0.25, 0)),
    "logistic": Unary("LOGISTIC", (0.05, 4), UNIT["LOGISTIC"]),
    "logistic, steep": Unary("LOGISTIC", (4.0, 100), UNIT["LOGISTIC"]),
    "logistic, saturated everywhere": Unary("LOGISTIC", (20.0, 0), UNIT["LOGISTIC"]),
    "tanh": Unary("TANH", (0.03, -4), UNIT["TANH"]),
    "tanh, flat": Unary("TANH", (1e-4, 0), UNIT["TANH"]),
    "tanh, saturated everywhere": Unary("TANH", (20.0, 0), UNIT["TANH"]),
    "rsqrt": Unary("RSQRT", (0.05, -128), (0.03, -128)),
    "rsqrt, coarse": Unary("RSQRT", (0.9, -128), (0.01, 0)),
}

INT16 = {
    "relu": Unary("RELU", (0.0003, 0), (0.0002, 0), "int16"),
    "relu6": Unary("RELU6", (0.0003, 0), (0.0003, 0), "int16"),
    "leaky relu": Unary("LEAKY_RELU", (0.3, 0), (0.2, 0), "int16", {"alpha": 0.1}),
    "leaky relu, negative alpha": Unary("LEAKY_RELU", (0.3, 0), (0.4, 0), "int16", {"alpha": -0.9}),
    "abs": Unary("ABS", (0.3, 0), (0.4, 0), "int16"),
    "abs of equal scales": Unary("ABS", (0.3, 0), (0.3, 0), "int16"),
    "logistic": Unary("LOGISTIC", (0.0003, 0), UNIT16, "int16"),
    "logistic, power of two": Unary("LOGISTIC", (1 / 4096, 0), UNIT16, "int16"),
    "logistic, nearly a power of two": Unary("LOGISTIC", (1.0005 / 4096, 0), UNIT16, "int16"),
    "logistic, largest scale": Unary("LOGISTIC", (2.66, 0), UNIT16, "int16"),
    "logistic, smallest factor": Unary("LOGISTIC", (1e-9, 0), UNIT16, "int16"),
    "tanh": Unary("TANH", (0.0003, 0), UNIT16, "int16"),
    "tanh, power of two": Unary("TANH", (1 / 4096, 0), UNIT16, "int16"),
    "tanh, next power of two": Unary("TANH", (1 / 2048, 0), UNIT16, "int16"),
    "tanh, other power of two": Unary("TANH", (1 / 1024, 0), UNIT16, "int16"),
    "tanh, every point of the table": Unary("TANH", (1 / 6144, 0), UNIT16, "int16"),
}


def test_int8() -> None:
    assert_all(INT8)


def test_int16() -> None:
    assert_all(INT16)


LITERT = {
    "relu n1 to 1": Unary("RELU_N1_TO_1", (0.05, 4), (0.05, -9)),
    "relu n1 to 1, finer": Unary("RELU_N1_TO_1", (0.004, 4), (0.008, -9)),
    "relu 0 to 1": Unary("RELU_0_TO_1", (0.05, 4), (0.05, -9)),
    "relu 0 to 1, finer": Unary("RELU_0_TO_1", (0.004, 4), (0.008, -9)),
    "exp": Unary("EXP", (0.02, -7), (0.03, 4)),
    "log": Unary("LOG", (0.02, -7), (0.03, 4)),
    "gelu": Unary("GELU", (0.03, -7), (0.02, -100)),
    "gelu by tanh": Unary("GELU", (0.03, -7), (0.02, -100), options={"approximate": True}),
}


def test_as_litert_where_tflite_micro_has_no_kernel() -> None:
    data = many({name: case.row for name, case in LITERT.items()})
    compiled = compile_bytes(data)
    host, executor, reference = HostModel(compiled), Executor(compiled.stages["import"]), LiteRt(data)
    for values in every_value(LITERT):
        for name, got, meant, wanted in zip(
            LITERT, host(*values), executor.run(values), reference.run(values), strict=True
        ):
            assert_same(got, wanted, f"{name}: generated C")
            assert_same(meant, wanted, f"{name}: exact meaning")


@pytest.mark.parametrize(
    ("dtype", "given", "wanted"),
    [("int8", (0.05, -100), (0.05, -100)), ("int8", (0.03, -128), (0.011, 7)), ("int16", (0.013, 0), (0.0071, 0))],
)
def test_square_roots_are_cut_off_as_litert_cuts_them(
    dtype: str, given: tuple[float, int], wanted: tuple[float, int]
) -> None:
    """LiteRT stops with an error at negative numbers, which are the lowest value here."""
    stored = np.arange(np.iinfo(dtype).min, np.iinfo(dtype).max + 1).astype(dtype)
    row = Row("SQRT", [Activation(stored.shape, dtype, *given)], [Activation(stored.shape, dtype, *wanted)])
    data = many({"row": row})
    (got,) = HostModel(compile_bytes(data))(stored)
    rooted = np.maximum(stored, given[1]).astype(dtype)
    (reference,) = LiteRt(data).run([rooted])
    assert_same(got[stored >= given[1]], reference[stored >= given[1]], "generated C")
    assert set(got[stored < given[1]]) <= {np.iinfo(dtype).min}


REAL: Mapping[str, Callable[[Array], Array]] = {
    "SQUARE": lambda x: x * x,
    "SIN": np.sin,
    "COS": np.cos,
    "FLOOR": np.floor,
    "CEIL": np.ceil,
    "ROUND": np.rint,
}


@pytest.mark.parametrize("operator", REAL)
def test_other_functions_are_the_nearest_value(operator: str) -> None:
    """No runtime has these in 8 bits; what is no number becomes the lowest value."""
    stored = np.arange(-128, 128)
    compiled = compile_bytes(many({"row": Unary(operator, (0.03125, -7), (0.0625, 4)).row}))
    (got,) = HostModel(compiled)(stored.astype(np.int8))
    steps = REAL[operator]((stored + 7) * 0.03125) / 0.0625 + 4
    wanted = np.clip(np.nan_to_num(steps, nan=-128), -128, 127)
    assert np.abs(got - wanted).max() <= 0.5
    assert compiled.model.warnings == ()


def prelu(
    shape: tuple[int, ...], alpha: tuple[int, ...], *, dtype: str = "int8", constant: bool = True, scale: float = 0.06
) -> Row:
    points = (0, 0) if dtype == "int16" else (5, -7)
    slopes: Activation | Constant = Activation(alpha, "int8", 0.02, 3)
    if constant:
        values = np.random.default_rng(1).integers(-128, 128, alpha).astype(np.int8)
        slopes = Constant(values, (0.02,), (3,))
    inputs = [Activation(shape, dtype, 0.05, points[0]), slopes]
    return Row("PRELU", inputs, [Activation(shape, dtype, scale, points[1])])


@pytest.mark.slow
def test_prelu() -> None:
    rows = {
        "per channel": prelu((1, 5, 4, 6), (1, 1, 6)),
        "per element": prelu((1, 5, 4, 6), (5, 4, 6)),
        "one slope": prelu((1, 5, 4, 6), (1,)),
        "slopes of run time": prelu((2, 3, 6), (1, 1, 6), constant=False),
        "saturates": prelu((2, 3, 6), (6,), scale=0.0006),
        "int16, per channel": prelu((1, 5, 4, 6), (1, 1, 6), dtype="int16"),
        "int16, one slope": prelu((7, 6), (1,), dtype="int16", scale=0.004),
    }
    assert_exact_random(many(rows), runs=9)


@pytest.mark.parametrize(
    ("alpha", "slopes"),
    [((1, 1, 6), 6), ((1,), 6), ((1, 1, 1, 6), 6), ((4, 1), 120), ((5, 1, 6), 120), ((2, 1, 1, 6), 240)],
)
def test_slopes_of_float_channels_are_not_laid_out(alpha: tuple[int, ...], slopes: int) -> None:
    """``slopes``: those in flash. Where images are as many as slopes, the one input serves them all."""
    shape = (max(1, alpha[0] if len(alpha) == 4 else 1), 5, 4, 6)
    values = np.random.default_rng(1).normal(size=alpha).astype(np.float32)
    row = Row("PRELU", [Activation((1, 5, 4, 6), "float32"), Constant(values)], [Activation(shape, "float32")])
    compiled = assert_exact_random(many({"prelu": row}))
    assert sum(array.data.nbytes for array in compiled.generated.arrays) == 4 * slopes


@st.composite
def unaries(draw: st.DrawFn) -> Unary:
    operator = draw(
        st.sampled_from(["RELU", "RELU6", "LEAKY_RELU", "ABS", "HARD_SWISH", "ELU", "LOGISTIC", "TANH", "RSQRT"])
    )
    scale = draw(st.floats(1e-4, 5.0))
    point = draw(st.integers(-128, 127))
    output = UNIT.get(operator) or (scale * draw(st.floats(0.02, 20.0)), draw(st.integers(-128, 127)))
    if operator == "RSQRT":
        return Unary(operator, (scale, -128), (output[0] / scale**1.5, output[1]))
    options = {"alpha": draw(st.floats(-1.5, 1.5, width=32))} if operator == "LEAKY_RELU" else {}
    elements = 256 if operator not in ("RELU", "LEAKY_RELU", "ABS") else draw(st.sampled_from([ARITHMETIC, 256]))
    return Unary(operator, (scale, point), output, options=options, elements=elements)


@pytest.mark.slow
@given(cases=st.lists(unaries(), min_size=20, max_size=20))
@settings(max_examples=5, deadline=None)
def test_any(cases: list[Unary]) -> None:
    assert_all({f"case {i}": case for i, case in enumerate(cases)}, meaning=False)


@pytest.mark.slow
@given(scales=st.lists(st.floats(1e-6, 2.6), min_size=4, max_size=4, unique=True), slope=st.floats(-1.5, 1.5, width=32))
@settings(max_examples=10, deadline=None)
def test_any_int16(scales: list[float], slope: float) -> None:
    cases = {f"logistic {scale}": Unary("LOGISTIC", (scale, 0), UNIT16, "int16") for scale in scales}
    cases |= {f"tanh {scale}": Unary("TANH", (scale, 0), UNIT16, "int16") for scale in scales}
    cases |= {
        f"leaky relu {a} {b}": Unary("LEAKY_RELU", (a, 0), (b, 0), "int16", {"alpha": slope})
        for a, b in zip(scales[::2], scales[1::2], strict=True)
        if 1e-3 < a / b < 1e3
    }
    assert_all(cases, meaning=False)


@pytest.mark.long
@given(cases=st.lists(unaries(), min_size=20, max_size=20))
@settings(max_examples=200, deadline=None)
def test_many(cases: list[Unary]) -> None:
    assert_all({f"case {i}": case for i, case in enumerate(cases)}, meaning=False)


@pytest.mark.slow
def test_clean_under_sanitizers() -> None:
    rows = {f"int8 {name}": case.row for name, case in INT8.items() if not name.startswith("rsqrt")}
    rows |= {f"int16 {name}": case.row for name, case in INT16.items()}
    rows |= {"prelu": prelu((1, 5, 4, 6), (1, 1, 6)), "prelu int16": prelu((7, 6), (1,), dtype="int16")}
    assert_clean(many(rows), runs=6)


def kernels(case: Unary) -> list[str]:
    (layer,) = compile_bytes(many({"row": case.row})).program.layers
    assert layer.kernel.inplace == (0,)
    return [call.function for call in layer.kernel.calls]


@pytest.mark.parametrize(
    ("case", "function"),
    [
        (Unary("LEAKY_RELU", options={"alpha": 0.1}), "uaccel_lookup"),
        (Unary("LEAKY_RELU", options={"alpha": 0.1}, elements=255), "uaccel_two_slopes_s8"),
        (Unary("ABS", dtype="int16"), "uaccel_two_slopes_s16"),
        (Unary("RELU"), "uaccel_lookup"),
        (Unary("RELU", elements=255), "uaccel_requantize_s8_s8"),
        (Unary("RELU6"), "uaccel_requantize_s8_s8"),
        (Unary("TANH", output=UNIT["TANH"], elements=4), "uaccel_lookup"),
    ],
    ids=str,
)
def test_a_table_where_it_repays_its_flash(case: Unary, function: str) -> None:
    assert kernels(case) == [function]


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (
            Unary("LOGISTIC", output=(1 / 128, -128)),
            "the output's quantisation is scale 0.0078125, zero point -128, wanted scale 1/256, zero point -128",
        ),
        (
            Unary("TANH", output=(1 / 128, 3)),
            "the output's quantisation is scale 0.0078125, zero point 3, wanted scale 1/128, zero point 0",
        ),
        (
            Unary("TANH", (3.0, 0), UNIT16, "int16"),
            "the input's scale 3 is too large for the reference's 16-bit factor",
        ),
        (
            Unary("HARD_SWISH", (1.0, 0), (0.001, 0)),
            "the input's scale 1 is not between 1/512 and 128 times the output's 0.001, "
            "as the reference's 16-bit arithmetic needs",
        ),
        (
            Unary("HARD_SWISH", (1e-8, 0), (1e-8, 0)),
            "the input's scale 1e-08 is beyond the reference's 16-bit arithmetic",
        ),
        (Unary("HARD_SWISH", dtype="int16"), 'input "row: input 0" is int16, supported is int8'),
        (Unary("ELU", dtype="int16"), 'input "row: input 0" is int16, supported is int8'),
    ],
    ids=str,
)
def test_what_the_reference_cannot_compute_is_refused(case: Unary, reason: str) -> None:
    assert refused(case.row) == f'operator 0 {case.operator} ("row: output 0"): {reason}'


@pytest.mark.parametrize("operator", ["RELU", "ABS", "LOGISTIC"])
def test_zero_points_of_int16_are_refused(operator: str) -> None:
    row = Row(operator, [Activation((4,), "int16", 0.01, 7)], [Activation((4,), "int16", *UNIT16)])
    assert refused(row) == f'operator 0 {operator} ("row: output 0"): int16 "row: input 0" has zero point 7, wanted 0'


def test_wide_slopes_are_refused() -> None:
    row = Row(
        "PRELU",
        [Activation((2, 3), "int16", 0.1), Activation((3,), "int16", 0.1)],
        [Activation((2, 3), "int16", 0.1)],
    )
    assert refused(row) == 'operator 0 PRELU ("row: output 0"): alpha "row: input 1" is int16, supported is int8'
