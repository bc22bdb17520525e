"""Every kernel that a CPU has, on its board, over random layers: the same bytes as the layers' exact meaning."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from support.device.boards import board_with_tools
from support.models.kernel_zoo import Array, samples_of, zoo_of
from support.models.overlapped import compiled_overlapped, in_place, row_less, stated
from support.models.relax_modules import compiled_module
from uaccel.board import Board, load_board
from uaccel.kernels import Target, Turn
from uaccel.kernels.choice import Selection, target_of
from uaccel.pipeline import Compiled
from uaccel.runner.compiled import run_compiled
from uaccel.tvm_api.executor import Executor
from uaccel.util.favour import Favour

FAMILIES = {
    "host": {"blocked"},
    "mps2_an385": {"blocked"},
    "mps2_an386": {"arm_dsp", "blocked"},
    "mps2_an500": {"arm_dsp", "blocked"},
    "mps2_an505": {"arm_dsp", "blocked"},
    "mps3_an547": {"arm_helium", "arm_dsp", "blocked"},
    "qemu_riscv32": {"blocked"},
    "qemu_riscv32v": {"rvv", "blocked"},
}
SEEDS = range(2 if os.environ.get("UACCEL_THOROUGH") is None else 40)


def board_of(name: str) -> Board:
    return load_board(name) if name == "host" else board_with_tools(name)


def target_of_kernels(board: Board) -> Target:
    """On the computer itself, too, those that are made for boards."""
    return Target.of("native", ["embedded"]) if board.cpu.arch == "native" else target_of(board)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("seed", [pytest.param(seed, marks=pytest.mark.long if seed else ()) for seed in SEEDS])
def test_every_kernel_gives_the_exact_result(name: str, seed: int, tmp_path: Path) -> None:
    board = board_of(name)
    infos, module = zoo_of(seed)
    samples = samples_of(seed, infos)
    expected = [*map(Executor(module).run, samples)]
    for turn in range(
        most_options(compiled_module(module, selection=Selection(target_of_kernels(board), Turn(0), Favour.speed)))
    ):
        compiled = compiled_module(module, selection=Selection(target_of_kernels(board), Turn(turn), Favour.speed))
        run = run_compiled(compiled, board, samples, tmp_path / str(turn), lambda step: None).run
        for sample, (results, wanted) in enumerate(zip(run.outputs, expected, strict=True)):
            for layer, result, value in zip(compiled.program.layers, results, wanted, strict=False):
                assert np.array_equal(result, value), f"seed {seed}, sample {sample}, {layer.name}: {layer.reason}"


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("seed", [pytest.param(seed, marks=pytest.mark.long if seed else ()) for seed in SEEDS])
def test_every_kernel_follows_its_reading_as_closely_as_it_says(name: str, seed: int, tmp_path: Path) -> None:
    """The output begins exactly as far before the input as the kernel states, and destroys nothing that is read."""
    board = board_of(name)
    infos, module = zoo_of(seed)
    samples = samples_of(seed, infos)
    expected = [*map(Executor(module).run, samples)]
    target = target_of_kernels(board)
    for turn in range(most_options(compiled_module(module, selection=Selection(target, Turn(0))))):
        for lean in (False, True):
            compiled = compiled_overlapped(module, Selection(target, Turn(turn)), lean=lean)
            assert not differing(compiled, board, samples, expected, tmp_path / f"{turn}{lean}"), f"seed {seed}"


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("seed", [pytest.param(seed, marks=pytest.mark.long if seed else ()) for seed in SEEDS])
def test_every_kernel_writes_over_the_input_that_it_says(name: str, seed: int, tmp_path: Path) -> None:
    """The output begins where the input does, and may be smaller."""
    board = board_of(name)
    infos, module = zoo_of(seed)
    samples = samples_of(seed, infos)
    expected = [*map(Executor(module).run, samples)]
    compiled = compiled_overlapped(module, Selection(target_of_kernels(board), Turn(0)), in_place)
    assert sum(in_place(layer) is not None for layer in compiled.program.layers) >= 4
    assert not differing(compiled, board, samples, expected, tmp_path / "p"), f"seed {seed}"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["host", "mps2_an386", "mps3_an547", "qemu_riscv32v"])
def test_a_distance_that_is_a_row_too_small_is_caught(name: str, tmp_path: Path) -> None:
    """In many layers with a distance above nought: a result need not depend on what is lost, and some distances are
    stated with room to spare."""
    board = board_of(name)
    infos, module = zoo_of(0)
    samples = samples_of(0, infos)
    expected = [*map(Executor(module).run, samples)]
    compiled = compiled_overlapped(module, Selection(target_of_kernels(board), Turn(0)), row_less)
    layers = [layer.name for layer in compiled.program.layers if row_less(layer) != stated(layer)]
    wrong = differing(compiled, board, samples, expected, tmp_path / "p")
    assert wrong <= set(layers)
    assert 3 * len(wrong) > len(layers) > 8, sorted(set(layers) - wrong)


def differing(
    compiled: Compiled, board: Board, samples: list[list[Array]], expected: list[list[Array]], folder: Path
) -> set[str]:
    """The layers whose results are not the expected ones."""
    outputs = run_compiled(compiled, board, samples, folder, lambda step: None).run.outputs
    return {
        layer.name
        for results, wanted in zip(outputs, expected, strict=True)
        for layer, result, value in zip(compiled.program.layers, results, wanted, strict=False)
        if not np.array_equal(result, value)
    }


def most_options(compiled: Compiled) -> int:
    return max(len(layer.choice.options) for layer in compiled.program.layers if layer.choice)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_random_layers_reach_every_family(name: str) -> None:
    board = board_of(name)
    found = set()
    for seed in SEEDS:
        _, module = zoo_of(seed)
        for turn in range(3):
            compiled = compiled_module(module, selection=Selection(target_of_kernels(board), Turn(turn), Favour.speed))
            found |= {layer.kernel.family for layer in compiled.program.layers}
    assert found >= FAMILIES[name] | {"portable"}
