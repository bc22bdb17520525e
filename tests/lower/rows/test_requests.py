"""What a user says about RAM: the least of it, so much of it, and what each amount costs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lower.rows.rows import random_chain, tall
from models.field import field
from support.models.networks import OWN, network_named
from support.run.command import Call, is_exact
from support.run.scripts import script_of
from uaccel import pipeline
from uaccel.codegen.options import EmitOptions
from uaccel.errors import ModelError
from uaccel.lower.rows import search
from uaccel.lower.rows.layer import sketch
from uaccel.lower.rows.search import RowSearch
from uaccel.lower.rows.wish import RamWish
from uaccel.memory import Pool
from uaccel.pipeline import Compiled, compile_model
from uaccel.runner.job import Job
from uaccel.util.favour import Favour


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rows") / "tall.tflite"
    path.write_bytes(tall())
    return path


def _compiled(path: Path, favour: str = "balanced", ram: int | None = None, *, feed: bool = False) -> Compiled:
    options = EmitOptions(workspace_io=True, ram=ram, feed=feed, whole_layers=favour == "balanced")
    return Job.of(path, "mps2_an386", options=options, favour=favour).compiled()


@pytest.mark.slow
def test_favour_ram(model: Path) -> None:
    whole, least = _compiled(model), _compiled(model, "ram")
    assert least.placement.arena < whole.placement.arena * 0.7
    assert not any(layer.streaming for layer in whole.program.layers)
    (layer,) = [layer for layer in least.program.layers if layer.streaming]
    assert layer.reason.startswith(f"{len(layer.covers)} layers, ")
    assert [covered.name for covered in layer.covers] == [operator.name for operator in layer.operators]


def test_report_tells_of_every_operator(model: Path, tmp_path: Path, call: Call) -> None:
    words = ("compile", model, "--workspace-io", "--json", "-o", tmp_path / "made.tar")
    whole, least = (call(*words, *more).report for more in ((), ("--favour", "ram")))
    assert least["offloaded"] == []
    assert [row["name"] for row in least["layers"]] == [row["name"] for row in whole["layers"]]
    assert [row["macs"] for row in least["layers"]] == [row["macs"] for row in whole["layers"]]
    assert {row["region"] for row in least["layers"]} - {None}


@pytest.mark.parametrize("feed", [False, True])
def test_favour_ram_holds_beside_a_limit(feed: bool, model: Path) -> None:
    """A limit that is wide changes nothing; one that only more time keeps is kept."""
    least = _compiled(model, "ram", feed=feed).placement.arena
    assert least < _compiled(model).placement.arena * 0.7
    assert _compiled(model, "ram", 2 * least, feed=feed).placement.arena == least
    assert _compiled(model, ram=2 * least, feed=feed).placement.arena > least
    with pytest.raises(ModelError, match=r"--ram \d+: \w+ takes [\d,]+ bytes at least"):
        _compiled(model, "ram", 100, feed=feed)


def test_a_fed_model_takes_rows_that_are_a_bargain(tmp_path: Path) -> None:
    (tmp_path / "chain.tflite").write_bytes(random_chain(101))

    def arena(whole: bool) -> int:
        options = EmitOptions(workspace_io=True, feed=True, whole_layers=whole)
        return Job.of(tmp_path / "chain.tflite", "mps2_an386", options=options).compiled().placement.arena

    assert arena(whole=False) <= 0.75 * arena(whole=True)


@pytest.mark.parametrize("favour", [Favour.balanced, Favour.ram])
@pytest.mark.parametrize("more", [(), (Pool("small", 8),)], ids=["one memory", "two"])
def test_what_does_not_fit_on_the_board_runs_by_rows(more: tuple[Pool, ...], favour: Favour, model: Path) -> None:
    whole = _compiled(model)

    def made(room: int, favour: Favour = favour, *, whole_layers: bool = False) -> Compiled:
        memories = (Pool("ram", room), *more)
        selection = replace(whole.selection, favour=favour)
        given = EmitOptions(workspace_io=True, whole_layers=whole_layers)
        return compile_model(model, board="mps2_an386", selection=selection, options=given, memories=memories)

    fits, full = made(10 * whole.placement.arena, Favour.balanced), whole.placement.arena
    assert not fits.warnings
    tight = made(fits.placement.arena - 64)
    assert tight.placement.arena <= fits.placement.arena - 64
    if favour is Favour.balanced:
        (warning,) = tight.warnings
        assert warning.startswith(f"an arena of {fits.placement.arena:,} bytes does not fit on the board; with more ")
        assert f"takes {tight.placement.arena:,}, for more time" in warning
    for undone in (made(full - 64, Favour.balanced, whole_layers=True), made(100)):
        assert not undone.warnings, "whoever makes a project says so"


@pytest.mark.parametrize(
    ("arena", "apart", "sizes", "on_cpu", "on_engines"),
    [
        (100, 20, (120,), None, None),
        (100, 21, (120,), 120, 120),  # Inputs and outputs lie in the same memory.
        (100, 20, (60, 60), None, 80),  # An accelerator must reach all of an arena, which else is divided.
        (100, 60, (90, 40), 130, 130),
        (100, 9, (), None, None),
    ],
)
def test_the_room_of_a_board(
    arena: int, apart: int, sizes: tuple[int, ...], on_cpu: int | None, on_engines: int | None
) -> None:
    memories, wish = [Pool(f"ram{size}", size) for size in sizes], RamWish(apart=apart)
    placed: Any = SimpleNamespace(arena=arena)
    for engines, limit in (((), on_cpu), (("npu",), on_engines)):
        program: Any = SimpleNamespace(engines=engines)
        assert pipeline._least_room(program, placed, wish, memories) == limit


@pytest.mark.slow
def test_ram_is_kept_to(model: Path) -> None:
    whole = _compiled(model).placement.arena
    for ram in (whole, whole * 3 // 4):
        assert _compiled(model, ram=ram).placement.arena <= ram


def test_the_search_ends_by_its_count(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chains that are not sketched any more are not chosen, and what was found before still is."""
    drawn: list[object] = []
    original = sketch

    def counted(*given: Any) -> Any:
        drawn.append(given[0])
        return original(*given)

    monkeypatch.setattr(search, "sketch", counted)
    monkeypatch.setattr(search, "MOST_SKETCHES", 12)
    whole = _compiled(model)
    found = RowSearch(whole.program, whole.selection, workspace_io=True)
    cuts = search.frontier(found)
    assert len(drawn) == 12, "without the bound there are more"
    assert cuts[0] == found.whole
    assert search.least(found, float("inf")).bytes <= found.whole.bytes


