"""What accelerators claim, what they refuse and why, and which claims are taken."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.models.partitioned import (
    accelerator,
    assert_same_meaning,
    chain,
    compile_on,
    engines,
    model_of,
    operation,
    reasons,
    run,
    whole,
)
from uaccel.accelerator import ANY, Region, pattern
from uaccel.errors import AcceleratorError
from uaccel.partition import Wishes, partition
from uaccel.tvm_api import FunctionBlock, relax

OP = relax.op
CHAIN = chain("tanh", "exp", "sin", "tanh")


def test_nobody_is_asked() -> None:
    done = partition(CHAIN, [], Wishes())
    assert set(engines(done).values()) == {"cpu"}
    assert done.model.module is CHAIN.module
    assert {decision.reason for decision in done.decisions} == {"no accelerator was asked"}


def test_several_accelerators_and_the_cpu() -> None:
    compiled = compile_on(CHAIN, [accelerator("a", operation("exp")), accelerator("b", operation("tanh"))])
    done = compiled.partitioned
    assert engines(done) == {"tanh_0": "b", "exp_1": "a", "sin_2": "cpu", "tanh_3": "b"}
    assert reasons(done, "sin_2") == {"a": ["no operation for sin"], "b": ["no operation for sin"]}
    assert reasons(done, "exp_1") == {"b": ["no operation for exp"]}
    assert [decision.reason for decision in done.decisions] == [
        "operation 'tanh' of b: it accepts the layer",
        "operation 'exp' of a: it accepts the layer",
        "a: no operation for sin; b: no operation for sin",
        "operation 'tanh' of b: it accepts the layer",
    ]
    assert [(layer.name, layer.engine) for layer in compiled.program.layers] == list(engines(done).items())
    assert [engine.name for engine in compiled.program.engines] == ["a", "b"]
    assert_same_meaning(CHAIN, compiled.stages)


def test_what_is_asked_and_computes_nothing_is_no_part_of_the_program() -> None:
    compiled = compile_on(CHAIN, [accelerator("a", operation("exp")), accelerator("idle", operation("cos"))])
    assert [engine.name for engine in compiled.program.engines] == ["a"]
    assert [entry.name for entry in compiled.accelerators] == ["a", "idle"]


def test_every_operation_that_matches_gives_its_reason() -> None:
    def narrow(region: Region) -> str | None:
        return f"its rows have\n{region.output.shape[1]} elements, wanted 4"

    asked = accelerator(
        "a",
        operation("narrow", "relax.tanh", check=narrow),
        operation("late", "relax.tanh", check=lambda r: "too late" if r.root.name == "tanh_3" else None),
    )
    done = partition(CHAIN, [asked], Wishes())
    assert engines(done) == {"tanh_0": "a", "exp_1": "cpu", "sin_2": "cpu", "tanh_3": "cpu"}
    assert reasons(done, "tanh_3") == {"a": ["its rows have 3 elements, wanted 4", "too late"]}
    assert done.decisions[3].reason == "a: its rows have 3 elements, wanted 4; a: too late"
    assert reasons(done, "tanh_0") == {"a": ["its rows have 3 elements, wanted 4"]}


def residual(block: FunctionBlock, inputs: list[Any]) -> Any:
    """tanh_0 -> exp_1 -> add_2(exp_1, x)."""
    tanh = block.emit(OP.tanh(inputs[0]), "tanh_0")
    exp = block.emit(OP.exp(tanh), "exp_1")
    return block.emit(OP.add(exp, inputs[0]), "add_2")


FUSED = operation("exp_add", pattern("relax.add", "relax.exp", ANY))


def test_a_pattern_of_several_operators_is_one_layer() -> None:
    model = model_of(residual)
    compiled = compile_on(model, [accelerator("a", operation("add"), operation("exp"), FUSED)])
    done = compiled.partitioned
    assert engines(done) == {"tanh_0": "cpu", "exp_1": "a", "add_2": "a"}
    assert [decision.region for decision in done.decisions] == ["", "exp_1_to_add_2", "exp_1_to_add_2"]
    assert [layer.name for layer in compiled.program.layers] == ["tanh_0", "exp_1_to_add_2"]
    layer = compiled.program.layers[1]
    assert (layer.op, [covered.name for covered in layer.covers]) == ("region", ["exp_1", "add_2"])
    assert layer.reason == "operation 'exp_add' of a: it accepts the layer; driver function tiny_run"
    (call,) = done.calls.values()
    assert [value.name for value in call.region.inputs] == ["tanh_0", "x0"]
    assert [value.name for value in call.region.interior] == ["exp_1"]
    assert [value.name for value in call.region.outputs] == ["add_2"]
    assert_same_meaning(model, compiled.stages)


def test_the_claim_that_covers_most_is_taken_whatever_the_order() -> None:
    for operations in ([FUSED, operation("exp")], [operation("exp"), FUSED]):
        done = partition(model_of(residual), [accelerator("a", *operations)], Wishes())
        assert [decision.region for decision in done.decisions] == ["", "exp_1_to_add_2", "exp_1_to_add_2"]


def test_the_first_that_is_listed_among_equals() -> None:
    first = accelerator("a", operation("one", "relax.tanh"), operation("two", "relax.tanh"))
    assert "'one'" in partition(chain("tanh"), [first], Wishes()).decisions[0].reason


@pytest.mark.parametrize("user", ["cos_3", "the model's output"])
def test_a_part_that_is_wanted_elsewhere_as_well(user: str) -> None:
    def body(block: FunctionBlock, inputs: list[Any]) -> Any:
        exp = block.emit(OP.exp(inputs[0]), "exp_1")
        add = block.emit(OP.add(exp, inputs[0]), "add_2")
        return relax.Tuple([add, block.emit(OP.cos(exp), "cos_3") if user == "cos_3" else exp])

    model = model_of(body)
    done = partition(model, [accelerator("a", FUSED)], Wishes())
    assert set(engines(done).values()) == {"cpu"}
    assert reasons(done, "add_2") == {"a": [f"its part exp_1 is needed by {user} as well"]}
    both = compile_on(model, [accelerator("a", FUSED, operation("add"))])
    assert engines(both.partitioned)["add_2"] == "a"
    assert_same_meaning(model, both.stages)


def test_fields_of_a_tuple_go_with_it() -> None:
    def body(block: FunctionBlock, inputs: list[Any]) -> Any:
        halves = block.emit(OP.split(inputs[0], 2, axis=0), "split_0")
        one = block.emit(relax.TupleGetItem(halves, 1), "second")
        other = block.emit(relax.TupleGetItem(halves, 0), "first")
        return block.emit(OP.add(one, other), "add_1")

    model = model_of(body)
    compiled = compile_on(model, [accelerator("a", operation("split"))])
    (call,) = compiled.partitioned.calls.values()
    assert sorted(tensor.name for tensor in call.region.outputs) == ["first", "second"]
    assert [(layer.name, layer.engine) for layer in compiled.program.layers] == [("split_0", "a"), ("add_1", "cpu")]
    assert_same_meaning(model, compiled.stages)


def test_preference_and_cost() -> None:
    def named(name: str, cycles: float | None) -> Any:
        cost = None if cycles is None else lambda region: cycles
        return accelerator(name, operation("tanh", cost=cost))

    model = chain("tanh")  # 274 on the CPU: a call, 24 bytes in and 6 results
    slow, fast, dear, silent = named("slow", 40), named("fast", 10), named("dear", 274), named("silent", None)
    assert engines(partition(model, [named("near", 273)], Wishes("cost"))) == {"tanh_0": "near"}, "one cycle is saved"
    assert engines(partition(model, [slow, fast], Wishes())) == {"tanh_0": "slow"}
    done = partition(model, [slow, fast], Wishes("cost"))
    assert engines(done) == {"tanh_0": "fast"}
    assert (done.decisions[0].cycles, done.decisions[0].cpu_cycles) == (10, 274)
    assert reasons(done, "tanh_0") == {"slow": ["fast saves more cycles"]}
    assert reasons(partition(model, [slow, fast], Wishes()), "tanh_0") == {"fast": ["slow is preferred to it"]}
    dearest = partition(model, [dear], Wishes("cost"))
    assert engines(dearest) == {"tanh_0": "cpu"}
    assert dearest.decisions[0].reason == "dear: the CPU is estimated to be faster (274 cycles against 274)"
    assert engines(partition(model, [dear, silent], Wishes("cost"))) == {"tanh_0": "silent"}, "no cost stated: none"
    assert engines(partition(model, [dear], Wishes("cost", pins=(("tanh_0", "dear"),)))) == {"tanh_0": "dear"}


def test_of_a_claim_over_several_the_last_bears_the_cost() -> None:
    fused = operation("exp_add", pattern("relax.add", "relax.exp", ANY), cost=lambda region: 7 * len(region.calls))
    done = partition(model_of(residual), [accelerator("a", fused)], Wishes())
    assert [decision.cycles for decision in done.decisions] == [None, 0, 14]


def test_layers_are_called_alike_by_who_decides_and_who_reports() -> None:
    """Bindings that are no tensors of the model's are called after their operators."""
    model = chain("tanh", "exp", "sin")
    unnamed = model_of(
        lambda block, inputs: block.emit(OP.exp(block.emit(OP.tanh(inputs[0]), "lv")), "weird/name:0"),
        named=["weird/name:0"],
    )
    for asked in ([], [accelerator("a", operation("exp"))]):
        compiled = compile_on(unnamed, asked)
        assert [decision.layer for decision in compiled.partitioned.decisions] == ["tanh_0", "weird_name_0"]
        assert [layer.name for layer in compiled.program.layers] == ["tanh_0", "weird_name_0"]
    pinned = partition(unnamed, [accelerator("a", operation("tanh"))], Wishes(pins=(("tanh_0", "a"),)))
    assert engines(pinned)["tanh_0"] == "a"
    assert [layer.name for layer in compile_on(model, []).program.layers] == ["tanh_0", "exp_1", "sin_2"]


