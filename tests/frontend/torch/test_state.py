"""Buffers that a program writes to, and outputs that are inputs of the next inference: PyTorch is the oracle."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.device.boards import board_with_tools
from support.models.exported import Net, exported, save, torch
from support.run.command import call_in
from uaccel.frontend import import_model
from uaccel.pipeline import compile_model

Array = np.ndarray[Any, Any]
WIDTH, FRAMES = 6, 100


class Stream(Net):
    """Is given a frame ``x`` at a time, and keeps in buffers what it needs of earlier ones."""

    def __init__(self, **buffers: Any) -> None:
        super().__init__(self.forward)
        torch.manual_seed(2)
        for name, value in buffers.items():
            self.register_buffer(name, value)


class Gru(Stream):
    """Begins with a hidden vector that is not zero."""

    def __init__(self) -> None:
        super().__init__(h=torch.full((1, 8), 0.25))
        self.cell, self.out = torch.nn.GRUCell(WIDTH, 8), torch.nn.Linear(8, 3)

    def forward(self, x: Any) -> Any:
        h = self.cell(x.reshape(1, WIDTH), self.h)
        self.h.copy_(h)
        return self.out(h)


class Convolution(Stream):
    """A convolution over this frame and the four before it."""

    def __init__(self) -> None:
        super().__init__(past=torch.zeros(1, WIDTH, 4))
        self.conv = torch.nn.Conv1d(WIDTH, 5, 5)

    def forward(self, x: Any) -> Any:
        frames = torch.cat([self.past, x.reshape(1, WIDTH, 1)], -1)
        self.past.copy_(frames[..., 1:])
        return torch.relu(self.conv(frames))


class Attention(Stream):
    """Attention over the last eight frames, whose keys and values are written at a position that wraps."""

    def __init__(self) -> None:
        nothing = {name: torch.zeros(1, 8, WIDTH) for name in ("keys", "values")}
        super().__init__(**nothing, position=torch.zeros(1, dtype=torch.int64))
        self.q, self.k, self.v = (torch.nn.Linear(WIDTH, WIDTH) for _ in range(3))

    def forward(self, x: Any) -> Any:
        x, at = x.reshape(1, 1, WIDTH), self.position % 8
        self.keys.index_copy_(1, at, self.k(x))
        self.values.index_copy_(1, at, self.v(x))
        self.position.add_(1)
        return torch.softmax(self.q(x) @ self.keys.transpose(1, 2), -1) @ self.values


class Counter(Stream):
    """The output is the buffer as it was before."""

    def __init__(self) -> None:
        super().__init__(count=torch.zeros(1, dtype=torch.int32))

    def forward(self, x: Any) -> Any:
        before = self.count.clone()
        self.count.add_(3)
        return x.sum() * 0 + before


STREAMS: dict[str, tuple[Callable[[], Any], int]] = {
    "gru": (Gru, 36),
    "convolution": (Convolution, 100),
    "attention": (Attention, 400),
    "counter": (Counter, 8),
}


def frames() -> Array:
    return np.random.default_rng(9).standard_normal((FRAMES, WIDTH)).astype(np.float32)


@pytest.mark.parametrize("decomposed", [False, True])
@pytest.mark.parametrize("name", STREAMS)
def test_buffers_last(name: str, decomposed: bool, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Whether the file has operators in place, or says at its end what buffers become."""
    make, size = STREAMS[name]
    module = make().eval()
    program = exported(module, [torch.zeros(WIDTH)])
    path = save(program.run_decompositions({}) if decomposed else program, tmp_path / "m.pt2")
    np.savez(tmp_path / "in.npz", x=frames())
    wishes = ("--inputs", tmp_path / "in.npz", "--sequence", "--verify", "--json")
    done = call_in(capfd)("run", path, "--board", "host", *wishes)
    assert done.status == 0, done.err
    (output,) = done.report["outputs"].values()
    with torch.no_grad():
        wanted = np.stack([module(torch.from_numpy(frame)).numpy() for frame in frames()])
    np.testing.assert_allclose(np.reshape(output["data"], wanted.shape), wanted, atol=1e-5)
    assert done.report["verify"]["against"] == ["exact meaning", "torch"]
    assert done.report["ram"]["state"] == size


@pytest.mark.slow
@pytest.mark.parametrize("board", ["host", "mps3_an547"])
def test_a_quantised_program_begins_as_the_float_one(
    board: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Calibration leaves nothing behind in buffers, and frames are equal to PyTorch's."""
    if board != "host":
        board_with_tools(board)
    path, data = save(exported(Gru().eval(), [torch.zeros(WIDTH)]), tmp_path / "m.pt2"), tmp_path / "in.npz"
    np.savez(data, x=frames())
    call = call_in(capfd)
    done = call("quantize", path, "--calibration", data, "-o", tmp_path / "q.pt2", "--json")
    assert done.status == 0, done.err
    assert min(layer["snr_db"] for layer in done.report["layers"]) > 25
    (state,) = import_model(tmp_path / "q.pt2").state
    np.testing.assert_array_equal(state.initial, np.full((1, 8), 0.25, np.float32))
    done = call("run", tmp_path / "q.pt2", "--board", board, "--inputs", data, "--sequence", "--verify", "--json")
    assert done.status == 0, done.err
    runtime = done.report["verify"]["runtime"]
    assert runtime["equal"] == runtime["elements"] == 3 * FRAMES


def test_inputs_and_outputs_of_a_program(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def cell(h: Any, x: Any) -> Any:
        after = torch.tanh(h * 0.5 + x)
        return after * 2, after

    path = save(exported(Net(cell).eval(), [torch.zeros(WIDTH), torch.zeros(WIDTH)]), tmp_path / "m.pt2")
    np.savez(tmp_path / "in.npz", x_1=frames())
    wishes = ("--state", "tanh=x_0", "--inputs", tmp_path / "in.npz", "--sequence", "--verify", "--json")
    done = call_in(capfd)("run", path, "--board", "host", *wishes)
    assert done.status == 0, done.err
    state, wanted = np.zeros(WIDTH, np.float32), []
    for frame in frames():
        state = np.tanh(state * np.float32(0.5) + frame)
        wanted.append(state * 2)
    (output,) = done.report["outputs"].values()
    np.testing.assert_allclose(np.reshape(output["data"], (FRAMES, WIDTH)), wanted, atol=1e-5)
    assert done.report["verify"]["against"] == ["exact meaning", "torch"]


def test_a_cache_is_written_in_place(tmp_path: Path) -> None:
    """Keys and values lie in the state alone: the arena holds what a frame needs beside them."""
    path = save(exported(Attention().eval(), [torch.zeros(WIDTH)]), tmp_path / "m.pt2")
    compiled = compile_model(path, board="host")
    cache = 8 * WIDTH * 4
    assert compiled.placement.state == 2 * cache + 16, "with a position, and the mark"
    assert compiled.placement.arena < 2 * cache
    places = {layer.name: layer for layer in compiled.program.layers if layer.op == "scatter_elements"}
    assert len(places) == 2
    assert "copy" not in {layer.op for layer in compiled.program.layers if layer.outputs[0].info.size == cache}
