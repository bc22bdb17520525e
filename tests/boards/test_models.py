"""Instructions of whole networks, counted in another way than by the plugin."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.boards import board_with_tools
from support.networks import NETWORKS
from uaccel.execute import archive_of, identity
from uaccel.pipeline import compile_model
from uaccel.project.build import build_project, firmware_of
from uaccel.project.create import create_project
from uaccel.session.qemu import Counting, QemuTransport
from uaccel.session.session import Session


def test_where_no_plugin_can_be_built_the_clock_counts(tmp_path: Path) -> None:
    """To the resolution of the board's tick and what interrupts took."""
    board = board_with_tools("mps2_an386")
    network = next(network for network in NETWORKS if network.name == "residual")
    model = compile_model(network.path, board=board.name)
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
