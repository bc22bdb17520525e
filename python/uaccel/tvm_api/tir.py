"""Wraps TIR: what the C printer needs to walk and prepare functions, and loops that fill tensors."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from tvm import s_tir
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as script
from tvm_ffi.structural import structural_walk

from uaccel.tvm_api import Op, relax, te, tirx, tvm
from uaccel.tvm_api.bounds import guarded
from uaccel.tvm_api.extremes import refusals

# TIR for the printer of plain C (``lower/tir/``): types, walking, and preparing functions.

Call = tvm.ir.Call
TensorLoad = tvm.ir.TensorLoad


ScheduleError = s_tir.schedule.ScheduleError


def dtype_of(expr: Any) -> str:
    """The element type of an expression of TIR or TE."""
    return str(expr.ty.dtype)


def buffer_dtype(buffer: Any) -> str:
    """The element type of a TIR buffer."""
    return str(buffer.ty.dtype.dtype)


def walk(root: Any, kind: type, visit: Callable[[Any], object]) -> None:
    """Call ``visit`` on every node of a type below ``root``."""

    def callback(node: Any) -> None:
        visit(node)

    structural_walk(root, (kind, callback))


def lower_intrinsic(call: Any) -> Any | None:
    """An intrinsic lowered by TVM's rule for targets that have no rule of their own; None without such a rule."""
    for key in ("default.FLowerIntrinsic", "default.FLegalize"):
        rule = call.op.get_attr(key) if isinstance(call.op, Op) else None
        lowered = rule(call) if rule is not None else None
        if lowered is not None and not lowered.same_as(call):
            return lowered
    return None


@refusals()
def lower_blocks(func: Any) -> Any:
    """A TIR function of blocks over tensors as loops over flat buffers."""
    passes = [
        tirx.transform.BindTarget(tvm.target.Target("c", host="c")),
        s_tir.transform.LowerInitBlock(),
        s_tir.transform.PlanAndUpdateBufferAllocationLocation(),
        s_tir.transform.ConvertBlocksToOpaque(),
        s_tir.transform.CompactBufferAllocation(),
        s_tir.transform.LowerMatchBuffer(),
        s_tir.transform.LowerOpaqueBlock(),
        tirx.transform.FlattenBuffer(),
        tirx.transform.StmtSimplify(),
        tirx.transform.RemoveNoOp(),
        tirx.transform.CommonSubexprElim(),
    ]
    module = tvm.IRModule({"main": func.with_attr("global_symbol", "main")})
    return tvm.transform.Sequential(passes)(module)["main"]


@refusals()
def legalise(call: Any, parameters: list[Any]) -> Any:
    """A module whose ``main`` computes an operator call with TIR functions, which stay inside their buffers."""
    from tvm.relax.backend import DispatchSortScan

    builder = relax.BlockBuilder()
    normal = builder.normalize(call)  # before a function is open: what fails inside one complains on stderr
    with builder.function("main", parameters):
        builder.emit_func_output(builder.emit(normal))
    with tvm.target.Target("llvm"):
        module = relax.transform.LegalizeOps()(DispatchSortScan()(builder.get()))
    for name, function in list(module.functions.items()):
        if isinstance(function, tirx.PrimFunc):
            module[name] = guarded(function)
    return module


def copying_function(shape: tuple[int, ...], dtype: str) -> Any:
    """A TIR function that copies a tensor."""
    source = te.placeholder(shape, dtype, name="source")
    return te.create_prim_func([source, te.compute(shape, lambda *index: source(*index), name="copy")])


def schedule(func: Any) -> Any:
    """TVM's scheduler on a module with this function as ``main``."""
    return s_tir.Schedule(tvm.IRModule({"main": func.with_attr("global_symbol", "main")}))


@refusals()
def with_plain_buffers(func: Any) -> Any:
    """The function with contiguous parameters that start at their pointer, where it left that open."""
    plain = {}
    for parameter in func.params:
        kind = parameter.ty
        if not isinstance(kind, tirx.BufferType):
            continue
        if not isinstance(kind.elem_offset, tirx.IntImm) or kind.strides:
            plain[parameter] = tirx.decl_buffer(kind.shape, kind.dtype, parameter.name)
    return func.specialize(plain) if plain else func


# Loops that fill tensors: for the meanings of operators whose results depend on earlier ones.


def te_extern_loops(
    outputs: list[tuple[tuple[int, ...], str]], inputs: list[Any], write: Callable[..., None], name: str
) -> list[Any]:
    """TE tensors of these shapes and types that ``write`` fills. It gets inputs and outputs as arrays, indexed as they
    lie in memory, and loops with ``count_to``. This is for results that depend on earlier ones."""

    def statement(sources: Any, targets: Any) -> Any:
        with IRBuilder() as builder:
            with count_to(1):  # arrays want a frame to stand in
                write(*(script.buffer_proxy(buffer) for buffer in (*sources, *targets)))
            return builder.get()

    shapes, dtypes = [shape for shape, _ in outputs], [dtype for _, dtype in outputs]
    made = te.extern(shapes, inputs, statement, name=name, dtype=dtypes)
    return [made] if len(shapes) == 1 else list(made)


def count_to(extent: int) -> Any:
    """A loop inside ``te_extern_loops``: ``with count_to(4) as i``."""
    return script.serial(0, extent)


@contextlib.contextmanager
def where(condition: Any) -> Iterator[None]:
    """A condition inside ``te_extern_loops``: ``with where(a[i] > 0)``."""
    with script.If(condition), script.Then():
        yield


def while_holds(condition: Any) -> Any:
    """A loop inside ``te_extern_loops`` that goes on while the condition holds."""
    return script.While(condition)


def local_array(count: int, dtype: str) -> Any:
    """An array inside ``te_extern_loops``."""
    return script.buffer_proxy(script.decl_buffer([count], dtype, scope="local"))


def te_let(value: Any) -> Any:
    """A value inside ``te_extern_loops`` that is computed once, however often expressions use it."""
    array = local_array(1, str(value.ty.dtype))
    array[0] = value
    return array[0]
