"""Kernels with less scratch memory: where the arena is smaller with them, and at a price."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from uaccel.kernels import Target
from uaccel.lower.kernel_swaps import place_with_less_scratch
from uaccel.lower.program import Layer, Program, Value
from uaccel.model import Origin, TensorInfo, TensorSpec
from uaccel.ops.kernel import Kernel
from uaccel.util.favour import Favour
from uaccel.util.text import CPU

BUSY = 100_000
"""Multiplications of a layer; instructions, too, where nothing was measured."""


def chain(kernels: list[Kernel]) -> Program:
    """Each layer makes 100 bytes of 100."""
    specs = [TensorSpec(f"v{i}", TensorInfo((100,), "int8")) for i in range(len(kernels) + 1)]
    values = [Value(spec.name, spec) for spec in specs]
    layers = tuple(
        Layer(i, f"l{i}", "op", CPU, "why", Origin(i, "OP", ""), (x,), (y,), kernel, macs=BUSY)
        for i, (kernel, x, y) in enumerate(zip(kernels, values, values[1:], strict=False))
    )
    return Program("model", cast("Any", None), (values[0],), (values[-1],), layers)


def kernel(scratch: int, *leaner: tuple[int, float]) -> Kernel:
    options = tuple((Kernel("portable", (), scratch=less), more) for less, more in leaner)
    return Kernel("portable", (), scratch=scratch, leaner=lambda: options)


@pytest.mark.parametrize(
    ("kernels", "scratch", "arena"),
    [
        pytest.param([kernel(80, (40, 100.0)), kernel(0)], [40, 0], 240, id="less"),
        pytest.param([kernel(80, (40, 100.0), (16, 900.0)), kernel(40)], [40, 40], 240, id="as much as helps"),
        pytest.param([kernel(80, (40, 9000.0)), kernel(0)], [80, 0], 280, id="too dear"),
        pytest.param([kernel(80, (78, 2000.0)), kernel(0)], [80, 0], 280, id="not worth it"),
        pytest.param([kernel(80, (40, 100.0)), kernel(80)], [80, 80], 280, id="another layer is as large"),
        pytest.param([kernel(80, (40, 100.0)), kernel(80, (48, 100.0))], [40, 48], 248, id="both"),
        pytest.param([kernel(80, (40, 4000.0)), kernel(80, (48, 4000.0))], [80, 80], 280, id="both are too dear"),
    ],
)
def test_leaner_kernels(kernels: list[Kernel], scratch: list[int], arena: int) -> None:
    program, placement = place_with_less_scratch(chain(kernels), Target(), workspace_io=True)
    assert [layer.scratch for layer in program.layers] == scratch
    assert placement.arena == arena
    for layer, given in zip(program.layers, kernels, strict=True):
        leaner = layer.scratch < given.scratch
        assert layer.reason == ("why; less scratch for a smaller arena" if leaner else "why")


@pytest.mark.parametrize(
    ("favour", "scratch"), [(Favour.speed, 80), (Favour.balanced, 40), (Favour.size, 40), (Favour.ram, 16)]
)
def test_what_is_favoured_says_how_much_it_may_take(favour: Favour, scratch: int) -> None:
    program = replace(chain([kernel(80, (40, 3000.0), (16, 40000.0)), kernel(0)]), favour=favour)
    assert place_with_less_scratch(program, Target(), workspace_io=True)[0].layers[0].scratch == scratch


def test_nothing_changes_where_the_peak_is_elsewhere() -> None:
    program = chain([kernel(8, (4, 0.0)), kernel(80)])
    assert place_with_less_scratch(program, Target(), workspace_io=True)[0] is program


def test_kernels_are_not_made_before_they_are_wanted() -> None:
    def unwanted() -> Any:
        raise AssertionError

    program = chain([replace(kernel(8), leaner=unwanted), kernel(80)])
    assert place_with_less_scratch(program, Target(), workspace_io=True)[1].arena == 280
