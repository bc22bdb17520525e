"""Functions of assembly begin at multiples of 4 and hold nothing but it; structures that they read state where each
field lies."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from kernels.placement import Build, output
from uaccel.util.files import data_dir

KERNELS = data_dir("firmware") / "kernels"
PATHS = sorted(KERNELS.rglob("*.h"))
TEXTS = {path.name: path.read_text() for path in PATHS}
PIECES = re.compile("_(body|turns|pairs)|_binary_helium")
"""Names of headers that others include, amid something."""
ADDED = ["-fstack-protector-all", "-finstrument-functions", "-pg", "--coverage", "-fprofile-generate"]
"""Options with which compilers add code to functions."""
INSTRUCTION = re.compile(r"^\s+[a-z]", re.MULTILINE)
WHOLE = "".join(TEXTS.values())


def read_by_assembly() -> list[str]:
    """Of functions whose body is assembly, and of what these step through."""
    heads = re.findall(r"UACCEL_ASSEMBLY [^{;]*?\(([^{;]*?)\)[\s\\]*\{", WHOLE)
    return sorted({name for head in heads for name in re.findall(r"struct (\w+)", head)} | {"uaccel_helium_place"})


def fields(struct: str) -> list[str]:
    body = re.search(rf"struct {struct} \{{(.*?)\n\}};", WHOLE, re.DOTALL)
    assert body is not None, struct
    plain = re.sub(r"/\*.*?\*/", "", body[1], flags=re.DOTALL)
    return [re.sub(r"\[\d+\]|\W", "", name.split()[-1]) for line in plain.split(";")[:-1] for name in line.split(",")]


def test_there_are_some() -> None:
    assert {"uaccel_dsp_job", "uaccel_helium_windows", "uaccel_helium_planes"} <= set(read_by_assembly())


@pytest.mark.parametrize("struct", read_by_assembly())
def test_every_field_has_its_place(struct: str) -> None:
    stated = re.findall(rf"UACCEL_AT(?:4\({struct}, \d+, ([\w, ]+)|\({struct}, (\w+), \d+)\);", WHOLE)
    assert [name for four, one in stated for name in (four or one).split(", ")] == fields(struct)


def test_what_is_not_so_does_not_compile(tmp_path: Path) -> None:
    """The message names structure and field."""
    source = tmp_path / "wrong.c"
    text = '#include "uaccel_kernel.h"\nstruct pair { int32_t a, b; };\nUACCEL_AT(pair, b, %d);\n'
    for offset, status in ((4, 0), (8, 1)):
        source.write_text(text % offset)
        command = ["gcc", "-std=c99", "-fsyntax-only", f"-I{KERNELS / 'common'}", str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, "uaccel_assert_pair_b" in done.stderr) == (status, status == 1)


def objects(compiler: str, board: str, family: str, folder: Path) -> dict[str, int]:
    """Functions of assembly, each in a section of its own, and the section's alignment."""
    build = Build(board, compiler, "-Os", ("-ffunction-sections",))
    headers = [path.name for path in PATHS if path.parent.name == family and not PIECES.search(path.name)]
    source, target = folder / "all.c", folder / "all.o"
    text = "".join(f'#include "{name}"\n' for name in headers)
    source.write_text(text)
    command = [*build.command, *(f"-I{path}" for path in KERNELS.iterdir() if path.is_dir()), str(source)]
    names = re.findall(r"naked,\s+unused,[^{;]*?(\w+)\([^)]*\)\s*{", output(*command, "-E", "-P"))
    source.write_text(text + f"const void *const places[] = {{{', '.join(names)}}};\n")
    output(*command, "-w", "-c", "-o", target)
    listed = output("arm-none-eabi-objdump", "-h", target)
    found = re.findall(r"^ *\d+ \.text\.(\w+) .* 2\*\*(\d+)$", listed, re.MULTILINE)
    alignments = {name: 1 << int(power) for name, power in found}
    return {name: alignments[name] for name in names}


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize(
    ("board", "family", "least"),
    [("mps2_an385", "portable_blocked", 2), ("mps2_an386", "arm_dsp", 30), ("mps3_an547", "arm_helium", 89)],
)
def test_every_function_begins_at_a_multiple_of_4(
    board: str, family: str, least: int, compiler: str, tmp_path: Path
) -> None:
    alignments = objects(compiler, board, family, tmp_path)
    assert len(alignments) >= least
    assert [name for name, alignment in alignments.items() if alignment < 4] == []


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_compilers_add_nothing(compiler: str, tmp_path: Path) -> None:
    source = tmp_path / "some.c"
    function = 'UACCEL_ASSEMBLY int some(int x)\n{\n    __asm__("bx lr");\n}\n'
    source.write_text(f'#include "uaccel_kernel.h"\n{function}int other(int x)\n{{\n    return some(x) + x;\n}}\n')
    for flag in ADDED:
        build = Build("mps2_an386", compiler, "-Os", (flag,))
        output(*build.command, "-w", f"-I{KERNELS / 'common'}", "-S", source, "-o", source.with_suffix(".s"))
        text = source.with_suffix(".s").read_text()
        before = re.search(r"^some:(.*?)bx\s+lr", text, re.MULTILINE | re.DOTALL)
        assert before is not None
        assert not INSTRUCTION.search(before[1].rpartition("\n")[0]), f"{build}: {before[1]}"
