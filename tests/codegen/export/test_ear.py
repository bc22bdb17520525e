"""The example of several models: a pipeline of three in one firmware, held against three interpreters and lists."""

from __future__ import annotations

import functools
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from codegen.export.test_several import library
from codegen.levels import ON_A_BOARD, SEND, sent
from models import ear
from support.device.boards import board_with_tools, build_bare
from support.device.generated import cc, run
from support.oracle.oracle import Array, Tflm
from support.oracle.sanitized import SANITIZE
from uaccel.codegen.export.formats import export_files
from uaccel.util.files import write_folder

HERE = Path(__file__).parent
HOP = 2


def test_the_example_s_models_are_what_the_script_makes() -> None:
    for name, build in ear.MODELS.items():
        assert build() == (ear.PLACE / f"{name}.tflite").read_bytes(), "run python -m models.ear in tests"


@functools.cache
def sounds() -> list[list[Array]]:
    script = runpy.run_path(str(ear.PLACE / "two_sounds.py"))
    return [list(script["sound"](pitch)) for pitch in script["PITCHES"].values()]


def wanted() -> bytes:
    """What the application sends."""
    told = b""
    embedding, classifier = Tflm(ear.embedding()), Tflm(ear.classifier())
    for frames in sounds():
        features, rows, embeddings = Tflm(ear.features()), [], []
        for number, frame in enumerate(frames, 1):
            rows.append(features.run([frame])[0].ravel())
            if number % HOP or number < ear.ROWS:
                told += b"\1"
                continue
            embeddings.append(embedding.run([np.concatenate(rows[-ear.ROWS :])[np.newaxis]])[0].ravel())
            if len(embeddings) < ear.EMBEDDINGS:
                told += b"\1"
                continue
            (scores,) = classifier.run([np.concatenate(embeddings[-ear.EMBEDDINGS :])[np.newaxis]])
            told += b"\0" + scores.tobytes()
    return told


def application(folder: Path, board: str) -> list[Path]:
    """The example's sources with its export, but for ``main.c``."""
    target = folder / "ear"
    write_folder(
        target, export_files(library("ear", [ear.PLACE / f"{name}.tflite" for name in ear.MODELS], board), "c"), "-o"
    )
    (target / "main.c").unlink()
    (target / "send.h").write_text(SEND)
    subprocess.run([sys.executable, ear.PLACE / "two_sounds.py"], cwd=folder, check=True)
    declared = (folder / "build" / "sounds.h").read_text().split("\n", 3)
    (target / "sounds.h").write_text("\n".join([*declared[:2], *declared[3:]]))  # without the names
    return [HERE / "app_ear.c", ear.PLACE / "ear.c", *sorted(target.glob("*.c"))]


@pytest.mark.parametrize("flags", [("-O2",), ("-O1", *SANITIZE)], ids=["", "sanitized"])
def test_the_pipeline_on_this_computer(flags: tuple[str, ...], tmp_path: Path) -> None:
    sources = application(tmp_path, "host")
    cc(*sources, *flags, "-lm", include=[tmp_path / "ear", ear.PLACE], output=tmp_path / "program")
    assert run(tmp_path / "program") == wanted()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mps2_an386", "mps3_an547"])
def test_the_pipeline_on_a_board(name: str, tmp_path: Path) -> None:
    board = board_with_tools(name)
    sources, expected = application(tmp_path, name), wanted()
    includes = [f"-I{folder}" for folder in (tmp_path / "ear", ear.PLACE)]
    elf = build_bare(board, sources, tmp_path / "bare", ON_A_BOARD, *includes)
    assert sent(board, elf, len(expected), name) == expected
