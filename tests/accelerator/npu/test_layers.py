"""Random layers and regions on machines of npu's family: exact to the byte, in exactly the predicted time."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from accelerator.npu_family import ODD, SMALL, TINY, Family, check, npu
from uaccel.accelerator import OBJECTIVES, ROUNDINGS
from uaccel.accelerator.streams.chain import Chain
from uaccel.model import Quantisation, TensorInfo
from uaccel.ops.conv import Conv2dAttrs, DepthwiseConv2d
from uaccel.ops.operator import constant, get
from uaccel.ops.reduce import scaled_sum_attrs
from uaccel.testing.layers import Example, Layers, example, operator
from uaccel.tvm_api import relax

Build = Callable[..., Any]
MACHINES: dict[str, dict[str, Any]] = {"npu": {}, "small": SMALL, "tiny": TINY, "odd": ODD}
QUICK = os.environ.get("UACCEL_THOROUGH") is None
"""`make test-full` tries ten times as many."""
SCALE, OTHER_SCALE = 0.027078304439783096, 0.03494469076395035
SEEDS = st.integers(0, 2**32 - 1)
EXTENT = st.integers(1, 12)
EXAMPLES = settings(max_examples=8 if QUICK else 80, deadline=None)


@pytest.fixture(scope="module", params=MACHINES)
def family(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Family:
    return Family(tmp_path_factory.mktemp(request.param), MACHINES[request.param])


def accepts(family: Family, made: Example, name: str) -> bool:
    described = {operation.name: operation for operation in family.accelerator().operations}[name]
    return described.check(made.region) is None


def layers_of(seed: int) -> Layers:
    """Of either rounding."""
    return Layers(seed, ROUNDINGS[seed // 2 % 2])


def layer(family: Family, operator: str, shapes: list[tuple[int, ...]], seed: int, build: Build) -> None:
    layers = layers_of(seed)
    made = example(shapes, lambda block, *xs: [block.emit(build(layers, *xs), "layer")])
    assume(accepts(family, made, operator))
    check(family, made, [layers.int8(*shape) for shape in shapes], OBJECTIVES[seed % 2])


@pytest.mark.sample(1)
@EXAMPLES
@given(st.tuples(st.integers(1, 2), EXTENT, EXTENT, st.integers(1, 40)), st.integers(1, 40), SEEDS)
def test_convolution(family: Family, shape: tuple[int, ...], channels: int, seed: int) -> None:
    layer(family, "conv2d", [shape], seed, lambda layers, x: layers.conv2d(x, channels=channels))


@pytest.mark.slow
@EXAMPLES
@given(st.tuples(st.just(1), EXTENT, EXTENT, st.integers(1, 12)), st.integers(2, 4), SEEDS)
def test_convolution_of_groups(family: Family, shape: tuple[int, ...], groups: int, seed: int) -> None:
    shape = (*shape[:3], shape[3] * groups)
    layer(family, "conv2d", [shape], seed, lambda layers, x: layers.conv2d(x, groups=groups))


@pytest.mark.slow
@EXAMPLES
@given(st.tuples(st.integers(1, 2), EXTENT, EXTENT, st.integers(1, 40)), SEEDS)
def test_depthwise_convolution(family: Family, shape: tuple[int, ...], seed: int) -> None:
    layer(family, "depthwise_conv2d", [shape], seed, lambda layers, x: layers.depthwise(x))


@pytest.mark.slow
@pytest.mark.sample(1)
@EXAMPLES
@given(
    st.tuples(st.integers(2, 40), st.integers(1, 20)),
    st.tuples(st.integers(1, 9), st.integers(1, 3), st.integers(1, 2)),
    st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 1)),
    SEEDS,
)
def test_windows_slide_along_a_single_column(
    family: Family, extents: tuple[int, int], window: tuple[int, int, int], padding: tuple[int, int, int], seed: int
) -> None:
    """A k x 1 window takes as long as a 1 x k one; with padding beside the column it is exact too."""
    (rows, channels), (kernel, stride, dilation), (above, below, beside) = extents, window, padding
    assume((kernel - 1) * dilation < rows + above + below)
    layers, times = Layers(seed), []
    weights, parameters = layers.int8(kernel, channels), [layers.int8(channels).astype(np.int32) << 8]
    parameters += [np.full(channels, value, np.int32) for value in (3 << 29, -9)]
    data = layers.int8(rows, channels)
    for across in (0, 1):
        pairs = [(value, 1)[:: -1 if across else 1] for value in (stride, dilation, kernel, rows)]
        pads = (above, beside, below, 0) if not across else (beside, above, 0, below)
        attrs = Conv2dAttrs((stride, stride), pads, pairs[1], channels, 3, -5, -128, 127, layers.rounding)
        operands = [constant(array) for array in (weights.reshape(*pairs[2], channels), *parameters)]

        def build(block: Any, x: Any, attrs: Any = attrs, operands: Any = operands) -> list[Any]:
            return [block.emit(get(DepthwiseConv2d)(x, *operands, attrs=attrs), "layer")]

        made = example([(1, *pairs[3], channels)], build)
        assume(accepts(family, made, "depthwise_conv2d"))
        times.append(check(family, made, [data.reshape(1, *pairs[3], channels)]).cycles)
    assert beside or times[0] == times[1]


@pytest.mark.slow
@EXAMPLES
@given(st.integers(1, 4), st.integers(1, 600), st.integers(1, 70), SEEDS)
def test_fully_connected(family: Family, rows: int, depth: int, units: int, seed: int) -> None:
    layer(family, "fully_connected", [(rows, depth)], seed, lambda layers, x: layers.fully_connected(x, units))


@pytest.mark.sample(1)
@EXAMPLES
@given(
    st.tuples(st.integers(1, 30), st.integers(1, 60), st.integers(1, 40)),
    st.tuples(st.integers(1, 3), st.booleans(), st.booleans()),
    st.tuples(st.booleans(), st.booleans(), st.booleans()),
    SEEDS,
)
def test_product_of_matrices(
    family: Family,
    extents: tuple[int, int, int],
    batches: tuple[int, bool, bool],
    ways: tuple[bool, bool, bool],
    seed: int,
) -> None:
    """Of batches, of a batch and one matrix, either side transposed, the second one perhaps known ahead of time."""
    (rows, depth, columns), (images, *repeated), (adj_x, adj_y, known) = extents, batches, ways
    left, right = (depth, rows) if adj_x else (rows, depth), (columns, depth) if adj_y else (depth, columns)
    shapes: list[tuple[int, ...]]
    shapes = [side if alone else (images, *side) for alone, side in zip(repeated, (left, right), strict=True)]

    def build(layers: Layers, x: Any, y: Any = None) -> Any:
        return layers.batch_matmul(x, layers.int8(*shapes[1]) if y is None else y, adj_x=adj_x, adj_y=adj_y)

    layer(family, "batch_matmul", shapes[: 1 if known else 2], seed, build)


@pytest.mark.slow
@EXAMPLES
@given(st.tuples(st.integers(1, 2), EXTENT, EXTENT, st.integers(1, 40)), st.booleans(), SEEDS)
def test_pooling(family: Family, shape: tuple[int, ...], average: bool, seed: int) -> None:
    name = "average_pool2d" if average else "max_pool2d"
    layer(family, name, [shape], seed, lambda layers, x: layers.pool(x, average))


@pytest.mark.slow
@EXAMPLES
@given(st.tuples(EXTENT, EXTENT, EXTENT), st.booleans(), SEEDS)
def test_addition(family: Family, shape: tuple[int, ...], constant: bool, seed: int) -> None:
    if constant:
        layer(family, "add", [shape], seed, lambda layers, x: layers.add(layers.int8(shape[-1]), x))
    else:
        layer(family, "add", [shape, shape], seed, lambda layers, x, y: layers.add(x, y))


@pytest.mark.slow
@EXAMPLES
@given(st.tuples(st.integers(1, 2), EXTENT, EXTENT, st.integers(1, 40)), SEEDS)
def test_mean(family: Family, shape: tuple[int, ...], seed: int) -> None:
    layer(family, "mean", [shape], seed, lambda layers, x: layers.mean(x))


AXES = [(0,), (1,), (2,), (0, 1), (1, 2), (0, 1, 2)]


@pytest.mark.slow
@EXAMPLES
@given(st.tuples(EXTENT, EXTENT, st.integers(1, 40)), st.sampled_from(AXES), st.booleans(), SEEDS)
def test_mean_of_other_axes(
    family: Family, shape: tuple[int, ...], axes: tuple[int, ...], real: bool, seed: int
) -> None:
    name, build = ("scaled_sum", Layers.real_mean) if real else ("mean", Layers.mean)
    layer(family, name, [shape], seed, lambda layers, x: build(layers, x, axes))


def test_a_mean_of_axes_apart_stays_with_the_cpu() -> None:
    layers = Layers(1)
    made = example([(2, 3, 4)], lambda block, x: [block.emit(layers.mean(x, (0, 2)), "layer")])
    described = {operation.name: operation for operation in npu().operations}["mean"]
    wanted = "it is the mean along axes (0, 2) of int8 [2,3,4], wanted axes that follow each other"
    assert described.check(made.region) == wanted


REFUSED_PRODUCTS = [
    ([(2, 3, 4, 5), (3, 5, 6)], False, "some matrices of int8 [2,3,4,5] or int8 [3,5,6] would have to be repeated"),
    ([(2, 2), (2, 5000)], False, "its result has 5000 columns, and there are sums of 4096"),
    ([(2, 3200), (3200, 2)], False, "its smallest part needs 51392 bytes of weights on chip, and there are 49152"),
    ([], True, "both of its sides are constants"),
]


@pytest.mark.parametrize(("shapes", "known", "reason"), REFUSED_PRODUCTS)
def test_other_products_stay_with_the_cpu(shapes: list[tuple[int, ...]], known: bool, reason: str) -> None:
    layers = Layers(1)

    def build(block: Any, *sides: Any) -> list[Any]:
        sides = (layers.int8(2, 2), layers.int8(2, 2)) if known else sides
        return [block.emit(layers.batch_matmul(*sides, adj_x=False, adj_y=False), "layer")]

    described = {operation.name: operation for operation in npu().operations}["batch_matmul"]
    assert described.check(example(shapes, build).region) == reason


@pytest.mark.slow
@EXAMPLES
@given(st.tuples(EXTENT, EXTENT, EXTENT), st.booleans(), SEEDS)
def test_a_real_sum(family: Family, shape: tuple[int, ...], constant: bool, seed: int) -> None:
    if constant:
        layer(family, "weighted_sum", [shape], seed, lambda layers, x: layers.weighted_sum(x, layers.int8(*shape)))
    else:
        layer(family, "weighted_sum", [shape, shape], seed, lambda layers, x, y: layers.weighted_sum(x, y))


WINDOWED: list[tuple[str, Callable[[Layers, Any], Any]]] = [
    ("scaled_sum", Layers.real_mean),
    ("window_mean", Layers.window_mean),
    ("window_max", Layers.window_max),
    ("lookup", Layers.lookup),
]


@pytest.mark.slow
@pytest.mark.parametrize(("operator", "build"), WINDOWED, ids=[operator for operator, _ in WINDOWED])
@EXAMPLES
@given(st.tuples(st.integers(1, 2), EXTENT, EXTENT, st.integers(1, 40)), SEEDS)
def test_what_onnx_means(family: Family, operator: str, build: Build, shape: tuple[int, ...], seed: int) -> None:
    layer(family, operator, [shape], seed, build)


def test_the_nearest_scale_is_not_always_the_right_one(tmp_path: Path) -> None:
    """A mean of 15x15 elements, of which one sum, 1.5 steps in the result's scale, comes out wrong with it."""
    info, given, wanted = TensorInfo((1, 15, 15, 1), "int8"), *(Quantisation((s,), (0,)) for s in (SCALE, OTHER_SCALE))
    attrs = scaled_sum_attrs(info, given, wanted, (1, 2), keep_dims=True, mean=True)
    every = np.arange(-128 * 225, 127 * 225)
    nearest = np.rint(every.astype(np.float32) * np.float32(attrs.multiplier * 2.0**-attrs.shift))
    product, half = every * attrs.multiplier, 1 << (attrs.shift - 1)
    up = (product + half) >> attrs.shift
    exact = up - ((product + half) % (2 * half) == 0) * (up & 1)  # halves go to what is even
    totals = every[nearest != exact]
    assert 0 < len(totals) < 20
    shape = (1, 15, 15, len(totals))
    image = np.zeros((225, len(totals)), np.int64)
    for channel, total in enumerate(totals):
        image[:, channel] = total // 225
        image[: total % 225, channel] += 1
    made = example([shape], lambda block, x: [block.emit(operator("scaled_sum")(x, attrs=attrs), "layer")])
    machine = Family(tmp_path, {})
    assert accepts(machine, made, "scaled_sum")
    check(machine, made, [image.reshape(shape).astype(np.int8)])


