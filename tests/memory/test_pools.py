"""What lies in which of several memories: never more than fits, and rather what is used most."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from uaccel.codegen.options import CONSTANT_POOL, read_pools
from uaccel.errors import UaccelError
from uaccel.memory import Block, Pool, divide, plan


@st.composite
def blocks(draw: st.DrawFn) -> list[Block]:
    made = []
    for i in range(draw(st.integers(1, 12))):
        first = draw(st.integers(0, 8))
        made.append(Block(f"b{i}", draw(st.integers(0, 50)), first, first + draw(st.integers(0, 3))))
    return made


@settings(max_examples=200, deadline=None)
@given(given=blocks(), sizes=st.lists(st.integers(1, 120), min_size=1, max_size=3), seed=st.randoms())
def test_each_block_lies_in_one_pool_or_is_left(given: list[Block], sizes: list[int], seed: st.DataObject) -> None:
    heat = {block.name: float(i % 5) for i, block in enumerate(given)}
    pools = [Pool(f"p{i}", size) for i, size in enumerate(sizes)]
    divided, left = divide(given, pools, heat, plan)
    assert sorted(block.name for part in (*divided, left) for block in part) == sorted(heat)
    for pool, part in zip(pools, divided, strict=True):
        assert plan(part).size <= (pool.size or 0)
    for block in left:
        assert all(plan([*part, block]).size > (pool.size or 0) for pool, part in zip(pools, divided, strict=True))


def test_what_is_used_most_comes_first() -> None:
    """All three are live at once; the pool has room for two of them."""
    made = [Block(name, 40, 0, 2) for name in ("cold", "warm", "hot")]
    divided, left = divide(made, [Pool("fast", 80), Pool("slow")], {"cold": 1, "warm": 2, "hot": 9}, plan)
    assert [[block.name for block in part] for part in divided] == [["warm", "hot"], ["cold"]]
    assert left == []


def test_what_is_not_needed_at_once_shares_a_pool() -> None:
    made = [Block("first", 80, 0, 0), Block("second", 80, 1, 1)]
    divided, _ = divide(made, [Pool("fast", 80), Pool("slow")], {"first": 1, "second": 1}, plan)
    assert [len(part) for part in divided] == [2, 0]


@pytest.mark.parametrize(
    ("words", "pools"),
    [
        ([], ()),
        (["sram"], (Pool("sram"),)),
        (["dtcm=4096", "sram=64K", "ddr=1M"], (Pool("dtcm", 4096), Pool("sram", 64 << 10), Pool("ddr", 1 << 20))),
        (["dtcm=4K", "ddr"], (Pool("dtcm", 4096), Pool("ddr"))),
    ],
)
def test_pools_are_read(words: list[str], pools: tuple[Pool, ...]) -> None:
    assert read_pools(words) == pools


def test_those_of_constants_may_be_as_large_as_their_memories() -> None:
    assert read_pools(["dtcm", "flash=1K", "qspi"], CONSTANT_POOL) == (Pool("dtcm"), Pool("flash", 1024), Pool("qspi"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["int"], "--workspace-pool 'int' cannot name a member of a C structure; wanted a letter, then letters, .*"),
        (["a=1", "A=2"], "--workspace-pool A is given twice; name each pool once, the fastest first"),
        (["a", "b"], "--workspace-pool b comes after a, which has no size and takes the rest; write a=BYTES"),
        (["a=0"], "--workspace-pool a=0: '0' is no size; wanted bytes such as 4096, 64K or 16M"),
        (["a="], "--workspace-pool a=: '' is no size; wanted bytes such as 4096, 64K or 16M"),
        (["a=4k"], "--workspace-pool a=4k: '4k' is no size; wanted bytes such as 4096, 64K or 16M"),
    ],
)
def test_pools_that_mean_nothing_are_refused(words: list[str], message: str) -> None:
    with pytest.raises(UaccelError, match=f"^{message}$"):
        read_pools(words)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["int"], "--constant-pool 'int' cannot name a word of C; wanted a letter, then letters, .*"),
        (["a=1", "A"], "--constant-pool A is given twice; name each pool once, the fastest first"),
        (["a=1.5K"], "--constant-pool a=1.5K: '1.5K' is no size; wanted bytes such as 4096, 64K or 16M"),
    ],
)
def test_the_complaint_says_which_option_it_was(words: list[str], message: str) -> None:
    with pytest.raises(UaccelError, match=f"^{message}$"):
        read_pools(words, CONSTANT_POOL)
