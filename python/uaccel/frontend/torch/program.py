"""Decides which operators and states a PyTorch program may have, and decomposes the others into simpler operators.

It also imports PyTorch and torchao when they are first needed. Loads no TVM.
"""

from __future__ import annotations

import math
import operator
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from uaccel.errors import ModelError, need
from uaccel.frontend.checks import first_line, need_elements, need_type
from uaccel.model import TensorInfo, TensorSpec, unique_names
from uaccel.util.files import imported, quiet

# Decomposition: which operators are converted as they are, and which are first taken apart into simpler ones.

# Kept whole where PyTorch would take them apart: accelerators and integer operators are made for these layers.
WHOLE: Final = frozenset(
    {
        *("conv1d.default", "conv2d.default", "conv_transpose1d.default", "conv_transpose2d.input"),
        *("linear.default", "matmul.default", "scaled_dot_product_attention.default"),
        *("avg_pool1d.default", "avg_pool2d.default", "max_pool1d.default", "max_pool2d.default"),
        *("adaptive_avg_pool1d.default", "adaptive_avg_pool2d.default"),
        *("hardswish.default", "hardsigmoid.default", "silu.default", "leaky_relu.default", "prelu.default"),
        *("relu6.default", "hardtanh.default", "elu.default", "gelu.default", "softmax.int", "log_softmax.int"),
        *("layer_norm.default", "group_norm.default", "flatten.using_ints", "reshape.default"),
        *("transpose.int", "contiguous.default", "pad.default", "constant_pad_nd.default"),
        *("upsample_nearest2d.vec", "upsample_linear1d.vec", "upsample_bilinear2d.vec", "pixel_shuffle.default"),
        *("lstm.input", "gru.input", "rnn_tanh.input", "rnn_relu.input"),
        *("split.Tensor", "split_with_sizes.default", "chunk.default", "stack.default", "square.default"),
    }
)

# Taken apart though PyTorch would leave them whole, because there is no converter for them.
FURTHER: Final = frozenset(
    {
        *("addmv.default", "any.default", "col2im.default", "dist.default", "grid_sampler_2d.default"),
        *("ldexp.Tensor", "select_scatter.default"),
    }
)

# Namespaces whose operators are never taken apart: quantisation must remain visible, and Python's are arithmetic.
_BY_NAMESPACE: Final = frozenset({"quantized_decomposed", "torchao", "_operator"})


def name_of(target: Any) -> str:
    """The name of an operator with its overload, such as ``conv2d.default``, or of a Python function."""
    return str(getattr(target, "__name__", target))


def namespace_of(target: Any) -> str:
    return str(getattr(target, "namespace", "") or getattr(target, "__module__", ""))


def decomposed(torch: Any, path: Path, exported: Any) -> Any:
    """Take operators apart until each is one that a converter might take, and none changes a tensor in place.

    PyTorch's table says how, less ``WHOLE`` and with ``FURTHER``. A program that needs none of it stays as it is.
    """
    if all(_has_converter(torch, node.target) for node in exported.graph.nodes if node.op == "call_function"):
        return exported
    try:
        with quiet():
            table = torch.export.default_decompositions()
            for target in list(table):
                namespace = namespace_of(target)
                if namespace in _BY_NAMESPACE or (namespace == "aten" and name_of(target) in WHOLE):
                    del table[target]
            known = torch._decomp.decomposition_table
            table.update({target: known[target] for target in known if name_of(target) in FURTHER})
            return exported.run_decompositions(table)
    except Exception as error:
        raise ModelError(
            f"{path}: PyTorch cannot take its operators apart: {first_line(error)}; export it again"
        ) from error


def _has_converter(torch: Any, target: Any) -> bool:
    """Whether an operator changes nothing in place, and a decomposition would leave it as it is."""
    if namespace_of(target) in _BY_NAMESPACE:
        return True
    if not isinstance(target, torch._ops.OpOverload) or target._schema.is_mutable:
        return False
    return name_of(target) not in FURTHER and (name_of(target) in WHOLE or torch.Tag.core in target.tags)


# Allowed operators: those that are converted, and those that PyTorch takes apart into such.
#
# PyTorch's own loader resolves a name wherever it leads, also to functions that do not compute. Here a name leads only
# to an operator of three libraries on tensors and numbers, or to arithmetic on extents.

