"""A stand-in board, and firmware for it; both are made once for all tests of a process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.device.boards import board_with_tools
from support.models.networks import OWN
from uaccel.build.project import build_project, create_project, firmware_of
from uaccel.pipeline import compile_model
from uaccel.runner.compiled import archive_of, pack_compiled
from uaccel.session.description import Identity
from uaccel.session.emulated_board import Desk


class Firmware:
    """Of a model, for the board that stands on the desk."""

    def __init__(self, model: str, folder: Path) -> None:
        board = board_with_tools("netduino_plus_2")
        compiled = compile_model(OWN / f"{model}.tflite", board=board.name)
        create_project(archive_of(compiled), board, folder)
        self.elf = firmware_of(build_project(folder))
        self.identity: Identity = pack_compiled(compiled).identity


@pytest.fixture(scope="session")
def firmware(tmp_path_factory: pytest.TempPathFactory) -> Firmware:
    return Firmware("gesture", tmp_path_factory.mktemp("firmware") / "gesture")


@pytest.fixture(scope="session")
def other_firmware(tmp_path_factory: pytest.TempPathFactory) -> Firmware:
    return Firmware("residual", tmp_path_factory.mktemp("firmware") / "residual")


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    board_with_tools("netduino_plus_2")
    with Desk(tmp_path / "desk") as desk:
        yield desk