def test_too_little_ram(model: Path, tmp_path: Path, call: Call) -> None:
    done = call("compile", model, "--workspace-io", "--ram", "1000", "-o", tmp_path / "made.tar")
    assert done.status == 1
    words = done.complaint
    least = int(words.split(" takes ")[1].split()[0].replace(",", ""))
    assert words == (
        f"--ram 1,000: tall takes {least:,} bytes at least, inputs and outputs included; give it as many, "
        "or a model with smaller tensors"
    )
    assert call("compile", model, "--workspace-io", "--ram", least, "-o", tmp_path / "made.tar").status == 0


@pytest.mark.slow
def test_frontier(model: Path, call: Call) -> None:
    done = call("compile", model, "--workspace-io", "--frontier", "--json", "--board", "mps2_an386")
    report = done.report
    points = report["points"]
    assert report["unit"] == "estimated cycles"
    assert len(points) > 2
    assert [point["ram"] for point in points] == sorted({point["ram"] for point in points}, reverse=True)
    assert [point["estimate"] for point in points] == sorted(point["estimate"] for point in points)
    assert points[0]["ram"] > 1.5 * points[-1]["ram"] > 0
    assert all(point["constants"] > 0 for point in points)


RAM = {"ic": 27_000, "vww": 41_000, "kws": 9_800, "sww": 4_600, "ad": 900}
"""Bytes with inputs and outputs, at most."""


@pytest.mark.slow
@pytest.mark.parametrize("name", RAM)
def test_reference_models(name: str) -> None:
    assert _compiled(network_named(name).path, "ram").placement.arena <= RAM[name]


@pytest.mark.slow
def test_fed_reference_model() -> None:
    assert _compiled(network_named("vww").path, "ram", feed=True).placement.arena <= 20_000


TOGETHER = ("--feed", "--favour", "ram", "--ram", "60000", "--workspace-io")


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [("--favour", "ram"), ("--feed",), ("--feed", "--favour", "ram"), TOGETHER], ids=" ".join
)
@pytest.mark.parametrize("board", ["host", "mps2_an386"])
def test_runs_are_exact(model: Path, board: str, options: tuple[str, ...], call: Call) -> None:
    for path in (model, OWN / "residual.tflite"):
        done = call("run", path, "--board", board, *options, "--verify-layers", "--json")
        assert done.status == 0, done.err
        assert is_exact(done.report)
        assert done.report["verify"]["first_wrong_layer"] is None


@pytest.mark.slow
@pytest.mark.parametrize("options", [("--favour", "ram"), ("--feed", "--favour", "ram")], ids=" ".join)
@pytest.mark.parametrize("board", ["mps2_an386", "mps3_an547", "qemu_riscv32"])
@pytest.mark.parametrize("seed", range(3))
def test_random_chains_on_boards(seed: int, board: str, options: tuple[str, ...], call: Call, tmp_path: Path) -> None:
    """With the kernels of each family."""
    path = tmp_path / "chain.tflite"
    path.write_bytes(random_chain(100 + seed))
    done = call("run", path, "--board", board, *options, "--verify-layers", "--json")
    assert done.status == 0, done.err
    assert is_exact(done.report)


@pytest.mark.long
def test_network_that_does_not_fit_as_a_whole(tmp_path: Path, call: Call) -> None:
    """Colour images of 160x160 on a board with 128 KiB."""
    path = tmp_path / "mobilenet_v2.tflite"
    path.write_bytes(field("mobilenet_v2").build(160, 10, 0.5, 7))
    whole = call("run", path, "--board", "netduino_plus_2", "--whole-layers", "--json")
    assert whole.status == 1
    assert "does not fit on board netduino_plus_2" in whole.complaint
    default = call("run", path, "--board", "netduino_plus_2", "--verify", "--json")
    least = call("run", path, "--board", "netduino_plus_2", "--favour", "ram", "--verify", "--json")
    for rows in (default, least):
        assert rows.status == 0, rows.err
        assert is_exact(rows.report)
    assert least.report["ram"]["arena"] < min(100_000, default.report["ram"]["arena"])


@pytest.mark.slow
def test_the_stored_frontier_is_what_the_compiler_gives() -> None:
    path = network_named("sww").path
    script = script_of("benchmarks/frontier.py")
    stored = json.loads(script.RESULTS.read_text(encoding="utf-8"))
    assert stored["models"]["sww"] == script.measure(path)
    assert script.text_of(stored) == script.RESULTS.read_text(encoding="utf-8")
