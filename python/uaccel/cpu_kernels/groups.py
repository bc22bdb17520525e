"""A convolution in groups as one for each of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from uaccel.cpu_kernels.as_convolution import of_group
from uaccel.cpu_kernels.phases import Apart, Maker, moved
from uaccel.ops.base import Site
from uaccel.ops.conv2d import Conv2dAttrs
from uaccel.ops.kernel import Kernel

MOST_GROUPS: Final = 64
"""Each is a call with constants of its own."""


def by_groups(site: Site[Conv2dAttrs], make: Maker) -> Kernel | None:
    """All groups one after the other, each by the convolution's kernel."""
    groups = site.attrs.groups
    if groups > MOST_GROUPS:
        return None
    kernels = [kernel for kernel in (make(_apart(site, group)) for group in range(groups)) if kernel is not None]
    if len(kernels) < groups:
        return None
    data, output = site.operands[0].info, site.output
    into, out = (info.shape[3] // groups * info.itemsize for info in (data, output))
    calls = [moved(call, group * into, group * out) for group, kernel in enumerate(kernels) for call in kernel.calls]
    # Each group reads the whole image: nothing may lie over it.
    return replace(kernels[0], calls=tuple(calls), behind={})


def _apart(site: Site[Conv2dAttrs], group: int) -> Apart:
    own, (width, channels) = of_group(site, group), site.output.shape[2:]
    return Apart(own.attrs, own.operands, own.outputs, channels, width * channels, site.operands[0].info.shape[3])
