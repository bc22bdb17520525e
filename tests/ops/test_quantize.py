"""QUANTIZE, DEQUANTIZE and CAST: generated C, exact meaning and TFLite Micro give the same bytes."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.device.hostlib import HostModel, compile_bytes
from support.models.many import Row, many
from support.models.single_op import Activation
from support.oracle.exactness import assert_exact, assert_exact_random, assert_same
from support.oracle.oracle import Array, LiteRt
from support.oracle.refusal import refused
from support.oracle.sanitized import assert_clean
from uaccel.tvm_api.executor import Executor

REQUANTISATIONS = (
    *(("int8", to) for to in ("int8", "uint8", "int16", "int32")),
    ("uint8", "int8"),
    *(("int16", to) for to in ("int8", "int16", "int32")),
    *(("int32", to) for to in ("int8", "int16")),
)
MIDDLE = {"int8": 5, "uint8": 130, "int16": 0, "int32": 0}
NARROW = ("int8", "int16", "int32", "bool")
SMALL, LARGE = 100, 400  # elements: without and with a table for 8 bits


def requantize(
    given: str,
    wanted: str,
    scales: tuple[float, float] = (0.1, 0.07),
    points: tuple[int, int] | None = None,
    elements: int = SMALL,
) -> Row:
    first, second = points or (MIDDLE[given], MIDDLE[wanted] - 12)
    data = Activation((elements,), given, scales[0], first)
    return Row("QUANTIZE", [data], [Activation((elements,), wanted, scales[1], second)])


def quantize(wanted: str, scale: float, zero_point: int, elements: int = 600) -> Row:
    output = Activation((elements,), wanted, scale, zero_point)
    return Row("QUANTIZE", [Activation((elements,), "float32")], [output])


def dequantize(given: str, scale: float, zero_point: int, elements: int = 65536) -> Row:
    return Row("DEQUANTIZE", [Activation((elements,), given, scale, zero_point)], [Activation((elements,), "float32")])


@pytest.mark.sample(3)
@pytest.mark.parametrize(("given", "wanted"), REQUANTISATIONS, ids=str)
def test_requantize(given: str, wanted: str) -> None:
    rows = {
        "finer": requantize(given, wanted),
        "coarser": requantize(given, wanted, (0.013, 0.9), elements=LARGE),
        "much finer": requantize(given, wanted, (0.5, 0.0001), elements=LARGE),
        "much coarser": requantize(given, wanted, (0.0001, 700.0)),
        "same scale": requantize(given, wanted, (0.1, 0.1), elements=LARGE),
        "same quantisation": requantize(given, wanted, (0.1, 0.1), (0, 0)),
        "power of two": requantize(given, wanted, (0.5, 0.125), elements=LARGE),
    }
    assert_exact_random(many(rows), runs=9)


@pytest.mark.parametrize(
    ("given", "wanted", "points", "function"),
    [
        ("int8", "uint8", (-3, 125), "uaccel_requantize_s8_u8"),
        ("uint8", "int8", (125, -3), "uaccel_requantize_u8_s8"),
    ],
)
def test_the_other_sign(given: str, wanted: str, points: tuple[int, int], function: str) -> None:
    """A shift by 128, which the reference does with an exclusive or."""
    compiled = assert_exact_random(many({"row": requantize(given, wanted, (0.1, 0.1), points, LARGE)}), runs=9)
    (layer,) = compiled.program.layers
    assert [call.function for call in layer.kernel.calls] == [function]


def ties(scale: float, count: int) -> Array:
    """Halves of steps and their neighbours, then values at and beyond the ends of the range."""
    halves = ((np.arange(count) - count / 2 + 0.5) * scale).astype(np.float32)
    beyond = np.array([1e5, -1e5, 200.0, -200.0, 127.5, -128.5, 3e4, -4e4, 0.0, -0.0], np.float32) * np.float32(scale)
    large, low = np.float32(np.inf), np.float32(-np.inf)
    return np.concatenate([halves, np.nextafter(halves, large), np.nextafter(halves, low), beyond])


@pytest.mark.sample(2)
@pytest.mark.parametrize("scale", [1.0, 0.1, 0.0235, 3e-5, 12.5, 1 / 127])
def test_quantize_ties(scale: float) -> None:
    values = ties(scale, 300)
    rows = {
        f"{dtype} {zero_point}": quantize(dtype, scale, zero_point, len(values))
        for dtype, zero_point in (("int8", 0), ("int8", -128), ("int8", 127), ("int16", 0))
    }
    assert_exact(many(rows), [[values] * len(rows)])


@pytest.mark.slow
@given(scale=st.floats(1e-6, 1e3), zero_point=st.integers(-128, 127))
@settings(max_examples=15, deadline=None)
def test_quantize_any(scale: float, zero_point: int) -> None:
    values = ties(scale, 300)
    rows = {dtype: quantize(dtype, scale, zero_point, len(values)) for dtype in ("int8", "int16")}
    assert_exact(many(rows), [[values] * 2], meaning=False)


def test_quantize_to_uint8_as_litert() -> None:
    """TFLite Micro has no kernel for it."""
    values = ties(0.1, 600)
    data = many({"row": quantize("uint8", 0.1, 131, len(values))})
    compiled = compile_bytes(data)
    (wanted,) = LiteRt(data).run([values])
    assert_same(HostModel(compiled)(values)[0], wanted, "generated C")
    assert_same(Executor(compiled.stages["import"]).run([values])[0], wanted, "exact meaning")


def test_quantize_what_no_integer_holds() -> None:
    """The reference's result is undefined there; here it saturates, and what is no number is the lowest."""
    values = np.array([np.inf, -np.inf, np.nan, 1e30, -1e30, 3e9, -3e9], np.float32)
    rows = {dtype: quantize(dtype, 0.1, 3, len(values)) for dtype in ("int8", "uint8", "int16")}
    compiled = compile_bytes(many(rows))
    meant = Executor(compiled.stages["import"]).run([values] * 3)
    for dtype, got, meaning in zip(rows, HostModel(compiled)(*[values] * 3), meant, strict=True):
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        wanted = np.array([high, low, low, high, low, high, low]).astype(dtype)
        assert_same(got, wanted, f"{dtype}: generated C")
        assert_same(meaning, wanted, f"{dtype}: exact meaning")


