"""The wheel works where the repository is not: it carries its data, and its command finds them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path
from typing import Any

import pytest

from uaccel.version import __version__

ROOT = Path(__file__).resolve().parents[2]
DATA_FOLDERS = ("boards", "firmware", "project_template", "accelerators", "accelerator_template")


def run(*command: str | Path, cwd: Path) -> str:
    """Standard output of a program that sees nothing of the repository."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = ("-m", "build", "--wheel", "--no-isolation", "--outdir", folder)
    run(sys.executable, *build, ROOT, cwd=folder)
    (file,) = folder.glob("*.whl")
    return file


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the wheel; what uaccel depends on comes from the one that runs this test."""
    folder = tmp_path_factory.mktemp("environment") / "venv"
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder).strip())
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    install = ("-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index")
    run(sys.executable, *install, wheel, cwd=folder)
    return folder


def report(environment: Path, folder: Path, command: str) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(run(environment / "bin" / "uaccel", command, "--json", cwd=folder))
    return result


def test_the_wheel_carries_every_data_file_of_the_repository(wheel: Path) -> None:
    listing = run("git", "-C", ROOT, "ls-files", "--", *DATA_FOLDERS, cwd=ROOT).splitlines()
    wanted = {f"uaccel/_data/{name}" for name in listing if (ROOT / name).is_file()}
    assert "uaccel/_data/boards/host.toml" in wanted
    names = set(zipfile.ZipFile(wheel).namelist())
    assert wanted - names == set()


def test_the_wheel_carries_the_package_its_types_and_its_licence_and_no_more(wheel: Path) -> None:
    assert wheel.name == f"uaccel-{__version__}-py3-none-any.whl"
    names = set(zipfile.ZipFile(wheel).namelist())
    information = f"uaccel-{__version__}.dist-info"
    assert {"uaccel/__init__.py", "uaccel/py.typed", f"{information}/licenses/LICENSE"} <= names
    assert {name.partition("/")[0] for name in names} == {"uaccel", information}
    assert [name for name in names if "__pycache__" in name] == []


def test_boards_come_from_inside_the_wheel(environment: Path, tmp_path: Path) -> None:
    boards = report(environment, tmp_path, "boards")["boards"]
    assert "host" in [board["name"] for board in boards]
    for board in boards:
        assert Path(board["file"]).is_relative_to(environment)
        assert "uaccel/_data/boards" in board["file"]


def test_doctor_is_content_outside_the_repository(environment: Path, tmp_path: Path) -> None:
    result = report(environment, tmp_path, "doctor")
    assert result["ok"] is True
    (itself,) = [check for check in result["checks"] if check["name"] == "uaccel"]
    assert Path(itself["path"]).is_relative_to(environment)


def test_a_model_compiles_and_runs_outside_the_repository(environment: Path, tmp_path: Path) -> None:
    model = tmp_path / "gesture.tflite"
    model.write_bytes((ROOT / "tests" / "models" / "gesture.tflite").read_bytes())
    command = (environment / "bin" / "uaccel", "run", model, "--board", "host", "--verify", "--json")
    result = json.loads(run(*command, cwd=tmp_path))
    assert result["verify"] == {"bit_exact": True, "first_difference": None}
    run(environment / "bin" / "uaccel", "compile", model, "--board", "host", "-o", "out.tar", cwd=tmp_path)
    assert (tmp_path / "out.tar").stat().st_size > 0


@pytest.mark.slow
def test_accelerators_come_with_the_wheel(environment: Path, tmp_path: Path) -> None:
    """Its own, driver and device model included, and the beginning of one's own."""
    uaccel = environment / "bin" / "uaccel"
    for row in report(environment, tmp_path, "accelerators")["accelerators"]:
        assert row["error"] is None
        assert Path(row["folder"]).is_relative_to(environment)
    run(uaccel, "new", "accelerator", "mine", cwd=tmp_path)
    command = (uaccel, "run", "mine/tests/model.tflite", "--accelerator", "./mine", "--verify", "--json")
    result = json.loads(run(*command, cwd=tmp_path))
    assert result["verify"]["bit_exact"] is True
    assert [layer["calls"] for layer in result["layers"] if layer["engine"] == "mine"] == [1, 1, 1]


@pytest.mark.slow
def test_the_pytest_plugin_is_there_once_uaccel_is_installed(environment: Path, tmp_path: Path) -> None:
    model = ROOT / "tests" / "models" / "gesture.tflite"
    (tmp_path / "test_it.py").write_text(f"""
import uaccel

def test_it(uaccel_board):
    assert uaccel.__file__.startswith({str(environment)!r})
    uaccel_board.check({str(model)!r})
""")
    command = (environment / "bin" / "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py")
    assert "1 passed" in run(*command, cwd=tmp_path)
