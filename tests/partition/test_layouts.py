"""Permutes that meet their opposite vanish, what is computed stays, and what is left never costs more than before."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.device.hostlib import Array, HostModel
from support.models.relax_modules import compiled_module
from support.oracle.exactness import assert_same
from uaccel.ops.accumulators import NCHW, Conv2dSums, Conv2dSumsAttrs, RequantizeSums, RequantizeSumsAttrs
from uaccel.ops.activation import Prelu, PreluAttrs, Sigmoid16Attrs, Tanh16, TwoSlopes, TwoSlopesAttrs
from uaccel.ops.binary import Add, AddAttrs, Maximum, Mul, MulAttrs, Sub
from uaccel.ops.lookup import Lookup, LookupAttrs
from uaccel.ops.operator import RESHAPING, Attributes, constant, get, info_of, permuted_axes
from uaccel.ops.pointwise import BY_RELAX
from uaccel.ops.quantize import Dequantize, DequantizeAttrs, Quantize, QuantizeAttrs, Requantize, RequantizeAttrs
from uaccel.partition.passes.layout import CancelTransposes, LayoutsChanged, is_permute
from uaccel.tvm_api import FunctionBlock, ModuleBuilder, Op, main_bindings, main_result, relax, structural_equal, tvm
from uaccel.tvm_api.executor import Executor

OP = relax.op
Draw = Callable[[st.SearchStrategy[Any]], Any]
TO_NHWC, TO_NCHW = (0, 2, 3, 1), (0, 3, 1, 2)
RNG = np.random.default_rng(11)
CHANNELS = 5
X = RNG.integers(-128, 128, (2, CHANNELS, 4, 3), np.int8)
Y = RNG.integers(-128, 128, X.shape, np.int8)
SUMS = RNG.integers(-5000, 5000, X.shape, np.int32)

ADD = AddAttrs(20, 3, 2**30, -1, -5, 2**30 + 9, 0, 4, 2**30 + 77, -18, -120, 127)
MUL = MulAttrs(3, -5, 4, 2**30 + 77, -5, -120, 127)
REQUANTIZE = RequantizeAttrs(3, -7, 2**30 + 12345, 0, -100, 127, "int8")
PRELU = PreluAttrs(3, -5, 4, 2**30 + 5, 1, 2**30 + 77, -5, -120, 127)


class Block:
    """What a module is built with: every call becomes a binding with a name."""

    def __init__(self, block: FunctionBlock) -> None:
        self.block = block

    def __call__(self, expr: Any, name: str = "v") -> Any:
        return self.block.emit(expr, name)

    def nhwc(self, x: Any, name: str = "nhwc") -> Any:
        return self(OP.permute_dims(x, TO_NHWC), name)

    def nchw(self, x: Any, name: str = "nchw") -> Any:
        return self(OP.permute_dims(x, TO_NCHW), name)


Build = Callable[..., Any]


def built(inputs: Sequence[Array], build: Build) -> Any:
    builder = ModuleBuilder()
    parameters = [relax.Var(f"x{i}", relax.TensorType(x.shape, str(x.dtype))) for i, x in enumerate(inputs)]
    with builder.function(parameters) as block:
        block.finish(build(Block(block), *parameters))
    return builder.module


def permutes(module: Any) -> list[Any]:
    return [expr for _, expr in main_bindings(module)[1] if is_permute(expr)]


def moved_bytes(module: Any) -> int:
    """What the permutes of a module copy: those that only move axes of one element are views."""
    return sum(info_of(call).size for call in permutes(module) if not is_view(call))


def is_view(call: Any) -> bool:
    moved = [axis for axis in permuted_axes(call) if info_of(call.args[0]).shape[axis] != 1]
    return moved == sorted(moved)


def tensors(module: Any, inputs: Sequence[Array]) -> dict[str, Array]:
    """The inputs and every binding's value by its name; the fields of a tuple by their numbers."""
    values = iter([*inputs, *Executor(module, intermediates=True).intermediates(inputs)])
    found: dict[str, Array] = {}
    parameters, bindings = main_bindings(module)
    for var in (*parameters, *(var for var, _ in bindings)):
        fields = getattr(var.ty, "fields", None)
        names = [var.name] if fields is None else [f"{var.name}[{i}]" for i in range(len(fields))]
        found |= {name: next(values) for name in names}
    return found