@pytest.mark.slow
@EXAMPLES
@given(st.tuples(st.just(1), EXTENT, EXTENT, st.integers(1, 20)), SEEDS)
def test_padding_is_part_of_the_convolution_behind_it(family: Family, shape: tuple[int, ...], seed: int) -> None:
    layers = Layers(seed)
    zero_point = layers.integer(-128, 127)

    def build(block: Any, x: Any) -> list[Any]:
        padded = block.emit(layers.pad(x, zero_point), "padded")
        return [block.emit(layers.conv2d(padded, zero_point=zero_point), "layer")]

    made = example([shape], build)
    assume(accepts(family, made, "conv2d_of_pad"))
    check(family, made, [layers.int8(*shape)])


REFUSED_PADS = [
    ([0, 0, 1, 1, 1, 1, 0, 0], 4, "its input is padded with 4, wanted its zero point, 5"),
    ([0, 0, 1, 1, 1, 1, 0, 1], 5, "its input is padded in another way than with a border of rows and columns"),
    ([0, 1, 1, 1, 1, 1, 0, 0], 5, "its input is padded in another way than with a border of rows and columns"),
]


@pytest.mark.parametrize(("widths", "value", "reason"), REFUSED_PADS)
def test_other_padding_stays_with_the_cpu(widths: list[int], value: int, reason: str) -> None:
    layers = Layers(1)

    def build(block: Any, x: Any) -> list[Any]:
        padded = block.emit(relax.op.nn.pad(x, pad_width=widths, pad_value=value), "padded")
        return [block.emit(layers.conv2d(padded, zero_point=5), "layer")]

    made = example([(1, 6, 6, 4)], build)
    described = {operation.name: operation for operation in npu().operations}["conv2d_of_pad"]
    assert described.check(made.region) == reason


