"""Every operator that rounds once gives on boards, and under sanitizers, what it means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from ops.rounded_once import Case, module_of, samples_of
from ops.rounded_once_cases import Pool, binary, gate, norm, reduction, slopes, softmax
from support.device.boards import board_with_tools
from support.device.hostlib import Array
from support.models.relax_modules import compiled_module
from support.oracle.exactness import assert_same
from support.oracle.sanitized import POOL, run_sanitized
from uaccel import memory
from uaccel.board import load_board
from uaccel.codegen.options import EmitOptions
from uaccel.runner.compiled import run_compiled
from uaccel.tvm_api.executor import Executor


def cases() -> list[Case]:
    pool = Pool(padding=(1, 0, 1, 2), include=True, strides=(2, 1))
    found = [binary(operator, dtype=dtype) for operator in ("Add", "Sub", "Mul") for dtype in ("int8", "int16")]
    found += [binary("Add", shapes=((1, 3, 3, 8), (1, 1, 1, 8))), binary("Mul", shapes=((2, 1, 4, 1), (1, 3, 1, 5)))]
    found += [binary(name, (0.3, 0.2, 4e-10), (-128, 127, 5), dtype="int16") for name in ("Sub", "Mul")]  # saturates
    found += [reduction((1, 5, 4, 8), (1, 2), dtype=dtype) for dtype in ("int8", "int16")]
    found += [replace(pool, dtype=dtype).case for dtype in ("int8", "int16")]
    found += [replace(pool, include=False, maximum=True, dilation=(2, 1)).case]
    found += [softmax((3, 40)), softmax((3, 5), wanted=(1e30, 7)), softmax((2, 9), wanted=(1e-8, 7))]
    found += [softmax((3, 20), wanted=(1 / 32768, 0), dtype="int16")]
    found += [norm((3, 64)), norm((5, 3), (1e-3, 0)), norm((4, 1)), norm((2, 5), wanted=(1e6, 5))]
    found += [norm((3, 64), (3e-4, 700), (2e-4, -900), dtype="int16")]
    found += [gate(("tanh", "sigmoid")), gate(shapes=((2, 4, 40), (4, 1)), clamp=(7, 60))]
    found += [slopes(0.1, -0.4, 1.5), slopes(0.2, 0.3, scales=(3e-4, 2e-4), dtype="int16")]
    return found


Runs = list[list[Array]]


@dataclass(frozen=True)
class Meant:
    """A module of all cases, some inputs, and the outputs that they mean."""

    module: Any
    samples: Runs
    outputs: Runs


@pytest.fixture(scope="module")
def meant() -> Meant:
    module = module_of(cases())
    samples = [[value for values in run for value in values] for run in samples_of(cases(), 11, 3)]
    executor = Executor(module)
    return Meant(module, samples, [executor.run(sample) for sample in samples])


def assert_outputs(found: Sequence[Sequence[Array]], meant: Meant, what: str) -> None:
    for outputs, expected in zip(found, meant.outputs, strict=True):
        for number, (got, wanted) in enumerate(zip(outputs, expected, strict=True)):
            assert_same(got, wanted, f"output {number} {what}")


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["host", "mps2_an386"])
def test_same_bytes(name: str, meant: Meant, tmp_path: Path) -> None:
    board = load_board(name) if name == "host" else board_with_tools(name)
    compiled = compiled_module(meant.module)
    assert_outputs(run_compiled(compiled, board, meant.samples, tmp_path, lambda step: None).run.outputs, meant, name)


@pytest.mark.slow
def test_clean_under_sanitizers(meant: Meant) -> None:
    compiled = compiled_module(meant.module, EmitOptions(pools=(memory.Pool(POOL),)))
    assert_outputs(run_sanitized(compiled, meant.samples), meant, "under sanitizers")
