"""Both artefacts, installed as a stranger would, in a fresh environment of each Python that uaccel says it runs on."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from support.device.boards import board_with_tools
from support.run.fresh import ROOT, clone, run

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

EMULATED = "mps2_an386"
MOST_BYTES = 1_500_000
"""Of either artefact: nobody shall fetch the tests' data with it."""
WORKS = "import ensurepip, sys, venv; print('{}.{}'.format(*sys.version_info))"

pytestmark = pytest.mark.long


def versions() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    last = [line.rpartition(" :: ")[2] for line in project["classifiers"] if "Python :: 3." in line]
    return sorted(last, key=lambda version: int(version.partition(".")[2]))


@cache
def find_python(version: str) -> Path | None:
    """One that works, with what makes environments: a name on PATH may lead to a program that only complains."""
    for folder in (f"{sys.base_prefix}/bin", *os.environ["PATH"].split(os.pathsep)):
        program = shutil.which(f"python{version}", path=folder)
        if program is None:
            continue
        done = subprocess.run([program, "-c", WORKS], capture_output=True, text=True, check=False)
        if done.returncode == 0 and done.stdout.strip() == version:
            return Path(program)
    return None


@pytest.fixture(scope="session")
def artefacts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """By their kinds, from a fresh clone, by the build front end alone; the wheel is made of the sdist."""
    pytest.importorskip("build", reason="the build package is not installed")
    folder = tmp_path_factory.mktemp("artefacts")
    probe = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder / "probe", "hatchling")
    if subprocess.run(probe, capture_output=True, check=False).returncode != 0:
        pytest.skip("no package index can be reached, and fresh environments need one")
    run(sys.executable, "-m", "build", "--outdir", folder / "dist", clone(folder / "clone"), cwd=folder)
    (wheel,) = (folder / "dist").glob("*.whl")
    (sdist,) = (folder / "dist").glob("*.tar.gz")
    return {"wheel": wheel, "sdist": sdist}


def test_neither_is_bloated(artefacts: dict[str, Path]) -> None:
    assert [kind for kind, file in artefacts.items() if file.stat().st_size > MOST_BYTES] == []
    with tarfile.open(artefacts["sdist"]) as archive:
        tops = {"/".join(name.split("/")[1:3]) for name in archive.getnames() if name.split("/")[1:2] == ["tests"]}
    assert tops == {"tests/models"}


def test_the_wheel_of_the_sdist_is_the_wheel_of_the_checkout(artefacts: dict[str, Path], tmp_path: Path) -> None:
    run(sys.executable, "-m", "build", "--wheel", "--outdir", tmp_path, clone(tmp_path / "clone"), cwd=tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    assert contents(wheel) == contents(artefacts["wheel"])


def contents(wheel: Path) -> dict[str, bytes]:
    archive = zipfile.ZipFile(wheel)
    return {name: archive.read(name) for name in archive.namelist()}


@pytest.mark.parametrize("kind", ["wheel", "sdist"])
@pytest.mark.parametrize("version", versions())
def test_it_works_from_a_fresh_environment(version: str, kind: str, artefacts: dict[str, Path], tmp_path: Path) -> None:
    python = find_python(version)
    if python is None:
        pytest.skip(f"there is no python{version} on PATH that works and makes environments")
    run(python, "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    bin_folder = tmp_path / "venv" / "bin"
    run(bin_folder / "python", "-m", "pip", "install", "--quiet", artefacts[kind], "pytest", cwd=tmp_path)
    work = tmp_path / "work"
    work.mkdir()

    def uaccel(*command: str) -> dict[str, Any]:
        result: dict[str, Any] = json.loads(run("uaccel", *command, "--json", cwd=work, path=str(bin_folder)))
        return result

    assert uaccel("doctor")["ok"] is True
    model = uaccel("demo")["model_file"]
    assert Path(model).is_relative_to(tmp_path / "venv")
    assert uaccel("run", model, "--verify")["verify"]["bit_exact"] is True
    uaccel("new", "accelerator", "mine")
    assert "7 passed" in run("pytest", "-q", "mine", cwd=work, path=str(bin_folder))
    board_with_tools(EMULATED)
    assert uaccel("demo", "--board", EMULATED)["verify"]["bit_exact"] is True
    assert uaccel("run", model, "--board", EMULATED, "--verify")["verify"]["bit_exact"] is True
