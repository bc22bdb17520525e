"""Whole networks on emulated boards, through the real session server: the bytes are the reference's on every one."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from support.boards import EMULATED, board_with_tools
from support.networks import NETWORKS, Network
from support.oracle import Array, Tflm, random_inputs
from uaccel.execute import archive_of, connect, identity
from uaccel.pipeline import Compiled, compile_model
from uaccel.project.build import build_project, firmware_of
from uaccel.project.create import create_project
from uaccel.session.qemu import Counting, QemuTransport
from uaccel.session.session import Session

RUNS = 3
QUICK = ("gesture", "int16", "mixed", "vww")
"""On every board in every run of the tests; the others where there is more time."""
INSTRUCTIONS = {
    ("gesture", "mps2_an386"): (60_000, 120_000),
    ("vww", "mps2_an386"): (10_000_000, 120_000_000),
}
"""Roughly: less would not be the whole network, more not the network alone."""


@cache
def compiled(network: Network) -> Compiled:
    return compile_model(network.path, board="any")


@cache
def expected(network: Network) -> list[tuple[list[Array], list[Array]]]:
    data = network.path.read_bytes()
    reference = Tflm(data)
    return [(values, reference.run(values)) for values in random_inputs(data, 3, RUNS)]


def cases() -> list[object]:
    return [
        pytest.param(
            network, name, id=f"{network.name}-{name}", marks=() if network.name in QUICK else pytest.mark.slow
        )
        for network in NETWORKS
        for name in EMULATED
    ]


@pytest.mark.parametrize(("network", "name"), cases())
def test_the_bytes_are_the_references_on_every_board(network: Network, name: str, tmp_path: Path) -> None:
    board = board_with_tools(name)
    model = compiled(network)
    create_project(archive_of(model), board, tmp_path / "project")
    build = build_project(tmp_path / "project")
    samples = [(values, outputs) for values, outputs in expected(network) for _ in range(2)]
    inputs = [spec.name for spec in model.model.signature.inputs]
    with connect(board, firmware_of(build), identity(model), "") as session:
        results = list(session.stream(dict(zip(inputs, values, strict=True)) for values, _ in samples))
    for number, ((_, wanted), result) in enumerate(zip(samples, results, strict=True)):
        for got, reference in zip(result.outputs.values(), wanted, strict=True):
            if network.float_outputs:
                np.testing.assert_allclose(got, reference.reshape(got.shape), rtol=1e-5, atol=1e-6)
            else:
                np.testing.assert_array_equal(got, reference.reshape(got.shape), err_msg=f"run {number}")
    for first, second in zip(results[::2], results[1::2], strict=True):
        assert first.instructions == second.instructions is not None, "the same input takes the same instructions"
    low, high = INSTRUCTIONS.get((network.name, name), (10_000, 1_000_000_000))
    assert low < (results[0].instructions or 0) < high
    assert 32 <= max(result.stack for result in results) < board.stack


def test_where_no_plugin_can_be_built_the_clock_counts(tmp_path: Path) -> None:
    """To the resolution of the board's tick and what interrupts took."""
    board = board_with_tools("mps2_an386")
    network = next(network for network in NETWORKS if network.name == "residual")
    model = compiled(network)
    create_project(archive_of(model), board, tmp_path / "project")
    firmware = firmware_of(build_project(tmp_path / "project", observe=True))
    counts = {}
    ways: tuple[Counting, ...] = ("plugin", "time")
    for counting in ways:
        with Session(QemuTransport(board, firmware, counting=counting), expect=identity(model)) as session:
            timing, layers = session.time(1), session.layer_times()
        counts[counting] = [timing.instructions, *(layer.instructions for layer in layers)]
    assert counts["time"] == pytest.approx(counts["plugin"], rel=0.02, abs=1000)
    assert counts["time"] != counts["plugin"]
