"""An accelerator as UMA's example describes one: a function, no device, weights that come at run time."""

from uaccel.accelerator import Accelerator, Input, KernelCall, Operation, Output, Region, library_call


def fits(region: Region) -> str | None:
    attrs = region.attrs
    return None if attrs.strides == (1, 1) and attrs.groups == 1 else f"strides {attrs.strides}, {attrs.groups} groups"


def conv2d(region: Region) -> KernelCall:
    (_, ic, ih, iw), (oc, _, kh, kw) = (operand.info.shape for operand in region.operands)
    return library_call("my_ai_hw_conv2dnchw", Input(0), Input(1), Output(0), oc, iw, ih, ic, kh, kw)


ACCELERATOR = Accelerator(
    name="my_ai_hw",
    description="float32 convolutions, as UMA's example has them",
    headers=["my_ai_hw.h"],
    tolerance=1e-5,
    operations=[Operation("conv2d", "relax.nn.conv2d", conv2d, fits)],
)
