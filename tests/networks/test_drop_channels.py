"""Spare channels are cut out, and what stays computes what it did, to the bit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from networks.channel_networks import Layers
from support.device.hostlib import Array
from support.models.networks import network_named
from support.oracle.exactness import assert_channels_of
from uaccel.codegen.options import EmitOptions
from uaccel.ops.operator import get, info_of
from uaccel.ops.quantize import Dequantize, DequantizeAttrs, Quantize, QuantizeAttrs
from uaccel.partition.passes.simplify import DropChannels, known_channels, steps_of
from uaccel.pipeline import compile_model
from uaccel.tvm_api import ModuleBuilder, is_call, main_bindings, relax, same_type
from uaccel.tvm_api.executor import Executor

Build = Callable[[Layers, Any], Any]
SHAPE = (1, 4, 5, 3)


def module_of(build: Build, seed: int = 0) -> Any:
    builder = ModuleBuilder()
    x = relax.Var("x", relax.TensorType(SHAPE, "int8"))
    with builder.function([x]) as block:
        block.finish(build(Layers(block, seed), x))
    return builder.module


def channels_of(module: Any) -> dict[str, int]:
    return {var.name: info_of(var).shape[-1] for var, _ in main_bindings(module)[1] if not hasattr(var.ty, "fields")}


def some_inputs(runs: int = 3) -> list[Array]:
    generator = np.random.default_rng(1)
    random = [generator.integers(-128, 128, SHAPE).astype(np.int8) for _ in range(runs)]
    return [*random, np.full(SHAPE, 127, np.int8), np.full(SHAPE, -128, np.int8)]


def layers_of(module: Any) -> list[str]:
    return [var.name for var, expr in main_bindings(module)[1] if is_call(expr)]


def tensors(module: Any, executor: Executor, x: Array) -> dict[str, Array]:
    """By the names of the layers, those of a tuple with their numbers."""
    parts = [(var.name, len(getattr(var.ty, "fields", [var]))) for var, _ in main_bindings(module)[1]]
    names = [f"{name} {number}" for name, count in parts for number in range(count)]
    return dict(zip(names, executor.intermediates([x]), strict=True))


def assert_unchanged(before: Any, after: Any) -> None:
    """Every layer has its name, every tensor is the one it was with channels left out, and outputs lack none."""
    assert layers_of(before) == layers_of(after)
    assert same_type(before["main"], after["main"])
    one, other = (Executor(module, intermediates=True) for module in (before, after))
    for x in some_inputs():
        got = tensors(after, other, x)
        for name, wanted in tensors(before, one, x).items():
            assert_channels_of(got[name], wanted, name)


@dataclass(frozen=True)
class Case:
    """``left``: the channels of some layers afterwards. Eight channels where nothing else is said."""

    build: Build
    left: Mapping[str, int]
    multiple: int = 1


def zero_point_under_padding(layers: Layers, x: Any) -> Any:
    made = layers.depthwise("b", layers.conv("a", x, 8, zero=[0, 3, 5]))
    return layers.conv("c", made, 8)


def other_value_under_padding(layers: Layers, x: Any) -> Any:
    made = layers.depthwise("b", layers.conv("a", x, 8, zero=[0, 3, 5], level=9))
    return layers.conv("c", made, 8)


def other_value_without_padding(layers: Layers, x: Any) -> Any:
    made = layers.depthwise("b", layers.conv("a", x, 8, zero=[0, 3, 5], level=9), padding=0)
    return layers.conv("c", made, 8)


def known_to_padded_convolution(layers: Layers, x: Any) -> Any:
    made = layers.conv("a", x, 8, zero=[1, 2], level=4)
    return layers.conv("b", made, 8, kernel=3, padding=1)


def known_to_wide_convolution(layers: Layers, x: Any) -> Any:
    made = layers.conv("a", x, 8, zero=[1, 2], level=4)
    return layers.conv("b", made, 8, kernel=3)


def known_by_depthwise(layers: Layers, x: Any) -> Any:
    made = layers.depthwise("b", layers.conv("a", x, 8), zero=[6, 7], level=20)
    return layers.conv("c", made, 8)


def sum_of_two(layers: Layers, x: Any) -> Any:
    one = layers.conv("a", x, 8, zero=[0, 1, 2], level=3)
    other = layers.conv("b", x, 8, zero=[1, 2, 3], level=-8)
    return layers.conv("d", layers.add("c", one, other), 8)


def sum_rounded_once(layers: Layers, x: Any) -> Any:
    one = layers.conv("a", x, 8, zero=[0, 1, 2], level=3)
    other = layers.conv("b", x, 8, zero=[1, 2, 3], level=-8)
    return layers.conv("d", layers.total("c", one, other), 8)


def in_floats(layers: Layers, x: Any) -> Any:
    """Floats are no numbers that a bias could take in."""
    stored = layers.conv("a", x, 8, zero=[2])
    real = layers.block.emit(get(Dequantize)(stored, attrs=DequantizeAttrs(0.5, -5)), "b")
    back = layers.block.emit(get(Quantize)(real, attrs=QuantizeAttrs(0.5, -5, "int8")), "c")
    return layers.conv("d", back, 8)


def sum_with_another_reader(layers: Layers, x: Any) -> Any:
    """Channel 2 is known in the sum alone: a padded convolution needs that of one operand."""
    one = layers.conv("a", x, 8, zero=[1, 2], level=3)
    other = layers.conv("b", x, 8, zero=[1, 2])
    total = layers.conv("d", layers.add("c", one, other), 8)
    aside = layers.conv("e", one, 8, kernel=3, padding=1, unread=[1])
    return relax.Tuple([total, aside])


def sum_with_an_input(layers: Layers, x: Any) -> Any:
    return layers.conv("b", layers.add("a", layers.conv("z", x, 3, zero=[0, 1]), x), 8)


def residual(layers: Layers, x: Any) -> Any:
    """Channels that only the block around them reads, each to make itself, are dead together."""
    first = layers.conv("a", x, 8)
    inner = layers.conv("b", first, 8, own=[2, 4])
    return layers.conv("d", layers.add("c", first, inner), 8, unread=[2, 4])


def dead_chain(layers: Layers, x: Any) -> Any:
    """What only dead channels read is dead."""
    first = layers.conv("a", x, 8, kernel=3, padding=1)
    second = layers.conv("c", layers.depthwise("b", first), 8, unread=[5])
    return layers.conv("e", layers.depthwise("d", second), 8, unread=[0, 1, 7])


def all_zero(layers: Layers, x: Any) -> Any:
    made = layers.depthwise("b", layers.conv("a", x, 8, zero=range(8), level=7), padding=0)
    return layers.conv("c", made, 8)


def elementwise(layers: Layers, x: Any) -> Any:
    made = layers.conv("a", x, 8, zero=[2, 3], level=11)
    looked_up = layers.lookup("c", layers.requantize("b", made))
    return layers.conv("d", looked_up, 8)


def pools(layers: Layers, x: Any) -> Any:
    made = layers.conv("a", x, 8, zero=[2, 3], level=-101)
    pooled = layers.pool("c", layers.pool("b", made, 3, mean=True, padding=1), 2, mean=False, padding=1)
    return layers.conv("d", pooled, 8)


def classifier(layers: Layers, x: Any) -> Any:
    made = layers.conv("a", x, 8, zero=[0, 2], level=30)
    mean = layers.pool("b", layers.pool("z", made, 4, mean=False), 1, mean=True)
    mean = layers.pool("y", layers.conv("w", mean, 8, zero=[1]), 1, mean=True)
    column = layers.conv("v", mean, 8, kernel=1)
    narrow = layers.block.emit(relax.op.strided_slice(column, axes=[2], begin=[0], end=[1]), "u")
    units = layers.dense("e", layers.flat("d", layers.conv("c", narrow, 8, zero=[4], level=2)), 8, zero=[3])
    return layers.dense("f", units, 8, unread=[5])


def an_output(layers: Layers, x: Any) -> Any:
    made = layers.conv("a", x, 8, zero=[0, 1])
    return relax.Tuple([made, layers.conv("c", layers.conv("b", made, 8, zero=[2]), 8, zero=[0])])


def an_unknown_reader(layers: Layers, x: Any) -> Any:
    made = layers.conv("a", x, 8, zero=[0, 1])
    joined = layers.block.emit(relax.op.concat([made, made], axis=3), "joined")
    return layers.conv("b", joined, 8, unread=[0, 8])


def a_split(layers: Layers, x: Any) -> Any:
    """What makes several tensors reads all of its own, and they keep all of theirs."""
    halves = layers.block.emit(relax.op.split(layers.conv("a", x, 8, zero=[0, 7]), 2, axis=3), "halves")
    one, other = (layers.block.emit(relax.TupleGetItem(halves, i), f"half_{i}") for i in (0, 1))
    return layers.conv("c", layers.conv("b", layers.add("sum", one, other), 8, zero=[0]), 8)


def several_from_one(layers: Layers, x: Any) -> Any:
    """A depthwise layer with more outputs than inputs keeps both."""
    made = layers.depthwise("b", layers.conv("a", x, 4, zero=[0]), times=2, zero=[2, 3])
    return layers.conv("c", made, 8)


def filled_up(layers: Layers, x: Any) -> Any:
    made = layers.depthwise("b", layers.conv("a", x, 16, zero=range(5)))
    return layers.conv("d", layers.conv("c", made, 6, zero=[0]), 8)


def filled_up_by_what_needs_more(layers: Layers, x: Any) -> Any:
    """Three dead channels of b go, but two of the first stay to make 8, and they read channel 1 of a."""
    made = layers.conv("a", x, 8)
    return layers.conv("c", layers.conv("b", made, 10), 8, unread=[0, 1, 2])


CASES = [
    Case(zero_point_under_padding, {"a": 5, "b": 5, "c": 8}),
    Case(other_value_under_padding, {"a": 8, "b": 8, "c": 8}),
    Case(other_value_without_padding, {"a": 5, "b": 5, "c": 8}),
    Case(known_to_padded_convolution, {"a": 8}),
    Case(known_to_wide_convolution, {"a": 6}),
    Case(known_by_depthwise, {"a": 6, "b": 6}),
    Case(sum_of_two, {"a": 6, "b": 6, "c": 6}),
    Case(sum_rounded_once, {"a": 6, "b": 6, "c": 6}),
    Case(in_floats, {"a": 8, "b": 8, "c": 8}),
    Case(sum_with_another_reader, {"a": 7, "b": 7, "c": 7, "d": 8, "e": 8}),
    Case(sum_with_an_input, {"z": 3, "a": 3}),
    Case(residual, {"a": 6, "b": 6, "c": 6}),
    Case(dead_chain, {"a": 7, "b": 7, "c": 5, "d": 5}),
    Case(all_zero, {"a": 1, "b": 1, "c": 8}),
    Case(all_zero, {"a": 4, "b": 4, "c": 8}, multiple=4),
    Case(elementwise, {"a": 6, "b": 6, "c": 6}),
    Case(pools, {"a": 6, "b": 6, "c": 6}),
    Case(classifier, {"a": 6, "z": 6, "b": 6, "w": 7, "y": 7, "v": 8, "c": 7, "d": 7, "e": 6, "f": 8}),
    Case(an_output, {"a": 8, "b": 7, "c": 8}),
    Case(an_unknown_reader, {"a": 8, "joined": 16}),
    Case(a_split, {"a": 8, "sum": 4, "b": 7}),
    Case(several_from_one, {"a": 4, "b": 8}),
    Case(filled_up, {"a": 12, "b": 12, "c": 6}, multiple=4),
    Case(filled_up_by_what_needs_more, {"a": 8, "b": 8}, multiple=4),
]


@pytest.mark.sample(1)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.build.__name__}-{case.multiple}")
def test_what_is_spare_goes(case: Case) -> None:
    before = module_of(case.build)
    after = DropChannels(multiple=case.multiple)(before)
    left = channels_of(after)
    assert {name: left[name] for name in case.left} == dict(case.left)
    assert_unchanged(before, after)


def test_a_module_without_spare_channels_is_left_alone() -> None:
    module = module_of(lambda layers, x: layers.conv("b", layers.conv("a", x, 8), 8))
    assert DropChannels()(module) is module


def test_inputs_stay_though_nobody_reads_them() -> None:
    module = module_of(lambda layers, x: layers.conv("b", layers.depthwise("a", x, zero=[1]), 8, unread=[0]))
    assert DropChannels(multiple=1)(module) is module


@pytest.mark.parametrize(("raised", "left"), [(0, 5), (1 << 30, 5), ((1 << 31) - 1000, 8)])
def test_a_bias_stays_within_its_bits(raised: int, left: int) -> None:
    """Where a bias with the shares of known channels could pass 2**31 they stay."""

    def build(layers: Layers, x: Any) -> Any:
        return layers.conv("b", layers.conv("a", x, 8, zero=[0, 1, 2], level=90), 8, raised=raised)

    assert channels_of(DropChannels(multiple=1)(module_of(build)))["a"] == left


@st.composite
def networks(draw: Callable[[st.SearchStrategy[Any]], Any]) -> Any:
    """Layers that read any that came before; some channels have no weights, some no readers."""
    kinds = (
        "conv",
        "conv",
        "wide",
        "depthwise",
        "depthwise",
        "add",
        "total",
        "lookup",
        "requantize",
        "mean",
        "largest",
    )
    steps = draw(
        st.lists(st.tuples(st.sampled_from(kinds), st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=7)
    )
    chance = draw(st.sampled_from([0.2, 0.5, 0.8]))
    seed = draw(st.integers(0, 1 << 16))

    def build(layers: Layers, x: Any) -> Any:
        values = [x, layers.conv("first", x, 6, zero=picked(layers, 6, chance))]
        for number, (kind, one, other) in enumerate(steps):
            name, source = f"{kind}_{number}", values[-1 - one % min(3, len(values) - 1)]
            alike = [value for value in values[1:] if info_of(value) == info_of(source)]
            values.append(emitted(layers, kind, name, source, alike[other % len(alike)], chance))
        last = layers.conv("last", values[-1], 3, unread=picked(layers, info_of(values[-1]).shape[-1], chance))
        return relax.Tuple([last, values[-2]]) if seed % 4 == 0 and len(values) > 3 else last

    return module_of(build, seed)


def emitted(layers: Layers, kind: str, name: str, source: Any, other: Any, chance: float) -> Any:
    channels = info_of(source).shape[-1]
    zero, level = picked(layers, channels, chance), int(layers.random.choice([0, 0, 40, -200]))
    if kind in ("conv", "wide"):
        kernel = 3 if kind == "wide" else 1
        unread, outputs = picked(layers, channels, chance), int(layers.random.choice([5, 6, 8]))
        zero = picked(layers, outputs, chance)
        padding = kernel // 2
        return layers.conv(name, source, outputs, zero=zero, unread=unread, level=level, kernel=kernel, padding=padding)
    if kind == "depthwise":
        kernel = int(layers.random.choice([1, 3]))
        return layers.depthwise(name, source, zero=zero, level=level, kernel=kernel, padding=kernel // 2)
    if kind in ("mean", "largest"):
        return layers.pool(name, source, 3, mean=kind == "mean", padding=1)
    operands = (source, other) if kind in ("add", "total") else (source,)
    return getattr(layers, kind)(name, *operands)


def picked(layers: Layers, channels: int, chance: float) -> list[int]:
    return [int(c) for c in np.flatnonzero(layers.random.random(channels) < chance)]


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(module=networks(), multiple=st.sampled_from([1, 2, 4]))
def test_any_network_computes_what_it_did(module: Any, multiple: int) -> None:
    assert_unchanged(module, DropChannels(multiple=multiple)(module))


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(module=networks())
def test_what_is_known_is_so(module: Any) -> None:
    executor = Executor(module, intermediates=True)
    found = {f"{var.name} 0": known for var, known in known_channels(steps_of(module)).items()}
    for x in some_inputs():
        for name, value in tensors(module, executor, x).items():
            if name in found:
                mask, number = found[name].mask, found[name].number
                assert (value[..., mask] == number[mask]).all(), name


LEFT_OF_VWW = [8, 8, 16, 16, 32, 32, 32, 32, 64, 64, 60, 60, 108, 108, 60, 60, 32, 32, 20, 20, 20, 20, 28, 28]
LEFT_OF_VWW += [32, 32, 24, 24, 24, 2, 2]


def test_half_of_vww_is_spare() -> None:
    network = network_named("vww")
    compiled = compile_model(network.path, board="host", options=EmitOptions(whole_layers=True))
    layers = compiled.program.layers
    assert [layer.outputs[0].info.shape[-1] for layer in layers] == LEFT_OF_VWW
    assert sum(layer.macs for layer in layers) == 3_774_684, "7,489,664 with all channels"
