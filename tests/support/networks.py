"""The networks that whole-model tests run: the project's own, and MLPerf Tiny's where they lie beside the checkout."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OWN = ROOT / "tests" / "models"
SHARED = ROOT.parent / "shared" / "models"


@dataclass(frozen=True)
class Network:
    """``arena``: its bytes, exact, so that a regression shows; ``float_outputs`` compare within rounding."""

    name: str
    arena: int
    own: bool = True
    float_outputs: bool = False

    @property
    def path(self) -> Path:
        path = (OWN if self.own else SHARED) / f"{self.name}.tflite"
        if not path.is_file():
            pytest.skip(f"{path.name} is not here: MLPerf Tiny's models lie in ../shared/models, where there is one")
        return path


NETWORKS = [
    Network("gesture", arena=384),
    Network("residual", arena=6216),
    Network("branches", arena=2340),
    Network("int16", arena=2560),
    Network("mixed", arena=242, float_outputs=True),
    Network("ad", arena=256, own=False),
    Network("kws", arena=16000, own=False),
    Network("ic", arena=49296, own=False),
    Network("vww", arena=55296, own=False),
    Network("sww", arena=6656, own=False),
]

each_network = pytest.mark.parametrize("network", NETWORKS, ids=lambda network: network.name)

STREAM = Network("stream", arena=16)
"""Remembers: the same inputs twice are not the same outputs, so it is not among the others."""

each_made = pytest.mark.parametrize("network", [*NETWORKS, STREAM], ids=lambda network: network.name)
"""For tests that look at what is generated and run none of it."""
