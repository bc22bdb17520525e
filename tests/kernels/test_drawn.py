"""Layers that nothing was tuned to, drawn at random, on boards with fast kernels: the bytes of TFLite Micro."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernels.drawn_others import OTHERS
from support.device.boards import board_with_tools
from support.models.drawn_layers import KINDS, drawn
from support.models.drawn_networks import NETWORKS, network
from support.models.stateful import Lstm, Svdf
from support.oracle.exactness import assert_same
from support.oracle.oracle import Tflm, random_inputs
from uaccel.kernels.choice import selection_for
from uaccel.pipeline import compile_model
from uaccel.runner.compiled import run_compiled
from uaccel.runner.execute import Looks

BOARDS = ("mps2_an386", "mps3_an547")
PLAIN = ("mps2_an385", "qemu_riscv32")
FRAMES = 5
REMEMBERING: dict[str, Svdf | Lstm] = {
    "SVDF, batches": Svdf(batch=3, rank=1, memory=3),
    "SVDF, a zero point, which wraps": Svdf("int8", zero_point=9, scales=(0.1, 0.01, 0.05, 0.02, 0.2)),
    "SVDF, no memory": Svdf(memory=1, filters=10),
    "LSTM, time major": Lstm(time_major=True),
    "LSTM, clipped": Lstm(clip=0.5, units=9),
    "LSTM, int16": Lstm("int16", units=9),
    "LSTM, a fine cell state": Lstm(cell_power=-15, batch=1),
    "LSTM, a cell state of twice the table's steps": Lstm(cell_power=-13, weight_scale=0.004),
    "LSTM, a coarse cell state": Lstm(cell_power=-9, units=17, depth=33),
    "LSTM, gates larger than their sums": Lstm(weight_scale=0.1, units=8),
}


def assert_exact_on(board_name: str, data: bytes, folder: Path) -> None:
    board = board_with_tools(board_name)
    path = folder / "layers.tflite"
    path.write_bytes(data)
    compiled = compile_model(path, board=board_name, selection=selection_for(board))
    frames, reference = random_inputs(data, 5, FRAMES), Tflm(data)
    looks = Looks(sequence=bool(compiled.program.state))
    run = run_compiled(compiled, board, frames, folder / "project", lambda step: None, looks=looks).run
    for number, (results, frame) in enumerate(zip(run.outputs, frames, strict=True)):
        for layer, (got, wanted) in enumerate(zip(results, reference.run(frame), strict=True)):
            assert_same(got, wanted.reshape(got.shape), f"frame {number}, layer {layer}")


@pytest.mark.sample(2)
@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize("kind", [*KINDS, *OTHERS])
def test_drawn_layers_are_exact(kind: str, board: str, tmp_path: Path) -> None:
    assert_exact_on(board, drawn(kind, seed=11, count=4, kinds={**KINDS, **OTHERS}), tmp_path)


@pytest.mark.sample(1)
@pytest.mark.parametrize("board", [*BOARDS, *PLAIN])
@pytest.mark.parametrize("name", REMEMBERING)
def test_what_lasts_is_exact(name: str, board: str, tmp_path: Path) -> None:
    assert_exact_on(board, REMEMBERING[name].build(), tmp_path)


@pytest.mark.sample(1)
@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize("name", NETWORKS)
def test_drawn_networks_are_exact(name: str, board: str, tmp_path: Path) -> None:
    assert_exact_on(board, network(name), tmp_path)
