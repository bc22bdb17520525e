"""Constants that lie in several memories of a board: as they were asked for, or as the board makes worth while."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import uaccel
from support.device.boards import board_with_tools
from support.models.networks import OWN
from support.run.command import process
from uaccel.codegen.options import EmitOptions
from uaccel.errors import UaccelError, VerificationError
from uaccel.memory import Pool
from uaccel.runner.job import Job
from uaccel.util.files import data_dir

MODEL = OWN / "residual.tflite"
"""Of 7,008 bytes of constants."""
RESERVED = 12 << 10


def board_of(folder: Path, flash: int, waits: int = 0, outside: int | None = None, board: str = "mps2_an386") -> Path:
    """An emulated board with so much room for constants in its first flash, and ``waits`` wait states there; perhaps
    with a second one of ``outside`` wait states."""
    text = (data_dir("boards") / f"{board}.toml").read_text(encoding="utf-8")
    first = re.compile(r'(kind = "flash"\norigin = \S+\nlength = )"\w+"')
    text = first.sub(rf"\g<1>{RESERVED + flash}\nwait_states = {waits}", text, count=1)
    second = (
        f'[[memory]]\nname = "qspi"\nkind = "flash"\norigin = 0x0020_0000\nlength = "2M"\nwait_states = {outside}\n'
    )
    at = text.index("[console]")
    file = folder / "divided.toml"
    file.write_text(text if outside is None else f"{text[:at]}{second}\n{text[at:]}")
    return file


@pytest.mark.parametrize(
    ("flash", "waits", "outside", "favour", "pools"),
    [
        (64 << 10, 0, None, "balanced", []),
        (64 << 10, 0, 9, "balanced", []),  # all of it fits into the first
        (64 << 10, 5, None, "balanced", ["ssram23", "ssram1"]),  # flash is slow: what is read often is copied
        (64 << 10, 5, None, "ram", []),
        (64 << 10, 5, None, "speed", ["ssram23", "ssram1"]),
        (0, 0, 0, "balanced", []),  # the second is as fast, and holds all
        (20 << 10, 0, 9, "balanced", []),
        (4 << 10, 0, 9, "balanced", ["ssram23", "qspi"]),
    ],
)
def test_what_the_board_makes_worth_while(
    flash: int, waits: int, outside: int | None, favour: str, pools: list[str], tmp_path: Path
) -> None:
    made = Job.of(MODEL, board_of(tmp_path, flash, waits, outside), favour=favour).compiled().generated
    assert list(made.constant_pools) == pools
    assert made.copied_bytes == made.constant_pools.get("ssram23", 0)
    of = {array.symbol: array.pool for array in made.arrays}
    if pools and waits:
        dense = next(symbol for symbol in of if "fully_connected_12" in symbol)
        assert of[dense] == "ssram1", "it is read once, and gains nothing"


def given(*pools: Pool) -> EmitOptions:
    return EmitOptions(workspace_io=True, constant_pools=pools)


@pytest.mark.parametrize(
    ("pool", "message"),
    [
        (
            Pool("nor"),
            "--constant-pool nor: board divided has no memory of that name; wanted one of ssram1, qspi, ssram23, psram",
        ),
        (
            Pool("qspi", 3 << 20),
            "--constant-pool qspi=3,145,728: memory qspi of board divided has 2,097,088 bytes left for constants; "
            "give the pool no more",
        ),
    ],
)
def test_what_the_board_has_not(pool: Pool, message: str, tmp_path: Path) -> None:
    job = Job.of(MODEL, board_of(tmp_path, 8 << 10, 0, 5), options=given(pool))
    with pytest.raises(UaccelError) as caught:
        job.compiled()
    assert str(caught.value) == message


@pytest.mark.slow
@pytest.mark.parametrize(
    ("board", "pools"),
    [
        ("mps2_an386", ()),
        ("mps2_an386", (Pool("ssram23", 2048), Pool("qspi", 4096), Pool("ssram1"))),
        ("mps2_an386", (Pool("psram", 4096), Pool("ssram23"))),
        ("mps2_an386", (Pool("ssram23", 1024), Pool("qspi", fetch=3 << 10))),
        ("qemu_riscv32", (Pool("data", 2048), Pool("shared", 4096), Pool("code"))),
    ],
    ids=["by itself", "as asked", "two copies", "copied ahead", "on RISC-V"],
)
def test_it_computes_the_same(board: str, pools: tuple[Pool, ...], tmp_path: Path) -> None:
    board_with_tools(board)
    cortex = board == "mps2_an386"
    file = board_of(tmp_path, 64 << 10, 5, 9) if cortex else data_dir("boards") / f"{board}.toml"
    done = uaccel.verify(MODEL, file, samples=3, options=given(*pools))
    assert len(done.compiled.generated.constant_pools) >= 2
    assert done.verdict is not None
    assert (done.verdict["bit_exact"], done.verdict["samples"]) == (True, 3)


CHANNEL = """
#include "uaccel_fetch.h"
static struct { void *to; const void *from; size_t bytes; } queued[8];
static size_t begun;
void uaccel_fetch(void *to, const void *from, size_t bytes)
{
    queued[begun].to = to;
    queued[begun].from = from;
    queued[begun++].bytes = bytes;
}
void uaccel_fetch_wait(void)
{
    for (; begun > LOST; --begun) {
        memcpy(queued[begun - 1].to, queued[begun - 1].from, queued[begun - 1].bytes);
    }
}
"""


@pytest.mark.slow
@pytest.mark.parametrize("lost", [0, 1])
def test_a_port_copies_ahead(lost: int, tmp_path: Path) -> None:
    """By a channel of its own; with one that does not end, verification fails."""
    board_with_tools("mps2_an386")
    process("new", "board", "mine", "--like", "mps2_an386", "--with-port", cwd=tmp_path)
    file = tmp_path / "mine.toml"
    file.write_text(file.read_text().replace('"-mthumb",', f'"-mthumb", "-DUACCEL_FETCH", "-DLOST={lost}",'))
    (port,) = (path.parent for path in tmp_path.glob("*/port.toml"))
    (port / "channel.c").write_text(CHANNEL)
    options = given(Pool("ssram1", fetch=3 << 10))
    if lost:
        with pytest.raises(VerificationError):
            uaccel.verify(MODEL, file, samples=2, options=options)
    else:
        uaccel.verify(MODEL, file, samples=2, options=options)


@pytest.mark.slow
def test_every_report_says_what_lies_where(tmp_path: Path) -> None:
    board_with_tools("mps2_an386")
    pools = ("--constant-pool", "ssram23=2K", "--constant-pool", "ssram1")
    project, page = tmp_path / "project", tmp_path / "page.html"
    more = ("--project", project, "--report", page)
    of_model = process("run", MODEL, "-b", "mps2_an386", *pools, *more, "--json").report
    for report in (of_model, process("run", project, "--json").report):
        ram, flash = report["ram"], report["flash"]
        assert list(flash["pools"]) == ["ssram23", "ssram1"]
        assert sum(flash["pools"].values()) == flash["weights"]
        assert 1536 < flash["pools"]["ssram23"] == ram["constants"] <= 2048
        assert ram["total"] == ram["arena"] + ram["static"] + ram["stack"] + ram["constants"]
    assert {row["pool"] for row in of_model["constants"]} == {"ssram23", "ssram1"}
    text = page.read_text(encoding="utf-8")
    assert '<th class="n">Constants</th>' in text
    script = (project / "board/memory.ld").read_text(encoding="utf-8")
    assert " *   constant pool ssram23, copied from ssram1 at start: ssram23\n" in script
