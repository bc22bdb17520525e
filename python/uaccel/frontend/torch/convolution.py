"""Convolutions of one image or line, without a batch: TVM's converter wants one."""

from __future__ import annotations

from typing import Any, Final

from uaccel.frontend.torch.convert import Context, Expr, arguments, converts
from uaccel.tvm_api import relax

CONVOLUTIONS: Final = {"aten.conv1d.default": relax.op.nn.conv1d, "aten.conv2d.default": relax.op.nn.conv2d}


def _is_single(node: Any) -> bool:
    return len(node.args[0].meta["val"].shape) < len(node.args[1].meta["val"].shape)


@converts(*CONVOLUTIONS, when=_is_single)
def convolution(context: Context, node: Any) -> Expr:
    given = arguments(node)
    batch = context.emit(relax.op.expand_dims(context.expr(given["input"]), 0))
    options = {name: list(map(int, given[kind])) for name, kind in (("strides", "stride"), ("dilation", "dilation"))}
    padding = [int(amount) for amount in given["padding"]] * 2
    made = CONVOLUTIONS[str(node.target)]
    value = context.emit(
        made(batch, context.expr(given["weight"]), padding=padding, groups=int(given["groups"]), **options)
    )
    if given["bias"] is not None:
        extents = [-1] + [1] * len(options["strides"])
        value = context.emit(relax.op.add(value, context.emit(relax.op.reshape(context.expr(given["bias"]), extents))))
    return relax.op.squeeze(value, [0])
