"""Wraps TIR: what the C printer needs to walk and prepare functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import s_tir
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
