"""An accelerator of somebody else's, in a Python package of its own, works where uaccel is installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from uaccel.accelerator.discovery import write_starter

PROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "tiny-npu"
version = "1.0"

[project.entry-points."uaccel.accelerators"]
tiny = "tiny_npu.accelerator:ACCELERATOR"
"""


def run(*command: str | Path, cwd: Path, installed: Path | None = None, status: int = 0) -> str:
    """Standard output of Python with ``command``; its path has the installed package, or nothing beside uaccel."""
    path = os.pathsep.join(filter(None, [str(installed or ""), os.environ.get("PYTHONPATH", "")]))
    environment = os.environ | {"PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, *command], cwd=cwd, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == status, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package, from its wheel; nothing of it is left elsewhere."""
    folder = tmp_path_factory.mktemp("third_party")
    source = folder / "source"
    write_starter("tiny", source / "tiny_npu")
    (source / "tiny_npu" / "__init__.py").write_text("")
    (source / "pyproject.toml").write_text(PROJECT)
    run("-m", "build", "--wheel", "--no-isolation", "--outdir", folder, source, cwd=folder)
    (wheel,) = folder.glob("*.whl")
    target = folder / "site"
    run("-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", target, wheel, cwd=folder)
    source.rename(folder / "gone")
    return target


def report(folder: Path, installed: Path, *command: str | Path, status: int = 0) -> dict[str, Any]:
    output = run("-m", "uaccel", *command, "--json", cwd=folder, installed=installed, status=status)
    result: dict[str, Any] = json.loads(output)
    return result


@pytest.mark.slow
def test_it_is_listed_once_it_is_installed(installed: Path, tmp_path: Path) -> None:
    found = {row["name"]: row for row in report(tmp_path, installed, "accelerators")["accelerators"]}
    assert found["tiny"]["error"] is None
    assert Path(found["tiny"]["folder"]) == installed / "tiny_npu"
    assert [operation["name"] for operation in found["tiny"]["operations"]] == ["multiply"]
    assert "nuc_fpga" in found


@pytest.mark.slow
def test_a_model_runs_on_it_by_its_name(installed: Path, tmp_path: Path) -> None:
    model = installed / "tiny_npu" / "tests" / "model.tflite"
    result = report(tmp_path, installed, "run", model, "--accelerator", "tiny", "--verify")
    assert result["verify"]["bit_exact"] is True
    assert [layer["calls"] for layer in result["layers"] if layer["engine"] == "tiny"] == [1, 1, 1]


@pytest.mark.slow
def test_elsewhere_nobody_knows_it(installed: Path, tmp_path: Path) -> None:
    model = installed / "tiny_npu" / "tests" / "model.tflite"
    error = report(tmp_path, tmp_path, "explain", model, "--accelerator", "tiny", status=1)["error"]
    assert error["message"].startswith("no accelerator 'tiny'")
