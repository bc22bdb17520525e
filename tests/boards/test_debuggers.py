"""Boards of which a board file is all that there is: the session goes through a debugger, which QEMU is as well."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from boards.conftest import SELFTEST
from support.device.boards import board_with_tools, build_bare
from support.models.networks import OWN
from support.run.command import Call
from uaccel.board import load_board
from uaccel.errors import BoardError
from uaccel.session.qemu import EmulatedBoard
from uaccel.session.session import Session

MORE = [("microbit", False), ("sifive_e", True)]


def through_rtt(name: str, folder: Path) -> Path:
    """A board's file, with rings in RAM instead of its console."""
    text = load_board(name).file.read_text()
    text = re.sub(r'^port = ".*"$', 'port = "rtt"', text, flags=re.MULTILINE)
    text = re.sub(r"^\[console\]\n(?:.+\n)+", '[console]\nkind = "rtt"\n', text, flags=re.MULTILINE)
    text = re.sub(r"^\[settings\]\n(?:.+\n)+", "", text, flags=re.MULTILINE)
    file = folder / f"{name}.toml"
    file.write_text(text)
    return file


@pytest.mark.parametrize(
    ("name", "rtt"),
    [("microbit", True), *(pytest.param(*row, marks=pytest.mark.slow) for row in (("sifive_e", False), *MORE))],
)
def test_a_network_is_exact(name: str, rtt: bool, call: Call, tmp_path: Path) -> None:
    board_with_tools(name)
    board = through_rtt(name, tmp_path) if rtt else name
    done = call("run", OWN / "gesture.tflite", "--board", board, "--verify", "--json")
    assert done.status == 0, done.err
    report = done.report
    assert report["verify"]["bit_exact"] is True
    assert report["instructions"] > 10_000
    assert sum(layer["instructions"] or 0 for layer in report["layers"]) > 10_000
    assert report["ram"]["total"] < 16 << 10


@pytest.mark.sample(3)
@pytest.mark.parametrize("port", ["rtt", "semihosting"])
@pytest.mark.parametrize("name", ["microbit", "mps2_an386", "mps2_an505", "sifive_e"])
def test_the_ports_compile_without_a_warning(name: str, port: str, tmp_path: Path) -> None:
    board_with_tools(name)
    file = through_rtt(name, tmp_path)
    file.write_text(file.read_text().replace('"rtt"', f'"{port}"'))
    build_bare(load_board(file), [SELFTEST], tmp_path, "-DSELFTEST_NOWHERE=0x00400000u")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mps2_an386", "qemu_riscv32", "mps2_an505"])
def test_a_larger_network_through_rings(name: str, call: Call, tmp_path: Path) -> None:
    board_with_tools(name)
    model = OWN / "residual.tflite"
    done = call("run", model, "--board", through_rtt(name, tmp_path), "--verify", "--samples", "2", "--json")
    assert done.status == 0, done.err
    assert done.report["verify"]["bit_exact"] is True


@pytest.mark.slow
def test_a_project_a_reset_and_a_port(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has QEMU's debugger port has the board; a project of such a board runs too."""
    board_with_tools("sifive_e")
    monkeypatch.chdir(tmp_path)
    file = through_rtt("sifive_e", tmp_path)
    of_host = call("run", OWN / "gesture.tflite", "--json").report["outputs"]["softmax_1"]["data"]
    assert call("compile", OWN / "gesture.tflite", "-b", file, "-o", "g.tar").status == 0
    assert call("create", "g.tar", "p").status == 0
    ran = call("run", "p", "--json")
    assert ran.status == 0, ran.err
    assert ran.report["outputs"]["softmax_1"]["data"] == of_host
    with EmulatedBoard(load_board(file), Path("p/build/firmware.elf"), counting="off") as emulated:
        assert emulated.port.startswith("rtt://127.0.0.1:")
        file.write_text(file.read_text().replace("[run.qemu]", '[run.serial]\nport = "rtt://x:1"\n\n[run.qemu]'))
        assert call("create", "g.tar", "q", "--board", file).status == 0
        near = emulated.port.partition("?")[0]
        ran = call("run", "q", "--port", near, "--json")
        assert ran.status == 0, ran.err
        assert ran.report["outputs"]["softmax_1"]["data"] == of_host
        with Session.open(emulated.port) as session:
            ramp = ((7 * np.arange(int(np.prod(session.model.inputs[0].shape))) + 3) % 256 - 128).astype(np.int8)
            inputs = {"motion": ramp.reshape(session.model.inputs[0].shape)}
            first = session.run(inputs)["softmax_1"]
            session.reset()
            assert session.run(inputs)["softmax_1"].ravel().tolist() == first.ravel().tolist() == of_host
    runs = json.loads(Path("p/board/board.json").read_text())["runs"]
    assert runs[0]["rtt"] == [[0x80000000, 16384]]


@pytest.mark.parametrize(
    ("port", "kind", "words"),
    [
        ("mps", "rtt", "port 'mps' has 'uart'; ports rtt and semihosting have those"),
        ("rtt", "semihosting", "port 'rtt' has 'rtt'; ports rtt and semihosting have those"),
        ("semihosting", "uart", "port 'semihosting' has 'semihosting'"),
    ],
)
def test_the_console_is_one_that_the_port_has(port: str, kind: str, words: str, tmp_path: Path) -> None:
    text = through_rtt("mps2_an386", tmp_path).read_text()
    file = tmp_path / "mine.toml"
    file.write_text(text.replace('port = "rtt"', f'port = "{port}"').replace('kind = "rtt"', f'kind = "{kind}"'))
    with pytest.raises(BoardError) as caught:
        load_board(file)
    assert str(caught.value).endswith(f"'kind' in [console] is '{kind}'; {words}")
