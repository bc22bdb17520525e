"""A model whose arena fits into no memory of the board on its chip: divided, it runs all the same."""

from __future__ import annotations

from pathlib import Path

import pytest

import uaccel
from support.device.boards import board_with_tools
from support.models.networks import OWN
from uaccel.build.linker_script import STATIC_RESERVE
from uaccel.codegen.options import EmitOptions
from uaccel.memory import Pool
from uaccel.pipeline import Compiled
from uaccel.runner.job import Job
from uaccel.util.files import data_dir

MODEL = OWN / "residual.tflite"


def small_board(folder: Path, kilobytes: float) -> Path:
    """An emulated Cortex-M4 of which little RAM is on the chip, and 16 MB beside it."""
    text = (data_dir("boards") / "mps2_an386.toml").read_text(encoding="utf-8")
    before, name, after = text.partition('name = "ssram23"')
    file = folder / "small.toml"
    file.write_text(before + name + after.replace('length = "4M"', f"length = {int(kilobytes * 1024)}", 1))
    return file


def compiled(folder: Path, kilobytes: float) -> Compiled:
    return Job.of(MODEL, small_board(folder, kilobytes)).compiled()


def test_only_what_does_not_fit_is_divided(tmp_path: Path) -> None:
    whole, divided = compiled(tmp_path, 64), compiled(tmp_path, 20)
    assert (whole.options.pools, whole.placement.pools) == ((), {})
    assert [pool.name for pool in divided.options.pools] == ["ssram23", "psram"]
    assert divided.placement.pools["ssram23"] <= 20 * 1024 - STATIC_RESERVE
    kinds = {name: place.pool for name, place in divided.placement.places.items() if place.kind == "arena"}
    assert set(kinds.values()) == {"ssram23", "psram"}


@pytest.mark.slow
@pytest.mark.parametrize("pools", [(), (Pool("ssram23", 2048), Pool("psram"))], ids=["by itself", "as asked"])
def test_it_computes_the_same(pools: tuple[Pool, ...], tmp_path: Path) -> None:
    board_with_tools("mps2_an386")
    options = EmitOptions(pools, workspace_io=True)
    done = uaccel.verify(MODEL, small_board(tmp_path, 19), samples=3, options=options)
    assert len(done.compiled.placement.pools) == 2
    assert done.verdict is not None
    assert (done.verdict["bit_exact"], done.verdict["samples"]) == (True, 3)
