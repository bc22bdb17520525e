"""Inputs that mean no element, and what generated C makes of them under sanitizers, compared with the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from support.models.onnx_rows import Given
from support.oracle.sanitized import run_sanitized
from uaccel.model import Array
from uaccel.pipeline import Compiled
from uaccel.tvm_api.executor import Executor

WRONG = (-1, 1, 3, 4, 5, 6, 20, -5, -6, -7, 2**31, -(2**31) - 1, 2**32, 2**32 + 1, 2**40 + 3, 2**62)
WRONG_REALS = (np.nan, np.inf, -np.inf, 1e30, -1e30, 2.0**31, -(2.0**31), 9.3e18, 5.0, -1.0, 0.0)
HOSTILE, LEGAL = 24, 3  # Runs.


def hostile(given: Given, rng: np.random.Generator, reals: bool) -> Array:
    """Values of which most mean no element; real numbers too, in every other run."""
    kind = np.dtype(given.dtype)
    if kind.kind in "iu":
        info = np.iinfo(kind)
        values = [info.min, info.max, *(value for value in WRONG if info.min <= value <= info.max)]
        return np.array(
            [values[i] for i in rng.integers(0, len(values), np.prod(given.shape, dtype=int))], kind
        ).reshape(given.shape)
    return rng.choice(np.array(WRONG_REALS, kind), given.shape) if reals and kind.kind == "f" else given.values(rng)


def runs_of(inputs: Sequence[Given]) -> tuple[list[list[Array]], list[list[Array]]]:
    """Samples with legal indices, and samples without."""
    rng = np.random.default_rng(1)
    legal = [[given.values(rng) for given in inputs] for _ in range(LEGAL)]
    return legal, [[hostile(given, rng, run % 2 == 1) for given in inputs] for run in range(HOSTILE)]


def differences(
    compiled: Compiled, inputs: Sequence[Given], wanted: Callable[[list[Array]], Sequence[Array]]
) -> list[str]:
    """What generated C computes otherwise than the runtime, of legal indices, or than the host, of any."""
    legal, wrong = runs_of(inputs)
    names = [spec.name for spec in compiled.model.signature.outputs]
    host, found = Executor(compiled.stages["import"]), []
    for number, (values, got) in enumerate(
        zip([*legal, *wrong], run_sanitized(compiled, [*legal, *wrong]), strict=True)
    ):
        for oracle, expected in (("host", host.run(values)), ("runtime", wanted(values) if number < LEGAL else got)):
            for name, one, other in zip(names, got, expected, strict=True):
                same = np.allclose(one.astype(float), np.reshape(other, one.shape).astype(float), 1e-4, 1e-4, True)
                found += [] if same else [f"{name}, run {number}: {one.ravel()[:6]}, {oracle} {np.ravel(other)[:6]}"]
    return found


def indices(shape: tuple[int, ...], low: int, high: int, dtype: str = "int64") -> Given:
    return Given(shape, dtype, low, high)
