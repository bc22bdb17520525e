"""Describes CMSIS-NN as an accelerator: what its functions compute, and which files of a checkout its driver is."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from uaccel.accelerator import Accelerator, Lowered, Operation, Region
from uaccel.peer import VARIABLE, functions, windows
from uaccel.util.reads import VARIABLE as ROW
from uaccel.util.reads import add_to_open, state

Known = tuple[Callable[[Region], "str | None"], Callable[[Region], Lowered]]

# Which operator of uaccel's a function of CMSIS-NN computes, with what it refuses.
OPERATIONS: Final[dict[str, Known]] = {
    "conv2d": (windows.no_convolution, windows.convolution),
    "depthwise_conv2d": (windows.no_depthwise, windows.depthwise),
    "transpose_conv2d": (windows.no_transposed, windows.transposed),
    "average_pool2d": (functions.no_quantised, windows.pool),
    "max_pool2d": (functions.no_quantised, windows.pool),
    "fully_connected": (functions.no_dense, functions.dense),
    "batch_matmul": (functions.no_product, functions.product),
    "add": (functions.no_elementwise, functions.add),
    "mul": (functions.no_elementwise, functions.mul),
    "softmax": (functions.no_softmax, functions.softmax),
    "softmax16": (functions.no_softmax, functions.softmax16),
}
# Sources for other types than the operators have: floats, and weights of four bits.
_LEFT_OUT: Final = re.compile(r"_(f16|f32|flt|s4)(_|\.|$)|_s4_")


class Library(Accelerator):
    """Takes its driver from the folder that a variable names, where headers lie apart from sources."""

    @property
    def files(self) -> dict[str, Path]:
        root = Path(os.environ.get(VARIABLE, ""))
        headers = {f"driver/{path.relative_to(root / 'Include')}": path for path in (root / "Include").rglob("*.h")}
        sources = {f"driver/{path.relative_to(root)}": path for path in (root / "Source").rglob("*.c")}
        kept = {name: path for name, path in sources.items() if not _LEFT_OUT.search(path.name)}
        return dict(sorted((headers | kept).items()))


_read = f"{ROW} {VARIABLE}"
add_to_open({_read: state(_read)})  # nobody sees that uaccel's own code reads a variable

ACCELERATOR = Library(
    name="cmsis_nn",
    description="CMSIS-NN, Arm's kernels for Cortex-M, from a checkout of its own",
    headers=["arm_nnfunctions.h"],
    alignment=8,
    keeps_channels=True,
    operations=[Operation(name, name, lower=lower, check=check) for name, (check, lower) in OPERATIONS.items()],
)
