"""Constants that are divided among memories: each array is placed, what is read most often in the fastest memory."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from support.device.generated import Unpacked, archive, compiled, run
from support.models.networks import OWN, Network, each_network
from support.oracle.oracle import Tflm, random_inputs
from uaccel.codegen.weights import ConstantPool, own_stores
from uaccel.errors import UaccelError
from uaccel.kernels.choice import ANY_CPU
from uaccel.memory import Store

BRANCHES, RESIDUAL = (OWN / f"{name}.tflite" for name in ("branches", "residual"))
POOLS = "fast=600 middle=2K slow"
PLACE = '-DUACCEL_CONSTANT_POOL(name)=__attribute__((section(".rodata." #name)))'
PLACED = re.compile(r"\b(tvmgen_\w+)\[\d+\] UACCEL_CONSTANT_POOL\((\w+)\) =")


@pytest.mark.sample(3)
@each_network
def test_each_array_lies_in_a_pool_that_has_room(network: Network) -> None:
    made = compiled(network.path, constant_pool=POOLS).generated
    (weights,) = (text for name, text in made.sources.items() if name.endswith("_weights.c"))
    places = dict(PLACED.findall(weights))
    assert places == {array.symbol: array.pool for array in made.arrays}
    sizes = {name: sum(a.data.nbytes for a in made.arrays if a.pool == name) for name in ("fast", "middle", "slow")}
    assert made.constant_pools == {name: size for name, size in sizes.items() if size}
    assert sizes["fast"] <= 600
    assert sizes["middle"] <= 2048
    header = made.public_headers[made.names.header]
    for name, size in sizes.items():
        assert f"#define {made.names.macro}_{name.upper()}_CONSTANT_POOL_SIZE {size}\n" in header


def test_what_is_read_most_often_lies_in_the_fastest() -> None:
    """The weights of a convolution are read for each pixel, those of a dense layer once."""
    made = compiled(RESIDUAL, constant_pool="fast=1536 slow").generated
    pools = {array.symbol: array.pool for array in made.arrays}
    assert pools["tvmgen_residual_conv_2d_0_weights"] == "fast"
    assert pools["tvmgen_residual_fully_connected_12_weights"] == "slow"


def test_an_application_places_them_and_computes_the_same(tmp_path: Path) -> None:
    tree = Unpacked(tmp_path, archive(BRANCHES, constant_pool=POOLS))
    program = tree.program(Path(__file__).parent / "app_microtvm_style.c", "-O1", PLACE)
    data = BRANCHES.read_bytes()
    for values in random_inputs(data, 4, 3):
        sent, wanted = (
            [np.ascontiguousarray(a).tobytes() for a in arrays] for arrays in (values, Tflm(data).run(values))
        )
        assert run(program, b"".join(sent)) == b"".join(wanted)


def test_too_little_room_is_told() -> None:
    with pytest.raises(UaccelError) as caught:
        compiled(RESIDUAL, constant_pool="fast=1K slow=2K")
    assert re.fullmatch(
        r"the constant pools of residual are too small \(fast 1,024, slow 2,048 bytes\): no room is left for "
        r"tvmgen_residual_\w+, [\d,]+ bytes, of \w+; make them larger, or add another pool",
        str(caught.value),
    )


def test_without_a_board_the_order_says_which_is_the_rest() -> None:
    with pytest.raises(UaccelError) as caught:
        compiled(RESIDUAL, constant_pool="fast slow")
    wanted = "--constant-pool slow comes after fast, which has no size and takes the rest; write fast=BYTES"
    assert str(caught.value) == wanted


@pytest.mark.parametrize(("room", "names"), [(0, []), (64, []), (4096, ["ram", "flash"])])
def test_copies_must_save_enough_of_an_inference(room: int, names: list[str]) -> None:
    """64 bytes of the first layer's save a quarter of a percent where flash waits for a cycle."""
    made = compiled(RESIDUAL).generated
    rooms = [Store("flash", 1 << 20, wait_states=1), Store("ram", room, copied=True)]
    pool = ConstantPool(made.program, made.names)
    assert [store.name for store in own_stores(made.program, pool, rooms, ANY_CPU, saves_ram=False)] == names
    assert own_stores(made.program, pool, rooms, ANY_CPU, saves_ram=True) == ()
