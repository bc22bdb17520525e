"""Which of PyTorch's operators are converted as they are, and which are first taken apart into simpler ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from uaccel.basics.quiet import quiet
from uaccel.errors import ModelError
from uaccel.frontend.checks import first_line

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
"""Kept whole where PyTorch would take them apart: they are what engines and integer operators are made for."""

FURTHER: Final = frozenset(
    {
        *("addmv.default", "any.default", "col2im.default", "dist.default", "grid_sampler_2d.default"),
        *("ldexp.Tensor", "select_scatter.default"),
    }
)
"""Taken apart though PyTorch would leave them whole: nothing converts them as they are."""

_BY_NAMESPACE: Final = frozenset({"quantized_decomposed", "torchao", "_operator"})


def name_of(target: Any) -> str:
    """``conv2d.default``: the operator and its overload; of a Python function its name."""
    return str(getattr(target, "__name__", target))


def namespace_of(target: Any) -> str:
    return str(getattr(target, "namespace", "") or getattr(target, "__module__", ""))


def decomposed(torch: Any, path: Path, exported: Any) -> Any:
    """The program in operators that only compute, the same ones where it is in such already."""
    if all(_is_plain(torch, node.target) for node in exported.graph.nodes if node.op == "call_function"):
        return exported
    try:
        with quiet():
            table = torch.export.default_decompositions()
            for target in list(table):
                if namespace_of(target) == "aten" and name_of(target) in WHOLE:
                    del table[target]
            known = torch._decomp.decomposition_table
            table.update({target: known[target] for target in known if name_of(target) in FURTHER})
            return exported.run_decompositions(table)
    except Exception as error:
        raise ModelError(
            f"{path}: PyTorch cannot take its operators apart: {first_line(error)}; export it again"
        ) from error


def _is_plain(torch: Any, target: Any) -> bool:
    """Whether it changes nothing in place, and would come out of a decomposition as it is."""
    if namespace_of(target) in _BY_NAMESPACE:
        return True
    if not isinstance(target, torch._ops.OpOverload) or target._schema.is_mutable:
        return False
    return name_of(target) not in FURTHER and (name_of(target) in WHOLE or torch.Tag.core in target.tags)
