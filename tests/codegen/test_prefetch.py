"""Constants that are copied while the layer before computes: begun in time, waited for, over nothing that is needed."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from support.device.generated import compiled
from support.device.hostlib import HostModel
from support.models.networks import OWN, Network, each_network
from support.oracle.oracle import Tflm, random_inputs
from uaccel.codegen.options import CONSTANT_POOL, EmitOptions, read_pools
from uaccel.errors import UaccelError
from uaccel.memory import ANY_SIZE, Pool
from uaccel.pipeline import compile_model

RESIDUAL, GESTURE = (OWN / f"{name}.tflite" for name in ("residual", "gesture"))
DMA = """
#include "uaccel_fetch.h"
static struct { void *to; const void *from; size_t bytes; } queued[64];
static size_t begun;
/* Like a slow channel: the place is no one else's from the beginning, and holds nothing of use until the end. */
void uaccel_fetch(void *to, const void *from, size_t bytes)
{
    queued[begun].to = to; queued[begun].from = from; queued[begun++].bytes = bytes;
    memset(to, 0xA5, bytes);
}
void uaccel_fetch_wait(void)
{
    while (begun > LOST) { --begun; memcpy(queued[begun].to, queued[begun].from, queued[begun].bytes); }
}
int32_t test_unfinished(void);
int32_t test_unfinished(void) { return (int32_t)begun; }
"""


def with_dma(path: Path, pool: str = "slow:fetch", *, lost: int = 0) -> HostModel:
    made = compiled(path, constant_pool=pool)
    return HostModel(made, more=DMA, flags=("-DUACCEL_FETCH", f"-DLOST={lost}"))


@pytest.mark.sample(4)
@each_network
def test_a_channel_that_takes_its_time_changes_nothing(network: Network) -> None:
    model = with_dma(network.path)
    data = network.path.read_bytes()
    for values in random_inputs(data, 4, 3):
        for got, wanted in zip(model(*values), Tflm(data).run(values), strict=True):
            np.testing.assert_array_equal(got, wanted)
    assert model._library.test_unfinished() == 0


def test_a_copy_that_never_ends_is_seen() -> None:
    """Else the test above proves nothing."""
    data = GESTURE.read_bytes()
    values = random_inputs(data, 4, 1)[0]
    wanted = Tflm(data).run(values)
    got = with_dma(GESTURE, lost=1)(*values)
    assert any((one != other).any() for one, other in zip(got, wanted, strict=True))


def test_a_layer_has_its_block_while_the_one_before_computes() -> None:
    made = compiled(RESIDUAL, constant_pool="slow:fetch")
    blocks = {block.name: block for block in made.placement.blocks}
    layers = [layer for layer in made.program.layers if not layer.is_view]
    for before, layer in pairwise(layers):
        if layer.index in made.placement.ahead:
            block = blocks[f"constants of {layer.name}"]
            assert (block.first, block.last, block.alignment) == (before.index, layer.index, 16)
            assert block.size == made.generated.ahead.block(layer)


@pytest.mark.parametrize("room", [200, 1000, 5000])
def test_layers_with_more_read_theirs_where_they_lie(room: int) -> None:
    made = compiled(RESIDUAL, constant_pool=f"slow:fetch={room}")
    (source,) = (text for name, text in made.generated.sources.items() if not name.endswith("_weights.c"))
    copied = [int(size) for size in re.findall(r"uaccel_fetch\([^;]*, (\d+)\);", source)]
    assert copied
    assert max(made.generated.ahead.blocks(made.program).values()) <= room + 16
    assert made.placement.arena <= compiled(RESIDUAL).placement.arena + 2 * (room + 16)
    assert f"--constant-pool slow:fetch={room}" in source


def test_without_it_nothing_is_copied() -> None:
    for text in compiled(RESIDUAL, constant_pool="slow").generated.sources.values():
        assert "uaccel_fetch" not in text


@pytest.mark.parametrize(
    ("word", "pool"),
    [
        ("qspi:fetch", Pool("qspi", fetch=ANY_SIZE)),
        ("qspi=8K:fetch", Pool("qspi", 8192, fetch=ANY_SIZE)),
        ("qspi=8K:fetch=1K", Pool("qspi", 8192, fetch=1024)),
        ("qspi:fetch=1K", Pool("qspi", fetch=1024)),
    ],
)
def test_as_it_is_typed(word: str, pool: Pool) -> None:
    assert read_pools([word], CONSTANT_POOL) == (pool,)
    again = EmitOptions(constant_pools=read_pools([word], CONSTANT_POOL)).words
    assert read_pools(again[1:], CONSTANT_POOL) == (pool,)


@pytest.mark.parametrize(
    ("word", "message"),
    [
        (
            "qspi:fetched",
            "--constant-pool qspi:fetched: wanted ':fetch' or ':fetch=BYTES' at the end, as in qspi:fetch=32K",
        ),
        (
            "qspi:fetch=many",
            "--constant-pool qspi:fetch=many: 'many' is no size; wanted bytes such as 4096, 64K or 16M",
        ),
        (
            "qspi:fetch=0",
            "--constant-pool qspi:fetch=0: '0' is no size; wanted bytes such as 4096, 64K or 16M",
        ),
    ],
)
def test_what_cannot_be_meant(word: str, message: str) -> None:
    with pytest.raises(UaccelError) as caught:
        read_pools([word], CONSTANT_POOL)
    assert str(caught.value) == message


def test_the_ram_that_was_stated_holds_them_too() -> None:
    pools = read_pools(["slow:fetch"], CONSTANT_POOL)
    arena = compiled(RESIDUAL, workspace_io=True).placement.arena
    options = EmitOptions(workspace_io=True, ram=arena, constant_pools=pools)
    with pytest.raises(UaccelError) as caught:
        compile_model(RESIDUAL, board="host", options=options)
    assert re.fullmatch(
        r"--ram [\d,]+: [\d,]+ bytes are needed with constants that are copied ahead, up to [\d,]+ for a layer; "
        "give more, or a smaller :fetch=BYTES",
        str(caught.value),
    )
