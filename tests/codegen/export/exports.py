"""Exports as a user has them: made by the command line, in a folder beside which there is nothing else."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import get_args

import pytest

from support.models.networks import OWN
from uaccel.accelerator import load_accelerators
from uaccel.board import load_board
from uaccel.codegen.export import FormatName
from uaccel.codegen.export.formats import export_files
from uaccel.codegen.export.library import Export
from uaccel.pipeline import compile_model
from uaccel.runner.compiled import exported
from uaccel.runner.firmware import tensor_types
from uaccel.runner.samples import default_samples
from uaccel.util.files import write_folder

STAND_INS = Path(__file__).parent / "build_systems"
"""Of build systems that cannot be had here: each reads what the real one reads, and builds for this computer."""
ALL = sorted(get_args(FormatName))
NONE_DIFFER = "0 elements differ from what the model means"


@functools.cache
def export_of(model: str = "gesture", accelerator: str = "", board: str = "host") -> Export:
    """A model of the tests, compiled once a process."""
    engines = load_accelerators([accelerator] if accelerator else [])
    compiled = compile_model(OWN / f"{model}.tflite", board="host", accelerators=engines)
    (inputs,) = default_samples(tensor_types(compiled.model.signature.inputs), 1)
    return exported(compiled, load_board(board), inputs, f"uaccel export {model}.tflite")


def written(folder: Path, to: str, model: str = "gesture", accelerator: str = "", board: str = "host") -> Path:
    """The export in an otherwise empty folder."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"tvmgen_{model}"
    write_folder(target, export_files(export_of(model, accelerator, board), to), "-o")
    return target


def commands(folder: Path) -> str:
    """What the README has one type."""
    (block,) = re.findall(r"```sh\n(.*?)```", (folder / "README.md").read_text(), re.DOTALL)
    assert isinstance(block, str)
    return block


def typed(folder: Path, *, path: Path | None = None, variables: dict[str, str] | None = None) -> str:
    """What the README's commands print; ``path`` goes in front of PATH."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "MAKE"))}
    environment |= variables or {}
    environment["PATH"] = os.pathsep.join([*([str(path)] if path else []), environment["PATH"]])
    done = subprocess.run(
        ["bash", "-e", "-c", commands(folder)], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def need_program(*names: str) -> None:
    """Skip the test, with the reason, where one is missing."""
    for name in names:
        if shutil.which(name) is None:
            pytest.skip(f"{name} is not installed")
