"""TFLite operators with every option, on every type, give what TFLite Micro and LiteRT give, or are refused."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any

import numpy as np
import pytest
import tflite

from support.device.hostlib import HostModel, compile_bytes
from support.models.many import Row
from support.models.rare_rows import DILATE, row_of
from support.models.single_op import Activation, single_op
from support.models.tflite_campaign import HLO, TYPES, campaign, forms
from support.models.tflite_mutants import mutants
from support.models.tflite_schema import fields
from support.oracle.differential import Verdict, judged
from support.run.tiers import ROTATION
from uaccel.frontend.tflite.converter import CONVERTERS
from uaccel.frontend.tflite.importer import HELD

PARTS = 16
LOUD = ("Traceback", "\n")
WRONG_ONCE = (
    "SOFTMAX (2, 3), float32, beta=0.5",
    "ADD (5,) (5,), float32, fused_activation_function=TANH",
    "DIV (5,) (5,), float32, fused_activation_function=TANH",
    "CONV_2D, float32, fused_activation_function=SIGN_BIT",
    "CONV_2D, int8, fused_activation_function=TANH",
    "AVERAGE_POOL_2D, float32, fused_activation_function=TANH",
    "RESIZE_NEAREST_NEIGHBOR, float32, align_corners=True",
    "RESIZE_BILINEAR, form 60, float32, align_corners=True",
    "RESIZE_BILINEAR, form 92, uint8",
    "RESIZE_NEAREST_NEIGHBOR, int32, align_corners=True",
    "GELU (2, 3), float32, approximate=True",
    "FAKE_QUANT, rare, float32, num_bits=3",
    "SUM (1, 4, 6, 8) along [1, -1, 1], float32",
    "EQUAL (5,) (5,), bool",
    "NOT_EQUAL (5,) (5,), bool",
    "ADD (5,) (5,), bool",
    "RELU (5,), bool",
    "RIGHT_SHIFT (5,) (5,), int32",
    "MEAN (2, 3, 4, 2, 3) along 4, uint8",
    "TOPK_V2, rare, bool",
    "RELU_N1_TO_1, rare, bool",
    "SQRT (), int16",
    "NEG, uint8",
    "STABLEHLO_NEGATE, form 237, uint32",
)
MUTANTS_ONCE = (
    "AVERAGE_POOL_2D, uint8, output 0 is uint8[48]",
    "GREATER_EQUAL, uint8, input 1 is Activation(shape=()",
    "CONCATENATION, uint8, input 1 is Activation(shape=(1, 4, 6, 8), dtype='uint8', scale=None",
)
REFUSED_NOW = {
    "UNPACK, float32, num=2": "its option Num is 2, and it has 4 outputs",
    "PACK, float32, values_count=1": "its option ValuesCount is 1, and it has 2 inputs",
    "DEPTHWISE_CONV_2D, float32, depth_multiplier=2": "depth_multiplier is 2, and the weights have 1 channels",
    "DEPTHWISE_CONV_2D, int8, depth_multiplier=2": "depth_multiplier is 2, and the weights have 1 channels",
    "NEG, uint32": "is uint32, which has no negative number",
    "MUL (5,) (5,), uint32, fused_activation_function=RELU_N1_TO_1": "its activation begins at -1, which",
    "BITWISE_XOR (5,) (5,), float32": "is float32; wanted integers or bool",
    "LOG_SOFTMAX (), uint8": "the input is a scalar",
    "POW (4,) (2, 3, 4), bool": "is bool; wanted float32, or int8, uint8 or int16 with a scale",
    "CONV_2D, float32, dilation_h_factor=0": "strides (1, 1) and dilation (0, 1) must be positive",
}


def named(labels: Iterable[str]) -> dict[str, Row]:
    wanted = set(labels)
    types = [dtype for dtype in TYPES if any(dtype in label.split(", ") for label in wanted)]
    found = {label: row for dtype in types for label, row in campaign(dtype) if label in wanted}
    assert set(found) == wanted
    return found


def wrong(verdicts: Mapping[str, Verdict]) -> dict[str, str]:
    """What is neither right nor refused in one plain line."""
    return {
        label: f"{verdict.outcome}: {verdict.detail} ({verdict.ran})"
        for label, verdict in verdicts.items()
        if verdict.outcome in ("differs", "broken")
        or (verdict.outcome == "refused" and any(word in verdict.detail for word in LOUD))
        or ("TVM cannot express" in verdict.detail and not label.startswith(HELD))
    }


def share(rows: Mapping[str, Row], count: int) -> dict[str, Row]:
    """So many rows, others in each run of continuous integration."""
    step = max(1, len(rows) // count)
    start = int(os.environ.get(ROTATION, "0")) * 7 % step
    return dict(islice(rows.items(), start, None, step))


def test_a_share_of_all() -> None:
    """What was computed or taken wrongly once, and some of the rows that the long tests have."""
    rows = named([*WRONG_ONCE, *REFUSED_NOW])
    rows |= share({label: row for dtype in ("float32", "int8") for label, row in campaign(dtype)}, 9)
    rows |= {f"DILATE, {dtype}": row_of("DILATE", DILATE, dtype) for dtype in ("float32", "int8", "bool")}
    once = {label: row for label, row in mutants("uint8") if label.startswith(MUTANTS_ONCE)}
    assert len(once) == len(MUTANTS_ONCE)
    verdicts = judged(rows, share(dict(mutants("float32")), 8) | once, safely=False)
    assert wrong(verdicts) == {}
    assert [label for label in WRONG_ONCE if verdicts[label].outcome == "refused"] == []
    assert [label for label, said in REFUSED_NOW.items() if said not in verdicts[label].detail] == []


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("dtype", TYPES)
def test_all_options_and_types(dtype: str, part: int) -> None:
    assert wrong(judged(dict(islice(campaign(dtype), part, None, PARTS)))) == {}


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("dtype", ["float32", "int8", "uint8", "bool"])
def test_broken_operators_end_in_one_line(dtype: str, part: int) -> None:
    assert wrong(judged({}, dict(islice(mutants(dtype), part, None, PARTS)))) == {}


def test_every_operator_that_is_taken_has_rows() -> None:
    """What neither converts here nor is held against a runtime is refused, whatever TVM knows of it."""
    rows = {row.operator for _, row in forms("float32")}
    elsewhere = {"DILATE", *(f"{kind}DIRECTIONAL_SEQUENCE_RNN" for kind in ("UNI", "BI"))}
    elsewhere |= {f"STABLEHLO_{name}" for name in MEANINGS}
    elsewhere |= {"IF", "WHILE", "UNIDIRECTIONAL_SEQUENCE_LSTM", "SVDF", "BROADCAST_ARGS", "RANK", "DENSIFY"}
    ours = {name for name in CONVERTERS.names if not name.startswith("CUSTOM:")}
    assert sorted({*ours, *HELD} - rows - elsewhere - {*HLO, "STABLEHLO_CLAMP", "STABLEHLO_REMAINDER"}) == []


MEANINGS: Mapping[str, Callable[..., Any]] = {"AND": np.bitwise_and, "OR": np.bitwise_or, "SELECT": np.where}


@pytest.mark.parametrize("name", MEANINGS)
def test_what_no_runtime_has(name: str) -> None:
    """StableHLO's specification says what it gives."""
    dtypes = ["bool", "uint8", "uint8"] if name == "SELECT" else ["uint8"] * 2
    model = single_op(
        f"STABLEHLO_{name}", [Activation((2, 3), dtype) for dtype in dtypes], [Activation((2, 3), "uint8")]
    )
    given = [np.array([[0, 1, 5], [1, 0, number]]).astype(dtype) for number, dtype in enumerate(dtypes, 6)]
    (got,) = HostModel(compile_bytes(model))(*given)
    np.testing.assert_array_equal(got, MEANINGS[name](*given))


def test_the_schema_names_the_options() -> None:
    """A field of another kind, in a schema of tomorrow, would not be drawn."""
    kinds = {
        kind
        for name, value in vars(tflite.BuiltinOperator).items()
        if isinstance(value, int)
        for _, kind in fields(name)
    }
    assert kinds <= {"Bool", "Int8", "Int32", "Uint32", "Int64", "Float32"}
    assert dict(fields("SOFTMAX")) == {"beta": "Float32"}
    assert list(dict(fields("FAKE_QUANT"))) == ["min", "max", "num_bits", "narrow_range"]
