"""`uaccel new board`: what it writes works as it stands, for every board that comes with uaccel."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from support.device.boards import EMULATED, board_with_tools
from support.models.networks import OWN
from support.run.command import Call
from uaccel.board import Board, available_boards, load_board

NAMES = [board.name for board in available_boards()]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def alike(board: Board, like: Board) -> bool:
    return replace(board, name=like.name, description=like.description, port=like.port) == like


@pytest.mark.parametrize("like", NAMES)
def test_it_is_the_other_board_under_another_name(like: str, call: Call, tmp_path: Path) -> None:
    report = call("new", "board", "mine", "--like", like, "--json").report
    assert report == {"board": "mine", "like": like, "files": ["mine.toml"]}
    board = load_board(tmp_path / "mine.toml")
    assert alike(board, load_board(like))
    assert board.port == load_board(like).port
    assert board.description == f"mine, made from {like}"
    text = (tmp_path / "mine.toml").read_text()
    assert text.startswith(f"# Board mine. As it stands it is {like} under another name, and works: change here")
    for section in ("[cpu]", "[console]", "[timer]", "[run.serial]", "[flash]"):
        before, _, _ = text.partition(section)
        assert before.rstrip().splitlines()[-1].startswith("#"), f"{section} has no comment"


@pytest.mark.parametrize(
    ("like", "marked", "console"),
    [
        ("nucleo_f746zg", 'usb = "0483:374b"', "# The UART that the session goes over"),
        ("nucleo_f446re", 'target = "stm32f446re"', "# The session goes through rings in RAM"),
        ("nrf52840_dk", "hz = 64_000_000", "# The session goes through rings in RAM"),
        ("sifive_e", "hz = 16_000_000", "# The session goes through the debugger"),
    ],
)
def test_what_is_the_other_boards_is_marked(like: str, marked: str, console: str, call: Call, tmp_path: Path) -> None:
    call("new", "board", "mine", "--like", like)
    text = (tmp_path / "mine.toml").read_text()
    assert f"\n{marked} # as on {like}: yours may differ\n" in text
    assert console in text.partition("[console]")[0].rpartition("[[memory]]")[2]


def test_its_port_can_come_with_it(call: Call, tmp_path: Path) -> None:
    report = call("new", "board", "mine", "--like", "netduino_plus_2", "--with-port", "--json").report
    assert report["files"] == ["mine.toml", "mine_port"]
    board = load_board("./mine.toml")
    assert alike(board, load_board("netduino_plus_2"))
    assert board.port.folder == tmp_path / "mine_port"
    assert {path.name for path in board.port.folder.iterdir()} == {"port.toml", "uart.c", "clock.c", "stm32.h"}


def test_a_board_of_ones_own_is_a_starting_point_too(call: Call, tmp_path: Path) -> None:
    (tmp_path / "first").mkdir()
    (tmp_path / "second").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path / "first")
        assert call("new", "board", "one", "--with-port", "--like", "mps2_an385").status == 0
        patch.chdir(tmp_path / "second")
        assert call("new", "board", "two", "--like", "../first/one.toml").status == 0
        assert load_board("./two.toml").port == load_board("../first/one.toml").port


@pytest.mark.slow
@pytest.mark.parametrize("like", EMULATED[:1])
def test_a_model_runs_on_it_at_once(like: str, call: Call) -> None:
    board_with_tools(like)
    assert call("new", "board", "mine", "--like", like, "--with-port").status == 0
    report = call("run", OWN / "gesture.tflite", "--board", "./mine.toml", "--verify", "--json").report
    assert report["board"] == "mine"
    assert report["verify"]["bit_exact"] is True
    assert report["instructions"] > 10_000


def test_nothing_is_overwritten(call: Call, tmp_path: Path) -> None:
    (tmp_path / "mine_port").mkdir()
    done = call("new", "board", "mine", "--with-port")
    assert done.status == 1
    assert done.complaint == "mine_port exists already; choose another name, or remove it"
    assert [path.name for path in tmp_path.iterdir()] == ["mine_port"]


@pytest.mark.parametrize("name", ["Mine", "1st", "a-b", "a/b", ""])
def test_a_board_has_a_name_that_c_and_files_can_bear(name: str, call: Call) -> None:
    done = call("new", "board", name)
    assert done.status == 1
    assert done.complaint == f"{name!r} cannot name a board; wanted lower-case letters, digits and underscores"