_OPERATOR: Final = re.compile(
    r"torch\.ops\.(aten|quantized_decomposed|torchao)\.([A-Za-z0-9_]{1,80})\.([A-Za-z0-9_]{1,80})"
)
# Operators that compute nothing. What they check of shapes is checked when operators run on fake tensors.
_CHECKS: Final = frozenset(
    {
        *("_assert_tensor_metadata.default", "_assert_scalar.default", "_assert_async.msg"),
        *("sym_constrain_range.default", "sym_constrain_range_for_size.default"),
    }
)
# Operators that PyTorch removes or takes apart, too, though ``_is_allowed`` could not tell otherwise.
_BESIDES: Final = frozenset(
    {
        *(
            "lift_fresh_copy.default",
            "lift.default",
            "detach_.default",
            "_weight_norm.default",
            "_pad_circular.default",
        ),
        *("_upsample_bilinear2d_aa.vec", "_upsample_bicubic2d_aa.vec", "_fused_rms_norm.default"),
        *("_upsample_nearest_exact1d.vec", "_upsample_nearest_exact2d.vec", "_upsample_nearest_exact3d.vec"),
    }
)
# Operators that find scales at run time begin so. ``check_operator`` says which of them are refused.
MEASURING: Final = ("choose_qparams",)
# The types that arguments and results of an allowed operator may be made of.
_TYPES: Final = re.compile(r"(Optional\[|List\[|\]|Tensor|int|float|bool|str|number|Device|Generator)+")

_COMPARING: Final = ("eq", "ne", "le", "ge", "lt", "gt")
_COMPUTING: Final = ("neg", "pos", "mul", "add", "sub", "floordiv", "mod", "truediv")
# Functions that programs apply to extents.
ARITHMETIC: Final[dict[str, Callable[..., Any]]] = (
    {f"_operator.{name}": getattr(operator, name) for name in _COMPARING + _COMPUTING}
    | {"math.ceil": math.ceil, "math.floor": math.floor, "math.trunc": math.trunc, "torch.sym_not": operator.not_}
    | {"torch.sym_max": max, "torch.sym_min": min, "torch.sym_int": int, "torch.sym_float": float}
)


def resolved(torch: Any, target: str, table: Any, known: Callable[[Any], bool]) -> Any:
    """The operator of this name, or None for one that no program may call.

    ``table`` has the operators that PyTorch takes apart; ``known`` says whether an operator has a converter.
    """
    match = _OPERATOR.fullmatch(target)
    if match is None:
        return None
    library, name, overload = match.groups()
    packet = getattr(getattr(torch.ops, library), name, None)
    if not isinstance(packet, torch._ops.OpOverloadPacket) or overload not in packet.overloads():
        return None
    found = getattr(packet, overload)
    if not _is_plain(found):
        return None
    if library == "aten":
        return found if _is_allowed(torch, found, table, known) else None
    return found if known(found) or name.startswith(MEASURING) else None


def _is_plain(found: Any) -> bool:
    """Whether an operator takes and gives only values of ``_TYPES``, and writes to no ``out`` argument."""
    types = [str(entry.type) for entry in (*found._schema.arguments, *found._schema.returns)]
    out = any(entry.is_out for entry in found._schema.arguments)
    return not out and all(_TYPES.fullmatch(text) for text in types)


def _is_allowed(torch: Any, found: Any, table: Any, known: Callable[[Any], bool]) -> bool:
    """Whether an ATen operator can be converted, or be taken apart into such as can.

    Core operators are allowed, since decompositions end in them, and random ones, which ``check_operator`` refuses with
    a better reason. So are operators that PyTorch itself defines by others, unless they are private, and those in the
    table. An in-place one, such as ``relu_``, is allowed if its functional twin is.
    """
    name = found.__name__
    if name in _CHECKS or name in _BESIDES or name in WHOLE or name in FURTHER or known(found):
        return True
    if torch.Tag.core in found.tags or torch.Tag.nondeterministic_seeded in found.tags:
        return True
    if torch._C._dispatch_has_kernel_for_dispatch_key(found.name(), "CompositeImplicitAutograd"):
        return not name.startswith("_") or name.startswith("__")
    if found in table:
        return True
    base, _, overload = name.partition(".")
    pure = getattr(torch.ops.aten, base[:-1], None) if base.endswith("_") and not base.endswith("__") else None
    return (
        pure is not None and overload in pure.overloads() and _is_allowed(torch, getattr(pure, overload), table, known)
    )


