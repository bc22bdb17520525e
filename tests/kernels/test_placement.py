"""Assembly and vectors through any compiler, at any level and at any place: the bytes that the layers mean."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernels.placement import LEVELS, SECTIONS, WAYS, Build, check

COMPILERS = {"mps2_an386": ("gcc", "clang"), "mps3_an547": ("gcc", "clang"), "qemu_riscv32v": ("gcc",)}
"""Clang 16 and older do not assemble RISC-V vectors where -march has none."""
BUILDS = [
    Build(board, compiler, level, way)
    for board, compilers in COMPILERS.items()
    for compiler in compilers
    for level in LEVELS
    for way in WAYS
]
SINGLE_PRECISION = [board for board in COMPILERS if board != "qemu_riscv32v"]
OTHERS = [
    (what, Build(board, compiler, level, SECTIONS))
    for what, boards in {
        "wide layers": list(COMPILERS),
        "single precision": SINGLE_PRECISION,
        "floats": SINGLE_PRECISION,
        "odd layers": ["mps3_an547"],
    }.items()
    for board in boards
    for compiler in COMPILERS[board]
    for level in LEVELS
]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shared")


@pytest.mark.rotating(2)
@pytest.mark.parametrize("build", BUILDS, ids=str)
def test_kernels_are_exact_wherever_they_lie(build: Build, shared: Path, tmp_path: Path) -> None:
    check(build, "layers", shared, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize(("what", "build"), OTHERS, ids=str)
def test_so_are_their_variants(what: str, build: Build, shared: Path, tmp_path: Path) -> None:
    check(build, what, shared, tmp_path)
