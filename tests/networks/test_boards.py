"""Whole networks on boards, through the plugin that users test theirs with: the bytes are the reference's on each."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest

from support.device.boards import EMULATED
from support.models.networks import NETWORKS, Network
from support.oracle.oracle import Array, Tflm, random_inputs
from uaccel.frontend import import_model
from uaccel.model import TensorSpec
from uaccel.report.run_json import batched
from uaccel.testing import BoardUnderTest

RUNS = 3
QUICK = ("gesture", "int16", "mixed", "vww")
"""On every board in every run of the tests; the others where there is more time."""
INSTRUCTIONS = {
    ("gesture", "mps2_an386"): (20_000, 60_000),
    ("vww", "mps2_an386"): (4_000_000, 10_000_000),
}
"""Roughly: less would not be the whole network, more not the network alone."""


@cache
def samples(network: Network) -> tuple[dict[str, Array], dict[str, Array]]:
    """Inputs and what TFLite Micro makes of them, by name."""
    signature = import_model(network.path).signature
    data = network.path.read_bytes()
    reference = Tflm(data)
    inputs = random_inputs(data, 3, RUNS)
    return named(signature.inputs, inputs), named(signature.outputs, [reference.run(values) for values in inputs])


def named(specs: Sequence[TensorSpec], runs: list[list[Array]]) -> dict[str, Array]:
    return {spec.name: batched([values[i].reshape(spec.info.shape) for values in runs]) for i, spec in enumerate(specs)}


def cases() -> list[Any]:
    return [
        pytest.param(
            network, board, id=f"{network.name}-{board}", marks=() if network.name in QUICK else pytest.mark.long
        )
        for network in NETWORKS
        for board in ("host", *EMULATED)
    ]


@pytest.mark.sample(4)
@pytest.mark.parametrize(("network", "uaccel_board"), cases(), indirect=["uaccel_board"])
def test_the_bytes_are_the_references(network: Network, uaccel_board: BoardUnderTest) -> None:
    inputs, expected = samples(network)
    first, second = (uaccel_board.check(network.path, inputs, expected) for _ in range(2))
    assert first.instructions == second.instructions, "the same inputs take the same instructions"
    assert (first.instructions is None) == (uaccel_board.name == "host")
    low, high = INSTRUCTIONS.get((network.name, uaccel_board.name), (5_000, 1_000_000_000))
    assert low < (first.instructions or low + 1) < high
    assert 32 <= max(first.stack, second.stack) < uaccel_board.board.stack
