"""What a layer waits for slow memory is told without a run, and the choice of kernels knows it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernels.test_depthwise_lines import Usual, layer
from support.device.boards import board_with_tools
from support.models.kernel_zoo import samples_of
from support.models.networks import network_named
from support.models.relax_modules import compiled_module, module_of
from uaccel.board import Memory
from uaccel.build.linker_script import constant_rooms, workspace_memories
from uaccel.codegen.options import EmitOptions
from uaccel.codegen.weights import where_constants_lie
from uaccel.kernels.choice import Option, Selection, Work, kernel_options, selection_for, target_of
from uaccel.kernels.cpu_costs import Costs
from uaccel.kernels.registry import Target
from uaccel.kernels.waits import Part, copied, passes_of, waits_for_code, waits_for_constants
from uaccel.lower.slow_layers import cycles_of
from uaccel.memory import Pool
from uaccel.model import TensorInfo
from uaccel.pipeline import compile_model
from uaccel.report.compile_json import explain
from uaccel.runner.compiled import run_compiled
from uaccel.runner.execute import Looks

FLASH = Memory("flash", "flash", 0, 1 << 20, wait_states=5, line=16, code_cache=1024, data_cache=128)
SIZES = {"p": 9.0, "l": 3.0, "w": 3.0, "c": 8.0, "t": 64.0, "f": 64.0, "g": 2.0, "e": 5.0}
PASSES = {
    "one pixel at a time": ("uaccel_a", {"p c t": 1.0, "p": 99.0}, 9),
    "two pixels": ("uaccel_a", {"p2 c4 f": 1.0, "e f": 9.0}, 5),
    "two lines": ("uaccel_a", {"l2 w c t": 1.0}, 6),
    "four pixels of a line": ("uaccel_a", {"l w4 c t": 1.0}, 3),
    "channels first": ("uaccel_depthwise_lines_dsp_s8", {"p c t": 1.0}, 3),
    "regions": ("uaccel_winograd_dsp_s8", {"p c t": 1.0}, 2),
}


@pytest.mark.parametrize(("function", "terms", "passes"), PASSES.values(), ids=PASSES)
def test_constants_are_read_as_often_as_costs_grow_with_pixels(
    function: str, terms: dict[str, float], passes: int
) -> None:
    part = Part(function, terms, SIZES, 320)
    assert passes_of(part) == passes
    assert waits_for_constants(FLASH, [part], 1) == passes * 320 / 16 * 5
    assert waits_for_constants(FLASH, [part._replace(constants=128)], 1) == 128 / 16 * 5, "its cache holds them"


@pytest.mark.parametrize(("reads", "lines"), [(1 / 512, 2), (1 / 16, 64), (0.5, 64), (3, 192)])
def test_of_a_table_no_more_lines_are_read_than_entries(reads: float, lines: int) -> None:
    assert waits_for_constants(FLASH, [Part("uaccel_lookup", {}, SIZES, 1024)], reads) == lines * 5


def test_code_waits_where_a_loop_outgrows_its_cache() -> None:
    def waits(memory: Memory, symbol: int, products: float) -> float:
        return waits_for_code(memory, {"inner": symbol, "outer": 100}, [Part("f", {}, {"f": products}, 0)], 80, 700)

    plain = Memory("flash", "flash", 0, 1 << 20, wait_states=5, line=16, code_cache=1024)
    assert waits(plain, 1024, 500) == waits(plain, 4000, 26) == 0
    assert waits(plain, 2048, 500) == 10 * 64 * 5, "ten rounds of 64 lines too many"
    assert waits(plain, 4000, 36) == 10 * (400 + 24 * 36 - 1024) / 16 * 5, "short windows go through less of it"
    ahead = Memory("flash", "flash", 0, 1 << 20, wait_states=5, line=16, code_cache=1024, prefetch=True)
    assert 0 < waits(ahead, 2048, 500) < waits(plain, 2048, 500) / 4
    bare = Memory("flash", "flash", 0, 1 << 20, wait_states=5, line=16)
    assert waits(bare, 100, 1) == pytest.approx(700 * 3.8 / 16 * 5), "all that is executed"


@pytest.mark.parametrize(("wait_states", "reads", "worth"), [(5, 6.0, False), (5, 6.5, True), (63, 1.9, False)])
def test_what_is_read_often_is_copied(wait_states: int, reads: float, worth: bool) -> None:
    flash = Memory("flash", "flash", 0, 1 << 20, wait_states=wait_states, line=16)
    assert copied([flash], reads) == worth


def test_no_memory_is_waited_for_without_wait_states() -> None:
    option, work = Option("one", ("uaccel_fully_connected_blocked_s8",), flash=5000), Work(64, 1)
    fast = Memory("flash", "flash", 0, 1 << 20)
    targets = [Target.of("cortex-m4", ["dsp"], memories) for memories in ((), [fast], [FLASH])]
    none, same, slow = (Costs.on(target).estimated for target in targets)
    cost = none.of(option, work)
    assert cost is not None
    assert same.of(option, work) == slow.of(option, work, {"sram": 1.0}) == cost
    assert slow.of(option, work) == cost + 5000 / 16 * 5


LONG: Any = ((1, 1, 14, 96), (1, 5), (1, 1), (0, 0, 0, 0))
"""An image, windows, strides and padding: ten pixels, few enough that weights are not copied into RAM."""


def test_a_kernel_that_reads_weights_for_each_pixel_loses_to_one_that_reads_them_once(tmp_path: Path) -> None:
    """Without waits it is the cheaper one; the run finds both as dear as they were told."""
    board, info = board_with_tools("netduino_plus_2"), TensorInfo(LONG[0], "int8")
    module = module_of([np.zeros(info.shape, np.int8)], lambda image: layer(Usual(7), image, LONG, 0))
    slow = target_of(board)
    taken: dict[str, int] = {}
    for selection in (Selection.on(slow), Selection.on(replace(slow, memories=()))):
        compiled = compiled_module(module, selection=selection)
        (one,) = compiled.program.layers
        sample, looks = samples_of(5, [info], 1), Looks(profile=True)
        run = run_compiled(compiled, board, sample, tmp_path / str(len(taken)), lambda _: None, looks=looks)
        name, cycles = one.kernel.calls[0].function, run.layers[0].cycles_estimated
        assert cycles is not None
        assert cycles_of(one, Selection.on(slow)) == pytest.approx(cycles, rel=0.15)
        taken[name] = cycles
    once, each = "uaccel_depthwise_lines_dsp_s8", "uaccel_depthwise_conv2d_dsp_s8"
    assert list(taken) == [once, each]
    assert taken[once] < taken[each]


@pytest.mark.parametrize(("pools", "memory"), [((), "sram"), ((Pool("flash"),), "flash")])
def test_layers_wait_for_constants_where_these_lie(pools: tuple[Pool, ...], memory: str) -> None:
    """Of a layer by rows the functions have them."""
    board = board_with_tools("netduino_plus_2")
    planned: Any = {"options": EmitOptions(constant_pools=pools), "memories": workspace_memories(board)}
    rooms, selection = constant_rooms(board), selection_for(board)
    compiled = compile_model(network_named("ic").path, board=board.name, selection=selection, rooms=rooms, **planned)
    lie = where_constants_lie(compiled.program, compiled.generated.arrays, board.memories)
    layers = {one.name: one for layer in compiled.program.layers for one in layer.operators}
    assert "conv_2d_1" not in [layer.name for layer in compiled.program.layers]
    told = {row["name"]: row["cpu_cycles"] for row in explain(compiled)["layers"]}
    for name in ("conv_2d_1", "conv_2d_9"):
        assert lie[name] == {memory: 1.0}
        (option,) = kernel_options([layers[name].kernel])
        passes = layers[name].outputs[0].info.elements / layers[name].outputs[0].info.shape[-1] / 2
        waits = told[name] - cycles_of(layers[name], selection, {name: {"sram": 1.0}})
        assert waits == (pytest.approx(passes * option.flash / 16 * 5, abs=2) if memory == "flash" else 0)