# PyTorch and torchao, which are optional: imported when a model needs them, with their output suppressed.

ADVICE = (
    "install its build for CPUs: pip install torch --index-url https://download.pytorch.org/whl/cpu "
    "&& pip install 'uaccel[torch]'"
)


def torch_package() -> Any:
    """Import PyTorch, and register the operators ``torch.ops.quantized_decomposed`` of quantised programs."""
    for name in ("torch", "torch.ao.quantization.fx._decomposed", "torch.export"):
        imported(name, ModelError, "reading .pt2 files takes PyTorch, and importing it", ADVICE)
    return sys.modules["torch"]


def register_torchao() -> None:
    """Register the operators ``torch.ops.torchao``."""
    imported("torchao.quantization.pt2e", ModelError, "the model was quantised by torchao, and importing it", ADVICE)


# Requirements on the whole program: fixed shapes, no state but buffers, and outputs that are tensors.

DTYPES = ("float16", "float32", "float64", "int8", "uint8", "int16", "int32", "int64", "bool")
EVAL = "call model.eval() before exporting"


@dataclass(frozen=True)
class TorchProgram:
    """Holds an exported program of fixed shapes.

    ``nodes`` has the places in the file of its operators, by the names of the program's nodes. ``stored`` has the
    file's names of stored tensors, by the program's names. The first outputs of the graph are what ``kept`` become.
    """

    exported: Any
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    nodes: Mapping[str, int]
    stored: Mapping[str, str]
    kept: tuple[str, ...]


def user_inputs(exported: Any) -> list[Any]:
    """The placeholders of the tensors that a caller gives."""
    names = set(exported.graph_signature.user_inputs)
    return [node for node in exported.graph.nodes if node.op == "placeholder" and node.name in names]


def info_of_value(value: Any) -> TensorInfo:
    """Type and shape of a tensor of PyTorch's, a real or a fake one."""
    return TensorInfo(tuple(int(extent) for extent in value.shape), str(value.dtype).removeprefix("torch."))


def check_changes(path: Path, exported: Any, stored: Mapping[str, str]) -> None:
    """Check that a program writes to buffers alone. The signature shows that once it is decomposed."""
    signature = exported.graph_signature
    buffers = [stored.get(name, name) for name in signature.buffers_to_mutate.values()]
    statistics = [name for name in buffers if name.endswith(("running_mean", "running_var", "num_batches_tracked"))]
    need(not statistics, f"{path}: the program is in training, it changes {', '.join(statistics)}; {EVAL}")
    parameters = getattr(signature, "parameters_to_mutate", {}).values()
    inputs = [f"input {name}" for name in signature.user_inputs_to_mutate.values()]
    check_unchanged(path, [*(stored.get(name, name) for name in parameters), *inputs])


def check_unchanged(path: Path, changed: list[str]) -> None:
    """Raise ModelError if there are parameters or inputs that the program writes to."""
    if changed:
        raise ModelError(
            f"{path}: the program changes its parameters or inputs ({', '.join(changed)}); "
            "keep what lasts in a buffer (register_buffer)"
        )


def input_specs(path: Path, nodes: list[Any]) -> tuple[TensorSpec, ...]:
    specs = tuple(TensorSpec(node.name, info_of_value(node.meta["val"])) for node in nodes)
    for spec in specs:
        need_type(spec.info.dtype, DTYPES, f'{path}: input "{spec.name}"')
        need_elements(spec.info, f'{path}: input "{spec.name}"')
    return specs


def output_specs(path: Path, nodes: list[Any]) -> tuple[TensorSpec, ...]:
    specs = []
    for number, node in enumerate(nodes):
        value: Any = getattr(node, "meta", {}).get("val")
        if not hasattr(value, "shape"):
            raise ModelError(f"{path}: output {number} is no tensor; return tensors only")
        specs.append(TensorSpec(node.name, info_of_value(value)))
    need(specs, f"{path} has no outputs; nothing to compute")
    names = unique_names(spec.name for spec in specs)
    return tuple(replace(spec, name=name) for spec, name in zip(specs, names, strict=True))