def results(module: Any, values: dict[str, Array]) -> list[Array]:
    return [value for name, value in values.items() if name.partition("[")[0] == main_result(module).name]


def check(module: Any, inputs: Sequence[Array]) -> LayoutsChanged:
    """Results and everything with a name stay; nothing is done twice."""
    changed = CancelTransposes().run(module)
    before, after = tensors(module, inputs), tensors(changed.module, inputs)
    for got, wanted in zip(results(changed.module, after), results(module, before), strict=True):
        assert_same(got, wanted, "a result")
    check_names(changed, before, after, main_result(module).name)
    assert (moved_bytes(changed.module), len(permutes(changed.module))) <= (moved_bytes(module), len(permutes(module)))
    twice = CancelTransposes().run(changed.module)
    assert len(permutes(twice.module)) == len(permutes(changed.module))
    assert twice.origins == {}
    return changed


def check_names(changed: LayoutsChanged, before: dict[str, Array], after: dict[str, Array], result: str) -> None:
    """A name means what it meant; a new one says what it stems from, but for that of the result, which is TVM's."""
    names = {name for name in after if name.partition("[")[0] not in (result, main_result(changed.module).name)}
    for name in names & before.keys():
        assert_same(after[name], before[name], f"{name}, which kept its name")
    assert names - before.keys() <= changed.origins.keys() <= after.keys()
    for name, origin in changed.origins.items():
        orders = itertools.permutations(range(after[name].ndim))
        assert any(np.array_equal(after[name], before[origin].transpose(order)) for order in orders), (name, origin)


def channel_parameters(values: Sequence[int]) -> Any:
    return constant(np.array(values, np.int32))


def requantized(sums: Any, axis: int, channels: int = CHANNELS) -> Any:
    multiplier = [2**30 + 1000 * i for i in range(channels)]
    operands = (range(-2, channels - 2), multiplier, [-3 - i % 3 for i in range(channels)])
    attrs = RequantizeSumsAttrs(axis, 7, -128, 127, "int8")
    return get(RequantizeSums)(sums, *(channel_parameters(list(values)) for values in operands), attrs=attrs)


def looked_up(x: Any) -> Any:
    return get(Lookup)(x, constant(np.arange(256).astype(np.uint8).view(np.int8)[::-1].copy()), attrs=LookupAttrs("f"))


def in_float(emit: Block, x: Any) -> Any:
    real = emit(get(Dequantize)(x, attrs=DequantizeAttrs(0.5, 3)))
    return emit(get(Quantize)(emit(OP.nn.silu(real)), attrs=QuantizeAttrs(0.25, -4, "int8")))


def in_sixteen_bits(emit: Block, x: Any) -> Any:
    points = constant(np.arange(256).astype(np.uint16))
    wide = emit(OP.astype(x, "int16"))
    return emit(OP.astype(emit(get(Tanh16)(wide, points, attrs=Sigmoid16Attrs(3, 2))), "int8"))


BETWEEN: dict[str, Callable[[Block, Any], Any]] = {
    "nothing": lambda emit, x: x,
    "pad": lambda emit, x: emit(OP.nn.pad(x, [0, 1, 1, 2, 3, 0, 0, 2], "constant", -7)),
    "requantize": lambda emit, x: emit(get(Requantize)(x, attrs=REQUANTIZE)),
    "lookup": lambda emit, x: emit(looked_up(x)),
    "two slopes": lambda emit, x: emit(get(TwoSlopes)(x, attrs=TwoSlopesAttrs(3, 4, 2**30, 1, 2**30, -2))),
    "clip": lambda emit, x: emit(OP.clip(x, -3, 50)),
    "float": in_float,
    "16 bits": in_sixteen_bits,
    "several": lambda emit, x: emit(OP.nn.pad(emit(looked_up(emit(OP.clip(x, 0, 99)))), [0, 0, 1, 1, 1, 1, 0, 0])),
    "add of a constant": lambda emit, x: emit(get(Add)(x, constant(X[:1].transpose(TO_NHWC).copy()), attrs=ADD)),
    "mul by channels": lambda emit, x: emit(get(Mul)(constant(Y[0, :, 0, 0].copy()), x, attrs=MUL)),
    "prelu": lambda emit, x: emit(get(Prelu)(x, constant(X[0, 0][:, :, None].repeat(5, 2)), attrs=PRELU)),
    "maximum with one number": lambda emit, x: emit(OP.maximum(x, constant(np.array(3, np.int8)))),
    "side by side": lambda emit, x: emit(OP.concat([x, emit(OP.clip(x, 0, 9))], 3)),
    "the largest of a channel": lambda emit, x: emit(OP.max(x, [1, 2], keepdims=True)),
    "a part": lambda emit, x: emit(OP.strided_slice(x, [3, 1], [1, 0], [4, 2])),
    "xor with itself": lambda emit, x: emit(OP.bitwise_xor(x, emit(OP.clip(x, -1, 1)))),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BETWEEN)
