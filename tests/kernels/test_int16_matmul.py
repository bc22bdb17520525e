"""Products of int16 matrices: which of them the fast kernels take, and sums that need more than 32 bits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from support.models.relax_modules import compiled_module, module_of
from uaccel.board import load_board
from uaccel.kernels import Target, Turn, candidates
from uaccel.kernels.choice import Selection
from uaccel.model import TensorInfo
from uaccel.ops.exact import FLOAT32
from uaccel.ops.matmul import BatchMatmul, BatchMatmulAttrs
from uaccel.ops.operator import Operand, Site, get
from uaccel.runner.compiled import run_compiled
from uaccel.tvm_api import relax

ANY = Target.of("native", ["embedded"])
M4 = Target.of("cortex-m4", ["dsp", "fpu", "embedded"])
M55 = Target.of("cortex-m55", ["dsp", "helium", "fpu", "embedded"])
ATTRS = BatchMatmulAttrs(False, False, 0, 0, 0, 1 << 30, -12)
LARGEST, LOWEST = 1 << 13, -(1 << 15)
PORTABLE = "uaccel_batch_matmul_s16"


@pytest.mark.parametrize(
    ("target", "attrs", "depth", "first"),
    [
        (ANY, ATTRS, LARGEST, f"{PORTABLE}_blocked"),
        (M4, ATTRS, LARGEST, f"{PORTABLE}_dsp"),
        (M55, ATTRS, LARGEST, f"{PORTABLE}_helium"),
        (M4, ATTRS, LARGEST + 1, PORTABLE),
        (M4, replace(ATTRS, lhs_zero_point=1), 8, PORTABLE),
        (M4, replace(ATTRS, rhs_zero_point=-1), 8, PORTABLE),
        (M4, replace(ATTRS, rounding=FLOAT32), 8, f"{PORTABLE}_float32"),
    ],
)
def test_which_are_taken(target: Target, attrs: BatchMatmulAttrs, depth: int, first: str) -> None:
    sides = tuple(Operand(TensorInfo(shape, "int16")) for shape in ((3, depth), (depth, 5)))
    site = Site(attrs, sides, (TensorInfo((3, 5), "int16"),))
    assert candidates(get(BatchMatmul), site, target)[0].calls[0].function == first


def test_the_largest_sums_are_exact(tmp_path: Path) -> None:
    """Of 2**43; and of terms as large that cancel, so that the low bits of each count."""
    left, right = np.full((3, LARGEST), LOWEST, np.int16), np.full((LARGEST, 5), LOWEST, np.int16)
    turns = np.where(np.arange(LARGEST) % 2, LOWEST, -LOWEST - 1).astype(np.int16)
    samples = [[left, right], [np.tile(turns, (3, 1)), np.full_like(right, -LOWEST - 1)]]
    module = module_of(samples[0], lambda x, y: relax.Tuple([get(BatchMatmul)(x, y, attrs=ATTRS)]))
    compiled = compiled_module(module, selection=Selection(ANY, Turn(0)))
    assert compiled.program.layers[0].kernel.calls[0].function == f"{PORTABLE}_blocked"
    run = run_compiled(compiled, load_board("host"), samples, tmp_path / "p", lambda step: None).run
    for (result,), value in zip(run.outputs, (32767, -16383), strict=True):
        assert np.array_equal(result, np.full((3, 5), value, np.int16))
