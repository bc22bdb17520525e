"""What a project is: everything that it takes to build it, and nothing of this computer."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from support.device.boards import board_with_tools
from support.device.generated import gesture_files
from support.run.raw_server import TEMPLATE, RawServer
from uaccel.board import load_board
from uaccel.build.linker_script import MemoryNeeds
from uaccel.build.project import archive_overlay, board_overlay, create_from_archive, create_project
from uaccel.errors import BoardError
from uaccel.session.session import Session
from uaccel.session.tensors import ramp
from uaccel.util.files import data_dir

ROOT = Path(__file__).resolve().parents[2]


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def fresh(tar: Path, tmp_path: Path) -> Path:
    """A project that nobody has built."""
    folder = tmp_path / "fresh"
    create_from_archive(tar, folder)
    return folder


def test_its_files(fresh: Path) -> None:
    found = tree(fresh)
    files = gesture_files()
    overlay = {name.removeprefix("templates/project/"): data for name, data in files.items() if "/project/" in name}
    model = {f"model/{name}": data for name, data in files.items() if "/project/" not in name}
    own = {name: data for name, data in tree(TEMPLATE).items() if "__pycache__" not in name}
    firmware = {
        f"firmware/{part}/{name}": data
        for part in ("include", "runtime")
        for name, data in tree(data_dir("firmware") / part).items()
    }
    parts = (overlay, model, own, firmware)
    assert set(found) == {"model.tar"}.union(*parts)
    for part in parts:
        assert part.items() <= found.items()


def test_it_knows_nothing_of_this_computer(fresh: Path) -> None:
    words = [str(ROOT), str(Path.home()) + "/", "site-packages"]
    for name, data in tree(fresh).items():
        assert not any(word.encode() in data for word in words), name


def test_two_ways_make_the_same_project(tar: Path, fresh: Path, tmp_path: Path) -> None:
    """For the archive's board, and for the same board when it is named; from the file, and from memory."""
    create_from_archive(tar, tmp_path / "named", load_board("host"))
    assert tree(tmp_path / "named") == tree(fresh)
    create_project(gesture_files(), load_board("host"), tmp_path / "direct")
    assert tree(tmp_path / "direct") == tree(fresh)


def run(folder: Path, *command: str) -> str:
    """A command as somebody runs it who has no uaccel."""
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(folder)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def first_output(firmware: Path) -> list[int]:
    with Session.start([str(firmware)]) as session:
        (name,) = (tensor.name for tensor in session.model.inputs)
        return [int(v) for v in np.ravel(session.run({name: ramp(session.model.inputs[0])})["softmax_1"])]


EXPECTED = [-128, -128, -128, -128, 127, -128]


@pytest.mark.slow
def test_plain_cmake_builds_it(fresh: Path, tmp_path: Path) -> None:
    """Moved elsewhere, with nothing of ours in reach, and without a warning."""
    project = fresh.rename(tmp_path / "a folder of somebody's")
    run(project, "cmake", "-B", "build")
    said = run(project, "cmake", "--build", "build")
    assert "warning" not in said.lower()
    assert first_output(project / "build" / "firmware") == EXPECTED


@pytest.mark.slow
def test_its_server_goes_on_with_what_plain_cmake_began(fresh: Path) -> None:
    """Whatever generator that took."""
    run(fresh, "cmake", "-B", "build", "-G", "Unix Makefiles")
    with RawServer(fresh) as server:
        server.result("build", options={})
        server.result("build", options={"observe": True})
    assert first_output(fresh / "build" / "firmware") == EXPECTED
    assert first_output(fresh / "build-observe" / "firmware") == EXPECTED


@pytest.mark.slow
def test_a_board_with_a_cross_compiler(tar: Path, tmp_path: Path) -> None:
    board = board_with_tools("mps2_an386")
    create_from_archive(tar, tmp_path / "p", board)
    run(tmp_path / "p", "cmake", "-B", "build")
    run(tmp_path / "p", "cmake", "--build", "build")
    assert (tmp_path / "p" / "build" / "firmware.elf").is_file()
    assert (tmp_path / "p" / "build" / "firmware.bin").is_file()


def test_a_project_makes_a_project_of_its_copy(fresh: Path, tar: Path, tmp_path: Path) -> None:
    """Without its archive it is a template again, with the firmware inside."""
    template = tmp_path / "template"
    shutil.copytree(fresh, template, ignore=shutil.ignore_patterns("model.tar", "model", "board", "ports"))
    create_from_archive(tar, tmp_path / "second", template=template)
    assert tree(tmp_path / "second") == tree(fresh)


def test_a_template_alone_takes_the_firmware_that_it_is_given(tar: Path, fresh: Path, tmp_path: Path) -> None:
    shutil.copytree(TEMPLATE, tmp_path / "template", ignore=shutil.ignore_patterns("__pycache__"))
    params = {"model_library_format_path": str(tar), "project_dir": str(tmp_path / "p"), "options": {}}
    with RawServer(tmp_path / "template") as server:
        error = server.error("generate_project", **params, standalone_crt_dir=str(tmp_path))
        assert error["message"] == (f"no firmware sources: neither {tmp_path} nor {tmp_path / 'firmware'} has them")
        assert not (tmp_path / "p").exists()
        server.result("generate_project", **params, standalone_crt_dir=str(data_dir("firmware")))
    assert tree(tmp_path / "p") == tree(fresh)


