"""The stored benchmark of random layers: no kind is slower than CMSIS-NN, and layers still take what is stored."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from support.device.boards import board_with_tools
from support.models.drawn_layers import KINDS
from support.models.drawn_networks import NETWORKS
from support.run.scripts import script_of

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
STORED: dict[str, dict[str, dict[str, Any]]] = json.loads((FOLDER / "layers.json").read_text())["boards"]
PAGE = (FOLDER.parent / "docs" / "reference" / "kernels.md").read_text(encoding="utf-8")
MOST = 1.0
MOST_OF_NETWORKS = 0.6
ROWS = (*KINDS, *(f"network: {name}" for name in NETWORKS))


@pytest.mark.parametrize("board", STORED)
@pytest.mark.parametrize("kind", ROWS)
def test_no_layer_is_slower_than_the_peer(kind: str, board: str) -> None:
    row = STORED[board][kind]
    ratios = [one / other for one, other in zip(row["instructions"], row["cmsis_nn"], strict=True)]
    assert row["worst"] == pytest.approx(max(ratios), abs=0.001)
    assert row["worst"] <= (MOST if kind in KINDS else MOST_OF_NETWORKS)


@pytest.mark.parametrize("kind", ROWS)
def test_the_page_shows_the_stored_ratios(kind: str) -> None:
    names = ("median", "worst") if kind in KINDS else ("worst",)
    cells = [
        kind.removeprefix("network: "),
        *(f"{STORED[board][kind][name]:.2f}" for board in STORED for name in names),
    ]
    line = r" \| ".join(re.escape(cell) for cell in cells)
    assert re.search(rf"^\| {line} \|$", PAGE, re.MULTILINE), f"| {' | '.join(cells)} |"


@pytest.mark.slow
@pytest.mark.parametrize("board", STORED)
@pytest.mark.parametrize(
    "kind", ["depthwise of 1 channel", "SVDF, int16 state", "convolution, groups", "network: LeNet"]
)
def test_layers_still_take_what_is_stored(kind: str, board: str, tmp_path: Path) -> None:
    board_with_tools(board)
    module = script_of("benchmarks/layers.py")
    results = {board: {kind: module.measure(kind, board, STORED, None, tmp_path)}}
    assert module.differences(results, STORED) == []
