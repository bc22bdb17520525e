"""The C of every export, compiled for CPUs of four families with all warnings as errors."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from codegen.export.exports import ALL, need_program, written

WARNINGS = ("-std=c99", "-Wall", "-Wextra", "-pedantic", "-Wconversion", "-Werror")
"""The session server of the Arduino format apart, which is C of the firmware, of the same rules."""
COMPILERS = {
    "arm": ("arm-none-eabi-gcc", "-mcpu=cortex-m0"),
    "riscv": ("riscv64-unknown-elf-gcc", "-march=rv32imac", "-mabi=ilp32", "--specs=picolibc.specs"),
    "avr": ("avr-gcc", "-mmcu=atmega2560"),
    "xtensa": ("xtensa-lx106-elf-gcc", "--specs=/usr/lib/xtensa-lx106-elf/picolibc.specs"),
}
"""``int`` has 16 bits on the third, and the fourth has alignment traps."""
ELSEWHERE = ("desk", ".pio", "build")


def compilations(folder: Path) -> Iterator[tuple[Path, list[Path]]]:
    """Each C file of an export for hardware, and the folders whose headers it sees."""
    headers = {path.parent for path in folder.rglob("*.h")}
    for source in sorted(folder.rglob("*.c")):
        if source.relative_to(folder).parts[0] not in ELSEWHERE:
            yield source, sorted(headers, key=lambda place: place != source.parent)


CASES = [pytest.param(to, "gesture", marks=() if to == "arduino" else pytest.mark.slow) for to in ALL]
CASES += [pytest.param(to, model, marks=pytest.mark.slow) for model in ("int16", "mixed") for to in ("c", "single")]


@pytest.mark.parametrize("cpu", COMPILERS)
@pytest.mark.parametrize(("to", "model"), CASES)
def test_no_warnings(to: str, model: str, cpu: str, tmp_path: Path) -> None:
    compiler, *flags = COMPILERS[cpu]
    need_program(compiler)
    found = list(compilations(written(tmp_path, to, model)))
    assert found
    for source, headers in found:
        command = [compiler, *flags, *WARNINGS, "-O2", *(f"-I{place}" for place in headers), "-c", str(source)]
        done = subprocess.run([*command, "-o", str(tmp_path / "a.o")], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), f"{source}\n{done.stderr[:2000]}"


@pytest.mark.parametrize("to", ["c", "cmake", "zephyr"])
def test_drivers_reach_hardware_where_the_application_says(to: str, tmp_path: Path) -> None:
    """Without an address the compiler tells which macro is missing."""
    need_program("arm-none-eabi-gcc")
    for source, headers in compilations(written(tmp_path, to, "residual", "npu")):
        flags = ["-mcpu=cortex-m4", "-std=c99", "-Wall", "-Wextra", "-Werror", *(f"-I{place}" for place in headers)]
        command = ["arm-none-eabi-gcc", *flags, "-c", str(source), "-o", str(tmp_path / "a.o")]
        done = subprocess.run([*command, "-DUACCEL_NPU_BASE=0x40008000u"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        if source.name == "uaccel_devices.c":
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert "define UACCEL_NPU_BASE as the address of the registers of npu" in done.stderr