def test_what_an_expansion_leaves_to_the_cpu() -> None:
    """Parts are called after their operators; the accelerator's part has the layer's name, and covers it once."""

    def expand(expansion: Any, region: Region, inputs: list[Any]) -> Any:
        before = expansion.cpu(OP.negative(inputs[0]), "negated")
        first = expansion.engine(OP.tanh, [before], "first")
        return expansion.engine(OP.negative, [first], "second")

    model = chain("exp", "tanh", "sin")
    compiled = compile_on(model, [accelerator("a", operation("tanh", expand=expand))])
    layers = [(layer.name, layer.op, layer.engine) for layer in compiled.program.layers]
    assert layers == [
        ("exp_0", "exp", "cpu"),
        ("negative_1", "negative", "cpu"),
        ("tanh_1", "tanh", "a"),
        ("tanh_1_second", "negative", "a"),
        ("sin_2", "sin", "cpu"),
    ]
    assert [[covered.name for covered in layer.covers] for layer in compiled.program.layers[2:4]] == [["tanh_1"], []]
    assert [layer.origin.index for layer in compiled.program.layers] == [0, 1, 1, 1, 2]
    assert_same_meaning(model, compiled.stages)


def failing(what: str) -> Any:
    def fail(*_: Any) -> Any:
        raise KeyError(what)

    return fail