@pytest.mark.parametrize("place", ["p", "projects/p", "cmake/p"])
def test_a_project_may_lie_inside_of_its_template(place: str, tar: Path, fresh: Path, tmp_path: Path) -> None:
    """Copied as it grows it would hold itself, and that one itself, until a name is too long."""
    template = tmp_path / "template"
    shutil.copytree(TEMPLATE, template, ignore=shutil.ignore_patterns("__pycache__"))
    params = {"model_library_format_path": str(tar), "project_dir": str(template / place), "options": {}}
    with RawServer(template) as server:
        server.result("generate_project", **params, standalone_crt_dir=str(data_dir("firmware")))
    assert tree(template / place) == tree(fresh)
    assert [path.name for path in (template / place).rglob("*") if path.is_dir() and not any(path.iterdir())] == []


def test_relative_paths_are_the_servers(tar: Path, fresh: Path, tmp_path: Path) -> None:
    shutil.copytree(TEMPLATE, tmp_path / "project_template", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "firmware").symlink_to(data_dir("firmware"))
    shutil.copy(tar, tmp_path / "some.tar")
    with RawServer(tmp_path / "project_template") as server:
        paths = {"model_library_format_path": "../some.tar", "standalone_crt_dir": ".", "project_dir": "../made"}
        server.result("generate_project", **paths, options={})
    assert tree(tmp_path / "made") == tree(fresh)


def test_the_server_is_python_3_8() -> None:
    """Grammar, and the annotations that are evaluated."""
    files = [TEMPLATE / "microtvm_api_server.py", *sorted((TEMPLATE / "api_server").glob("*.py"))]
    assert len(files) > 10
    for file in files:
        module = ast.parse(file.read_text(encoding="utf-8"), feature_version=(3, 8))
        plain = file.name in ("microtvm_api_server.py", "__init__.py", "errors.py")
        futures = [node for node in module.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
        assert plain or futures, f"{file.name} evaluates its annotations"
        imported = {
            name.partition(".")[0]
            for node in ast.walk(module)
            for name in (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom) and node.level == 0
                else []
            )
        }
        assert not imported & {"uaccel", "tvm", "numpy", "tomllib"}, file.name


def test_nothing_but_sources_is_in_the_template(tar: Path, tmp_path: Path) -> None:
    """Not even what Python leaves behind when it runs."""
    before = {str(path) for path in TEMPLATE.rglob("*") if "__pycache__" not in str(path)}
    create_from_archive(tar, tmp_path / "p")
    assert {str(path) for path in TEMPLATE.rglob("*") if "__pycache__" not in str(path)} == before
    with RawServer(tmp_path / "p") as server:
        server.result("server_info_query", tvm_version="0.18.0")
    assert list((tmp_path / "p").rglob("__pycache__")) == []


# ---------------------------------------------------------------------------------------- what the board adds


def test_a_users_board_and_port_are_inside(tmp_path: Path) -> None:
    """In an archive without a word of where the board file lies; in a project with it, for commands that name files."""
    ports = data_dir("firmware") / "ports"
    shutil.copytree(ports / "host", tmp_path / "mine")
    text = (data_dir("boards") / "host.toml").read_text().replace('port = "host"', 'port = "./mine"')
    (tmp_path / "desk.toml").write_text(text)
    board = load_board(tmp_path / "desk.toml")
    needs = MemoryNeeds("m", 0, 0, 0)
    overlay = board_overlay(board, needs)
    assert overlay["firmware/ports/mine/port.c"] == (ports / "host" / "port.c").read_bytes()
    assert "firmware/ports/mine/port.toml" not in overlay
    assert overlay["board/desk.toml"] == text.encode()
    assert str(tmp_path).encode() in overlay["board/board.json"]
    portable = archive_overlay(board, gesture_files())
    assert {name.removeprefix("templates/project/") for name in portable} == set(overlay)
    assert not any(str(tmp_path).encode() in data for data in portable.values())


def test_a_board_that_is_too_small_is_said_before_anything_is_made(tar: Path, tmp_path: Path) -> None:
    text = (data_dir("boards") / "mps2_an386.toml").read_text().replace('length = "4M"', 'length = "8K"', 1)
    (tmp_path / "tiny.toml").write_text(text)
    with pytest.raises(BoardError, match="model gesture does not fit on board tiny"):
        create_from_archive(tar, tmp_path / "p", load_board(tmp_path / "tiny.toml"))
    assert not (tmp_path / "p").exists()


@pytest.mark.slow
def test_the_server_needs_no_home_and_no_locale(fresh: Path) -> None:
    with RawServer(fresh, environment={"PATH": os.environ["PATH"], "LC_ALL": "C"}) as server:
        assert server.result("build", options={}) is None
