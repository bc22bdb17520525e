"""Every format: its README's commands work in the folder as it is, and what they run is what the model means."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from codegen.export.exports import ALL, NONE_DIFFER, STAND_INS, commands, export_of, need_program, typed, written
from support.device.boards import board_with_tools
from support.hostile.hostile import hostile_tflite
from support.models.networks import OWN
from support.run.command import call_in
from uaccel.board import Device, load_board
from uaccel.codegen import export as folder_of_formats
from uaccel.codegen.export.base import device_table
from uaccel.codegen.export.formats import export_files
from uaccel.pipeline import compile_model
from uaccel.runner.compiled import exported
from uaccel.runner.firmware import tensor_types
from uaccel.runner.samples import default_samples
from uaccel.util.files import write_folder

RUN = ["c", "single", "make", "cmake"]
"""Formats whose README runs the example with nothing but a compiler, CMake or make."""
STOOD_IN = {"platformio": {}, "zephyr": {"ZEPHYR_BASE": str(STAND_INS)}, "esp-idf": {"IDF_PATH": str(STAND_INS)}}
"""Formats whose build system is played by a stand-in, with the variables that it wants."""
SCREEN = 40
COLUMNS = 120


def test_the_command_line_offers_what_there_is() -> None:
    modules = Path(folder_of_formats.__path__[0]).glob("*.py")
    assert sorted(file.stem.replace("_", "-") for file in modules if "\nFORMAT = " in file.read_text()) == ALL


@pytest.mark.parametrize("model", ["gesture", pytest.param("mixed", marks=pytest.mark.slow)])
@pytest.mark.parametrize("to", RUN)
def test_a_readme_runs(to: str, model: str, tmp_path: Path) -> None:
    assert NONE_DIFFER in typed(written(tmp_path, to, model))


@pytest.mark.parametrize("to", STOOD_IN)
def test_a_readme_runs_with_a_stand_in(to: str, tmp_path: Path) -> None:
    assert NONE_DIFFER in typed(written(tmp_path, to), path=STAND_INS, variables=STOOD_IN[to])


def test_a_pack_is_made(tmp_path: Path) -> None:
    folder = written(tmp_path, "cmsis-pack")
    typed(folder)
    assert len(list(folder.glob("uaccel.tvmgen_gesture.*.pack"))) == 1


def test_arduino_s_builder_takes_the_library(tmp_path: Path) -> None:
    need_program("arduino-builder", "avr-g++")
    folder = written(tmp_path, "arduino")
    assert "Sketch uses" in typed(folder)
    assert (folder / "build" / "Inference.ino.elf").is_file()


@pytest.mark.sample(1)
@pytest.mark.parametrize("accelerator", ["npu", "conveyor"])
@pytest.mark.parametrize("to", ["single", pytest.param("make", marks=pytest.mark.slow), "cmake"])
def test_models_of_accelerators_stand_in_on_a_desk(to: str, accelerator: str, tmp_path: Path) -> None:
    assert export_of("residual", accelerator).engines
    assert NONE_DIFFER in typed(written(tmp_path, to, "residual", accelerator))


def test_a_board_s_own_devices_need_no_macro() -> None:
    export = export_of("residual", "npu")
    board = replace(load_board("host"), devices=(Device("npu", 0x40008000, 17),))
    (text,) = device_table(replace(export, board=board)).values()
    assert '{"npu", 0x40008000u, 17},' in text
    assert "#error" not in text
    (text,) = device_table(export).values()
    assert '{"npu", UACCEL_NPU_BASE, UACCEL_NO_INTERRUPT},' in text
    assert "#error" in text


@pytest.mark.parametrize("to", ["c", "make"])
def test_a_wrong_result_is_seen(to: str, tmp_path: Path) -> None:
    folder = written(tmp_path, to)
    (weights,) = folder.rglob("tvmgen_gesture_weights.c")
    text = weights.read_text()
    changed, count = re.subn(r"(_bias\w*\[\d+\] [^{]*\{\s*)", r"\g<1>99999 + ", text)
    assert count
    weights.write_text(changed)
    with pytest.raises(AssertionError, match="elements differ"):
        typed(folder)


@pytest.mark.parametrize("accelerator", ["", "npu"])
@pytest.mark.parametrize("to", ALL)
def test_a_readme_is_a_screen_and_names_what_is_there(to: str, accelerator: str, tmp_path: Path) -> None:
    folder = written(tmp_path, to, "residual", accelerator)
    lines = (folder / "README.md").read_text().splitlines()
    assert len(lines) <= SCREEN
    assert [line for line in lines if len(line) > COLUMNS] == []
    named = [line.split("`")[1] for line in lines if line.startswith("| `")]
    assert named
    assert [name for name in named if not list(folder.glob(name.rstrip("/")))] == []
    assert commands(folder)


@pytest.mark.parametrize("to", ["c", "single", "cmake", "make"])
def test_a_board_s_readme_names_its_compiler_and_options(
    to: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """With kernels for its CPU alone, which no other compiler takes."""
    board = board_with_tools("mps2_an386")
    flags = " ".join(board.cpu.flags)
    done = call_in(capfd)("export", OWN / "gesture.tflite", "--to", to, "--board", board.name, "-o", tmp_path / "out")
    assert done.status == 0
    text = (tmp_path / "out/README.md").read_text()
    assert "board `mps2_an386`. Compile it:" in text
    assert f"`arm-none-eabi-gcc`:\n`{flags}`.\n" in text
    typed(tmp_path / "out")


@pytest.mark.parametrize("to", ALL)
def test_the_same_model_gives_the_same_bytes(to: str) -> None:
    export = export_of()
    assert export_files(export, to) == export_files(export, to)


def test_an_installed_library_is_found(tmp_path: Path) -> None:
    folder = written(tmp_path, "cmake")
    user = tmp_path / "user"
    user.mkdir()
    (user / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(user LANGUAGES C)\nfind_package(tvmgen_gesture REQUIRED)\n"
        "add_executable(user main.c)\ntarget_link_libraries(user PRIVATE uaccel::tvmgen_gesture)\n"
    )
    for name in ("main.c", "tvmgen_gesture_sample.h"):
        (user / name).write_text((folder / "example" / name).read_text())
    place = tmp_path / "installed"
    steps: list[list[str | Path]] = [
        ["cmake", "-S", folder, "-B", tmp_path / "build", f"-DCMAKE_INSTALL_PREFIX={place}"],
        ["cmake", "--build", tmp_path / "build", "--target", "install"],
        ["cmake", "-S", user, "-B", user / "build", f"-DCMAKE_PREFIX_PATH={place}"],
        ["cmake", "--build", user / "build"],
        [user / "build" / "user"],
    ]
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    assert NONE_DIFFER in done.stdout


@pytest.mark.parametrize("to", ["c", "single"])
def test_names_from_a_model_stay_names(to: str, tmp_path: Path) -> None:
    """Of its tensors and of its file."""
    model = tmp_path / "a`b\\n${x}.tflite"
    model.write_bytes(hostile_tflite())
    compiled = compile_model(model, board="host")
    (inputs,) = default_samples(tensor_types(compiled.model.signature.inputs), 1)
    export = exported(compiled, load_board("host"), inputs, f"uaccel export {model.name}")
    write_folder(tmp_path / "out", export_files(export, to), "-o")
    assert NONE_DIFFER in typed(tmp_path / "out")
    assert not list(tmp_path.rglob("pwned"))