def other_type(expansion: Any, region: Region, inputs: list[Any]) -> Any:
    return OP.astype(expansion.engine(OP.tanh, inputs, "part"), "float16")


A = "/home/vendor/a: "
ASKED = "asked about tanh_0 (relax.tanh), failed: KeyError: 'x'"
UNASKED = (
    "asked about tanh_0 (relax.tanh), failed: ValueError: the operand float32 [2,3] has no value, it comes at run "
    "time; look whether .constant is None first"
)
GIVEN = "given tanh_0 (relax.tanh), "
WRONG = [
    ({"check": failing("x")}, f"check of operation 'tanh', {ASKED}"),
    ({"check": lambda region: region.operands[0].value}, f"check of operation 'tanh', {UNASKED}"),
    ({"check": lambda _: False}, "check of operation 'tanh' answered False about tanh_0 (relax.tanh); wanted None"),
    ({"check": lambda _: " "}, "check of operation 'tanh' answered ' ' about tanh_0 (relax.tanh); wanted None, or "),
    ({"cost": failing("x")}, f"cost of operation 'tanh', {ASKED}"),
    ({"cost": lambda _: "many"}, "cost of operation 'tanh', asked about tanh_0 (relax.tanh), failed: ValueError: "),
    ({"cost": lambda _: -1}, "cost of operation 'tanh' of tanh_0 (relax.tanh) is -1.0; wanted the device's cycles"),
    ({"cost": lambda _: np.nan}, "cost of operation 'tanh' of tanh_0 (relax.tanh) is nan; wanted the device's cycles"),
    ({"expand": failing("x")}, f"expand of operation 'tanh', {GIVEN}failed: KeyError: 'x'"),
    ({"expand": lambda *_: 5}, f"expand of operation 'tanh', {GIVEN}returned no tensor; wanted the claim's result"),
    ({"expand": lambda e, r, i: i[0]}, f"expand of operation 'tanh', {GIVEN}gave the accelerator nothing to compute"),
    ({"expand": other_type}, f"expand of operation 'tanh', {GIVEN}made float16 [2,3], and the result is float32 [2,3]"),
    ({"expand": lambda e, r, i: e.cpu(OP.matmul(i[0], i[0]), "x")}, f"expand of operation 'tanh', {GIVEN}failed: "),
    ({"lower": failing("x")}, "lower of operation 'tanh', given tanh_0, failed: KeyError: 'x'"),
    ({"lower": lambda _: 5}, "lower of operation 'tanh', given tanh_0, failed: TypeError: 'int' object"),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "wanted"), WRONG, ids=range(len(WRONG)))
