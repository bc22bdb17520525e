"""Instructions of whole networks: layer by layer and together, by the plugin and without it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from support.device.boards import board_with_tools
from support.models.networks import network_named
from uaccel.board import Board
from uaccel.build.project import build_project, create_project, firmware_of
from uaccel.pipeline import Compiled, compile_model
from uaccel.runner.compiled import archive_of, pack_compiled
from uaccel.session.qemu import INSTRUCTIONS_PER_SECOND, Counting, QemuTransport
from uaccel.session.session import Session


@dataclass(frozen=True)
class Firmware:
    """Without and with observation."""

    board: Board
    model: Compiled
    plain: Path
    observed: Path

    def count(self, counting: Counting) -> list[int | None]:
        """Of the whole network, then of its layers."""
        counts = []
        for firmware in (self.plain, self.observed):
            with Session(
                QemuTransport(self.board, firmware, counting=counting), expect=pack_compiled(self.model).identity
            ) as session:
                if firmware == self.plain:
                    values = {tensor.name: tensor.unpack(bytes(tensor.size)) for tensor in session.model.inputs}
                    counts += [result.instructions for result in session.stream([values] * 3)][:1]
                else:
                    counts += [layer.instructions for layer in session.layer_times()]
        return counts


@pytest.fixture(scope="module", params=["mps2_an386", "mps3_an547", "qemu_riscv32", "qemu_riscv32v"])
def firmware(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Firmware:
    board = board_with_tools(request.param)
    network = network_named("residual")
    model = compile_model(network.path, board=board.name)
    project = tmp_path_factory.mktemp("firmware") / "project"
    create_project(archive_of(model), board, project)
    plain, observed = (firmware_of(build_project(project, observe=observe)) for observe in (False, True))
    return Firmware(board, model, plain, observed)


@pytest.mark.sample(1)
def test_the_layers_add_up_to_the_network(firmware: Firmware) -> None:
    """The compiler makes the same of a layer, observed or not; only the calls of the layers come on top."""
    total, *layers = firmware.count("plugin")
    assert total is not None
    assert abs(total - sum(count or 0 for count in layers)) <= 32 * len(layers)


@pytest.mark.slow
def test_where_no_plugin_can_be_built_the_clock_counts(firmware: Firmware) -> None:
    """To the resolution of the board's tick and what interrupts took; but the same every time, of a layer to a tick."""
    ways: tuple[Counting, ...] = ("plugin", "time", "time", "time", "time")
    exact, *others = (firmware.count(counting) for counting in ways)
    assert others[0] == pytest.approx(exact, rel=0.02, abs=200)
    assert others[0] != exact
    assert {counts[0] for counts in others} == {others[0][0]}
    counts_itself = firmware.board.cpu.arch == "rv32"
    tick = 0 if counts_itself else 1 + INSTRUCTIONS_PER_SECOND / firmware.board.timer.hz
    assert all(counts == pytest.approx(others[0], rel=0, abs=tick) for counts in others)
