"""Operators of ONNX, as generated C, against ONNX Runtime; test_node_tests.py also tries what TVM executes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.device.hostlib import HostModel
from support.models.onnx_rows import Array, Given, Row, compare, feeds_of, model_of, row, session_of
from uaccel.pipeline import compile_model

IMAGE = Given((1, 4, 7, 6))
ROWS = Given((3, 8))
POSITIVE = Given((3, 8), low=0.1, high=4.0)
SEQUENCE = Given((2, 5, 8))
SIGNS = Given((2, 3, 4), "int32", -50, 50)
FLAGS = Given((2, 3), "bool")


def _weights(*shape: int, seed: int = 1) -> Array:
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


def _ints(*numbers: int) -> Array:
    return np.asarray(numbers, np.int64)


def _real(*numbers: float) -> Array:
    return np.asarray(numbers, np.float32)


def _int(number: int) -> Array:
    return np.asarray(number, np.int64)


def _unsigned(*numbers: int) -> Array:
    return np.asarray(numbers, np.uint32)


def _scalar(number: float, dtype: str = "float32") -> Array:
    return np.asarray(number, dtype)


TWO: dict[str, Any] = {"kernel_shape": [2, 2], "strides": [2, 2]}
CROP: dict[str, Any] = {
    "mode": "linear",
    "coordinate_transformation_mode": "tf_crop_and_resize",
    "extrapolation_value": 2.5,
}
NEAREST: dict[str, Any] = CROP | {"mode": "nearest"}

WINDOWS = {
    "conv": row("Conv", IMAGE, _weights(5, 4, 3, 3), _weights(5), pads=[1, 0, 2, 1], strides=[2, 1]),
    "conv no bias": row("Conv", IMAGE, _weights(5, 4, 3, 2)),
    "conv groups": row("Conv", IMAGE, _weights(6, 2, 3, 3), _weights(6), group=2, dilations=[2, 1]),
    "conv depthwise": row("Conv", IMAGE, _weights(8, 1, 3, 3), group=4, auto_pad="SAME_UPPER", strides=[2, 2]),
    "conv lower": row("Conv", IMAGE, _weights(3, 4, 2, 2), auto_pad="SAME_LOWER"),
    "conv valid": row("Conv", IMAGE, _weights(3, 4, 2, 2), auto_pad="VALID"),
    "conv 1d": row("Conv", Given((1, 3, 9)), _weights(4, 3, 3), _weights(4), pads=[1, 1]),
    "deconv": row("ConvTranspose", IMAGE, _weights(4, 3, 3, 3), _weights(3), strides=[2, 2], pads=[1, 1, 0, 1]),
    "deconv groups": row("ConvTranspose", IMAGE, _weights(4, 2, 2, 2), group=2, strides=[2, 2]),
    "deconv extra": row("ConvTranspose", IMAGE, _weights(4, 2, 3, 3), strides=[2, 2], output_padding=[1, 1]),
    "deconv shape": row("ConvTranspose", IMAGE, _weights(4, 2, 3, 3), strides=[2, 2], output_shape=[14, 12]),
    "deconv same": row("ConvTranspose", IMAGE, _weights(4, 2, 3, 3), strides=[2, 2], auto_pad="SAME_UPPER"),
    "max pool": row("MaxPool", IMAGE, kernel_shape=[3, 2], strides=[2, 2], pads=[1, 1, 1, 0]),
    "max pool ceil": row("MaxPool", IMAGE, kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1),
    "max pool same": row("MaxPool", IMAGE, kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_UPPER"),
    "average pool": row("AveragePool", IMAGE, kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
    "average pool all": row("AveragePool", IMAGE, kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1),
    "global average": row("GlobalAveragePool", IMAGE),
    "global maximum": row("GlobalMaxPool", IMAGE),
    "gemm": row("Gemm", ROWS, _weights(5, 8), _weights(5), transB=1, alpha=0.5, beta=2.0),
    "gemm plain": row("Gemm", ROWS, _weights(8, 5)),
    "matmul": row("MatMul", SEQUENCE, _weights(8, 3)),
    "matmul batched": row("MatMul", Given((2, 1, 4, 3)), Given((5, 3, 2))),
    "matmul vector": row("MatMul", SEQUENCE, Given((8,))),
    "einsum": row("Einsum", Given((2, 3, 4)), Given((2, 4, 5)), equation="bij,bjk->bik"),
}
NORMS = {
    "batch norm": row(
        "BatchNormalization", IMAGE, _weights(4), _weights(4, seed=2), _weights(4, seed=3), np.abs(_weights(4)) + 0.5
    ),
    "instance norm": row("InstanceNormalization", IMAGE, _weights(4), _weights(4, seed=2)),
    "layer norm": row("LayerNormalization", SEQUENCE, _weights(8), _weights(8, seed=2)),
    "layer norm two axes": row("LayerNormalization", SEQUENCE, _weights(5, 8), axis=1, epsilon=1e-3),
    "local response": row("LRN", IMAGE, size=3),
    "lp norm": row("LpNormalization", ROWS, axis=0),
    "softmax": row("Softmax", SEQUENCE),
    "softmax axis": row("Softmax", SEQUENCE, axis=1),
    "log softmax": row("LogSoftmax", SEQUENCE, axis=-1),
    "mean variance": row("MeanVarianceNormalization", IMAGE),
}
FUNCTIONS = {
    op.lower(): row(op, ROWS)
    for op in (
        *("Abs", "Ceil", "Celu", "Cos", "Elu", "Erf", "Exp", "Floor", "HardSigmoid", "HardSwish", "LeakyRelu", "Neg"),
        *("Relu", "Round", "Selu", "Sigmoid", "Sign", "Sin", "Softplus", "Softsign", "Tanh", "ThresholdedRelu"),
    )
} | {
    "log": row("Log", POSITIVE),
    "sqrt": row("Sqrt", POSITIVE),
    "reciprocal": row("Reciprocal", POSITIVE),
    "prelu": row("PRelu", IMAGE, _weights(4, 1, 1)),
    "round halves": row("Round", Given((64,), "float32", -2, 2)),
    "clip": row("Clip", ROWS, _scalar(-1), _scalar(1.5)),
    "clip low": row("Clip", ROWS, _scalar(0)),
    "clip high": row("Clip", ROWS, None, _scalar(0.5)),
    "clip given": row("Clip", ROWS, Given(()), Given((), low=4, high=5)),
    "clip integers": row("Clip", SIGNS, _scalar(-10, "int32"), _scalar(7, "int32")),
    "square": row("Pow", ROWS, _scalar(2)),
    "cube": row("Pow", ROWS, _scalar(3, "int64")),
    "root": row("Pow", POSITIVE, _scalar(0.5)),
    "power": row("Pow", POSITIVE, Given((8,))),
    "dropout": row("Dropout", ROWS),
    "identity": row("Identity", ROWS),
}
BINARY = {
    op.lower(): row(op, SEQUENCE, Given((5, 1), low=0.5))
    for op in ("Add", "Sub", "Mul", "Div", "Min", "Max", "Mean", "Sum")
} | {
    "add constant": row("Add", IMAGE, _weights(4, 1, 1)),
    "divide integers": row("Div", SIGNS, Given((4,), "int32", 1, 9)),
    "modulo": row("Mod", SIGNS, Given((4,), "int32", 1, 9)),
    "greater": row("Greater", SEQUENCE, Given((8,))),
    "less or equal": row("LessOrEqual", SEQUENCE, Given((8,))),
    "equal": row("Equal", SIGNS, Given((4,), "int32", -2, 2)),
    "and": row("And", FLAGS, Given((3,), "bool")),
    "not": row("Not", FLAGS),
    "where": row("Where", FLAGS, Given((2, 3)), _scalar(-1)),
    "cast down": row("Cast", Given((4, 5), low=-100, high=100), to=3),
    "cast up": row("Cast", Given((4, 5), "uint8"), to=1),
    "cast flags": row("Cast", SIGNS, to=9),
}
MOVES = {
    "transpose": row("Transpose", SEQUENCE, perm=[2, 0, 1]),
    "transpose plain": row("Transpose", SEQUENCE),
    "reshape": row("Reshape", SEQUENCE, _ints(0, -1, 2)),
    "flatten": row("Flatten", SEQUENCE, axis=2),
    "squeeze": row("Squeeze", Given((1, 3, 1, 2)), _ints(0, -2)),
    "unsqueeze": row("Unsqueeze", ROWS, _ints(0, -1)),
    "concat": row("Concat", SEQUENCE, _weights(2, 1, 8), axis=1),
    "split": row("Split", SEQUENCE, axis=-1, outputs=2),
    "split sizes": row("Split", SEQUENCE, _ints(1, 4), axis=1, outputs=2),
    "slice": row("Slice", SEQUENCE, _ints(1, 0), _ints(5, -1), _ints(1, 2), _ints(2, 3)),
    "slice back": row("Slice", SEQUENCE, _ints(-1), _ints(-6), _ints(1), _ints(-2)),
    "gather": row("Gather", SEQUENCE, np.asarray([[0, -1], [2, 1]], np.int64), axis=1),
    "gather scalar": row("Gather", SEQUENCE, np.asarray(-2, np.int64), axis=1),
    "gather given": row("Gather", _weights(7, 3), Given((2, 4), "int64", -7, 6)),
    "gather elements": row("GatherElements", ROWS, np.asarray([[0, -1], [2, 1]], np.int64), axis=1),
    "gather points": row("GatherND", SEQUENCE, np.asarray([[0, -1], [1, 2]], np.int64)),
    "scatter": row("ScatterElements", ROWS, np.asarray([[0, -1], [2, 1]], np.int64), _weights(2, 2), axis=1),
    "one hot": row("OneHot", Given((2, 3), "int64", -7, 7), np.asarray(5, np.int64), _real(2, 7), axis=1),
    "eye": row("EyeLike", Given((3, 4)), dtype=6, k=1),
    "expand": row("Expand", Given((3, 1)), _ints(2, 1, 4)),
    "tile": row("Tile", ROWS, _ints(2, 3)),
    "pad": row("Pad", IMAGE, _ints(0, 0, 1, 2, 0, 0, 0, 1), _scalar(1.5)),
    "pad reflect": row("Pad", IMAGE, _ints(0, 0, 2, 1, 0, 0, 1, 3), mode="reflect"),
    "pad edge": row("Pad", IMAGE, _ints(0, 0, 2, 1, 0, 0, 1, 3), mode="edge"),
    "crop": row("Pad", IMAGE, _ints(0, 0, -1, 1, 0, 0, 0, -2)),
    "depth to space": row("DepthToSpace", Given((1, 8, 3, 2)), blocksize=2),
    "depth to space crd": row("DepthToSpace", Given((1, 8, 3, 2)), blocksize=2, mode="CRD"),
    "space to depth": row("SpaceToDepth", Given((1, 2, 4, 6)), blocksize=2),
    "cumulative": row("CumSum", ROWS, np.asarray(1, np.int64), exclusive=1, reverse=1),
    "triangle": row("Trilu", Given((4, 5)), np.asarray(1, np.int64), upper=0),
}
RESIZES = {
    "nearest": row(
        "Resize", IMAGE, None, _real(1, 1, 2, 2), mode="nearest", coordinate_transformation_mode="asymmetric"
    ),
    "nearest floor": row(
        "Resize",
        IMAGE,
        None,
        _real(1, 1, 2, 3),
        mode="nearest",
        nearest_mode="floor",
        coordinate_transformation_mode="asymmetric",
    ),
    "linear": row("Resize", IMAGE, None, _real(1, 1, 2, 2), mode="linear"),
    "linear corners": row(
        "Resize", IMAGE, None, None, _ints(1, 4, 13, 9), mode="linear", coordinate_transformation_mode="align_corners"
    ),
    "linear corners of a row": row(
        "Resize",
        Given((1, 4, 1, 7)),
        None,
        None,
        _ints(1, 4, 1, 9),
        mode="linear",
        coordinate_transformation_mode="align_corners",
    ),
    "linear line": row("Resize", Given((1, 4, 7)), None, _real(1, 1, 3), mode="linear"),
    "linear pytorch": row(
        "Resize",
        IMAGE,
        None,
        None,
        _ints(1, 4, 3, 9),
        mode="linear",
        coordinate_transformation_mode="pytorch_half_pixel",
    ),
    "linear down": row("Resize", IMAGE, None, _real(1, 1, 0.6, 0.7), mode="linear"),
    "cubic": row("Resize", IMAGE, None, _real(1, 1, 1.5, 1.3), mode="cubic"),
}
REDUCTIONS = {
    "mean": row("ReduceMean", SEQUENCE, axes=[1], keepdims=0),
    "mean all": row("ReduceMean", SEQUENCE),
    "sum": row("ReduceSum", SEQUENCE, _ints(0, 2)),
    "maximum": row("ReduceMax", SEQUENCE, axes=[-1]),
    "l2": row("ReduceL2", SEQUENCE, axes=[2]),
    "product": row("ReduceProd", SEQUENCE, axes=[1], keepdims=0),
    "argmax": row("ArgMax", SEQUENCE, axis=-1, keepdims=0),
    "argmin": row("ArgMin", SEQUENCE, axis=1),
}
LATER = {
    "mean axes": row("ReduceMean", SEQUENCE, _ints(1), keepdims=0),
    "mean of integers": row("ReduceMean", Given((2, 5, 3), "int32"), _ints(1), keepdims=0),
    "split parts": row("Split", SEQUENCE, axis=1, num_outputs=3, outputs=3),
    "gelu": row("Gelu", ROWS),
    "gelu tanh": row("Gelu", ROWS, approximate="tanh"),
    "group norm": row("GroupNormalization", IMAGE, _weights(4), _weights(4, seed=2), num_groups=2),
    "mish": row("Mish", ROWS),
    "pad axes": row("Pad", IMAGE, _ints(1, 2), _scalar(0), _ints(-2)),
    "resize axes": row("Resize", IMAGE, None, _real(2, 2), mode="nearest", axes=[2, 3]),
}
NEWER = ("AffineGrid", "Col2Im")
RARER = {
    "spectrum": row("DFT", Given((2, 6, 3, 1)), axis=1),
    "half a spectrum": row("DFT", Given((2, 3, 7, 1)), axis=2, onesided=1),
    "spectrum padded": row("DFT", Given((1, 5, 2)), np.asarray(8, np.int64), axis=1),
    "spectrum back": row("DFT", Given((1, 6, 2)), axis=1, inverse=1),
    "spectra": row("STFT", Given((2, 40, 1)), _int(5), None, _int(8), onesided=1),
    "spectra of windows": row("STFT", Given((1, 33, 1)), _int(4), _weights(9), onesided=0),
    "maxima and where": row("MaxPool", IMAGE, kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1], outputs=2),
    "maxima by columns": row("MaxPool", IMAGE, kernel_shape=[2, 2], dilations=[2, 1], storage_order=1, outputs=2),
    "maxima of lines": row("MaxPool", Given((2, 3, 9)), kernel_shape=[3], outputs=2),
    "maxima put back": row("MaxUnpool", Given((1, 1, 2, 3)), _ints(0, 3, 4, 14, 17, 22).reshape(1, 1, 2, 3), **TWO),
    "cropped": row("Resize", IMAGE, _real(0, 0, 0.1, -0.2, 1, 1, 0.7, 1.3), None, _ints(1, 4, 5, 9), **CROP),
    "cropped nearest": row("Resize", IMAGE, _real(0, 0, 0, 0.6, 1, 1, 1, 0.2), None, _ints(1, 4, 3, 4), **NEAREST),
    "backwards": row("ReverseSequence", Given((5, 3, 2)), _ints(2, 5, 1)),
    "backwards by batch": row("ReverseSequence", Given((3, 5)), Given((3,), "int64", 1, 5), batch_axis=0, time_axis=1),
    "windows added up": row("Col2Im", Given((1, 12, 16)), _ints(5, 5), _ints(2, 3), pads=[0, 1, 0, 0]),
    "windows with gaps": row("Col2Im", Given((2, 8, 12)), _ints(7, 9), _ints(2, 2), strides=[2, 2], dilations=[2, 2]),
    "integer powers": row("Pow", Given((4,), "int32", 0, 9), Given((4,), "int32", 0, 6)),
    "integers to real powers": row("Pow", Given((4,), "int32", 0, 9), Given((4,), low=0, high=3)),
    "shift": row("BitShift", Given((6,), "uint32", 0, 90000), _unsigned(0, 1, 2, 7, 30, 31), direction="LEFT"),
    "maps of points": row("AffineGrid", Given((2, 2, 3)), _ints(2, 1, 4, 5)),
    "maps to corners": row("AffineGrid", Given((1, 3, 4)), _ints(1, 1, 3, 2, 4), align_corners=1),
}
GROUPS: dict[str, tuple[int, Mapping[str, Row]]] = {
    "windows": (13, WINDOWS),
    "norms": (17, NORMS),
    "functions": (15, FUNCTIONS),
    "binary": (13, BINARY),
    "moves": (14, MOVES),
    "resizes": (16, RESIZES),
    "reductions": (13, REDUCTIONS),
    "later": (21, LATER),
    "rarer": (17, {name: entry for name, entry in RARER.items() if entry.op not in NEWER}),
    "newer": (20, {name: entry for name, entry in RARER.items() if entry.op in NEWER}),
}


@pytest.mark.sample(1)
@pytest.mark.parametrize("group", GROUPS)
def test_operators_give_what_onnx_runtime_gives(group: str, tmp_path: Path) -> None:
    opset, rows = GROUPS[group]
    model = model_of(rows, opset)
    path = tmp_path / f"{group}.onnx"
    path.write_bytes(model.SerializeToString())
    compiled = compile_model(path, board="host")
    feeds = feeds_of(rows)
    if "round halves/in0" in feeds:
        feeds["round halves/in0"] = np.arange(-16, 16, 0.5, dtype=np.float32)
    wanted = session_of(model).run(None, feeds)
    names = [spec.name for spec in compiled.model.signature.outputs]
    values = [feeds[spec.name] for spec in compiled.model.signature.inputs]
    for name, got, expected in zip(names, HostModel(compiled)(*values), wanted, strict=True):
        compare(got, expected, name, relative=3e-5)


def test_extremes_of_infinities_are_infinite(tmp_path: Path) -> None:
    """As rows are that a mask leaves nothing of."""
    rows = {"largest": row("ReduceMax", ROWS, axes=[1]), "least": row("ReduceMin", ROWS, axes=[1])}
    model, path = model_of(rows, 13), tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    feeds = feeds_of(rows) | {"largest/in0": np.full((3, 8), -np.inf, np.float32)}
    feeds["least/in0"][1] = np.inf
    outputs = HostModel(compile_model(path, board="host"))(*feeds.values())
    for got, wanted in zip(outputs, session_of(model).run(None, feeds), strict=True):
        np.testing.assert_array_equal(got, wanted)
