"""Models of a few Relax calls, and accelerators that exist in Python only: who computes what, and nothing besides."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from support.device.hostlib import Array
from support.oracle.exactness import assert_same
from uaccel.accelerator import Accelerator, Input, Operation, Output, Region, library_call
from uaccel.codegen.generate import generate
from uaccel.codegen.options import EmitOptions
from uaccel.lower.from_relax import lower
from uaccel.lower.placement import place
from uaccel.model import ImportedModel, Origin, Signature, TensorSpec
from uaccel.ops.operator import type_info
from uaccel.partition import Partitioned, Wishes, partition
from uaccel.pipeline import Compiled
from uaccel.tvm_api import FunctionBlock, ModuleBuilder, main_bindings, main_result, relax
from uaccel.tvm_api.executor import Executor

Body = Callable[[FunctionBlock, list[Any]], Any]
HOME = Path("/home/vendor")
"""Where the accelerators say they come from; nothing lies there."""


def model_of(body: Body, inputs: Sequence[Array] = (), *, named: Sequence[str] | None = None) -> ImportedModel:
    """``body`` binds calls with ``block.emit(expr, name)`` and returns the result. ``named``: bindings that are tensors
    of a model file; all of them, unless said."""
    values = list(inputs) or [np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3)]
    builder = ModuleBuilder()
    parameters = [relax.Var(f"x{i}", relax.TensorType(x.shape, str(x.dtype))) for i, x in enumerate(values)]
    with builder.function(parameters) as block:
        block.finish(body(block, parameters))
    bindings = main_bindings(builder.module)[1]
    ty = main_result(builder.module).ty
    sources = tuple(TensorSpec(var.name, type_info(var.ty)) for var in parameters)
    results = tuple(TensorSpec(f"y{i}", type_info(entry)) for i, entry in enumerate(getattr(ty, "fields", [ty])))
    tensors = {spec.name: spec for spec in sources}
    for var, _ in bindings:
        if not hasattr(var.ty, "fields") and (named is None or var.name in named):
            tensors[var.name] = TensorSpec(var.name, type_info(var.ty))
    origins = {var.name: Origin(i, "OP", var.name) for i, (var, _) in enumerate(bindings)}
    return ImportedModel("model", "relax", "", builder.module, Signature(sources, results), tensors, origins)


def chain(*operators: str) -> ImportedModel:
    """One after the other; each binding is called after its operator and place: tanh_0, exp_1, ..."""

    def body(block: FunctionBlock, inputs: list[Any]) -> Any:
        value = inputs[0]
        for number, operator in enumerate(operators):
            value = block.emit(getattr(relax.op, operator)(value), f"{operator}_{number}")
        return value

    return model_of(body)


def run(region: Region) -> Any:
    """A driver function of all inputs and outputs."""
    inputs = [Input(i) for i in range(len(region.inputs))]
    return library_call("tiny_run", *inputs, *(Output(i) for i in range(len(region.outputs))))


def operation(name: str, pattern: Any = None, lower: Any = run, **fields: Any) -> Operation:
    return Operation(name, f"relax.{name}" if pattern is None else pattern, lower, **fields)


def accelerator(name: str, *operations: Operation, **fields: Any) -> Accelerator:
    return Accelerator(name, f"the accelerator {name}", operations, ["tiny.h"], folder=HOME / name, **fields)


def whole(name: str, *operators: str, **fields: Any) -> Accelerator:
    """One that takes regions of these operators."""
    return accelerator(name, *(operation(entry, lower=None) for entry in operators), stream=run, **fields)


def engines(done: Partitioned) -> dict[str, str]:
    """By layer."""
    return {decision.layer: decision.engine for decision in done.decisions}


def reasons(done: Partitioned, layer: str) -> dict[str, list[str]]:
    """Of a layer: why not, by accelerator."""
    (decision,) = (decision for decision in done.decisions if decision.layer == layer)
    found: dict[str, list[str]] = {}
    for rejection in decision.rejections:
        found.setdefault(rejection.accelerator, []).append(rejection.reason)
    return found


def compile_on(
    model: ImportedModel,
    accelerators: Sequence[Accelerator],
    wishes: Wishes | None = None,
    *,
    cpu_fallback: bool = False,
) -> Compiled:
    """All of the compiler behind the import."""
    done = partition(model, accelerators, wishes or Wishes())
    program = lower(done, "model", cpu_fallback=cpu_fallback)
    return Compiled(generate(program, place(program), EmitOptions()), {"import": model.module, **done.stages}, done)


def assert_same_meaning(model: ImportedModel, stages: Mapping[str, Any]) -> None:
    """Each module computes what the model does, bit for bit: the accelerator's part by TVM."""
    generator = np.random.default_rng(5)
    values = [
        generator.integers(-128, 128, spec.info.shape).astype(spec.info.dtype) / (64 if "f" in spec.info.dtype else 1)
        for spec in model.signature.inputs
    ]
    inputs = [v.astype(spec.info.dtype) for v, spec in zip(values, model.signature.inputs, strict=True)]
    expected = Executor(model.module).run(inputs)
    for stage, module in stages.items():
        for number, (got, wanted) in enumerate(zip(Executor(module).run(inputs), expected, strict=True)):
            assert_same(got, wanted, f"output {number} after {stage}")
