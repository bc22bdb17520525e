"""A hundred frames of a cache of keys and values and of a GRU: floats, halves and bytes, by the formats' runtimes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from frontend.torch.test_state import FRAMES, WIDTH, Attention, Gru, Stream
from support.device.boards import board_with_tools
from support.models.exported import exported, save, torch
from support.run.command import call_in
from uaccel.pipeline import compile_model
from uaccel.runner.onnx_runtime import session_of

Array = np.ndarray[Any, Any]
SLOTS, UNITS = 32, 16
WIDER = {"float16": np.float32}
"""What firmware takes in place of a type."""


class Halves(Stream):
    """Attention over the last frames, whose keys and values are float16."""

    def __init__(self) -> None:
        nothing = {name: torch.zeros(1, SLOTS, WIDTH, dtype=torch.float16) for name in ("keys", "values")}
        super().__init__(**nothing, position=torch.zeros(1, dtype=torch.int64))
        self.q, self.k, self.v = (torch.nn.Linear(WIDTH, WIDTH) for _ in range(3))

    def forward(self, x: Any) -> Any:
        x, at = x.reshape(1, 1, WIDTH), self.position % SLOTS
        self.keys.index_copy_(1, at, self.k(x).half())
        self.values.index_copy_(1, at, self.v(x).half())
        self.position.add_(1)
        return torch.softmax(self.q(x) @ self.keys.float().transpose(1, 2), -1) @ self.values.float()


BYTES = f"""<ir_version: 8, opset_import: ["" : 18]>
    g (int8[1,{UNITS}] x, int64[1] at, int8[{SLOTS},{UNITS}] c) => (int32[1,{SLOTS}] y, int8[{SLOTS},{UNITS}] d)
    <int64[1] one = {{1}}>
    {{ i = Unsqueeze(at, one) d = ScatterND(c, i, x) t = Transpose<perm = [1, 0]>(d) y = MatMulInteger(x, t) }}"""
FLOATS = BYTES.replace("int8", "float").replace("int32", "float").replace("MatMulInteger(x, t)", "MatMul(x, t)")
HALVES = FLOATS.replace("float[", "float16[")  # firmware keeps them as float32, which holds the same numbers
GRU = f"""<ir_version: 8, opset_import: ["" : 18]>
    g (float[1,1,{WIDTH}] x, float[1,1,{UNITS}] h) => (float[1,1,1,{UNITS}] y, float[1,1,{UNITS}] d)
    {{ y, d = GRU<hidden_size = {UNITS}>(x, w, r, b, , h) }}"""


def of_onnx(text: str, path: Path) -> Path:
    model, generator = onnx.parser.parse_model(text), np.random.default_rng(3)
    if "GRU" in text:
        shapes = {"w": (1, 3 * UNITS, WIDTH), "r": (1, 3 * UNITS, UNITS), "b": (1, 6 * UNITS)}
        drawn = {name: generator.uniform(-0.5, 0.5, shape).astype(np.float32) for name, shape in shapes.items()}
        model.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in drawn.items())
    path.write_bytes(model.SerializeToString())
    return path


def onnx_frames(path: Path) -> dict[str, Array]:
    """Frames for every input but the last, which is the state."""
    generator, found = np.random.default_rng(7), {}
    for given in session_of(path).get_inputs()[:-1]:
        drawn = 20 * generator.standard_normal((FRAMES, *given.shape))
        places = np.arange(FRAMES)[:, np.newaxis] % SLOTS
        kinds = {"tensor(int8)": np.int8, "tensor(float)": np.float32, "tensor(float16)": np.float16}
        small = drawn if given.type == "tensor(int8)" else drawn / 20
        found[given.name] = places if given.type == "tensor(int64)" else small.astype(kinds[given.type])
    return found


def by_onnx(path: Path, frames: Mapping[str, Array]) -> Array:
    session = session_of(path)
    last = session.get_inputs()[-1]
    kind = {"tensor(int8)": np.int8, "tensor(float)": np.float32, "tensor(float16)": np.float16}[last.type]
    state, found = np.zeros(last.shape, kind), []
    for number in range(FRAMES):
        y, state = session.run(None, {name: value[number] for name, value in frames.items()} | {last.name: state})
        found.append(y)
    return np.stack(found)


@dataclass(frozen=True)
class Row:
    """``within``: of the peak; 0 where integers must be equal. ``state``: bytes without the mark."""

    source: str | Callable[[], Any]
    within: float
    state: int
    words: Sequence[str] = ()


CACHE = SLOTS * UNITS
ROWS = {
    "ONNX, cache of bytes": Row(BYTES, 0, CACHE, ("d=c",)),
    "ONNX, cache of halves": Row(HALVES, 2e-3, 4 * CACHE, ("d=c",)),
    "ONNX, cache of floats": Row(FLOATS, 1e-6, 4 * CACHE, ("d=c",)),
    "ONNX, GRU": Row(GRU, 1e-6, 4 * UNITS, ("d=h",)),
    "PyTorch, cache of halves": Row(Halves, 2e-3, 2 * 4 * SLOTS * WIDTH + 8, ()),
    "PyTorch, cache of floats": Row(Attention, 1e-6, 2 * 4 * 8 * WIDTH + 8, ()),
    "PyTorch, GRU": Row(Gru, 1e-6, 4 * 8, ()),
}


def model_of(row: Row, folder: Path) -> tuple[Path, dict[str, Array], Array]:
    """The file, its frames, and what its own runtime gives for them."""
    if isinstance(row.source, str):
        path = of_onnx(row.source, folder / "m.onnx")
        frames = onnx_frames(path)
        return path, frames, by_onnx(path, frames)
    module = row.source().eval()
    path = save(exported(module, [torch.zeros(WIDTH)]), folder / "m.pt2")
    given = np.random.default_rng(9).standard_normal((FRAMES, WIDTH)).astype(np.float32)
    with torch.no_grad():
        return path, {"x": given}, np.stack([module(torch.from_numpy(frame)).numpy() for frame in given])


@pytest.mark.parametrize("board", ["host", pytest.param("mps3_an547", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ROWS)
def test_a_hundred_frames(name: str, board: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The last frame is as near to the runtime's as one step may be: nothing adds up."""
    if board != "host":
        board_with_tools(board)
    row = ROWS[name]
    path, frames, wanted = model_of(row, tmp_path)
    given: dict[str, Any] = {
        key: value.astype(WIDER.get(str(value.dtype), value.dtype)) for key, value in frames.items()
    }
    np.savez(tmp_path / "in.npz", **given)
    words = [word for pair in row.words for word in ("--state", pair)]
    wishes = ("--inputs", tmp_path / "in.npz", "--sequence", "--verify", "--json", *words)
    done = call_in(capfd)("run", path, "--board", board, *wishes)
    assert done.status == 0, done.err
    (output,) = done.report["outputs"].values()
    got = np.reshape(np.asarray(output["data"], wanted.dtype), wanted.shape)
    np.testing.assert_allclose(got, wanted, rtol=0, atol=row.within * float(np.abs(wanted).max()))
    assert row.state < done.report["ram"]["state"] <= row.state + 8, "with the mark"


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row.words])
def test_the_state_is_there_once(name: str, tmp_path: Path) -> None:
    """At most a tenth more than the state and what the step without it needs, whose caches are the caller's."""
    row = ROWS[name]
    path, _, _ = model_of(row, tmp_path)
    placement, apart = (compile_model(path, board="host", state=words).placement for words in (row.words, ()))
    assert placement.arena + placement.state <= 1.1 * (row.state + apart.arena) + 4, "and the mark"
