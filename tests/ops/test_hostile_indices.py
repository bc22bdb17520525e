"""Indices that are computed: legal ones pick what the runtimes pick, and no other leads outside of a tensor.

The generated C runs under sanitizers, each tensor in an allocation of its size, and must give what the host executes.
A row is any operator whose data says where it reads or writes; analysis guards it, so a new one needs a row alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.models.many import Row as LiteRow
from support.models.many import many
from support.models.onnx_rows import Given, Row, model_of, row, session_of
from support.models.single_op import Activation, Constant
from support.oracle.hostile_indices import differences, indices
from support.oracle.oracle import LiteRt
from support.oracle.sanitized import POOL, compile_pooled
from uaccel.codegen.options import EmitOptions
from uaccel.memory import Pool
from uaccel.pipeline import compile_model

TABLE, CLASSES = Given((4, 5)), indices((4,), 0, 4)
FACTORS = Given((5,), low=0.1, high=1.0)
GRID = Given((1, 3, 4, 2), low=-1.2, high=1.2)
ROI: dict[str, Any] = {"output_height": 2, "output_width": 3, "sampling_ratio": 2}
REDUCED = ("none", "add", "mul", "min")
PLACED, POINTS = (TABLE, indices((4, 3), -5, 4), Given((4, 3))), (TABLE, indices((3, 2), 0, 3), Given((3,)))
PIXELS = (Given((4, 5, 2)), indices((4, 2), 0, 4), FACTORS)
ROWS: Mapping[str, Row] = {
    "scatter elements": row("ScatterElements", *PLACED, axis=1, reduction="add"),
    "scatter points": row("ScatterND", *POINTS, reduction="max"),
    "scatter part": row("ScatterElements", Given((2, 3, 4)), indices((2, 2, 1), -4, 3), Given((2, 2, 1)), axis=2),
    "gather elements": row("GatherElements", TABLE, indices((4, 3), -5, 4), axis=1),
    "gather points": row("GatherND", TABLE, indices((3, 2), -4, 3)),
    "gather points in batches": row("GatherND", TABLE, indices((4, 1), -5, 4), batch_dims=1),
    "unpool": row("MaxUnpool", Given((1, 1, 2, 2)), indices((1, 1, 2, 2), 0, 15), kernel_shape=[2, 2], strides=[2, 2]),
    "regions": row("RoiAlign", Given((2, 3, 8, 8)), Given((2, 4), low=0, high=8), indices((2,), 0, 1), **ROI),
    "loss": row("NegativeLogLikelihoodLoss", TABLE, CLASSES, FACTORS, reduction="none"),
    "grid, nearest": row("GridSample", Given((1, 2, 5, 6)), GRID, mode="nearest", padding_mode="border"),
    "quotient": row("Div", indices((3,), 1, 9, "int32"), indices((3,), 1, 9, "int32")),
    "whole numbers": row("Cast", Given((3,)), to=6),
}
MORE: Mapping[str, Row] = {
    **{f"scatter elements {kind}": row("ScatterElements", *PLACED, axis=1, reduction=kind) for kind in REDUCED},
    **{f"scatter points {kind}": row("ScatterND", *POINTS, reduction=kind) for kind in REDUCED},
    "scatter rows": row("ScatterND", TABLE, indices((1, 1), -4, 3), Given((1, 5))),
    "gather elements, int32": row("GatherElements", TABLE, indices((2, 5), -4, 3, "int32"), axis=0),
    "gather": row("Gather", TABLE, indices((3,), -5, 4), axis=1),
    "loss without a class": row("NegativeLogLikelihoodLoss", *PIXELS, ignore_index=2),
    "cross entropy": row("SoftmaxCrossEntropyLoss", TABLE, CLASSES, FACTORS),
    "one hot": row("OneHot", indices((4,), -5, 4), np.asarray(5, np.int64), np.asarray([0, 1], np.float32)),
    "reverse": row("ReverseSequence", Given((4, 3, 2)), indices((3,), 1, 4), time_axis=0, batch_axis=1),
    "features": row("ArrayFeatureExtractor", TABLE, indices((2,), 0, 4), domain="ai.onnx.ml"),
    "grid": row("GridSample", Given((1, 2, 5, 6)), GRID),
    "grid, reflected": row("GridSample", Given((1, 2, 5, 6)), GRID, mode="bicubic", padding_mode="reflection"),
    "remainder": row("Mod", indices((3,), 1, 9, "int32"), indices((3,), 1, 9, "int32")),
    "bytes": row("Cast", Given((3,), low=0), to=2),
    "triangle": row("Trilu", TABLE, indices((), -2, 2)),
}


@pytest.mark.parametrize("rows", [ROWS, pytest.param(MORE, marks=pytest.mark.slow)], ids=["named", "more"])
def test_indices_of_onnx(rows: Mapping[str, Row], tmp_path: Path) -> None:
    import onnx

    onnx.save(model_of(rows, 18), tmp_path / "rows.onnx")
    inputs = [given for entry in rows.values() for given in entry.inputs if isinstance(given, Given)]
    compiled = compile_model(tmp_path / "rows.onnx", board="host", options=EmitOptions(pools=(Pool(POOL),)))
    session = session_of(tmp_path / "rows.onnx")
    names = [value.name for value in session.get_inputs()]
    run = lambda values: session.run(None, dict(zip(names, values, strict=True)))  # noqa: E731
    assert differences(compiled, inputs, run) == []


def part(shape: tuple[int, ...], dtype: str = "float32") -> Activation:
    return Activation(shape, dtype)


def numbers(*values: int) -> Constant:
    return Constant(np.array(values, np.int32))


@dataclass(frozen=True)
class Lite:
    """A row of TFLite; ``largest``: of a legal index."""

    row: LiteRow
    largest: int


FLOATS = part((4, 5))
EMBEDDED = Constant(np.arange(40, dtype=np.float32).reshape(10, 4))
BATCHES: Mapping[str, Any] = {"axis": 1, "batch_dims": 1}
LITE = {
    "scatter": Lite(LiteRow("SCATTER_ND", [part((3, 2), "int32"), part((3,)), numbers(4, 5)], [FLOATS]), 3),
    "scatter rows": Lite(
        LiteRow("SCATTER_ND", [part((6, 1), "int32"), part((6, 5), "int32"), numbers(4, 5)], [part((4, 5), "int32")]), 3
    ),
    "gather": Lite(LiteRow("GATHER", [FLOATS, part((3,), "int64")], [part((4, 3))], {"axis": 1}), 4),
    "gather in batches": Lite(
        LiteRow("GATHER", [part((2, 5, 3)), part((2, 4), "int64")], [part((2, 4, 3))], BATCHES), 4
    ),
    "gather points": Lite(LiteRow("GATHER_ND", [FLOATS, part((3, 2), "int64")], [part((3,))]), 3),
    "embedding": Lite(LiteRow("EMBEDDING_LOOKUP", [part((3,), "int32"), EMBEDDED], [part((3, 4))]), 9),
    "slice": Lite(LiteRow("SLICE", [FLOATS, part((2,), "int32"), numbers(2, 3)], [part((2, 3))]), 2),
    "update": Lite(LiteRow("DYNAMIC_UPDATE_SLICE", [FLOATS, part((2, 3)), part((2,), "int64")], [FLOATS]), 2),
    "quotient": Lite(LiteRow("FLOOR_MOD", [part((4,), "int32")] * 2, [part((4,), "int32")]), 9),
}


def test_indices_of_tflite() -> None:
    data = many({name: lite.row for name, lite in LITE.items()})
    inputs = []
    for name, lite in LITE.items():
        low = int(name == "quotient")
        inputs += [
            Given(given.shape, given.dtype, *((-3.0, 3.0) if given.dtype == "float32" else (low, lite.largest)))
            for given in lite.row.inputs
            if isinstance(given, Activation)
        ]
    assert differences(compile_pooled(data), inputs, lambda values: LiteRt(data).run(values)) == []
