"""Compile time grows in proportion to the graph: benchmarks/compile_time.py shows more of it."""

from __future__ import annotations

import gc
import time
from pathlib import Path

import pytest

from support.models.chains import chain
from uaccel.accelerator import load_accelerator
from uaccel.pipeline import compile_model

SHORT, LONG = 25, 100
MOST_GROWTH = 6.0
"""Times the seconds for four times the layers; what grows with the square would take sixteen."""
TRIES = 2


def seconds(path: Path, engine: str) -> float:
    """The least of some tries: other processes only make it longer."""
    accelerators = [] if engine == "cpu" else [load_accelerator(engine)]
    found = []
    for _ in range(TRIES):
        begun = time.process_time()
        compile_model(path, board="host", accelerators=accelerators)
        found.append(time.process_time() - begun)
    return min(found)


@pytest.mark.slow
@pytest.mark.parametrize(
    "engine", ["cpu", "nuc_fpga", *(pytest.param(name, marks=pytest.mark.long) for name in ("matrix8", "npu"))]
)
def test_four_times_the_layers_take_about_four_times_as_long(engine: str, tmp_path: Path) -> None:
    paths = {count: tmp_path / f"chain{count}.tflite" for count in (SHORT, LONG)}
    for count, path in paths.items():
        path.write_bytes(chain(count))
    short = seconds(paths[SHORT], engine)
    assert seconds(paths[LONG], engine) < MOST_GROWTH * short


def test_objects_are_collected_as_before_once_a_model_is_compiled(tmp_path: Path) -> None:
    path, before = tmp_path / "chain.tflite", gc.get_threshold()
    path.write_bytes(chain(1))
    seen: list[int] = []
    compile_model(path, board="host", progress=lambda _step: seen.append(gc.get_threshold()[0]))
    assert min(seen) > before[0]
    assert gc.get_threshold() == before
