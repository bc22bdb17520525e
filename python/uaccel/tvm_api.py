"""The one module that touches TVM's unstable names.

TVM moves names in every release (``tir`` became ``tirx``, FFI helpers wander). Everything else in uaccel imports
what it needs from here, so that a new TVM release is a change to this file and to the version pin.
"""

from __future__ import annotations

from typing import Any, Callable

import tvm
import tvm.ir._ffi_api as _ir_ffi
from tvm import relax, te, tirx
from tvm.ir import Op

__all__ = ["DictAttrs", "Op", "make_call", "register_operator", "relax", "te", "tirx", "tvm"]

DictAttrs = tvm.ir.DictAttrs


def register_operator(
    name: str,
    description: str,
    num_inputs: int,
    infer_type: Callable[[Any, Any], Any],
    legalize: Callable[[Any, Any], Any],
) -> Op:
    """Register a pure Relax operator; registering the same name twice is harmless."""
    if name not in Op.list_op_names():
        _ir_ffi.RegisterOp(name, description)
    operator = Op.get(name)
    operator.set_num_inputs(num_inputs)
    operator.set_attr("FInferType", infer_type)
    operator.set_attr("FPurity", True)
    operator.set_attr("FLegalize", legalize)
    return operator


def make_call(name: str, args: list[Any], attrs: dict[str, Any]) -> relax.Call:
    """A call to a registered operator with a dictionary of attributes."""
    return relax.Call(Op.get(name), args, tvm.ir.make_node("ir.DictAttrs", **attrs))
