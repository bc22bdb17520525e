"""Modules that come from no model file: built in a test from a few Relax calls, executed and compiled as they stand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from support.device.hostlib import Array
from uaccel.codegen.generate import generate
from uaccel.codegen.options import EmitOptions
from uaccel.kernels.choice import ANY_CPU, Selection
from uaccel.lower.from_relax import lower
from uaccel.lower.placement import place
from uaccel.lower.program import Program
from uaccel.model import ImportedModel, Signature, TensorSpec
from uaccel.ops.operator import type_info
from uaccel.partition import Partitioned, Wishes, partition
from uaccel.pipeline import Compiled
from uaccel.tvm_api import ModuleBuilder, main_bindings, main_result, relax

Build = Callable[..., Any]


def module_of(inputs: Sequence[Array], build: Build) -> Any:
    """The module whose result is ``build`` of variables x0, x1, ... like the inputs."""
    builder = ModuleBuilder()
    parameters = [relax.Var(f"x{i}", relax.TensorType(x.shape, str(x.dtype))) for i, x in enumerate(inputs)]
    with builder.function(parameters) as block:
        block.finish(build(*parameters))
    return builder.module


def compiled(inputs: Sequence[Array], build: Build, options: EmitOptions | None = None) -> Compiled:
    """``module_of`` the same, through the compiler without any front end."""
    return compiled_module(module_of(inputs, build), options)


def compiled_module(
    module: Any, options: EmitOptions | None = None, selection: Selection = ANY_CPU, name: str = "model"
) -> Compiled:
    partitioned, program = lowered(module, selection, name)
    generated = generate(program, place(program), options or EmitOptions())
    return Compiled(generated, {"import": module}, partitioned)


def lowered(module: Any, selection: Selection = ANY_CPU, name: str = "model") -> tuple[Partitioned, Program]:
    ty = main_result(module).ty
    inputs = tuple(TensorSpec(var.name, type_info(var.ty)) for var in main_bindings(module)[0])
    outputs = tuple(TensorSpec(f"y{i}", type_info(entry)) for i, entry in enumerate(getattr(ty, "fields", [ty])))
    model = ImportedModel(name, "relax", "00" * 32, module, Signature(inputs, outputs), {}, {})
    partitioned = partition(model, [], Wishes())
    return partitioned, lower(partitioned, name, selection=selection)