@pytest.mark.slow
@settings(EXAMPLES, max_examples=3 if QUICK else 30)
@given(st.integers(3, 9), st.integers(3, 9), st.integers(1, 24), SEEDS)
def test_a_region_of_many_layers(family: Family, rows: int, columns: int, channels: int, seed: int) -> None:
    """Branches, a view, additions that join what is before them, outputs that are read inside as well."""
    layers = layers_of(seed)

    def build(block: Any, x: Any, y: Any) -> list[Any]:
        a = block.emit(layers.conv2d(x, channels=channels), "a")
        b = block.emit(layers.add(a, a), "b")
        c = block.emit(layers.pool(y, average=True), "c")
        d = block.emit(layers.pool(b, average=False), "d")
        e = block.emit(layers.depthwise(b), "e")
        f = block.emit(layers.depthwise(b), "f")
        g = block.emit(layers.add(b, a), "g")
        flat = block.emit(layers.flat(g), "flat")
        h = block.emit(layers.fully_connected(flat, 20), "h")
        return [d, e, f, h, g, block.emit(layers.conv2d(c, channels=18), "i")]

    shapes = [(1, rows, columns, 5), (1, columns, rows, 20)]
    made = example(shapes, build)
    accelerator = family.accelerator()
    checks = {operation.name: operation.check for operation in accelerator.operations}
    for call in made.region.calls:
        if call.op != "relax.reshape":
            alone = type(made.region)((call,), made.region.inputs, made.region.outputs)
            assume(checks[call.op.removeprefix("uaccel.")](alone) is None)
    check(family, made, [layers.int8(*shape) for shape in shapes], OBJECTIVES[seed % 2])


