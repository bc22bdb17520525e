"""The networks that whole-model tests run: the project's own, and MLPerf Tiny's from the folder UACCEL_MODELS."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
OWN = ROOT / "tests" / "models"
VARIABLE = "UACCEL_MODELS"
PAGE = "docs/reference/reference-models.md"


@dataclass(frozen=True)
class Network:
    """``arena``: its bytes, exact, so that a regression shows; ``float_outputs`` compare within rounding."""

    name: str
    arena: int
    own: bool = True
    float_outputs: bool = False

    @property
    def path(self) -> Path:
        """Skips the test that asks where there is no such file; nothing asks while tests are collected."""
        folder = OWN if self.own else Path(os.environ.get(VARIABLE) or os.devnull)
        path = folder / f"{self.name}.tflite"
        if not path.is_file():
            pytest.skip(f"MLPerf Tiny's models are in no folder that {VARIABLE} names: {PAGE} says where to get them")
        return path


NETWORKS = [
    Network("gesture", arena=320),
    Network("residual", arena=4304),
    Network("branches", arena=2304),
    Network("int16", arena=2084),
    Network("mixed", arena=172, float_outputs=True),
    Network("ad", arena=256, own=False),
    Network("kws", arena=10048, own=False),
    Network("ic", arena=33440, own=False),
    Network("vww", arena=36888, own=False),
    Network("sww", arena=4008, own=False),
]


def network_named(name: str) -> Network:
    """One of them."""
    return next(network for network in NETWORKS if network.name == name)


each_network = pytest.mark.parametrize("network", NETWORKS, ids=lambda network: network.name)

STREAM = Network("stream", arena=16)
"""Remembers: the same inputs twice are not the same outputs, so it is not among the others."""

each_made = pytest.mark.parametrize("network", [*NETWORKS, STREAM], ids=lambda network: network.name)
"""For tests that look at what is generated and run none of it."""
