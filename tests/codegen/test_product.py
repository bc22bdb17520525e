"""A product's own application in a firmware project: nothing of the session server is linked, so no host has a say."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from support.device.boards import board_with_tools
from support.device.generated import archive
from support.models.networks import OWN
from uaccel.board import load_board
from uaccel.build.project import create_project, firmware_of

MAIN = """#include "tvmgen_gesture.h"

static int8_t motion[TVMGEN_GESTURE_MOTION_SIZE];
static int8_t probabilities[TVMGEN_GESTURE_SOFTMAX_1_SIZE];

int main(void)
{
    struct tvmgen_gesture_inputs inputs = {motion};
    struct tvmgen_gesture_outputs outputs = {probabilities};
    return tvmgen_gesture_run(&inputs, &outputs);
}
"""
SERVER = (b"uaccel_serve", b"uaccel_frame_", b"uaccel_line_", b"uaccel_tensors_", b"uaccel_watch_", b"uaccel_model")
"""Of the names of all that hears a host; the firmware's table of symbols holds the names."""


def built(folder: Path, build: str, *options: str) -> Path:
    """The firmware, whose symbols were not stripped."""
    for command in (["cmake", "-S", ".", "-B", build, "-GNinja", *options], ["cmake", "--build", build]):
        done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    return firmware_of(folder / build)


@pytest.mark.slow
@pytest.mark.parametrize("board", ["host", "mps2_an386", "qemu_riscv32"])
def test_a_product_hears_no_host(board: str, tmp_path: Path) -> None:
    project, application = tmp_path / "project", tmp_path / "main.c"
    found = load_board("host") if board == "host" else board_with_tools(board)
    create_project(archive(OWN / "gesture.tflite"), found, project)
    application.write_text(MAIN)
    product = built(project, "product", f"-DAPPLICATION={application}")
    symbols = product.read_bytes()
    assert b"tvmgen_gesture_run" in symbols
    assert [name for name in SERVER if name in symbols] == []
    if board == "host":
        subprocess.run([product], check=True, timeout=20)
    usual = built(project, "build").read_bytes()
    assert [name for name in SERVER if name not in usual] == []
