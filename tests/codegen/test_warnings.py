"""Generated files compile without a warning: two compilers, four levels, nothing but the archive's files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.device.boards import board_with_tools
from support.device.generated import WARNINGS, Unpacked, archive, cc, objects
from support.device.hostlib import STRICT, include_flags
from support.models.networks import Network, each_made
from uaccel.util.files import data_dir

# All that clang knows, but three: padding is no fault, C99 has declarations after statements, and a kernel that one
# model leaves unused is used by another.
EVERYTHING = ("-Weverything", "-Wno-padded", "-Wno-declaration-after-statement", "-Wno-used-but-marked-unused")

QUICK = [("gcc", "-O2"), ("clang", "-O0")]
SLOW = [("gcc", "-O0"), ("gcc", "-Os"), ("clang", "-O2"), ("clang", "-Os")]
COMPILERS = [
    pytest.param(*pair, id="".join(pair), marks=marks)
    for pairs, marks in ((QUICK, ()), (SLOW, (pytest.mark.long,)))
    for pair in pairs
]
BOTH = pytest.mark.parametrize("compiler", ["gcc", "clang"])
INTERFACES = pytest.mark.parametrize(
    "interface",
    [
        {"workspace_pool": "sram"},
        {"workspace_io": True},
        {"workspace_pool": "sram", "workspace_io": True},
        {"workspace_pool": "fast=1K slow"},
        {"constant_pool": "fast=1K slow"},
        {"constant_pool": "fast=1K slow:fetch"},
    ],
    ids=lambda interface: "+".join(interface),
)
DIALECTS = [("c", "c99"), ("c", "c11"), ("c", "c17"), ("c++", "c++11"), ("c++", "c++17"), ("c++", "c++20")]


@pytest.mark.covering
@each_made
@pytest.mark.parametrize(("compiler", "level"), COMPILERS)
def test_no_warnings(network: Network, compiler: str, level: str) -> None:
    assert len(objects(network.path, compiler, level)) == 2


@pytest.mark.covering
@each_made
@BOTH
@INTERFACES
def test_no_warnings_with_a_pool_with_hooks_and_in_the_description(
    network: Network, compiler: str, interface: dict[str, Any], tmp_path: Path
) -> None:
    tree = Unpacked(tmp_path, archive(network.path, **interface))
    for source in tree.sources:
        if not source.name.endswith("_weights.c"):
            cc(source, "-DUACCEL_OBSERVE", "-fsyntax-only", include=[tree.include], compiler=compiler)
    for source in tree.descriptions:
        include = [tree.include, data_dir("firmware") / "include"]
        cc(source, "-fsyntax-only", include=include, compiler=compiler)


@each_made
@pytest.mark.parametrize("workspace_io", [False, True])
@pytest.mark.parametrize("compiler", ["clang"])
def test_no_warning_that_clang_knows(network: Network, workspace_io: bool, compiler: str, tmp_path: Path) -> None:
    tree = Unpacked(tmp_path, archive(network.path, workspace_io=workspace_io))
    for source in tree.sources:
        cc(source, "-fsyntax-only", *EVERYTHING, include=[tree.include], compiler=compiler)


CPUS = {
    **dict.fromkeys(["dsp", "pairs"], ("mps2_an386", "-mcpu=cortex-m4", "-mthumb")),
    "helium": ("mps3_an547", "-mcpu=cortex-m55", "-mthumb", "-mfloat-abi=hard"),
    "rvv": ("qemu_riscv32v", "-march=rv32imac", "-mabi=ilp32", "-misa-spec=2.2", "--specs=picolibc.specs"),
}
"""Boards with what the kernels for some CPUs need, and flags, by the word in their headers' names."""


def kernel_headers(special: bool) -> list[str]:
    """Those that have a guard; the others are templates that these include several times."""
    headers = sorted((data_dir("firmware") / "kernels").rglob("*.h"))
    guarded = [path for path in headers if f"#ifndef {path.stem.upper()}_H" in path.read_text()]
    return [path.name for path in guarded if bool(set(path.stem.split("_")) & CPUS.keys()) == special]


@pytest.mark.parametrize("header", kernel_headers(special=True))
def test_every_header_for_a_cpu_stands_alone(header: str, tmp_path: Path) -> None:
    ((board, *flags),) = (found for cpu, found in CPUS.items() if cpu in Path(header).stem.split("_"))
    compiler = f"{board_with_tools(board).cpu.toolchain}-gcc"
    user = tmp_path / "user.c"
    user.write_text(f'#include "{header}"\n#include "{header}"\ntypedef int nothing_else;\n')
    cc(user, *flags, "-O2", "-c", "-o", tmp_path / "user.o", *include_flags(), compiler=compiler)
    complaint = r"made for .*: name the CPU to the compiler \(-m(cpu|arch)=.*\), or compile for another --board"
    with pytest.raises(AssertionError, match=complaint):
        cc(user, "-fsyntax-only", *include_flags())


@pytest.mark.sample(45)
@BOTH
@pytest.mark.parametrize("header", kernel_headers(special=False))
def test_every_kernel_header_stands_alone(compiler: str, header: str, tmp_path: Path) -> None:
    user = tmp_path / "user.c"
    user.write_text(f'#include "{header}"\n#include "{header}"\ntypedef int nothing_else;\n')
    cc(user, "-fsyntax-only", *include_flags(), compiler=compiler)


@BOTH
@pytest.mark.parametrize(("language", "standard"), DIALECTS)
def test_the_public_header_is_c_and_cpp(compiler: str, language: str, standard: str, tmp_path: Path) -> None:
    tree = Unpacked(tmp_path, archive(Network("gesture", 0).path, workspace_pool="sram"))
    user = tmp_path / "user.c"
    user.write_text('#include "tvmgen_gesture.h"\n#include "tvmgen_gesture.h"\n')
    warnings = ("-Wall", "-Wextra", "-pedantic", "-Werror", "-Wconversion", "-Wshadow")
    flags = (f"-std={standard}", "-x", language, "-fsyntax-only")
    cc(*flags, user, include=[tree.include], compiler=compiler, warnings=warnings)


@each_made
def test_every_public_header_stands_alone(network: Network, tmp_path: Path) -> None:
    tree = Unpacked(tmp_path, archive(network.path))
    (header,) = tree.include.glob("tvmgen_*.h")
    for language, standard in (("c", "c99"), ("c++", "c++17")):
        flags = ("-x", language, f"-std={standard}", "-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only")
        cc(*flags, "-include", header, "/dev/null", warnings=())


def test_the_warnings_are_errors(tmp_path: Path) -> None:
    """What this file asks of others, it would see."""
    assert set(STRICT) < set(WARNINGS)
    for text in ("int f(long x);\nint f(long x) { return x; }\n", "int g(int x);\nint g(int x) { return 0; }\n"):
        user = tmp_path / "user.c"
        user.write_text(text)
        with pytest.raises(AssertionError, match="error"):
            cc(user, "-fsyntax-only")