def test_an_island_needs_no_permutes(name: str) -> None:
    """Sums in NCHW, what the model does in NHWC, and the next convolution in NCHW."""

    def build(emit: Block, sums: Any) -> Any:
        x = emit.nhwc(emit(requantized(sums, 1), "island_nchw"), "island")
        return emit.nchw(BETWEEN[name](emit, x), "next_nchw")

    module = built([SUMS], build)
    changed = check(module, [SUMS])
    assert (len(permutes(module)), len(permutes(changed.module))) == (2, 0)
    assert_same(HostModel(compiled_module(changed.module))(SUMS)[0], Executor(module).run([SUMS])[0], "the generated C")


BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "uaccel.add": lambda x, y: get(Add)(x, y, attrs=ADD),
    "uaccel.sub": lambda x, y: get(Sub)(x, y, attrs=ADD),
    "uaccel.mul": lambda x, y: get(Mul)(x, y, attrs=MUL),
    "uaccel.maximum": lambda x, y: get(Maximum)(x, y, attrs=Attributes()),
    "relax.minimum": OP.minimum,
    "relax.where": lambda x, y: OP.where(OP.less(x, y), x, y),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BINARY)
def test_two_permuted_operands_are_permuted_once_or_never(name: str) -> None:
    def sum_of(emit: Block, x: Any, y: Any) -> Any:
        return emit(BINARY[name](emit.nhwc(x, "x_nhwc"), emit.nhwc(y, "y_nhwc")), "sum")

    once = check(built([X, Y], sum_of), [X, Y])
    assert len(permutes(once.module)) == 1
    never = check(built([X, Y], lambda emit, x, y: emit.nchw(sum_of(emit, x, y))), [X, Y])
    assert permutes(never.module) == []


