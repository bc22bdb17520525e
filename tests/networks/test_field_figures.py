"""benchmarks/networks.json, known networks at their published sizes: kept, and shown by docs/reference/networks.md."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from models.field import FIELD, field
from support.run.scripts import script_of
from uaccel.pipeline import compile_model

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
STORED: dict[str, dict[str, Any]] = json.loads((FOLDER / "networks.json").read_text())["networks"]
PAGE = FOLDER.parent / "docs" / "reference" / "networks.md"
SLIPPED = 1.2
"""Of the lower bound: where layers are as large as each other, what results lie before their inputs adds up."""
QUICK = ("mlp", "ds_cnn", "transformer", "mobilenet_v3_small")
PUBLISHED_MACS = {
    "vgg16": 15.47,
    "resnet18": 1.81,
    "resnet50": 4.09,
    "squeezenet": 0.35,
    "inception_v3": 5.71,
    "mobilenet_v1": 0.57,
    "mobilenet_v2": 0.30,
    "mobilenet_v3": 0.22,
    "mobilenet_v3_small": 0.06,
    "efficientnet_b0": 0.39,
}
"""In thousand millions, as torchvision and Keras tell them."""


def benchmark() -> Any:
    return script_of("benchmarks/networks.py")


def test_every_network_is_stored_exact_and_near_its_lower_bound() -> None:
    assert list(STORED) == [one.name for one in FIELD]
    for name, row in STORED.items():
        assert row["exact"] is True, name
        assert row["arena_lower_bound"] <= row["arena"] <= SLIPPED * row["arena_lower_bound"], name
        assert 0 < row["offloaded"] <= row["layers"] + 2, name


@pytest.mark.parametrize("name", PUBLISHED_MACS)
def test_they_multiply_as_often_as_those_published(name: str) -> None:
    assert STORED[name]["macs"] / 1e9 == pytest.approx(PUBLISHED_MACS[name], rel=0.04, abs=0.006)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", QUICK)
def test_memory_is_what_is_stored(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.tflite"
    path.write_bytes(field(name).build())
    needs = benchmark().needs(compile_model(path, board="host"))
    assert {what: STORED[name][what] for what in needs} == needs


@pytest.mark.long
@pytest.mark.parametrize("name", STORED)
def test_full_size_networks_are_exact_and_give_the_stored_figures(name: str) -> None:
    module = benchmark()
    assert module.differences({name: module.measure(field(name))}, STORED) == []


@pytest.mark.parametrize("name", STORED)
def test_the_page_shows_the_stored_figures(name: str) -> None:
    row = STORED[name]
    numbers = (row[what] for what in ("layers", "macs", "weights", "arena", "arena_lower_bound"))
    cells = [row["title"], *(f"{number:,}" for number in numbers), f"{row['offloaded']} on `{row['accelerator']}`"]
    assert f"| {' | '.join(cells)} |" in PAGE.read_text(encoding="utf-8")
