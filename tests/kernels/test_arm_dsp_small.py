"""Kernels that take little flash: exact on a board, offered where size is favoured, picked while not much slower."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.device.boards import board_with_tools
from support.models.kernel_zoo import samples_of, zoo_of
from support.models.overlapped import compiled_overlapped
from support.models.relax_modules import compiled_module, module_of
from uaccel.kernels import Estimated, Option, Records, RecordsSelector, Target, Work, candidates
from uaccel.kernels.arm_dsp_small import conv2d
from uaccel.kernels.choice import Selection, target_of
from uaccel.model import TensorInfo
from uaccel.ops.conv import Conv2d, Conv2dAttrs, DepthwiseConv2d
from uaccel.ops.operator import Operand, Site, get
from uaccel.runner.compiled import run_compiled
from uaccel.tvm_api import relax
from uaccel.tvm_api.executor import Executor
from uaccel.util.favour import Favour

M4 = Target.of("cortex-m4", ["dsp"])


class Smallest:
    """Those kernels wherever there are any, the last one of them or the first."""

    def __init__(self, last: bool) -> None:
        self.last = last

    def __call__(self, site: str, options: Sequence[Option], work: Work) -> tuple[int, str]:
        small = [number for number, option in enumerate(options) if "small" in option.label]
        return (small[-self.last] if small else 0), ""


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "over"), [(0, False), (1, False), (0, True), (1, True)])
def test_they_give_the_exact_result(seed: int, over: bool, tmp_path: Path) -> None:
    """Over what they have read, too."""
    board = board_with_tools("mps2_an386")
    infos, module = zoo_of(seed)
    samples = samples_of(seed, infos)
    selection = Selection(target_of(board), Smallest(seed > 0), Favour.size)
    compiled = compiled_overlapped(module, selection) if over else compiled_module(module, selection=selection)
    run = run_compiled(compiled, board, samples, tmp_path / "p", lambda step: None).run
    called = {call.function for layer in compiled.program.layers for call in layer.kernel.calls}
    assert any("small" in function for function in called)
    for sample, results in zip(samples, run.outputs, strict=True):
        for layer, result, value in zip(compiled.program.layers, results, Executor(module).run(sample), strict=False):
            assert np.array_equal(result, value), f"seed {seed}, {layer.name}: {layer.reason}"


def constants_of(weights: Any, axis: int, shifts: Sequence[int] = (-8,)) -> tuple[Operand, ...]:
    count = weights.shape[axis]
    bias, multiplier = np.arange(count, dtype=np.int32) * 100, np.full(count, (1 << 30) + 12345, np.int32)
    values = (weights, bias, multiplier, np.resize(np.array(shifts, np.int32), count))
    return tuple(Operand(TensorInfo(value.shape, str(value.dtype)), value) for value in values)


@pytest.mark.slow
def test_known_channels_and_small_shifts_are_exact(tmp_path: Path) -> None:
    """Channels without weights hold one number; with a shift of zero nothing is rounded after the product."""
    board, x = board_with_tools("mps2_an386"), np.zeros((1, 4, 5, 8), np.int8)
    generator = np.random.default_rng(1)
    weights = generator.integers(-2, 3, (12, 1, 1, 8)).astype(np.int8)
    weights[[0, 5, 11]] = 0
    planes = generator.integers(-3, 4, (3, 3, 8)).astype(np.int8)
    planes[..., 3] = 0

    def build(image: Any) -> Any:
        given: list[tuple[Any, Any, int, tuple[int, ...], int]] = [
            (Conv2d, weights, 0, (-5,), -128),
            (Conv2d, weights, 0, (0, -1), -7),
            (DepthwiseConv2d, planes, 2, (-4, -5), -128),
        ]
        calls = []
        for operator, own, axis, shifts, low in given:
            pad = own.shape[0] // 3 if axis else 0
            attrs = Conv2dAttrs((1, 1), (pad,) * 4, (1, 1), 8 if axis else 1, 4, -7, low, 127)
            parts = [relax.const(part.value, str(part.value.dtype)) for part in constants_of(own, axis, shifts)]
            calls.append(get(operator)(image, *parts, attrs=attrs))
        return relax.Tuple(calls)

    module = module_of([x], build)
    compiled = compiled_module(module, selection=Selection(target_of(board), Smallest(True), Favour.size))
    samples = samples_of(2, [TensorInfo(x.shape, "int8")])
    run = run_compiled(compiled, board, samples, tmp_path / "p", lambda step: None).run
    assert all("small" in layer.kernel.calls[0].function for layer in compiled.program.layers)
    for sample, results in zip(samples, run.outputs, strict=True):
        for result, value in zip(results, Executor(module).run(sample), strict=True):
            assert np.array_equal(result, value)


def site_of(weights: Any, dilation: tuple[int, int] = (1, 1)) -> Site[Conv2dAttrs]:
    attrs = Conv2dAttrs((1, 1), (0, 0, 0, 0), dilation, 1, 0, 0, -128, 127)
    image = Operand(TensorInfo((1, 8, 8, weights.shape[3]), "int8"))
    return Site(attrs, (image, *constants_of(weights, 0)), (TensorInfo((1, 8, 8, weights.shape[0]), "int8"),))


def test_they_are_offered_only_where_size_is_favoured() -> None:
    site = site_of(np.ones((16, 1, 1, 16), np.int8))
    for favour in Favour:
        offered = [kernel.calls[0].function for kernel in candidates(get(Conv2d), site, M4, favour)]
        assert ("uaccel_small_dsp_s8" in offered) == (favour is Favour.size)
    assert conv2d(site_of(np.ones((16, 1, 2, 16), np.int8), (1, 2))) is None  # windows that are no runs


def test_the_smallest_of_those_that_take_at_most_twice_as_long() -> None:
    costs = {name: {"p c t": cost} for name, cost in (("a", 1), ("b", 2), ("c", 2.1))}
    smallest = Estimated(costs, favour=Favour.size)
    fast, small, tiny = Option("a", ("a",), 100), Option("b", ("b",), 50), Option("c", ("c",), 10)
    unknown = Option("x", ("x",), 60)
    assert smallest("", [fast, small, tiny], Work(1000, 10)) == (1, "50 bytes of constants")
    assert smallest("", [unknown, fast, small], Work(1000, 10)) == (2, "50 bytes of constants")
    assert smallest("", [unknown, fast], Work(1000, 10)) == (0, "the first that fits")
    assert smallest("", [unknown], Work(1000, 10)) == (0, "the first that fits")
    measured = RecordsSelector(Records("", {"site": {"a": 100, "b": 201, "c": 199}}), favour=Favour.size)
    assert measured("site", [fast, small, tiny], Work(1000, 10)) == (2, "10 bytes of constants")