def test_dequantize() -> None:
    rows = {
        "int8": dequantize("int8", 0.0371, 5, 256),
        "int8, tiny scale": dequantize("int8", 1e-38, -128, 256),
        "int8, large scale": dequantize("int8", 3e35, 127, 256),
        "uint8": dequantize("uint8", 0.0123, 200, 256),
        "int16": dequantize("int16", 0.00031, 0),
        "int16, zero point": dequantize("int16", 0.1, 1234),
    }
    inputs = []
    for row in rows.values():
        (data,) = row.inputs
        assert isinstance(data, Activation)
        inputs.append((np.arange(data.shape[0]) + np.iinfo(data.dtype).min).astype(data.dtype))
    assert_exact(many(rows), [inputs])


def test_there_and_back() -> None:
    """Float in, quantised inside, float out: the ends of many models."""
    rows = {"in": quantize("int8", 0.07, -11), "out": dequantize("int8", 0.07, -11, 600)}
    compiled = assert_exact_random(many(rows), runs=9)
    functions = [call.function for layer in compiled.program.layers for call in layer.kernel.calls]
    assert functions == ["uaccel_quantize_s8", "uaccel_dequantize_s8"]


def test_cast() -> None:
    rows = {
        f"{given} to {wanted}": Row("CAST", [Activation((3, 50), given)], [Activation((3, 50), wanted)])
        for given, wanted in product(NARROW, NARROW)
    }
    assert_exact_random(many(rows), runs=9)


def test_clean_under_sanitizers() -> None:
    rows = {f"{a} to {b}": requantize(a, b, (0.5, 0.0001)) for a, b in REQUANTISATIONS}
    rows |= {"quantize": quantize("int16", 1e-4, 0), "dequantize": dequantize("int16", 0.1, 0, 50)}
    assert_clean(many(rows), runs=6)


@pytest.mark.parametrize(
    ("given", "wanted", "reason"),
    [
        ("uint8", "int16", 'from uint8, output "row: output 0" is int16, supported is int8'),
        ("int32", "uint8", 'from int32, output "row: output 0" is uint8, supported is int8 or int16'),
        ("int16", "uint8", 'from int16, output "row: output 0" is uint8, supported is int8 or int16 or int32'),
        ("float32", "int32", 'output "row: output 0" is int32, supported is int8 or uint8 or int16'),
        ("int64", "int8", 'input "row: input 0" is int64, supported is float32 or int8 or uint8 or int16 or int32'),
    ],
)
def test_types_without_a_meaning_are_refused(given: str, wanted: str, reason: str) -> None:
    data = Activation((4,), given, None if given == "float32" else 0.1)
    row = Row("QUANTIZE", [data], [Activation((4,), wanted, 0.1)])
    assert refused(row) == f'operator 0 QUANTIZE ("row: output 0"): {reason}'


def test_an_unquantised_output_is_refused() -> None:
    row = Row("QUANTIZE", [Activation((4,), "float32")], [Activation((4,), "int8")])
    assert refused(row) == (
        'operator 0 QUANTIZE ("row: output 0"): tensor "row: output 0" (int8 [4]) has no quantisation parameters'
    )
