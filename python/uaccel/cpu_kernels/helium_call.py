"""How the kernels of Arm Helium are called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from uaccel.ops.exact import limits
from uaccel.ops.kernel import Argument, Kernel, KernelCall, ParameterValue

REQUIRES: Final = ("helium",)


def helium_kernel(
    name: str,
    parameters: dict[str, ParameterValue],
    arguments: tuple[Argument, ...],
    scratch: int = 0,
    inplace: tuple[int, ...] = (),
    suffix: str = "s8",
    behind: Mapping[int, int] | None = None,
) -> Kernel:
    header, struct = f"uaccel_{name}_helium.h", f"uaccel_{name}_helium"
    call = KernelCall(f"{struct}_{suffix}", header, struct, parameters, arguments)
    return Kernel("arm_helium", (call,), scratch=scratch, inplace=inplace, requires=REQUIRES, behind=behind or {})


def finish_parameters(
    zero_point: int, way: int, clamp_min: int, clamp_max: int, dtype: str = "int8"
) -> dict[str, ParameterValue]:
    """The fields of ``struct uaccel_helium_finish``."""
    return {
        "finish.zero_point": zero_point,
        "finish.lowest": clamp_min,
        "finish.highest": clamp_max,
        "finish.sign": int(way),
        "finish.clamp": int((clamp_min, clamp_max) != limits(dtype)),
    }
