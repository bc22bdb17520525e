"""Every option and type of the ONNX operators, one node at a time, against ONNX Runtime: right, or refused in words.

Nodes are drawn from the operators' schemas (``support.models.onnx_options``, where differences are written down, too).
TVM's converters misread options, and what they make is also the exact meaning that ``--verify`` compares with, so that
nothing else shows it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="the onnx package is not installed")
pytest.importorskip("onnxruntime", reason="the reference, onnxruntime, is not installed")

import onnx  # after the skips

from support.device.hostlib import HostModel
from support.models.onnx_options import Drawn, drawn, operators
from support.models.onnx_rows import Array, Given, Row, row
from support.oracle.onnx_differential import REFUSED, failures, outcomes
from support.run.tiers import ROTATION
from uaccel.errors import ModelError
from uaccel.frontend import import_model
from uaccel.pipeline import compile_model
from uaccel.runner.onnx_runtime import session_of

QUICK = 24  # Nodes of one run of ``make test``, drawn anew in each.
S = Given((2, 3, 4))


def _ints(*numbers: int) -> Array:
    return np.asarray(numbers, np.int64)


def _reals(*numbers: float) -> Array:
    return np.asarray(numbers, np.float32)


def _scalar(number: float, dtype: str = "float32") -> Array:
    return np.asarray(number, dtype)


POOL: dict[str, Any] = {"kernel_shape": [3, 2], "strides": [1, 2], "ceil_mode": 1}
REGIONS = (_reals(0.5, 0.5, 3.2, 4.1).reshape(1, 4), _ints(0))
NEAREST: dict[str, Any] = {"nearest_mode": "floor", "coordinate_transformation_mode": "asymmetric"}
LARGER, SMALLER = _ints(1, 1, 19, 18), _ints(1, 1, 2, 2)
CEILING: dict[str, Any] = {"coordinate_transformation_mode": "pytorch_half_pixel", "nearest_mode": "ceil"}
SYMMETRIC: dict[str, Any] = {"coordinate_transformation_mode": "half_pixel_symmetric", "nearest_mode": "floor"}
ROWS = _ints(0, 3).reshape(2, 1)
BELOW = (-np.inf, -np.inf)
# Constants of so many elements that ONNX's own evaluator takes long.
MANY = np.arange(80_000, dtype=np.float32).reshape(400, 200)
EVERY_THIRD = np.tile(np.arange(-200, 200, 3), (400, 1))
TWICE = np.tile(np.arange(150) // 2, (400, 1))
MENDED: dict[str, tuple[int, Row]] = {
    "many constants scattered": (16, row("ScatterElements", MANY, EVERY_THIRD[:, ::2], MANY[:, :67], axis=1)),
    "many constants added": (18, row("ScatterElements", MANY, TWICE, MANY[:, :150], axis=-1, reduction="add")),
    "the largest of many constants": (18, row("ScatterElements", MANY, TWICE, MANY[:, :150], axis=1, reduction="max")),
    "equal truths": (19, row("Equal", Given((2, 4), "bool"), Given((4,), "bool"))),
    "crossed bounds": (13, row("Clip", S, _scalar(2), _scalar(1))),
    "crossed bounds of integers": (13, row("Clip", Given((9,), "int8"), _scalar(2, "int8"), _scalar(1, "int8"))),
    "elu of no number": (21, row("Elu", Given((3,), "float32", np.nan, np.nan), alpha=0.3)),
    "celu of a scalar": (13, row("Celu", Given(()))),
    "thresholded infinity": (21, row("ThresholdedRelu", Given((3,), "float32", -np.inf, -np.inf))),
    "gemm of integers": (13, row("Gemm", Given((3, 4), "int32", -9, 9), Given((4, 5), "int32", -9, 9), alpha=0.3)),
    "shrink of bytes": (13, row("Shrink", Given((9,), "uint8"), lambd=3.5, bias=0.7)),
    "sign of bytes": (13, row("Sign", Given((9,), "uint8", 0, 2))),
    "places of the least": (13, row("ArgMax", Given((2, 3), "uint8", 0, 0), axis=1)),
    "place of infinities": (13, row("ArgMin", Given((2, 3), "float32", np.inf, np.inf), axis=1)),
    "nothing reduced": (18, row("ReduceL1", S, _ints(), noop_with_empty_axes=1)),
    "squares alone": (18, row("ReduceSumSquare", S, None, noop_with_empty_axes=1)),
    "extreme of a scalar": (20, row("ReduceMax", Given(()))),
    "infinite exponentials": (13, row("ReduceLogSumExp", Given((2, 3), "float32", np.inf, np.inf), axes=[1])),
    "factors of fewer axes": (17, row("LayerNormalization", S, _reals(1, 2, 3, 4), axis=1)),
    "norm of float64": (17, row("LayerNormalization", Given((2, 4), "float64"), np.arange(4.0))),
    "image norm of float64": (17, row("InstanceNormalization", Given((1, 2, 3), "float64"), np.ones(2), np.ones(2))),
    "norm of rounded windows": (22, row("LpPool", Given((1, 2, 7, 7)), **POOL)),
    "windows of minus infinity": (13, row("MaxPool", Given((1, 2, 4, 4), "float32", *BELOW), kernel_shape=[2, 2])),
    "rounded windows in the padding": (13, row("MaxPool", Given((1, 2, 7, 6)), pads=[1, 0, 1, 1], **POOL)),
    "regions scaled": (16, row("RoiAlign", Given((1, 2, 6, 6)), *REGIONS, spatial_scale=0.5, sampling_ratio=2)),
    "fractions as places": (13, row("OneHot", Given((5,), low=-3, high=3), _scalar(4, "int64"), _reals(2, 7))),
    "an extent of 33": (13, row("Resize", Given((1, 1, 10)), None, _reals(1, 1, 3.3))),
    "nearest in float32": (13, row("Resize", Given((1, 1, 9)), None, _reals(1, 1, 0.6), **NEAREST)),
    "nearly whole coordinates": (13, row("Resize", Given((1, 1, 7, 5)), None, None, LARGER, **CEILING)),
    "halves in float64": (19, row("Resize", Given((1, 1, 6, 2)), None, None, SMALLER, **SYMMETRIC)),
    "infinities times the number 0": (13, row("Mul", Given((3,), "float32", np.inf, np.inf), _scalar(0))),
    "truths multiplied": (18, row("ScatterND", Given((4, 3), "bool"), ROWS, Given((2, 3), "bool"), reduction="mul")),
    "two-sided unless said": (17, row("STFT", Given((1, 40, 1)), _scalar(5, "int64"), None, _scalar(8, "int64"))),
}


def _drawn(name: str, opset: int, entry: Row) -> Drawn:
    rng = np.random.default_rng(0)
    feeds = {
        f"{name}/in{place}": np.full(operand.shape, operand.low, operand.dtype)
        if not np.isfinite(operand.low)
        else operand.values(rng)
        for place, operand in enumerate(entry.inputs)
        if isinstance(operand, Given)
    }
    return Drawn(name, opset, entry, feeds, {})


def test_what_was_wrong(tmp_path: Path) -> None:
    nodes = [_drawn(name, *given) for name, given in MENDED.items()]
    assert {name: said for name, said in outcomes(nodes, tmp_path).items() if said} == {}


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("last", [0, 1])
def test_places_of_extremes_beside_nan(op: str, last: int, tmp_path: Path) -> None:
    """The first element counts even if it is NaN, and no other NaN does; rows of infinities have a place, too."""
    generator, path = np.random.default_rng(4), tmp_path / "m.onnx"
    values = generator.integers(-2, 3, (40, 6)).astype(np.float32)
    values[generator.random(values.shape) < 0.4] = np.nan
    values[:8][~np.isnan(values[:8])] = -np.inf if op == "ArgMax" else np.inf
    text = f"""<ir_version: 8, opset_import: ["" : 13]> g (float[40,6] x) => (int64[40] y, int64[1,6] z) {{
        y = {op}<axis = 1, keepdims = 0, select_last_index = {last}>(x)
        z = {op}<axis = 0, select_last_index = {last}>(x) }}"""
    path.write_bytes(onnx.parser.parse_model(text).SerializeToString())
    firmware = HostModel(compile_model(path, board="host"))
    for got, wanted in zip(firmware(values), session_of(path).run(None, {"x": values}), strict=True):
        np.testing.assert_array_equal(got, wanted)


ONE_PART = """<ir_version: 8, opset_import: ["" : 13]> g (float[1,4] x) => (float[4] y, float[1,4] z)
    <int64[1] n = {1}, int64[1] axis = {0},
     float[4,4] w = {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0}> {
        part = Split <axis = 0> (x, n)
        y = Squeeze(part, axis)
        z = MatMul(x, w)
    }"""


def test_one_part_beside_a_product(tmp_path: Path) -> None:
    """A tuple of one tensor, as TVM's converter makes it, broke the passes that float products bring."""
    path = tmp_path / "m.onnx"
    path.write_bytes(onnx.parser.parse_model(ONE_PART).SerializeToString())
    compile_model(path, board="host")


