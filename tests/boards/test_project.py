"""A project for a board is plain CMake: it builds without uaccel, and says what it lacks."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from support.device.boards import CROSS, board_with_tools
from support.models.networks import OWN
from uaccel.board import Board, load_board
from uaccel.build.project import build_project, create_project, firmware_of
from uaccel.errors import ToolError
from uaccel.pipeline import Compiled, compile_model
from uaccel.runner.compiled import archive_of, pack_compiled
from uaccel.runner.execute import connect


@pytest.fixture(scope="module")
def gesture() -> Compiled:
    return compile_model(OWN / "gesture.tflite", board="any")


def cmake(*arguments: str | Path, path: str | None = None) -> subprocess.CompletedProcess[str]:
    """With an environment that knows neither uaccel nor Python."""
    environment = {"PATH": path or os.environ["PATH"], "HOME": "/nonexistent"}
    return subprocess.run(["cmake", *arguments], capture_output=True, text=True, env=environment, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", CROSS)
def test_an_engineer_who_has_never_heard_of_uaccel_builds_it(name: str, gesture: Compiled, tmp_path: Path) -> None:
    board = board_with_tools(name)
    project, build = tmp_path / "project", tmp_path / "project" / "build"
    create_project(archive_of(gesture), board, project)
    configured = cmake("-S", project, "-B", build)
    assert configured.returncode == 0, configured.stderr
    built = cmake("--build", build)
    assert built.returncode == 0, built.stdout + built.stderr
    assert "warning" not in (built.stdout + built.stderr).lower()
    image = (build / "firmware.bin").read_bytes()
    assert 8_000 < len(image) < 100_000, "flash alone, without the RAM beyond it"
    assert (build / "firmware.map").is_file()
    size = subprocess.run([f"{board.cpu.toolchain}-size", build / "firmware.elf"], capture_output=True, text=True)
    assert size.returncode == 0


def test_a_compiler_that_is_not_there_is_named_with_the_way_to_get_it(gesture: Compiled, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for program in ("cmake", "make", "sh", "uname"):
        found = shutil.which(program, path=os.defpath) or shutil.which(program)
        assert found is not None, program
        (programs / program).symlink_to(found)
    create_project(archive_of(gesture), load_board("mps2_an386"), tmp_path / "project")
    done = cmake("-S", tmp_path / "project", "-B", tmp_path / "build", path=str(programs))
    assert done.returncode != 0
    words = " ".join(done.stderr.split())
    assert "board mps2_an386: arm-none-eabi-gcc is not in PATH; install it" in words
    assert "apt-get install gcc-arm-none-eabi" in words


def test_a_compiler_that_uaccel_does_not_know_is_asked_for_by_name(gesture: Compiled, tmp_path: Path) -> None:
    file = tmp_path / "exotic.toml"
    text = load_board("mps2_an386").file.read_text()
    file.write_text(text.replace('toolchain = "arm-none-eabi"', 'toolchain = "arm-exotic-eabi"'))
    create_project(archive_of(gesture), load_board(file), tmp_path / "project")
    with pytest.raises(ToolError) as caught:
        build_project(tmp_path / "project")
    assert str(caught.value) == (
        "arm-exotic-eabi-gcc (needed for firmware for this board): arm-exotic-eabi-gcc: not found; "
        "to get it: install arm-exotic-eabi-gcc and see that it is in PATH"
    )


def test_a_compiler_without_its_c_library_is_told(gesture: Compiled, tmp_path: Path) -> None:
    file = tmp_path / "bare.toml"
    file.write_text(board_with_tools("mps2_an386").file.read_text().replace('"-mthumb"', '"-mthumb", "-nostdinc"'))
    create_project(archive_of(gesture), load_board(file), tmp_path / "project")
    with pytest.raises(
        ToolError, match=r"the compiler has no std\w+\.h: install its C library \(for Debian's compilers "
    ):
        build_project(tmp_path / "project")


def test_a_folder_that_is_no_project_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(
        ToolError, match=r"^cannot read .*/board/board\.cmake: .*; wanted a firmware project, as 'uaccel"
    ):
        build_project(tmp_path)


def changed_riscv(folder: Path, *changes: tuple[str, str]) -> Board:
    text = board_with_tools("qemu_riscv32").file.read_text()
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (folder / "riscv.toml").write_text(text)
    return load_board(folder / "riscv.toml")


@pytest.mark.slow
def test_a_riscv_core_with_fpu_vectors_and_its_own_cycle_counter(tmp_path: Path) -> None:
    """Interrupts must keep the FPU's registers, and start-up switch both units on."""
    board = changed_riscv(
        tmp_path,
        ("-march=rv32imac", "-march=rv32imafc"),
        ("-mabi=ilp32", "-mabi=ilp32f"),
        ("\nflags = ", '\nfeatures = ["fpu", "rvv"]\nflags = '),
        ('machine = "virt"', 'machine = "virt"\ncpu = "rv32,v=true,vext_spec=v1.0"'),
        ('kind = "mtime"', 'kind = "mcycle"'),
        ("base = 0x0200_BFF8\n", ""),
    )
    mixed = compile_model(OWN / "mixed.tflite", board="riscv")
    create_project(archive_of(mixed), board, tmp_path / "project")
    with connect(board, firmware_of(build_project(tmp_path / "project")), pack_compiled(mixed).identity, "") as session:
        results = [
            next(iter(session.stream([{t.name: t.unpack(bytes(t.size)) for t in session.model.inputs}])))
            for _ in range(3)
        ]
    first = results[0]
    assert first.instructions
    assert first.seconds
    for result in results:
        assert result.instructions == first.instructions
        assert all((result.outputs[name] == first.outputs[name]).all() for name in first.outputs)
