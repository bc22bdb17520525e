"""What the firmware of an integer model links: its own functions, and next to nothing of the libraries."""

from __future__ import annotations

from typing import Any

import pytest

from support.device.boards import board_with_tools
from support.models.networks import OWN
from support.run.command import Call

OURS = ("layer_", "shared_by_", "tvmgen_", "uaccel_", "parameters", "tables", "table", "order")
LIBRARY = {"memcpy", "memset", "memmove"}
"""All that integer kernels may call."""
RISC_V = {"__divdi3", "__udivdi3", "__clzsi2", "__clz_tab"}


def symbols(board: str, model: str, call: Call) -> list[dict[str, Any]]:
    board_with_tools(board)
    done = call("run", OWN / f"{model}.tflite", "--board", board, "--symbols", "--json")
    assert done.status == 0, done.err
    found: list[dict[str, Any]] = done.report["flash"]["symbols"]
    return [symbol for symbol in found if symbol["part"] in ("code", "rodata")]


@pytest.mark.sample(1)
@pytest.mark.parametrize("board", ["mps2_an386", "mps3_an547", "qemu_riscv32", "qemu_riscv32v"])
@pytest.mark.parametrize("model", ["gesture", "residual"])
def test_no_float_no_heap_no_printing(board: str, model: str, call: Call) -> None:
    names = {symbol["name"].split(".")[0] for symbol in symbols(board, model, call) if ":" not in symbol["name"]}
    others = {name for name in names if not name.startswith(OURS)}
    assert others <= LIBRARY | (RISC_V if board.startswith("qemu_riscv32") else set())


@pytest.mark.slow
def test_the_code_is_small(call: Call) -> None:
    """Of each kernel there is one copy, however many layers call it."""
    found = symbols("mps2_an386", "residual", call)
    kernels = [symbol["name"].split(".")[0] for symbol in found if symbol["name"].startswith("uaccel_")]
    assert len(kernels) == len(set(kernels))
    assert sum(symbol["bytes"] for symbol in found) < 8_000
