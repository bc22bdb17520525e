"""Chains of layers by rows give the same bytes as whole layers, whatever their windows, strides, paddings and bands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from lower.rows.rows import by_groups, growing, random_chain, random_groups, tall
from models import layers
from models.network import Network
from models.seeded import Seeded
from support.device.hostlib import Array, HostModel
from support.models.networks import OWN, network_named
from support.oracle.exactness import assert_same
from support.oracle.oracle import Tflm, random_inputs
from support.oracle.sanitized import compile_pooled, run_sanitized
from uaccel.codegen.generate import generate
from uaccel.errors import InternalError
from uaccel.lower.program import Action, Band, Keep, Program
from uaccel.lower.rows.geometry import RowRange, RowReach
from uaccel.lower.rows.layer import Parts, RowGroup, apply, check_layout, sketch
from uaccel.lower.rows.schedule import Chains
from uaccel.ops.windows import SlidingWindow
from uaccel.pipeline import Compiled, compile_model
from uaccel.runner.verify import WrongLayer, first_wrong_layer


def _assert_exact(data: bytes, compiled: Compiled, seed: int = 0) -> None:
    inputs = random_inputs(data, seed, 2)
    for values, outputs in zip(inputs, run_sanitized(compiled, inputs), strict=True):
        for i, (got, wanted) in enumerate(zip(outputs, Tflm(data).run(values), strict=True)):
            assert_same(got, wanted.reshape(got.shape), f"output {i} by rows")


@pytest.mark.sample(3)
@pytest.mark.parametrize("seed", range(40))
def test_random_chains_are_exact(seed: int) -> None:
    data = random_chain(seed)
    compiled = compile_pooled(data, whole_layers=True)
    groups = random_groups(compiled, seed)
    assert groups
    _assert_exact(data, by_groups(compiled, groups), seed)


@pytest.mark.parametrize("band", [1, 4])
def test_rows_need_less(band: int) -> None:
    data = tall()
    compiled = compile_pooled(data, whole_layers=True)
    rows = by_groups(compiled, [RowGroup(0, 3, band)])
    assert rows.placement.arena < compiled.placement.arena / 2
    assert [len(layer.operators) for layer in rows.program.layers] == [4]
    _assert_exact(data, rows)


@pytest.mark.parametrize("band", [1, 2, 8])
def test_rows_that_become_more(band: int) -> None:
    """Resizing and transposed convolutions, whose bands are of a few kinds."""
    data = growing()
    compiled = compile_pooled(data, whole_layers=True)
    last = len(compiled.program.layers) - 1
    rows = by_groups(compiled, [RowGroup(0, last, band)])
    (layer,) = rows.program.layers
    assert layer.streaming is not None
    assert {"resize_nearest", "resize_bilinear", "transpose_conv2d"} <= {
        layer.op.removeprefix("uaccel.") for layer in compiled.program.layers
    }
    assert rows.placement.arena < compiled.placement.arena / 3
    assert len(layer.streaming.functions) < 10 * (last + 1)
    _assert_exact(data, rows)


@pytest.mark.parametrize(("rows", "goes"), [(20, True), (40, True), (5, True), (23, False)])
def test_resizing_in_too_many_ways_ends_a_chain(rows: int, goes: bool) -> None:
    """10 rows to 23: each of them lies elsewhere between two rows, and would be a function of its own."""
    seeded, net = Seeded(7), Network("uaccel resized")
    last = layers.conv2d(net, net.input("image", seeded.inputs((10, 10, 3), 3)), *seeded.conv(3, (3, 3), 3))
    compiled = compile_pooled(net.build(layers.resize_bilinear(net, last, (rows, 10))))
    assert (Chains(compiled.program).of(0, 1) is not None) == goes


def test_every_row_is_computed_once() -> None:
    compiled = compile_pooled((OWN / "residual.tflite").read_bytes())
    chain = Chains(compiled.program).of(0, 3)
    assert chain is not None
    layer = apply(compiled.program, [RowGroup(0, 3, 1)], Parts(compiled.selection)).layers[0]
    assert layer.streaming is not None
    rows = dict.fromkeys((operator.name for operator in layer.operators), 0)
    for kind in layer.streaming.order:
        for action in layer.streaming.steps[kind]:
            if isinstance(action, Band):
                function = layer.streaming.functions[action.function]
                rows[function.name.partition("_rows")[0]] += function.outputs[0].info.shape[1]
    assert rows == {operator.name: operator.outputs[0].info.shape[1] for operator in layer.operators}


def test_buffers_that_would_share_bytes_are_found() -> None:
    compiled = compile_pooled((OWN / "residual.tflite").read_bytes())
    chain = Chains(compiled.program).of(0, 3)
    assert chain is not None
    drawn = sketch(chain, 1, Parts(compiled.selection))
    assert drawn is not None
    check_layout(drawn)
    with pytest.raises(InternalError, match="share bytes while both hold something"):
        check_layout(replace(drawn, offsets=dict.fromkeys(drawn.offsets, 0)))


def test_layers_that_do_not_go_by_rows_are_left_whole() -> None:
    compiled = compile_pooled((OWN / "residual.tflite").read_bytes())
    chains = Chains(compiled.program)
    assert chains.of(0, 3) is not None
    assert chains.of(0, 8) is not None  # a padding within
    assert chains.of(9, 11) is None  # a mean
    assert chains.of(0, 1) is not None
    assert compiled.program.layers[1].name == "conv_2d_1"
    with pytest.raises(InternalError, match="layers 9 to 11 cannot run together"):
        apply(compiled.program, [RowGroup(9, 11)], Parts(compiled.selection))


def _broken(compiled: Compiled, kind: str) -> Program:
    """One of the rows that are kept is another, or a band goes where the one before went."""
    layer = compiled.program.layers[0]
    assert layer.streaming is not None
    steps = list(layer.streaming.steps)
    steps[2] = tuple(_wrong(action, kind) for action in steps[2])
    streaming = replace(layer.streaming, steps=tuple(steps))
    return replace(compiled.program, layers=(replace(layer, streaming=streaming), *compiled.program.layers[1:]))


def _wrong(action: Action, kind: str) -> Action:
    if kind == "kept" and isinstance(action, Keep):
        return replace(action, source=action.source - 1)
    if kind == "schedule" and isinstance(action, Band):
        return replace(action, output=replace(action.output, advance=0))
    return action


@pytest.mark.slow
@pytest.mark.parametrize("kind", [pytest.param("kept", marks=pytest.mark.slow), "schedule"])
def test_planted_bug_is_found_in_the_group(kind: str) -> None:
    path = network_named("residual").path
    rows = by_groups(compile_model(path, board="host"), [RowGroup(0, 3, 1)])
    inputs = random_inputs(path.read_bytes(), 1, 1)[0]
    assert _first_wrong(rows, inputs) is None
    again = generate(_broken(rows, kind), rows.placement, rows.options, rows.board)
    found = _first_wrong(replace(rows, generated=again), inputs)
    assert str(found).startswith('layer 0 "conv_2d_0_to_add_3" (rows on cpu), element ')


def _first_wrong(compiled: Compiled, inputs: Sequence[Array]) -> WrongLayer | None:
    host = HostModel(compiled)
    host(*inputs)
    return first_wrong_layer(compiled, [inputs], [host.layers])


@pytest.mark.parametrize(
    ("rows", "span"),
    [
        ((0, 1), RowRange(0, 0, 1, 0)),
        ((1, 4), RowRange(0, 2, 1, 0)),
        ((4, 6), RowRange(2, 3, 0, 1)),
        ((6, 8), RowRange(3, 3, 0, 2)),
        ((0, 8), RowRange(0, 3, 2, 3)),
    ],
)
def test_rows_of_padding_alone(rows: tuple[int, int], span: RowRange) -> None:
    """Two rows above three, and three below."""
    assert RowReach(3, SlidingWindow(padding=(2, 0))).rows(*rows) == span
