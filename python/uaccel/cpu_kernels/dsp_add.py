"""Addition and subtraction for Arm's DSP extension."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from uaccel.cpu_kernels.output_stage import LARGEST_SHIFT
from uaccel.cpu_kernels.registry import offers
from uaccel.ops.add import Add, AddAttrs, Sub
from uaccel.ops.base import Site, get, operand_arguments
from uaccel.ops.kernel import Kernel, KernelCall, Output, ParameterValue, same

REQUIRES: Final = ("dsp",)
LOOPS: Final = ("extents", "strides1", "strides2")
HALF: Final = 1 << 30
LARGEST_RAISE: Final = 20
"""A difference of two bytes, raised and doubled, stays within 30 bits."""


@offers(Add, REQUIRES, rank=200)
def add(site: Site[AddAttrs]) -> Kernel | None:
    return sum_kernel(site, "arm_dsp", REQUIRES, subtract=0)


@offers(Sub, REQUIRES, rank=200)
def subtract(site: Site[AddAttrs]) -> Kernel | None:
    return sum_kernel(site, "arm_dsp", REQUIRES, subtract=1)


def sum_kernel(site: Site[AddAttrs], family: str, requires: tuple[str, ...], subtract: int) -> Kernel | None:
    """Of inputs that broadcast, or of one shape: Arm's kernels have loops, and their inputs on the common scale come
    with twice their value."""
    arm = family == "arm_dsp"
    portable = get(Sub if subtract else Add).kernels(site)[0]
    same_shape = all(operand.info.elements == site.output.elements for operand in site.operands)
    call = _call(site, family.removeprefix("arm_"), subtract, doubled=arm) if arm or same_shape else None
    if call is None:
        return None
    given = portable.calls[0].parameters
    loops = {field: given[field] for field in LOOPS} if arm else {"elements": site.output.elements}
    own = replace(call, parameters={**loops, **call.parameters})
    return Kernel(family, (own,), inplace=portable.inplace, requires=requires)


def _call(site: Site[AddAttrs], family: str, subtract: int, *, doubled: bool) -> KernelCall | None:
    """Of ``uaccel_add_<family>_s8``."""
    attrs, output = site.attrs, site.output
    shifts = (attrs.shift1, attrs.shift2, attrs.output_shift)
    exact = (
        all(-LARGEST_SHIFT <= shift <= 0 for shift in shifts)
        and attrs.output_shift < 0
        and 1 <= attrs.left_shift <= LARGEST_RAISE
    )
    if output.dtype != "int8" or not exact:
        return None
    shift = -attrs.output_shift
    parameters: dict[str, ParameterValue] = {
        **_side("first", attrs.left_shift + doubled, attrs.zero_point1, attrs.multiplier1, attrs.shift1),
        **_side("second", attrs.left_shift + doubled, attrs.zero_point2, attrs.multiplier2, attrs.shift2),
        "multiplier": attrs.output_multiplier,
        "offset": (1 << shift - 1) + (attrs.output_zero_point << shift),
        "shift": shift,
        **same(attrs, "clamp_min", "clamp_max"),
        "subtract": subtract,
    }
    arguments = operand_arguments(site.operands, ("first", "second"))
    name = f"uaccel_add_{family}"
    return KernelCall(f"{name}_s8", f"{name}.h", name, parameters, (*arguments, Output(0)))


def _side(name: str, raise_by: int, zero_point: int, multiplier: int, shift: int) -> dict[str, int]:
    """The fields of ``struct uaccel_add_dsp_side`` and its like; one with a multiplier of one half needs no product."""
    halved = multiplier == HALF and shift == 0
    raise_by -= halved
    return {
        f"{name}.shift": raise_by,
        f"{name}.offset": -(zero_point << raise_by),
        f"{name}.multiplier": 0 if halved else multiplier,
        f"{name}.exponent": -shift,
    }