DECLARED = {
    "rank": ("float[1,1,4]", "[1,1,4]"),
    "extent": ("float[2,4]", "[2,4]"),
    "type": ("int32[1,4]", "int32 [1,4]"),
}


@pytest.mark.parametrize("what", DECLARED)
def test_an_output_is_declared_otherwise_than_it_is_made(what: str, tmp_path: Path) -> None:
    kind, seen = DECLARED[what]
    path = tmp_path / "m.onnx"
    text = f'<ir_version: 8, opset_import: ["" : 13]> g (float[1,4] x) => ({kind} y) {{ y = Relu(x) }}'
    path.write_bytes(onnx.parser.parse_model(text).SerializeToString())
    with pytest.raises(ModelError, match=rf'the file says that "y" is .*{re.escape(seen)}, and it is float32 \[1,4\]'):
        import_model(path)


def test_a_share_of_all_options_and_types(tmp_path: Path) -> None:
    rng = np.random.default_rng(int(os.environ.get(ROTATION, "0")))
    chosen = rng.permutation(operators())[:QUICK]
    nodes: list[Drawn] = []
    for op in chosen:
        some = list(drawn(str(op), 8))
        nodes += [some[rng.integers(len(some))]] if some else []
    assert failures(nodes, tmp_path) == {}


@pytest.mark.long
@pytest.mark.parametrize("op", operators())
def test_all_options_and_types(op: str, tmp_path: Path) -> None:
    assert failures(list(drawn(op)), tmp_path) == {}


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_generated_c_agrees(part: int, tmp_path: Path) -> None:
    """A node of each operator, compiled and run as C."""
    nodes = [node for op in operators()[part::8] for node in _every(list(drawn(op, 4)), 3)]
    assert failures(nodes, tmp_path, in_c=True) == {}


def _every(nodes: Sequence[Drawn], count: int) -> Sequence[Drawn]:
    return nodes[:: max(1, len(nodes) // count)][:count]


def test_refusals_are_told_from_faults(tmp_path: Path) -> None:
    entry = row("BitShift", Given((4,), "uint8"), Given((4,), "uint8", 0, 7), direction="LEFT")
    (said,) = outcomes([_drawn("shift", 11 + 2, entry)], tmp_path).values()
    assert said.startswith(REFUSED)