def test_two_permuted_operands_are_added() -> None:
    """Relax's own sum wraps for these, so small numbers."""
    x, y = (value // 3 for value in (X, Y))
    module = built([x, y], lambda emit, a, b: emit.nchw(emit(OP.add(emit.nhwc(a), emit.nhwc(b)))))
    assert permutes(check(module, [x, y]).module) == []


def test_names_follow_the_values() -> None:
    def build(emit: Block, x: Any) -> Any:
        y = emit(OP.clip(emit.nhwc(x, "a_nhwc"), 0, 9), "b")
        z = emit(OP.clip(emit.nchw(emit(OP.clip(y, 0, 8), "c"), "d"), 0, 7), "e")
        return emit(OP.flip(z, 1), "f")

    changed = check(built([X], build), [X])
    names = [var.name for var, _ in main_bindings(changed.module)[1]]
    assert names[:4] == ["b_nchw", "d", "e", "f"]
    assert changed.origins == {"b_nchw": "b", "d": "c"}


def test_a_name_stays_with_the_layout_it_had() -> None:
    """What is also read in the model's layout has its old name there."""

    def build(emit: Block, x: Any) -> Any:
        y = emit(OP.clip(emit.nhwc(x, "a"), 0, 9), "b")
        return relax.Tuple([emit(OP.flip(y, 3), "c"), emit(OP.flip(emit.nchw(y, "d"), 3), "e")])

    changed = check(built([X], build), [X])
    bindings = {var.name: expr for var, expr in main_bindings(changed.module)[1]}
    assert list(bindings)[:4] == ["d", "b", "c", "e"]
    assert is_permute(bindings["b"])
    assert changed.origins == {"d": "b"}


def test_new_names_do_not_meet_old_ones() -> None:
    def build(emit: Block, x: Any) -> Any:
        y = emit(OP.clip(emit.nhwc(x, "a"), 0, 9), "b")
        return emit(OP.flip(emit(OP.flip(emit(OP.abs(emit.nchw(emit(OP.abs(y), "c")))), 2), "b_nchw"), 3), "d")

    changed = check(built([X], build), [X])
    assert permutes(changed.module) == []
    assert changed.origins["b_nchw_1"] == "b"


def through_all(emit: Block, x: Any, *orders: Sequence[int]) -> Any:
    for order in orders:
        x = emit(OP.permute_dims(x, order))
    return x


@pytest.mark.parametrize(
    ("orders", "left"),
    [
        ([TO_NHWC, TO_NCHW], 0),
        ([TO_NHWC, TO_NHWC], 1),
        ([TO_NHWC, TO_NHWC, TO_NHWC], 0),
        ([(0, 1, 2, 3)], 0),
        ([(0, -1, 1, 2), (3, 2, 1, 0)], 1),
    ],
)
def test_adjacent_permutes_are_one_or_none(orders: list[tuple[int, ...]], left: int) -> None:
    module = built([X], lambda emit, x: emit(OP.flip(through_all(emit, x, *orders), 1)))
    assert len(permutes(check(module, [X]).module)) == left


def test_permutes_without_axes_turn_everything_round() -> None:
    def build(emit: Block, x: Any) -> Any:
        return emit(OP.permute_dims(emit(OP.clip(emit(OP.permute_dims(x)), 0, 9))))

    assert permutes(check(built([X], build), [X]).module) == []


def test_nothing_moves_where_nothing_is_gained() -> None:
    def build(emit: Block, x: Any) -> Any:
        return emit(OP.flip(emit(OP.clip(emit.nhwc(x), 0, 9), "clipped"), 1))

    changed = check(built([X], build), [X])
    assert changed.origins == {}
    assert [is_permute(expr) for _, expr in main_bindings(changed.module)[1]][:2] == [True, False]


def test_a_module_without_permutes_stays_as_it_is() -> None:
    module = built([X], lambda emit, x: emit(OP.clip(x, 0, 9)))
    assert CancelTransposes()(module) is module


def test_the_smaller_tensor_is_permuted() -> None:
    """Before a pad that doubles, after what narrows 32 bits to 8."""
    late = built([X], lambda emit, x: emit(OP.flip(emit.nhwc(emit(OP.nn.pad(x, [0, 0, 0, 0, 8, 8, 8, 8]))), 1)))
    early = built([SUMS], lambda emit, x: emit(OP.flip(emit(requantized(emit.nhwc(x), 3)), 1)))
    for module, inputs in ((late, [X]), (early, [SUMS])):
        changed = check(module, inputs)
        (call,) = permutes(changed.module)
        assert info_of(call).size == X.size


def test_several_users_of_a_permute() -> None:
    """One goes back and one stays: the one that stays is all that is left."""

    def build(emit: Block, x: Any) -> Any:
        y = emit.nhwc(x)
        back = emit.nchw(emit(OP.clip(y, 0, 9)))
        return relax.Tuple([emit(OP.flip(y, 1)), emit(OP.flip(back, 1)), back, y])

    assert len(permutes(check(built([X], build), [X]).module)) == 1


def test_the_same_permute_twice_is_done_once() -> None:
    def build(emit: Block, x: Any) -> Any:
        return emit(OP.concat([emit(OP.flip(emit.nhwc(x), 1)), emit(OP.flip(emit.nhwc(x), 2))], 0))

    assert len(permutes(check(built([X], build), [X]).module)) == 1


def test_a_view_stays_a_view() -> None:
    """Adjacent permutes are not joined where the second one moves no bytes and the first is needed anyway."""
    flat = X[:1]

    def build(emit: Block, x: Any) -> Any:
        y = emit.nhwc(x)
        return relax.Tuple([emit(OP.flip(y, 1)), emit(OP.flip(emit(OP.permute_dims(y, (1, 0, 2, 3))), 2))])

    changed = check(built([flat], build), [flat])
    assert [is_view(call) for call in permutes(changed.module)] == [False, True]


def test_constants_are_permuted_at_compile_time() -> None:
    def build(emit: Block, x: Any) -> Any:
        return emit.nchw(emit(OP.maximum(emit.nhwc(x), emit.nhwc(constant(Y)))))

    assert permutes(check(built([X], build), [X]).module) == []


@pytest.mark.slow
def test_a_residual_sum_in_the_layout_of_its_convolutions() -> None:
    """On an accelerator that takes NCHW, in a network of NHWC: only the input and the output are turned."""
    weights = constant(RNG.integers(-9, 9, (CHANNELS, CHANNELS, 3, 3), np.int8))

    def convolution(emit: Block, x: Any) -> Any:
        attrs = Conv2dSumsAttrs((1, 1), (0, 0, 0, 0), (1, 1), 1, NCHW)
        padded = emit(OP.nn.pad(x, [0, 0, 1, 1, 1, 1, 0, 0], "constant", -7))
        sums = emit(get(Conv2dSums)(emit.nchw(padded), weights, attrs=attrs))
        return emit.nhwc(emit(requantized(sums, 1)))

    def build(emit: Block, x: Any) -> Any:
        first = emit(OP.clip(convolution(emit, x), -9, 99))
        total = emit(get(Add)(first, convolution(emit, first), attrs=ADD))
        return emit(OP.flip(total, 3))

    image = X.transpose(TO_NHWC).copy()
    module = built([image], build)
    changed = check(module, [image])
    assert (len(permutes(module)), len(permutes(changed.module))) == (4, 2)


def test_regions_are_opaque() -> None:
    """A call of a private function is not looked into, and the function stays in the module."""
    builder = relax.BlockBuilder()
    parameter, x = (relax.Var(name, relax.TensorType(X.shape, "int8")) for name in ("p", "x"))
    with builder.function("engine_0", [parameter], private=True):
        builder.emit_func_output(builder.emit(OP.flip(parameter, 1)))
    (engine,) = builder.get().get_global_vars()
    with builder.function("main", [x]):
        with builder.dataflow():
            emit = builder.emit
            first = emit(relax.Call(engine, [x]), name_hint="first")
            clipped = emit(OP.clip(emit(OP.permute_dims(first, TO_NHWC)), 0, 9))
            second = emit(relax.Call(engine, [emit(OP.permute_dims(clipped, TO_NCHW))]), name_hint="second")
            result = builder.emit_output(emit(OP.permute_dims(second, TO_NHWC)))
        builder.emit_func_output(result)
    module = builder.get()
    changed = CancelTransposes()(module)
    assert len(permutes(changed)) == 1
    assert {var.name_hint for var in changed.get_global_vars()} == {"main", "engine_0"}
    assert structural_equal(changed["engine_0"], module["engine_0"])
    assert_same(Executor(changed).run([X])[0], Executor(module).run([X])[0], "the result")


def test_every_operator_of_the_table_is_one() -> None:
    assert set(Op.list_op_names()) >= BY_RELAX.keys() | RESHAPING
    assert tvm.ir.Op.get("relax.nn.prelu").name not in BY_RELAX  # its second argument has an axis of its own


# Random graphs: whatever stands between permutes, in whatever order.

ORDERS = st.sampled_from([TO_NHWC, TO_NCHW, (0, 2, 1, 3), (3, 2, 1, 0), (1, 0, 2, 3)])
EXTENTS = st.lists(st.integers(1, 3), min_size=4, max_size=4)


def a_permute(draw: Draw, emit: Block, x: Any, _values: list[Any]) -> Any:
    return emit(OP.permute_dims(x, draw(ORDERS)))


def a_unary(draw: Draw, emit: Block, x: Any, _values: list[Any]) -> Any:
    makers: list[Callable[[], Any]] = [
        lambda: OP.clip(x, -50, 60),
        lambda: OP.nn.relu(x),
        lambda: looked_up(x),
        lambda: get(Requantize)(x, attrs=REQUANTIZE),
    ]
    return emit(draw(st.sampled_from(makers))())


def a_pad(draw: Draw, emit: Block, x: Any, _values: list[Any]) -> Any:
    widths = draw(st.lists(st.integers(0, 2), min_size=8, max_size=8))
    if max(e + 2 for e in info_of(x).shape) > 8:
        return x
    return emit(OP.nn.pad(x, widths, "constant", -5))


def a_binary(draw: Draw, emit: Block, x: Any, values: list[Any]) -> Any:
    """With a value that broadcasts, in whatever layout that is: the operand itself will always do."""
    shape = info_of(x).shape
    pairs = [(y, zip(shape, info_of(y).shape, strict=True)) for y in values]
    fitting = [y for y, extents in pairs if all(a == b or 1 in (a, b) for a, b in extents)]
    operands = [x, draw(st.sampled_from(fitting))]
    return emit(draw(st.sampled_from(list(BINARY.values())))(*draw(st.permutations(operands))))


def a_constant(draw: Draw, emit: Block, x: Any, _values: list[Any]) -> Any:
    shape = info_of(x).shape
    own = [draw(st.sampled_from([1, extent])) for extent in shape][draw(st.integers(0, 4)) :]
    value = constant(np.random.default_rng(draw(st.integers(0, 9))).integers(-128, 128, own, np.int8))
    operands = draw(st.permutations([x, value]))
    return emit(get(Add)(*operands, attrs=ADD) if draw(st.booleans()) else OP.maximum(*operands))


def some_sums(draw: Draw, emit: Block, x: Any, _values: list[Any]) -> Any:
    axis = draw(st.integers(0, 3))
    wide = emit(OP.astype(x, "int32"))
    return emit(requantized(wide, axis, info_of(x).shape[axis]))


def an_opaque(draw: Draw, emit: Block, x: Any, _values: list[Any]) -> Any:
    axis = draw(st.integers(0, 3))
    if draw(st.booleans()):
        return emit(OP.flip(x, axis))
    return emit(relax.TupleGetItem(emit(OP.split(emit(OP.concat([x, x], axis)), 2, axis)), draw(st.integers(0, 1))))


def along_an_axis(draw: Draw, emit: Block, x: Any, _values: list[Any]) -> Any:
    axis, extent = draw(st.integers(-4, 3)), min(info_of(x).shape)
    makers: list[Callable[[], Any]] = [
        lambda: OP.concat([x, x], axis) if max(info_of(x).shape) < 5 else x,
        lambda: OP.concat([constant(np.full(info_of(x).shape, 7, np.int8)), x], axis),
        lambda: OP.strided_slice(x, [axis, (axis + 1) % 4 - 4], [0, -extent], [extent, 99]),
        lambda: OP.max(x, [axis, (axis + 2) % 4 - 4], keepdims=True),
        lambda: OP.min(x, [axis], keepdims=True),
    ]
    return emit(draw(st.sampled_from(makers))())


STEPS = [a_permute, a_permute, a_permute, a_unary, a_unary, a_pad, a_binary, a_binary, a_constant, some_sums, an_opaque]
STEPS += [along_an_axis, along_an_axis]


@st.composite
def graphs(draw: Draw) -> tuple[Any, list[Array]]:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = draw(EXTENTS)
    shapes = [shape, draw(st.permutations(shape))][: draw(st.integers(1, 2))]
    inputs = [rng.integers(-128, 128, shape, np.int8) for shape in shapes]

    def build(emit: Block, *parameters: Any) -> Any:
        values = list(parameters)
        for _ in range(draw(st.integers(2, 14))):
            recent = draw(st.sampled_from(values[-3:] if draw(st.integers(0, 3)) else values))
            values.append(draw(st.sampled_from(STEPS))(draw, emit, recent, values))
        last = values[-draw(st.integers(1, min(3, len(values) - 1))) :]
        return relax.Tuple(last) if len(last) > 1 or last[0] in parameters else last[0]

    return built(inputs, build), inputs


QUICK = settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.slow
@QUICK
@given(graphs())
def test_random_graphs_mean_the_same(graph: tuple[Any, list[Array]]) -> None:
    check(*graph)


@pytest.mark.long
@settings(QUICK, max_examples=200)
@given(graphs())
def test_many_random_graphs_mean_the_same(graph: tuple[Any, list[Array]]) -> None:
    check(*graph)
