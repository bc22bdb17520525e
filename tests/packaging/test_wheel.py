"""The wheel works where the repository is not: it carries its data, and its command finds them."""

from __future__ import annotations

import json
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path
from typing import Any

import pytest

from support.run.fresh import ROOT, run
from uaccel.version import __version__

DATA_FOLDERS = ("boards", "firmware", "project_template", "accelerators", "accelerator_template", "docs")
MODELS = ("branches", "gesture", "int16", "mixed", "residual", "stream")


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


def report(environment: Path, folder: Path, *command: str) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(run(environment / "bin" / "uaccel", *command, "--json", cwd=folder))
    return result


def test_the_wheel_carries_every_data_file_of_the_repository(wheel: Path) -> None:
    listing = run("git", "-C", ROOT, "ls-files", "--", *DATA_FOLDERS, cwd=ROOT).splitlines()
    wanted = {f"uaccel/_data/{name}" for name in listing if (ROOT / name).is_file()}
    assert {"uaccel/_data/boards/host.toml", "uaccel/_data/docs/cli.md"} <= wanted
    names = set(zipfile.ZipFile(wheel).namelist())
    assert wanted - names == set()


def test_the_wheel_has_a_bill_of_materials(wheel: Path) -> None:
    """CycloneDX, with whatever the package wants, its versions those that are tested."""
    archive = zipfile.ZipFile(wheel)
    bill = json.loads(archive.read(f"uaccel-{__version__}.dist-info/sboms/uaccel.cdx.json"))
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    described = bill["metadata"]["component"]
    assert (described["name"], described["version"]) == ("uaccel", __version__)
    assert described["licenses"] == [{"license": {"id": "Apache-2.0"}}]
    lines = archive.read(f"uaccel-{__version__}.dist-info/METADATA").decode().splitlines()
    wanted = [line.removeprefix("Requires-Dist: ") for line in lines if line.startswith("Requires-Dist: ")]
    required = sorted(line for line in wanted if "extra ==" not in line)
    assert [row["properties"][0]["value"] for row in bill["components"]] == required
    assert {row["name"]: row.get("version") for row in bill["components"]}["apache-tvm"] == "0.27.0.post1"
    assert not (ROOT / "uaccel.cdx.json").exists()


def test_the_wheel_carries_the_models_and_nothing_else_of_the_tests(wheel: Path) -> None:
    inside = "uaccel/_data/models/"
    names = {name.removeprefix(inside) for name in zipfile.ZipFile(wheel).namelist() if name.startswith(inside)}
    assert names == {*(f"{name}.tflite" for name in MODELS), "gesture_samples.npz", "gesture_labels.txt"}


def test_the_wheel_carries_the_package_its_types_and_its_licence_and_no_more(wheel: Path) -> None:
    assert wheel.name == f"uaccel-{__version__}-py3-none-any.whl"
    names = set(zipfile.ZipFile(wheel).namelist())
    information = f"uaccel-{__version__}.dist-info"
    assert {"uaccel/__init__.py", "uaccel/py.typed", f"{information}/licenses/LICENSE"} <= names
    assert {name.partition("/")[0] for name in names} == {"uaccel", information}
    assert [name for name in names if "__pycache__" in name] == []


def test_what_it_carries_comes_from_inside_it(environment: Path, tmp_path: Path) -> None:
    """Boards and what names pages, models, and the accelerators that come along."""
    boards = report(environment, tmp_path, "boards")["boards"]
    assert "host" in [board["name"] for board in boards]
    for board in boards:
        assert Path(board["file"]).is_relative_to(environment)
        assert "uaccel/_data/boards" in board["file"]
    report(environment, tmp_path, "new", "board", "mine")
    (page,) = [word for word in (tmp_path / "mine.toml").read_text().split() if word.endswith("boards.md")]
    assert Path(page).is_relative_to(environment)
    assert Path(page).is_file()
    program = "import json, uaccel; print(json.dumps({name: str(path) for name, path in uaccel.models().items()}))"
    models = json.loads(run(environment / "bin" / "python", "-c", program, cwd=tmp_path))
    assert set(models) == set(MODELS)
    assert all(Path(model).is_relative_to(environment) for model in models.values())


def test_doctor_is_content_outside_the_repository(environment: Path, tmp_path: Path) -> None:
    result = report(environment, tmp_path, "doctor")
    assert result["ok"] is True
    (itself,) = [check for check in result["checks"] if check["name"] == "uaccel"]
    assert Path(itself["path"]).is_relative_to(environment)


def test_the_demo_needs_nothing_but_the_wheel(environment: Path, tmp_path: Path) -> None:
    """Compiled, built, run and compared; the accelerator's driver and device model are the wheel's."""
    result = report(environment, tmp_path, "demo")
    assert result["verify"]["bit_exact"] is True
    assert [layer["engine"] for layer in result["offloaded"]] == ["matrix8"] * 4
    assert Path(result["model_file"]).is_relative_to(environment)


@pytest.mark.slow
def test_accelerators_come_with_the_wheel(environment: Path, tmp_path: Path) -> None:
    """Its own, driver and device model included, and the beginning of one's own."""
    for row in report(environment, tmp_path, "accelerators")["accelerators"]:
        assert row["error"] is None
        assert Path(row["folder"]).is_relative_to(environment)
    report(environment, tmp_path, "new", "accelerator", "mine")
    result = report(environment, tmp_path, "run", "mine/tests/model.tflite", "--accelerator", "./mine", "--verify")
    assert result["verify"]["bit_exact"] is True
    assert [layer["calls"] for layer in result["layers"] if layer["engine"] == "mine"] == [1, 1, 1]


@pytest.mark.slow
def test_the_pytest_plugin_is_there_once_uaccel_is_installed(environment: Path, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(f"""
import uaccel

def test_it(uaccel_board):
    assert uaccel.__file__.startswith({str(environment)!r})
    uaccel_board.check(uaccel.models()["gesture"])
""")
    command = (environment / "bin" / "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py")
    assert "1 passed" in run(*command, cwd=tmp_path)