def test_a_function_of_the_vendor_that_goes_wrong(
    fields: dict[str, Any], wanted: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """One line with the folder; and nothing of TVM's on stderr."""
    with pytest.raises(AcceleratorError) as caught:
        compile_on(chain("tanh"), [accelerator("a", operation("tanh", **fields))])
    caught.value.__traceback__ = caught.value.__cause__ = None  # a builder that is left open complains when it goes
    assert str(caught.value).startswith(A + wanted)
    assert "\n" not in str(caught.value)
    assert capfd.readouterr().err == ""


def test_a_stream_that_goes_wrong() -> None:
    asked = accelerator("a", operation("tanh", lower=None), operation("exp", lower=None), stream=failing("x"))
    with pytest.raises(
        AcceleratorError, match=r"^/home/vendor/a: stream, given tanh_0_to_exp_1, failed: KeyError: 'x'$"
    ):
        compile_on(chain("tanh", "exp"), [asked])


def test_a_region_is_told_all_that_is_known_of_it() -> None:
    seen: list[Region] = []

    def check(region: Region) -> None:
        seen.append(region)

    def body(block: FunctionBlock, inputs: list[Any]) -> Any:
        return block.emit(OP.matmul(inputs[0], relax.const(np.ones((3, 5), np.float32))), "matmul_0")

    partition(model_of(body), [accelerator("a", operation("matmul", check=check))], Wishes())
    (region,) = seen
    assert (region.root.name, region.root.op, str(region.output)) == ("matmul_0", "relax.matmul", "float32 [2,5]")
    assert region.macs == 2 * 5 * 3
    assert region.bytes_moved == 4 * (2 * 3 + 3 * 5 + 2 * 5)
    assert region.operands[0].constant is None
    np.testing.assert_array_equal(region.operands[1].value, np.ones((3, 5), np.float32))
    assert region.root.sources == ("x0", None)


def test_a_stream_lowers_what_it_takes_alone_as_well() -> None:
    lowered = []

    def stream(region: Region) -> Any:
        lowered.append([call.name for call in region.calls])
        return run(region)

    asked = accelerator("a", operation("tanh", lower=None), operation("exp"), stream=stream)
    compiled = compile_on(chain("tanh", "exp"), [asked])
    assert lowered == [["tanh_0"]]
    assert [layer.name for layer in compiled.program.layers] == ["tanh_0", "exp_1"], "one has a lowering of its own"
    assert whole("b", "tanh").stream is run


def test_operands_are_matched_in_their_order() -> None:
    """Only for Relax's own sums and products the order does not matter."""
    for name, either in (("add", True), ("multiply", True), ("subtract", False)):

        def body(block: FunctionBlock, inputs: list[Any], name: str = name) -> Any:
            exp = block.emit(OP.exp(inputs[0]), "exp")
            return block.emit(getattr(OP, name)(inputs[0], exp), "last")

        first, second = pattern(f"relax.{name}", "relax.exp"), pattern(f"relax.{name}", ANY, "relax.exp")
        for stated, matches in ((first, either), (second, True), (first | second, True)):
            done = partition(model_of(body), [accelerator("a", operation("fused", stated))], Wishes())
            assert set(engines(done).values()) == {"a" if matches else "cpu"}, name


@pytest.mark.parametrize("name", ["multiply", "divide", "add"])
def test_a_name_alone_is_tried_on_anything(name: str) -> None:
    """TVM's matcher looks into the operands of some patterns before it knows that they are there."""
    done = partition(model_of(residual), [accelerator("a", operation(name))], Wishes())
    assert [engine for engine in engines(done).values() if engine == "a"] == (["a"] if name == "add" else [])
