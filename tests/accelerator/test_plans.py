"""``--choose cost`` over the bundled accelerators in pairs: never slower than what a user would have tried by hand."""

from __future__ import annotations

import tempfile
from itertools import combinations
from pathlib import Path

import pytest

from models.field import field
from support.device.boards import board_with_tools
from support.device.offload import INTEGER
from support.models.networks import Network
from uaccel.accelerator import load_accelerators
from uaccel.board import load_board
from uaccel.build.project import build_project, create_project, firmware_of
from uaccel.kernels.choice import selection_for
from uaccel.lower.plan_search import Estimate, Estimator
from uaccel.partition import Wishes
from uaccel.pipeline import Compiled, compile_model
from uaccel.runner.compiled import archive_of, pack_compiled
from uaccel.runner.execute import connect
from uaccel.runner.firmware import tensor_types
from uaccel.session.tensors import ramp

BOARD = "mps2_an386"
SELECTION = selection_for(load_board(BOARD))
PAIRS = list(combinations(INTEGER, 2))
OWN = [Network(name, 0) for name in ("gesture", "residual", "branches", "mixed")]
REFERENCE = [Network(name, 0, own=False) for name in ("kws", "ic", "sww", "ad", "vww")]
UNTUNED = {"ds_cnn": (25, 10, 0.5), "squeezenet": (48, 10, 0.25), "resnet18": (32, 10, 0.125)}
"""Resolution, classes and width."""
measured: dict[str, int] = {}
"""By what runs: pairs of accelerators share most plans."""


def compiled(path: Path, accelerators: tuple[str, ...], choose: str = "preference") -> Compiled:
    asked = load_accelerators(list(accelerators))
    return compile_model(path, board=BOARD, selection=SELECTION, accelerators=asked, wishes=Wishes(choose))


def by_hand(path: Path, pair: tuple[str, ...]) -> list[Compiled]:
    return [compiled(path, asked) for asked in ((), pair[:1], pair[1:], pair)]


def estimated(made: Compiled) -> float:
    estimator = Estimator(SELECTION)
    return sum((estimator.of(layer) for layer in made.program.layers), Estimate()).total


def took(made: Compiled) -> int:
    """Instructions of the CPU and cycles of the accelerators, under QEMU."""
    key = made.generated.build.hex()
    if key not in measured:
        with tempfile.TemporaryDirectory() as folder:
            project = Path(folder) / "project"
            create_project(archive_of(made), load_board(BOARD), project)
            types = tensor_types(made.model.signature.inputs)
            with connect(
                load_board(BOARD), firmware_of(build_project(project)), pack_compiled(made).identity, ""
            ) as session:
                (result,) = session.stream([{tensor.name: ramp(tensor) for tensor in types}])
        assert result.instructions is not None
        measured[key] = result.instructions + result.cycles
    return measured[key]


@pytest.mark.sample(3)
@pytest.mark.parametrize("network", OWN[:2], ids=lambda network: network.name)
@pytest.mark.parametrize("pair", PAIRS, ids="+".join)
def test_no_plan_by_hand_is_estimated_to_be_cheaper(pair: tuple[str, ...], network: Network) -> None:
    chosen = compiled(network.path, pair, "cost")
    (plan,) = (plan for plan in chosen.plans if plan.chosen)
    assert plan.estimate is not None
    assert plan.estimate.total == pytest.approx(estimated(chosen)), "what was compared is what is compiled"
    assert plan.estimate.total <= min(map(estimated, by_hand(network.path, pair)))
    assert len(chosen.plans) <= 12


def test_operators_that_the_cpu_joins_are_no_gap_in_a_plan() -> None:
    """A product of floats and its bias become one layer, of which one decision tells."""
    (network,) = (network for network in OWN if network.name == "mixed")
    pair = ("nuc_fpga", "conveyor")
    chosen = compiled(network.path, pair, "cost")
    assert estimated(chosen) <= min(map(estimated, by_hand(network.path, pair)))


def hold(pair: tuple[str, ...], path: Path) -> None:
    board_with_tools(BOARD)
    chosen = compiled(path, pair, "cost")
    assert took(chosen) <= min(map(took, by_hand(path, pair)))
    assert estimated(chosen) == pytest.approx(took(chosen), rel=0.35)


@pytest.mark.slow
@pytest.mark.parametrize("network", OWN[:2], ids=lambda network: network.name)
@pytest.mark.parametrize("pair", PAIRS, ids="+".join)
def test_it_is_never_slower_than_by_hand(pair: tuple[str, ...], network: Network) -> None:
    hold(pair, network.path)


@pytest.mark.long
@pytest.mark.parametrize("network", [*OWN[2:], *REFERENCE], ids=lambda network: network.name)
@pytest.mark.parametrize("pair", PAIRS, ids="+".join)
def test_nor_is_it_on_larger_networks(pair: tuple[str, ...], network: Network) -> None:
    hold(pair, network.path)


@pytest.mark.long
@pytest.mark.parametrize("name", UNTUNED)
@pytest.mark.parametrize("pair", PAIRS, ids="+".join)
def test_nor_is_it_on_networks_that_no_figure_was_tuned_by(pair: tuple[str, ...], name: str, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.tflite"
    path.write_bytes(field(name).build(*UNTUNED[name], seed=11))
    hold(pair, path)


@pytest.mark.slow
@pytest.mark.parametrize("engine", INTEGER)
def test_what_accelerators_say_of_their_cycles_is_exact(engine: str) -> None:
    board_with_tools(BOARD)
    for network in OWN[:3]:
        made = compiled(network.path, (engine,))
        with tempfile.TemporaryDirectory() as folder:
            project = Path(folder) / "project"
            create_project(archive_of(made), load_board(BOARD), project)
            types = tensor_types(made.model.signature.inputs)
            with connect(
                load_board(BOARD), firmware_of(build_project(project)), pack_compiled(made).identity, ""
            ) as session:
                session.run({tensor.name: ramp(tensor) for tensor in types})
                accounts = session.accounts()
        said = {layer.index: layer.cycles for layer in made.program.layers if layer.on_accelerator}
        assert said == {index: account.cycles for index, account in accounts.items()}
