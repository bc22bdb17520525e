"""Rows that nobody asked for: taken where they save much RAM for next to no time and flash, and left otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from models import layers
from models.field import field
from models.network import Network
from models.seeded import Seeded
from support.models.networks import OWN
from support.run.command import Call, is_exact
from uaccel.codegen.options import EmitOptions
from uaccel.pipeline import Compiled
from uaccel.runner.job import Job


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small MobileNet, whose first blocks need most of the RAM."""
    path = tmp_path_factory.mktemp("unasked") / "mobilenet_v2.tflite"
    path.write_bytes(field("mobilenet_v2").build(64, 10, 0.35, 7))
    return path


def _compiled(
    path: Path, board: str = "mps2_an386", favour: str = "balanced", *, whole_layers: bool = False
) -> Compiled:
    return Job.of(
        path, board, options=EmitOptions(workspace_io=True, whole_layers=whole_layers), favour=favour
    ).compiled()


def _by_rows(compiled: Compiled) -> list[str]:
    return [layer.name for layer in compiled.program.layers if layer.streaming is not None]


@pytest.mark.parametrize("board", ["host", "mps2_an386", "mps3_an547", "qemu_riscv32"])
def test_a_quarter_of_the_arena_at_least(model: Path, board: str) -> None:
    few, whole = _compiled(model, board), _compiled(model, board, whole_layers=True)
    assert _by_rows(few)
    assert not _by_rows(whole)
    assert few.placement.arena <= 0.75 * whole.placement.arena


@pytest.mark.parametrize("favour", ["speed", "size"])
def test_other_wishes_take_none(model: Path, favour: str) -> None:
    assert not _by_rows(_compiled(model, favour=favour))


@pytest.mark.slow
@pytest.mark.parametrize("board", ["mps2_an386", "mps3_an547"])
def test_what_it_costs(model: Path, board: str, call: Call) -> None:
    few, whole = (call("run", model, "--board", board, "--verify", "--json", *w) for w in ((), ("--whole-layers",)))
    assert is_exact(few.report)
    assert few.report["instructions"] <= 1.03 * whole.report["instructions"]
    assert few.report["flash"]["total"] <= whole.report["flash"]["total"] + 6144


@pytest.mark.parametrize("name", ["gesture", "residual"])
def test_none_where_little_is_saved(name: str) -> None:
    assert not _by_rows(_compiled(OWN / f"{name}.tflite"))


def test_none_where_less_than_a_quarter_is_saved(tmp_path: Path) -> None:
    """The mean reads its input as a whole, so rows before it would save 18 %."""
    seeded, net = Seeded(5), Network("uaccel floor")
    image = net.input("image", seeded.inputs((32, 32, 4), 1))
    last = layers.conv2d(net, image, *seeded.conv(16, (3, 3), 4), activation="RELU")
    last = layers.conv2d(net, last, *seeded.conv(8, (3, 3), 16))
    net.output(layers.mean(net, last, (1, 2), keep_dims=False))
    path = tmp_path / "floor.tflite"
    path.write_bytes(net.build())
    assert not _by_rows(_compiled(path))


@pytest.mark.parametrize(("rows", "taken"), [(512, True), (4096, False)])
def test_none_for_very_tall_tensors(rows: int, taken: bool, tmp_path: Path) -> None:
    """Each row costs time to plan."""
    seeded, net = Seeded(5), Network("uaccel signal")
    last = net.input("signal", seeded.inputs((rows, 16, 4), 1))
    for channels, stride in ((16, 1), (16, 2), (4, 2)):
        weights = seeded.conv(channels, (5, 3), last.shape[3])
        last = layers.conv2d(net, last, *weights, stride=(stride, 1), activation="RELU")
    net.output(last)
    path = tmp_path / "signal.tflite"
    path.write_bytes(net.build())
    assert bool(_by_rows(_compiled(path))) == taken
