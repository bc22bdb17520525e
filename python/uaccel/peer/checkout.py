"""Finds CMSIS-NN where the user says it is."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from uaccel.errors import UaccelError

VARIABLE: Final = "UACCEL_CMSIS_NN"  # Names the checkout for the description, which a compilation loads by its folder.
URL: Final = "https://github.com/ARM-software/CMSIS-NN"
# What a checkout has, and nothing else does.
PARTS: Final = ("Include/arm_nnfunctions.h", "Source/ConvolutionFunctions/arm_convolve_wrapper_s8.c")


def require_checkout(folder: Path) -> Path:
    """Returns the folder of a checkout, absolute; raises an error that says what was looked for."""
    if not folder.is_dir():
        raise UaccelError(f"--against {folder}: there is no such folder; clone {URL} and name that")
    for part in PARTS:
        if not (folder / part).is_file():
            raise UaccelError(f"--against {folder}: it has no {part}; name a checkout of {URL}")
    return folder.resolve()