def large(seed: int, extent: int, channels: int) -> Example:
    """Windows of any kind and a sum on the way: tensors larger than what fits."""
    layers = layers_of(seed)

    def build(block: Any, x: Any) -> list[Any]:
        a = block.emit(layers.same(x, channels), "a")
        b = block.emit(layers.depthwise(a), "b")
        c = block.emit(layers.same(b, channels), "c")
        d = block.emit(layers.same(c, channels), "d")
        e = block.emit(layers.add(c, d), "e")
        return [block.emit(layers.depthwise(e), "f")]

    return example([(1, extent, extent, 3)], build)


@pytest.mark.slow
@settings(EXAMPLES, max_examples=3 if QUICK else 10)
@given(st.integers(10, 28), st.integers(3, 24), SEEDS)
def test_layers_that_pass_rows(family: Family, extent: int, channels: int, seed: int) -> None:
    made = large(seed, extent, channels)
    checks = {operation.name: operation.check for operation in family.accelerator().operations}
    for call in made.region.calls:
        alone = type(made.region)((call,), made.region.inputs, made.region.outputs)
        assume(checks[call.op.removeprefix("uaccel.")](alone) is None)
    check(family, made, [layers_of(seed).int8(1, extent, extent, 3)], OBJECTIVES[seed % 2])


@pytest.mark.slow
def test_some_of_them_do(tmp_path: Path) -> None:
    """So that the test above has chains, on a machine on which not all tensors fit."""
    played = check(Family(tmp_path, SMALL), made := large(4, 24, 16), [layers_of(4).int8(1, 24, 24, 3)])
    chains = [step for step in played.planned.steps if isinstance(step, Chain)]
    assert len(made.region.calls) == 6
    assert chains
