"""Caches that are written at a position of an input or of a state: one beyond the end means the last place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from support.models.exported import Net, exported, save, torch
from support.models.tflite_writer import ModelBuilder
from support.oracle.oracle import LiteRt
from support.oracle.sanitized import POOL, run_sanitized
from uaccel.codegen.options import EmitOptions
from uaccel.memory import Pool
from uaccel.pipeline import compile_model
from uaccel.tvm_api.executor import Executor

ROWS, WIDTH = 4, 3
X = np.array([[5, -6, 7]], np.float32)
KEPT = np.arange(12, dtype=np.float32).reshape(ROWS, WIDTH)
BEYOND = (ROWS - 1, ROWS, ROWS + 1, 1000, 2**31 - 1)
"""The last place, and what counts as it."""

NODES = {
    "ScatterND": "i = Unsqueeze(at, one) d = ScatterND(c, i, x)",
    "ScatterND of elements": (
        "a = Expand(at, tall) a2 = Reshape(a, column) i = Concat<axis = 1>(a2, each) n = Reshape(x, tall) "
        "d = ScatterND(c, i, n)"
    ),
    "ScatterElements": "i = Expand(at, wide) d = ScatterElements<axis = 0>(c, i, x)",
}


def of_onnx(operator: str) -> Callable[[Path], tuple[Path, Sequence[str]]]:
    def write(folder: Path) -> tuple[Path, Sequence[str]]:
        text = f"""<ir_version: 8, opset_import: ["" : 18]>
            g (int64[1] at, float[1,3] x, float[4,3] c) => (float[4,3] y, float[4,3] d)
            <int64[1] one = {{1}}, int64[2] wide = {{1, 3}}, int64[1] tall = {{3}}, int64[2] column = {{3, 1}},
             int64[3,1] each = {{0, 1, 2}}, float two = {{2}}>
            {{ {NODES[operator]} y = Mul(d, two) }}"""
        path = folder / "m.onnx"
        path.write_bytes(onnx.parser.parse_model(text).SerializeToString())
        return path, ["d=c"]

    return write


class Written(Net):
    """Writes a row to a buffer."""

    def __init__(self, write: Callable[[Any, Any, Any], Any]) -> None:
        super().__init__(self.forward)
        self.write = write
        self.register_buffer("kept", torch.zeros(ROWS, WIDTH))

    def forward(self, at: Any, x: Any) -> Any:
        self.write(self.kept, at, x)
        return self.kept * 2


WRITES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "index_put": lambda kept, at, x: kept.index_put_((at,), x),
    "index_copy": lambda kept, at, x: kept.index_copy_(0, at, x),
}


def of_torch(name: str) -> Callable[[Path], tuple[Path, Sequence[str]]]:
    def write(folder: Path) -> tuple[Path, Sequence[str]]:
        given = [torch.zeros(1, dtype=torch.int64), torch.zeros(1, WIDTH)]
        return save(exported(Written(WRITES[name]).eval(), given), folder / "m.pt2"), ()

    return write


def of_tflite(folder: Path) -> tuple[Path, Sequence[str]]:
    model = ModelBuilder()
    at, x = model.input("at", (2,), "int32"), model.input("x", (1, WIDTH), "float32")
    cache, after = model.input("c", (ROWS, WIDTH), "float32"), model.tensor("d", (ROWS, WIDTH), "float32")
    model.op("DYNAMIC_UPDATE_SLICE", [cache, x, at], [after])
    y = model.tensor("y", (ROWS, WIDTH), "float32")
    model.op("MUL", [after, model.constant("two", np.full(1, 2, np.float32))], [y], {"fused_activation": "NONE"})
    model.output(y)
    path = folder / "m.tflite"
    path.write_bytes(model.build(after))
    return path, ["d=c"]


MODELS = {
    **{name: of_onnx(name) for name in NODES},
    **{name: of_torch(name) for name in WRITES},
    "DYNAMIC_UPDATE_SLICE": of_tflite,
}


@pytest.mark.parametrize("name", MODELS)
def test_a_position_beyond_the_end_is_the_last_place(name: str, tmp_path: Path) -> None:
    """In generated code, under sanitizers, and in the meaning; the header says so."""
    path, state = MODELS[name](tmp_path)
    compiled = compile_model(path, board="host", options=EmitOptions(pools=(Pool(POOL),)), state=state)
    (header,) = (text for name, text in compiled.generated.public_headers.items() if name.startswith("tvmgen"))
    assert "A computed position beyond the end of a cache means its last place" in header
    wide = name != "DYNAMIC_UPDATE_SLICE"
    places = (*BEYOND, 2**40) if wide else BEYOND
    samples = [[np.array([place] if wide else [place, 0], np.int64 if wide else np.int32), X] for place in places]
    wanted = np.zeros((ROWS, WIDTH), np.float32)
    wanted[-1] = 2 * X
    for sample, (got,) in zip(samples, run_sanitized(compiled, samples), strict=True):
        np.testing.assert_array_equal(got, wanted, str(sample[0]))
        executor = Executor(compiled.model.module, state=compiled.model.state)
        np.testing.assert_array_equal(executor.run(sample)[0], wanted)


def test_litert_writes_there_too(tmp_path: Path) -> None:
    path, _ = of_tflite(tmp_path)
    reference = LiteRt(path.read_bytes())
    for place in BEYOND:
        y, after = reference.run([np.array([place, 0], np.int32), X, KEPT])
        np.testing.assert_array_equal(after, np.concatenate([KEPT[:-1], X]))
        np.testing.assert_array_equal(y, 2 * after)


def test_a_position_of_the_state_s_own(tmp_path: Path) -> None:
    """A counter that nothing bounds has passed the end."""

    class Counted(Net):
        def __init__(self) -> None:
            super().__init__(self.forward)
            self.write = WRITES["index_put"]
            self.register_buffer("kept", torch.zeros(ROWS, WIDTH))
            self.register_buffer("at", torch.full((1,), 77))

        def forward(self, x: Any) -> Any:
            self.write(self.kept, self.at, x)
            self.at.add_(1)
            return self.kept * 2

    path = save(exported(Counted().eval(), [torch.zeros(1, WIDTH)]), tmp_path / "m.pt2")
    compiled = compile_model(path, board="host", options=EmitOptions(pools=(Pool(POOL),)))
    ((got,),) = run_sanitized(compiled, [[X]])
    np.testing.assert_array_equal(got, np.concatenate([np.zeros((ROWS - 1, WIDTH), np.float32), 2 * X]))
