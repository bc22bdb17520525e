"""vanilla: a float32 convolution in NCHW with 'same' padding, and nothing else. The smallest complete accelerator."""

from typing import Any

import numpy as np

from uaccel.accelerator import (
    Accelerator,
    Constant,
    Expansion,
    Input,
    KernelCall,
    Operation,
    Output,
    Region,
    constant,
    library_call,
    permuted,
    relax,
)

LARGEST_KERNEL = 16
LINE = 1024
START_UP = 20
TO_NCHW, TO_NHWC = (0, 3, 1, 2), (0, 2, 3, 1)


def same(extent: int) -> tuple[int, int]:
    """Rows or columns of zeros before and after, so that the output is as large as the input."""
    return (extent - 1) // 2, extent // 2


def weights_oihw(region: Region) -> Any:
    axes = [region.attrs.kernel_layout.index(axis) for axis in "OIHW"]
    return np.ascontiguousarray(region.operands[1].value.transpose(axes))


def can_convolve(region: Region) -> str | None:
    (data, weights), attrs = region.operands, region.attrs
    if not data.info.dtype == weights.info.dtype == region.output.dtype == "float32":
        return f"{data.info.dtype} times {weights.info.dtype} gives {region.output.dtype}, and it computes float32 only"
    if weights.constant is None:
        return "its weights are computed at run time, wanted constants"
    if attrs.data_layout not in ("NCHW", "NHWC") or attrs.out_layout not in ("", attrs.data_layout):
        return f"layout {attrs.data_layout} to {attrs.out_layout}, wanted NCHW or NHWC, the output like the input"
    if attrs.groups != 1:
        return f"{attrs.groups} groups, and it has none"
    if attrs.strides != (1, 1) or attrs.dilation != (1, 1):
        return f"strides {attrs.strides} and dilation {attrs.dilation}, and it has neither"
    return wrong_shape(region)


def wrong_shape(region: Region) -> str | None:
    shape, padding = region.operands[0].info.shape, region.attrs.padding
    batch, width = shape[0], shape[region.attrs.data_layout.index("W")]
    height_of_kernel, width_of_kernel = weights_oihw(region).shape[2:]
    (top, bottom), (left, right) = same(height_of_kernel), same(width_of_kernel)
    if padding != (top, left, bottom, right):
        return f"padding {padding}, and it pads 'same', here {(top, left, bottom, right)}"
    if max(height_of_kernel, width_of_kernel) > LARGEST_KERNEL:
        return f"kernel {height_of_kernel}x{width_of_kernel}, and its largest is {LARGEST_KERNEL}x{LARGEST_KERNEL}"
    if batch != 1 or width > LINE:
        return f"batch {batch} of lines of {width}, and it takes batch 1 and lines of {LINE}"
    return None


def as_nchw(expansion: Expansion, region: Region, inputs: list[Any]) -> Any:
    weights, turned = constant(weights_oihw(region)), region.attrs.data_layout == "NHWC"

    def convolution(data: Any) -> Any:
        return relax.op.nn.conv2d(data, weights, padding=list(region.attrs.padding))

    data = permuted(expansion, inputs[0], TO_NCHW, "nchw") if turned else inputs[0]
    result = expansion.engine(convolution, [data], "convolved")
    return relax.op.permute_dims(result, list(TO_NHWC)) if turned else result


def convolve(region: Region) -> KernelCall:
    (data, weights) = region.operands
    return library_call(
        "vanilla_conv2d",
        Input(0),
        Constant("weights", weights.value),
        Output(0),
        *data.info.shape[1:],
        weights.info.shape[0],
        *weights.info.shape[2:],
    )


def cycles(region: Region) -> float:
    return START_UP + region.macs


ACCELERATOR = Accelerator(
    name="vanilla",
    description="float32 convolution in NCHW with 'same' padding and stride 1",
    headers=["vanilla.h"],
    page="../../docs/bring-your-accelerator.md#ways-to-call-the-hardware",
    tolerance=1e-5,
    operations=[Operation("conv2d", "relax.nn.conv2d", convolve, can_convolve, cycles, as_nchw)],
)
