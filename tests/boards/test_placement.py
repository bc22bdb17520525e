"""Boards whose memories are too small for everything: parts lie where there is room, or words say what is lacking."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from support.device.boards import board_with_tools
from support.models.networks import OWN, network_named
from support.oracle.oracle import Tflm, random_inputs
from uaccel.board import Board, load_board
from uaccel.build.elf import symbols
from uaccel.build.project import build_project, create_project, firmware_of
from uaccel.codegen.options import EmitOptions
from uaccel.errors import ToolError
from uaccel.pipeline import compile_model
from uaccel.runner.compiled import archive_of, pack_compiled
from uaccel.runner.execute import connect

FLASH = 'name = "ssram1"\nkind = "flash"\norigin = 0x0000_0000\nlength = "4M"\n'
RAM = 'kind = "ram"\norigin = 0x2000_0000\nlength = "4M"\n'


def small_board(folder: Path, *changes: tuple[str, str]) -> Board:
    text = board_with_tools("mps2_an386").file.read_text()
    for old, new in changes:
        assert text.count(old) == 1
        text = text.replace(old, new)
    file = folder / "small.toml"
    file.write_text(text)
    return load_board(file)


def test_arena_tensors_and_constants_in_other_memories(tmp_path: Path) -> None:
    """As a microcontroller with external RAM and a second flash has them."""
    upper = '\n[[memory]]\nname = "upper"\nkind = "flash"\norigin = 0x0020_0000\nlength = "2M"\n'
    board = small_board(tmp_path, (FLASH, FLASH.replace("4M", "40K") + upper), (RAM, RAM.replace("4M", "40K")))
    network = network_named("vww")
    compiled = compile_model(network.path, board="small", options=EmitOptions(whole_layers=True))
    create_project(archive_of(compiled), board, tmp_path / "project")
    elf = firmware_of(build_project(tmp_path / "project"))
    at = symbols(elf)
    memory = {memory.name: range(memory.origin, memory.end) for memory in board.memories}
    assert at["workspace"] in memory["psram"]
    assert at["tensors"] in memory["psram"]
    assert at["uaccel_stack_top"] in memory["ssram23"]
    weights = [address for name, address in at.items() if name.endswith("_weights")]
    assert weights
    assert all(address in memory["upper"] for address in weights)
    data = network.path.read_bytes()
    (values,) = random_inputs(data, 5, 1)
    (wanted,) = Tflm(data).run(values)
    with connect(board, elf, pack_compiled(compiled).identity, "") as session:
        (got,) = session.run({session.model.inputs[0].name: values[0]}).values()
    np.testing.assert_array_equal(got, wanted.reshape(got.shape))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ([(FLASH, FLASH.replace("4M", "16K"))], r"memory 'ssram1' of the board is too small by [0-9,]+ bytes; choose"),
        (
            [(RAM, RAM.replace("4M", "20K")), ('"-mthumb"', '"-mthumb", "-DUACCEL_PORT_RECEIVE_BYTES=16384"')],
            r"memory 'ssram23' of the board is too small by [0-9,]+ bytes; choose",
        ),
    ],
)
def test_what_only_the_linker_can_know_is_put_into_words(
    changes: list[tuple[str, str]], words: str, tmp_path: Path
) -> None:
    """Code and variables: their size is unknown before."""
    board = small_board(tmp_path, *changes)
    model = compile_model(OWN / "branches.tflite", board="small")
    create_project(archive_of(model), board, tmp_path / "project")
    with pytest.raises(ToolError, match=words):
        build_project(tmp_path / "project")
