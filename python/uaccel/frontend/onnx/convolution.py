"""Windows: what TVM's converters of convolutions leave out."""

from __future__ import annotations

from typing import Any

from uaccel.errors import need
from uaccel.frontend.onnx import fallback
from uaccel.frontend.onnx.convert import Context, Expr, converts
from uaccel.frontend.onnx.graph import Node


@converts("AveragePool", "Conv", "LpPool", "MaxPool")
def window(context: Context, node: Node) -> list[Expr]:
    """With the padding in numbers: TVM would pad before a convolution, in TIR that no later stage sees through."""
    mode = node.attributes.get("auto_pad", "NOTSET")
    need(len(node.outputs) == 1, "the indices of maxima, its second output, are not supported")
    if mode == "NOTSET":
        return fallback.convert(context, node)
    need(mode in ("SAME_UPPER", "SAME_LOWER", "VALID"), f"auto_pad {mode} is not known")
    attributes = {name: value for name, value in node.attributes.items() if name != "auto_pad"}
    extents = context.info(node.required_input(0)).shape[2:]
    kernel = attributes.get("kernel_shape")
    if kernel is None:
        kernel = context.info(node.required_input(1)).shape[2:]
    attributes["pads"] = _pads(mode, extents, kernel, attributes)
    return context.compute(node.op, [context.optional(name) for name in node.inputs], **attributes)


def _pads(mode: str, extents: tuple[int, ...], kernel: tuple[int, ...], attributes: dict[str, Any]) -> list[int]:
    """Amounts before, then amounts behind, each axis; SAME makes as many outputs as strides begin in the input."""
    rank = len(extents)
    if mode == "VALID":
        return [0] * (2 * rank)
    strides, dilations = (attributes.get(name, (1,) * rank) for name in ("strides", "dilations"))
    less, more = [], []
    for extent, size, stride, dilation in zip(extents, kernel, strides, dilations, strict=True):
        needed = (-(-extent // stride) - 1) * stride + (size - 1) * dilation + 1
        total = max(0, needed - extent)
        less.append(total // 2)
        more.append(total - total // 2)
    return [*less, *more] if mode == "SAME_UPPER" else [*more, *less]


@converts("ConvTranspose")
def conv_transpose(context: Context, node: Node) -> list[Expr]:
    """The shape of the output, where it is given, decides the padding."""
    wanted = node.attributes.get("output_shape")
    if not wanted:
        return fallback.convert(context, node)
    attributes = dict(node.attributes)
    del attributes["output_shape"]
    mode = attributes.pop("auto_pad", "NOTSET")
    data, weights = (context.info(node.required_input(position)).shape for position in (0, 1))
    rank = len(data) - 2
    wanted = wanted[-rank:]
    kernel = attributes.get("kernel_shape", weights[2:])
    strides = attributes.get("strides", (1,) * rank)
    dilations = attributes.get("dilations", (1,) * rank)
    extra = list(attributes.get("output_padding", (0,) * rank))
    before, after = [], []
    for axis in range(rank):
        full = strides[axis] * (data[2 + axis] - 1) + (kernel[axis] - 1) * dilations[axis] + 1
        total = full + extra[axis] - wanted[axis]
        if total < 0:
            extra[axis] -= total
            total = 0
        need(extra[axis] < max(strides[axis], dilations[axis]), f"output_shape {wanted} is too large")
        low = total // 2 if mode == "SAME_UPPER" else total - total // 2
        before.append(low)
        after.append(total - low)
    attributes |= {"pads": [*before, *after], "output_padding": extra}
    return context.compute("ConvTranspose", [context.optional(name) for name in node.inputs], **attributes)
