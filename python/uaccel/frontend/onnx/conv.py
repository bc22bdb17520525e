"""Converts convolutions, pools and other operators on windows where TVM's converters fall short."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from uaccel.errors import need
from uaccel.frontend.onnx import functions
from uaccel.frontend.onnx.converter import Context, Expr, converts, static_info
from uaccel.frontend.onnx.graph import Node
from uaccel.ops.operator import get
from uaccel.ops.resize import Fold, MaxPositions, SpreadAttrs
from uaccel.ops.windows import SlidingWindow
from uaccel.tvm_api import relax


@converts("AveragePool", "Conv", "LpPool", "MaxPool")
def window(context: Context, node: Node) -> list[Expr]:
    """Put ``auto_pad`` into numbers: TVM would pad before a convolution, in TIR that later stages cannot analyse."""
    mode = node.attributes.get("auto_pad", "NOTSET")
    if mode == "NOTSET" and node.op == "LpPool" and node.attributes.get("ceil_mode", 0):
        return context.compute(node.op, [context.expr(node.required_input(0))], **_without_ceil(context, node))
    if mode == "NOTSET":
        return functions.convert(context, node) if len(node.outputs) == 1 else _with_positions(context, node)
    need(len(node.outputs) == 1, f"auto_pad {mode} with the positions of maxima; give pads in numbers")
    need(mode in ("SAME_UPPER", "SAME_LOWER", "VALID"), f"auto_pad {mode} is not known")
    attributes = {name: value for name, value in node.attributes.items() if name != "auto_pad"}
    extents = context.info(node.required_input(0)).shape[2:]
    kernel = attributes.get("kernel_shape")
    if kernel is None:
        kernel = context.info(node.required_input(1)).shape[2:]
    attributes["pads"] = _pads(mode, extents, kernel, attributes)
    return context.compute(node.op, [context.optional(name) for name in node.inputs], **attributes)


def _without_ceil(context: Context, node: Node) -> dict[str, Any]:
    """The attributes with as much padding behind as the last windows reach. No window begins in that padding.

    TVM's converter makes sums of averages, and takes all windows for full."""
    extents, kernel = context.info(node.required_input(0)).shape[2:], node.attributes["kernel_shape"]
    window, rank = _sliding(node.attributes, kernel), len(extents)
    behind = []
    for axis, extent in enumerate(extents):
        whole = extent + window.padding[axis]
        count = -(-(whole + window.padding[rank + axis] - window.extent(axis, 1)) // window.strides[axis]) + 1
        count -= window.place(axis, count - 1) >= extent
        behind.append(max(0, window.extent(axis, count) - whole))
    return {**node.attributes, "ceil_mode": 0, "pads": [*window.padding[:rank], *behind]}


def _sliding(attributes: Mapping[str, Any], kernel: Sequence[int]) -> SlidingWindow:
    """The windows of these attributes, as far as they are given."""
    rank = len(kernel)
    strides, dilations = (tuple(attributes.get(name, (1,) * rank)) for name in ("strides", "dilations"))
    return SlidingWindow(tuple(kernel), strides, dilations, tuple(attributes.get("pads", (0,) * (2 * rank))))


@converts("GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool")
def of_an_image(context: Context, node: Node) -> list[Expr]:
    """Pool over all axes behind the channels; TVM needs one at least."""
    rank = len(context.info(node.required_input(0)).shape)
    need(rank > 2, f"its input has rank {rank}, and only what lies behind batch and channels is pooled; wanted rank 3")
    return functions.convert(context, node)


def _pads(mode: str, extents: tuple[int, ...], kernel: tuple[int, ...], attributes: dict[str, Any]) -> list[int]:
    """Padding before, then behind, each axis. SAME gives ceil(extent / stride) outputs, and pads what they need."""
    rank = len(extents)
    if mode == "VALID":
        return [0] * (2 * rank)
    pads = _sliding(attributes, kernel).same(extents)
    return [*pads] if mode == "SAME_UPPER" else [*pads[rank:], *pads[:rank]]


@converts("ConvTranspose")
def conv_transpose(context: Context, node: Node) -> list[Expr]:
    """A given shape of the output decides the padding; beyond the full result ``output_padding`` adds elements."""
    wanted = node.attributes.get("output_shape")
    if not wanted:
        return functions.convert(context, node)
    attributes = dict(node.attributes)
    del attributes["output_shape"]
    mode = attributes.pop("auto_pad", "NOTSET")
    data, weights = (context.info(node.required_input(position)).shape for position in (0, 1))
    rank = len(data) - 2
    wanted = wanted[-rank:]
    window = _sliding(attributes, attributes.get("kernel_shape", weights[2:]))
    extra = list(attributes.get("output_padding", (0,) * rank))
    before, after = [], []
    for axis in range(rank):
        total = window.extent(axis, data[2 + axis]) + extra[axis] - wanted[axis]
        if total < 0:
            extra[axis] -= total
            total = 0
        need(extra[axis] < max(window.strides[axis], window.dilation[axis]), f"output_shape {wanted} is too large")
        low = total // 2 if mode == "SAME_UPPER" else total - total // 2
        before.append(low)
        after.append(total - low)
    attributes |= {"pads": [*before, *after], "output_padding": extra}
    return context.compute("ConvTranspose", [context.optional(name) for name in node.inputs], **attributes)


def _spread(attributes: Mapping[str, Any], image: tuple[int, ...], kernel: tuple[int, ...], **more: int) -> SpreadAttrs:
    rank, window = len(image), _sliding(attributes, kernel)
    fit = {len(kernel), len(window.strides), len(window.dilation), len(window.padding) // 2} == {rank}
    need(fit, f"its windows have another number of axes than {rank}")
    before, after = window.padding[:rank], window.padding[rank:]
    return SpreadAttrs(image, kernel, window.strides, window.dilation, before, after, **more)


def _with_positions(context: Context, node: Node) -> list[Expr]:
    """MaxPool with the positions of the maxima as a second output."""
    need(not node.attributes.get("ceil_mode", 0), "ceil_mode with the positions of maxima; give pads in numbers")
    name, attributes = node.required_input(0), node.attributes
    order = int(bool(attributes.get("storage_order", 0)))
    image = context.info(name).shape[2:]
    attrs = _spread(attributes, image, tuple(attributes["kernel_shape"]), column_major=order)
    whole = context.block.emit(get(MaxPositions)(context.expr(name), attrs=attrs), node.layer_name)
    return [context.normal(relax.TupleGetItem(whole, number)) for number in range(2)]


@converts("Col2Im")
def fold(context: Context, node: Node) -> Expr:
    """Add windows up to images where they overlap, as PyTorch's ``Fold`` does."""
    image, kernel = (
        tuple(int(extent) for extent in context.need_known(node.required_input(place), role).reshape(-1))
        for place, role in ((1, "image's shape"), (2, "window's shape"))
    )
    data, truths = context.expr(node.required_input(0)), context.info(node.inputs[0]).dtype == "bool"
    made = get(Fold)(relax.op.astype(data, "int32") if truths else data, attrs=_spread(node.attributes, image, kernel))
    return relax.op.astype(made, "bool") if truths else made


@converts("MaxUnpool")
def unpool(context: Context, node: Node) -> list[Expr]:
    """A given shape may only be larger than the usual one: zeros are added at the ends of axes."""
    inputs = [context.expr(name) for name in node.inputs[:2]]
    if not node.optional_input(2):
        return functions.convert(context, node)
    wanted = [int(extent) for extent in context.need_known(node.inputs[2], "shape").reshape(-1)]
    made = context.normal(context.compute(node.op, inputs, **node.attributes)[0])
    shape = static_info(made, node.outputs[0]).shape
    more = [extent - known for extent, known in zip(wanted, shape, strict=True)]
    need(min(more) >= 0, f"its result is {wanted}, wanted at least {list(shape)}")
    return [relax.op.nn.pad(made, [width for amount in more for width in (0, amount)], "constant", 0.0)]
