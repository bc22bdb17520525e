"""Layers of floats: their kernels give the bits of their meaning, whatever compiler and CPU they are made for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from support.device.boards import board_with_tools
from support.device.hostlib import Array, HostModel
from support.models.float_rows import ROWS, FloatRow, assert_same_bits, conv, inputs_of, pool, together
from support.models.overlapped import compiled_overlapped
from support.models.relax_modules import compiled_module
from support.oracle.sanitized import POOL, run_sanitized
from uaccel import memory
from uaccel.board import load_board
from uaccel.codegen.options import EmitOptions
from uaccel.kernels.choice import ANY_CPU, selection_for
from uaccel.runner.compiled import run_compiled
from uaccel.tvm_api.executor import Executor

FMA = "fma" in Path("/proc/cpuinfo").read_text(errors="replace").split()
FLAGS: dict[str, Sequence[str]] = {
    "as it is built": (),
    "products joined with additions, if the compiler may": ("-std=gnu11", *["-mfma"] * FMA, "-ffp-contract=fast"),
}
BOARDS = {
    "mps2_an386": "portable",  # with an FPU
    "mps2_an385": "portable",  # without
    "mps3_an547": "arm_helium",
}


@dataclass(frozen=True)
class Meant:
    """A module of all rows, some inputs, and the outputs that they mean."""

    module: Any
    samples: list[list[Array]]
    outputs: list[list[Array]]


@pytest.fixture(scope="module")
def meant() -> Meant:
    module = together(ROWS)
    samples = [inputs_of(ROWS, seed) for seed in range(3)]
    executor = Executor(module)
    return Meant(module, samples, [executor.run(sample) for sample in samples])


def assert_outputs(found: Sequence[Sequence[Array]], meant: Meant) -> None:
    for results, wanted in zip(found, meant.outputs, strict=True):
        for name, got, one in zip(ROWS, results, wanted, strict=True):
            assert_same_bits(np.asarray(got), one, name)


@pytest.mark.parametrize("flags", FLAGS)
def test_kernels_give_the_bits_of_the_meaning(flags: str, meant: Meant) -> None:
    compiled = compiled_module(meant.module)
    assert {layer.kernel.family for layer in compiled.program.layers} == {"portable"}
    host = HostModel(compiled, optimise="-O3", flags=FLAGS[flags])
    assert_outputs([host(*sample) for sample in meant.samples], meant)


def test_they_write_no_earlier_over_their_inputs_than_they_say(meant: Meant, tmp_path: Path) -> None:
    compiled = compiled_overlapped(meant.module, ANY_CPU)
    assert any(layer.kernel.behind.get(0) for layer in compiled.program.layers)
    done = run_compiled(compiled, load_board("host"), meant.samples, tmp_path, lambda step: None)
    assert_outputs(done.run.outputs, meant)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", BOARDS)
def test_boards_give_the_bits_of_the_meaning(name: str, meant: Meant, tmp_path: Path) -> None:
    """Helium takes numbers for zero that are too small to be normal: the last inputs are such."""
    board = board_with_tools(name)
    compiled = compiled_module(meant.module, selection=selection_for(board))
    families = {layer.kernel.family for layer in compiled.program.layers if layer.macs}
    assert families == {BOARDS[name]}
    done = run_compiled(compiled, board, meant.samples, tmp_path, lambda step: None)
    assert_outputs(done.run.outputs, meant)


@pytest.mark.slow
def test_clean_under_sanitizers(meant: Meant) -> None:
    compiled = compiled_module(meant.module, EmitOptions(pools=(memory.Pool(POOL),)))
    assert_outputs(run_sanitized(compiled, meant.samples), meant)


windows = st.tuples(st.integers(1, 4), st.integers(1, 4))
steps = st.tuples(st.integers(1, 3), st.integers(1, 3))


@st.composite
def drawn(draw: st.DrawFn) -> dict[str, FloatRow]:
    """A convolution, a depthwise one and a pool with windows and borders of any size."""
    shape = (draw(st.integers(1, 2)), draw(st.integers(1, 9)), draw(st.integers(1, 9)), draw(st.integers(1, 6)))
    kernel, strides, dilation = draw(windows), draw(steps), draw(steps)
    reach = [(extent - 1) * step for extent, step in zip(kernel, dilation, strict=True)]
    borders = [draw(st.integers(max(0, reach[a] + 1 - shape[1 + a]), reach[a] + 1)) for a in (0, 1)]
    padding = (borders[0], borders[1], draw(st.integers(0, 3)), draw(st.integers(0, 3)))
    bounds = draw(st.sampled_from([(), (0.0,), (-0.5, 1.0)]))
    channels, adds = draw(st.integers(1, 9)), draw(st.booleans())
    more: dict[str, Any] = {"bounds": bounds, "adds": adds}
    depthwise = conv(shape, shape[3] * draw(st.integers(1, 2)), kernel, strides, padding, dilation, groups=shape[3])
    return {
        "conv": conv(shape, channels, kernel, strides, padding, dilation, **more),
        "depthwise": depthwise,
        "pool": pool(draw(st.sampled_from(["max", "mean"])), shape, kernel, strides, padding, dilation),
    }


def _narrow() -> dict[str, FloatRow]:
    """LLVM's vectoriser fails on this one, in TVM's wheel of today."""
    return {"depthwise": conv((1, 6, 3, 1), 2, (1, 2), (3, 1), (1, 0, 3, 3), groups=1)}


@settings(max_examples=6, deadline=None)
@given(drawn())
@example(_narrow())
def test_windows_of_any_size(rows: dict[str, FloatRow]) -> None:
    module, values = together(rows), inputs_of(rows, 1)
    host = HostModel(compiled_module(module))
    for name, got, wanted in zip(rows, host(*values), Executor(module).run(values), strict=True):
        assert_same_bits(got, wanted, f"{name} {rows[name].attrs} of {rows[name].shapes}")
