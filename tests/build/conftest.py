"""An archive, and projects made of it: each once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.device.generated import gesture_files
from support.models.networks import OWN
from support.run.raw_server import RawServer
from uaccel.board import load_board
from uaccel.build.project import build_project, create_from_archive
from uaccel.util.files import write_archive

GESTURE = OWN / "gesture.tflite"


@pytest.fixture(scope="session")
def tar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("archive") / "gesture.tar"
    write_archive(path, gesture_files())
    return path


@pytest.fixture(scope="session")
def project(tar: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For board host, built."""
    folder = tmp_path_factory.mktemp("project") / "gesture"
    create_from_archive(tar, folder, load_board("host"))
    build_project(folder)
    return folder


@pytest.fixture(scope="module")
def template() -> Iterator[RawServer]:
    """A server of the template, for tests that leave it as it was."""
    with RawServer() as server:
        yield server


@pytest.fixture
def running(project: Path) -> Iterator[RawServer]:
    """A server of the project."""
    with RawServer(project) as server:
        yield server
