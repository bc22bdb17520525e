"""Tables of functions hold what ONNX Runtime computes between DequantizeLinear and QuantizeLinear."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from ops.rounded_once import Case, Quantised, check_onnx
from support.device.hostlib import Array
from uaccel.model import Quantisation
from uaccel.ops import lookup, pointwise
from uaccel.ops.lookup import Function, leaky_relu
from uaccel.ops.lookup import table_float32 as table_of


@dataclass(frozen=True)
class Row:
    onnx: str
    function: Function
    attributes: dict[str, Any] = field(default_factory=dict)
    output: tuple[float, int] = (0.03, -20)
    arrays: tuple[Array, ...] = ()


TABLES = {row.relax: row.compute for row in pointwise.ROWS if row.compute is not None}
BOUNDED = ("cos", "sigmoid", "sin", "sqrt", "tan", "tanh")


def unchanged(x: Any) -> Any:
    return x


ROWS = {
    **{
        row.relax: Row(row.onnx, row.compute, output=(1 / 128, 0) if row.relax in BOUNDED else (0.03, -20))
        for row in pointwise.ROWS
        if row.arity == 1 and row.onnx and row.compute is not None and not row.gives_truths
    },
    "round": Row("Round", TABLES["round"], output=(1 / 128, 0)),
    "sign": Row("Sign", TABLES["sign"], output=(1 / 128, 0)),
    "gelu": Row("Gelu", TABLES["nn.gelu"]),
    "gelu_tanh": Row("Gelu", TABLES["nn.gelu_tanh"], {"approximate": "tanh"}),
    "softplus": Row("Softplus", TABLES["nn.softplus"], output=(1 / 128, 0)),
    "leaky_relu": Row("LeakyRelu", leaky_relu(0.01), {"alpha": 0.01}),
    "clip": Row("Clip", lookup.clip(-1, 6), arrays=(np.array(-1, np.float32), np.array(6, np.float32))),
    "coarser": Row("Identity", unchanged, output=(0.1, 3)),
    "saturates": Row("Identity", unchanged, output=(1e-6, 3)),
}


@pytest.mark.parametrize("name", ROWS)
def test_as_onnx_runtime(name: str) -> None:
    row, stored = ROWS[name], np.arange(-128, 128, dtype=np.int8)
    for scale, point in ((0.05, -3), (0.011, -128), (0.25, 100)):
        given, wanted = Quantised((256,), scale, point), Quantised((256,), *row.output)
        table = table_of(row.function, given.quantisation, wanted.quantisation)
        got = table[stored.view(np.uint8)]

        def real(centred: Array, given: Quantised = given, wanted: Quantised = wanted) -> Array:
            values = row.function(centred.astype(np.float32) * np.float32(given.scale)).astype(np.float64)
            steps = np.nan_to_num(values / np.float64(np.float32(wanted.scale)))
            return np.array([Fraction(step) for step in steps.tolist()])

        with np.errstate(all="ignore"):
            case = Case((given,), wanted, lambda x: x, real, row.onnx, row.attributes, row.arrays)
            check_onnx(case, [stored], got, f"{name}, scale {scale}")


@pytest.mark.parametrize("name", [row.relax for row in pointwise.ROWS if row.takes == pointwise.REALS and row.compute])
def test_functions_keep_float32(name: str) -> None:
    with np.errstate(all="ignore"):
        values = TABLES[name](np.linspace(-3, 3, 7, dtype=np.float32))
    assert (str(values.dtype), values.shape) == ("float32", (7,))


def test_unsigned_bytes() -> None:
    given, wanted = Quantisation((0.5,), (128,)), Quantisation((0.25,), (10,))
    table = table_of(unchanged, given, wanted, input_dtype="uint8", output_dtype="uint8")
    assert table.dtype == np.uint8
    assert table[[0, 127, 128, 129, 255]].tolist() == [0, 8, 10, 12, 255]


def test_ties_go_to_the_even_step_and_no_number_to_the_lowest() -> None:
    given, wanted = Quantisation((1.0,), (0,)), Quantisation((2.0,), (1,))
    table = table_of(unchanged, given, wanted)
    assert table[[1, 3, 5]].tolist() == [1, 3, 3]
    roots = table_of(np.sqrt, given, wanted)
    assert roots[[0, 4, 16, 128, 255]].tolist() == [1, 2, 3, -128, -128]
