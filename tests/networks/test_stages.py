"""The module stays executable, and means the same, from stage to stage."""

from __future__ import annotations

import numpy as np
import pytest

from networks.stages import assert_stages_agree
from support.models.networks import Network, each_network
from support.oracle.oracle import random_inputs
from uaccel.errors import ModelError
from uaccel.ops.operator import constant
from uaccel.partition.passes.simplify import FoldConstants, RemoveDeadCode
from uaccel.pipeline import compile_model
from uaccel.tvm_api import is_call, main_bindings, relax
from uaccel.tvm_api.executor import Executor


@pytest.mark.sample(2)
@each_network
def test_stages_agree(network: Network) -> None:
    if network.float_outputs:
        pytest.skip("float arithmetic of two compilers agrees to rounding only; test_exact.py holds it")
    compiled = compile_model(network.path, board="host")
    inputs = random_inputs(network.path.read_bytes(), 3, 2)
    assert assert_stages_agree(compiled, inputs) == ["import", "simplify", "generated C"]


def module_with_constants() -> object:
    """(x + exp(1 + 1)), with a binding that nobody reads and a tuple of constants."""
    ones = constant(np.ones(4, np.float32))
    x = relax.Var("x", relax.TensorType((4,), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            two = builder.emit(relax.op.add(ones, ones), "two")
            grown = builder.emit(relax.op.exp(two), "grown")
            builder.emit(relax.op.exp(x), "unread")
            halves = builder.emit(relax.op.split(ones, 2), "halves")
            joined = builder.emit(relax.op.concat([halves[0], halves[1]]), "joined")
            total = builder.emit(relax.op.add(x, grown), "total")
            result = builder.emit_output(relax.op.multiply(total, joined))
        builder.emit_func_output(result)
    return builder.get()


def names(module: object) -> list[str]:
    return [var.name for var, _ in main_bindings(module)[1]]


def test_dead_code_is_removed() -> None:
    assert "unread" in names(module_with_constants())
    assert "unread" not in names(RemoveDeadCode()(module_with_constants()))


def test_constants_are_folded_through_chains_and_mean_the_same() -> None:
    module = module_with_constants()
    folded = FoldConstants()(module)
    assert not {"two", "grown"} & set(names(folded))
    assert {"halves", "joined", "total"} <= set(names(folded)), "a tuple is computed at run time"
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(Executor(folded).run([x])[0], Executor(module).run([x])[0])


def test_many_constants_are_computed_by_few_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two for 40 calls, as each program takes long to start; a weight's second change reads the first one's result."""
    values = [np.arange(number, number + 6, dtype=np.float16).reshape(2, 3) for number in range(20)]
    x = relax.Var("x", relax.TensorType((3, 2), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            total = x
            for value in values:
                wide = builder.emit(relax.op.astype(constant(value), "float32"))
                total = builder.emit(relax.op.add(total, relax.op.permute_dims(wide)))
            result = builder.emit_output(total)
        builder.emit_func_output(result)
    built: list[object] = []

    class Counted(Executor):
        def __init__(self, module: object) -> None:
            built.append(module)
            super().__init__(module)

    monkeypatch.setattr("uaccel.tvm_api.executor.Executor", Counted)
    folded = FoldConstants()(builder.get())
    assert len(built) == 2
    assert {str(expr.op.name) for _, expr in main_bindings(folded)[1] if is_call(expr)} == {"relax.add"}
    (found,) = Executor(folded).run([np.zeros((3, 2), np.float32)])
    np.testing.assert_array_equal(found, sum(value.astype(np.float32).T for value in values))


def test_a_module_without_constants_is_left_alone() -> None:
    module = module_free_of_constants()
    assert FoldConstants()(module) is module


def module_free_of_constants() -> object:
    x = relax.Var("x", relax.TensorType((4,), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            result = builder.emit_output(relax.op.exp(x))
        builder.emit_func_output(result)
    return builder.get()


def test_constants_that_take_too_long_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of many small calls costs as much as compiling it."""
    monkeypatch.setattr("uaccel.partition.passes.simplify.MOST_SECONDS", -1.0)
    with pytest.raises(ModelError) as caught:
        FoldConstants()(module_with_constants())
    assert str(caught.value) == (
        "what the model computes from constants alone takes more than -1 s of a processor; "
        "compute it before you export the model"
    )
