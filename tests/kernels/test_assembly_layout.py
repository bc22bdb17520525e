"""Structures that assembly reads state where their fields lie, and every field does."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from uaccel.util.files import data_dir

KERNELS = data_dir("firmware") / "kernels"
TEXTS = {path.name: path.read_text() for path in sorted(KERNELS.rglob("*.h"))}
WHOLE = "".join(TEXTS.values())


def read_by_assembly() -> list[str]:
    """Of functions whose body is assembly, and of what these step through."""
    heads = re.findall(r"UACCEL_ASSEMBLY[^{;]*?\(([^{;]*?)\)[\s\\]*\{", WHOLE)
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
    assert re.findall(rf"UACCEL_AT\({struct}, (\w+), \d+\);", WHOLE) == fields(struct)


def test_what_is_not_so_does_not_compile(tmp_path: Path) -> None:
    """The message names structure and field."""
    source = tmp_path / "wrong.c"
    text = '#include "uaccel_kernel.h"\nstruct pair { int32_t a, b; };\nUACCEL_AT(pair, b, %d);\n'
    for offset, status in ((4, 0), (8, 1)):
        source.write_text(text % offset)
        command = ["gcc", "-std=c99", "-fsyntax-only", f"-I{KERNELS / 'common'}", str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, "uaccel_assert_pair_b" in done.stderr) == (status, status == 1)
