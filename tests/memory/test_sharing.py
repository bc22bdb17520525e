"""Blocks that share bytes: views and results in place, and that no value is lost by it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.plans import planned
from uaccel.errors import InternalError
from uaccel.memory import Block, choose_inplace, lower_bound, merge_shared


def test_merged_blocks_take_the_union_of_their_members() -> None:
    blocks = [
        Block("x", 10, 0, 2, 4),
        Block("view", 12, 2, 5, 1),
        Block("view of view", 8, 5, 9, 8),
        Block("y", 1, 3, 3),
    ]
    merged, representative = merge_shared(blocks, [("view of view", "view"), ("view", "x")])
    assert merged == [Block("x", 12, 0, 9, 8), Block("y", 1, 3, 3)]
    assert representative == {"x": "x", "view": "x", "view of view": "x", "y": "y"}


def test_merging_does_not_depend_on_which_comes_first() -> None:
    blocks = [Block("child", 4, 1, 2), Block("parent", 8, 0, 1)]
    assert merge_shared(blocks, [("child", "parent")])[0] == [Block("parent", 8, 0, 2)]


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        ([("a", "z")], "'a' shares the bytes of 'z', but there is no block 'z'"),
        ([("z", "a")], "'z' shares the bytes of 'a', but there is no block 'z'"),
        ([("a", "b"), ("a", "c")], "'a' shares the bytes of both 'b' and 'c'"),
        ([("a", "a")], "'a' shares its own bytes"),
        ([("a", "b"), ("b", "c"), ("c", "a")], "'a' shares its own bytes"),
    ],
)
def test_shares_that_cannot_hold_are_refused(shares: list[tuple[str, str]], message: str) -> None:
    with pytest.raises(InternalError, match=message):
        merge_shared(blocks_named("abc"), shares)
    with pytest.raises(InternalError, match=message):
        choose_inplace(blocks_named("abc"), shares, [])


def test_a_cycle_that_another_block_leads_into_is_refused() -> None:
    with pytest.raises(InternalError, match="shares its own bytes"):
        merge_shared(blocks_named("abc"), [("a", "b"), ("b", "c"), ("c", "b")])


def test_an_optional_share_with_an_unknown_block_is_refused() -> None:
    with pytest.raises(InternalError, match="there is no block 'z'"):
        choose_inplace(blocks_named("abc"), [], [("a", "z")])


def blocks_named(names: str) -> list[Block]:
    return [Block(name, 4, i, i + 1) for i, name in enumerate(names)]


def test_a_chain_of_equal_sizes_runs_in_one_block() -> None:
    blocks = blocks_named("abcd")
    optional = [("b", "a"), ("c", "b"), ("d", "c")]
    assert choose_inplace(blocks, [], optional) == optional
    assert planned(merge_shared(blocks, optional)[0]).size == 4


def test_a_small_long_lived_result_does_not_keep_a_large_block() -> None:
    """In place, the 100 bytes of 'large' would still be taken at step 2, where 'next' needs 100 too."""
    for large in (100, 11):
        blocks = [Block("large", large, 0, 1), Block("small", 10, 1, 2), Block("next", 100, 2, 2)]
        assert choose_inplace(blocks, [], [("small", "large")]) == []


def test_a_small_result_stays_in_place_where_that_costs_nothing() -> None:
    blocks = [Block("large", 100, 0, 1), Block("small", 10, 1, 2)]
    assert choose_inplace(blocks, [], [("small", "large")]) == [("small", "large")]


@pytest.mark.parametrize("begin", [-100, 0, 100])
def test_steps_may_begin_anywhere(begin: int) -> None:
    blocks = [Block("large", 100, begin, begin + 1), Block("small", 10, begin + 1, begin + 2)]
    assert choose_inplace(blocks, [], [("small", "large")]) == [("small", "large")]
    blocks.append(Block("next", 100, begin + 2, begin + 2))
    assert choose_inplace(blocks, [], [("small", "large")]) == []


def test_equal_sizes_are_tried_first() -> None:
    blocks = [Block("large", 16, 0, 2), Block("same", 8, 0, 2), Block("sum", 8, 2, 2)]
    assert choose_inplace(blocks, [], [("sum", "large"), ("sum", "same")]) == [("sum", "same")]


def test_a_sum_takes_the_place_of_one_operand() -> None:
    blocks = [Block("a", 8, 0, 2), Block("b", 8, 0, 2), Block("sum", 8, 2, 3)]
    assert choose_inplace(blocks, [], [("sum", "a"), ("sum", "b")]) == [("sum", "a")]


def test_two_results_of_one_layer_do_not_share_their_source() -> None:
    blocks = [Block("a", 8, 0, 1), Block("left", 8, 1, 1), Block("right", 8, 1, 2)]
    assert choose_inplace(blocks, [], [("left", "a"), ("right", "a")]) == [("left", "a")]


def test_a_result_does_not_overwrite_a_view_that_is_still_read() -> None:
    blocks = [Block("a", 8, 0, 1), Block("view", 8, 0, 3), Block("result", 8, 1, 2)]
    assert choose_inplace(blocks, [("view", "a")], [("result", "a")]) == [("view", "a")]


def test_a_result_overwrites_a_view_that_ends_here() -> None:
    blocks = [Block("a", 8, 0, 1), Block("view", 8, 1, 3), Block("result", 8, 3, 4)]
    shares = [("view", "a"), ("result", "view")]
    assert choose_inplace(blocks, shares[:1], shares[1:]) == shares


def test_a_view_gets_no_second_place() -> None:
    blocks = [Block("a", 8, 1, 2), Block("view", 8, 2, 3), Block("other", 8, 0, 2)]
    assert choose_inplace(blocks, [("view", "a")], [("view", "other")]) == [("view", "a")]


@dataclass(frozen=True)
class Op:
    """One layer of a random program; a view has one source and no bytes of its own."""

    result: str
    sources: tuple[str, ...]
    kind: str  # "view", "elementwise" or "other"


@st.composite
def programs(draw: st.DrawFn) -> tuple[list[Op], dict[str, int]]:
    sizes = {"in0": draw(st.sampled_from([4, 8, 12]))}
    ops = [Op("in0", (), "other")]
    for i in range(draw(st.integers(1, 12))):
        kind = draw(st.sampled_from(["view", "elementwise", "elementwise", "other"]))
        count = 1 if kind == "view" else draw(st.integers(1, 2))
        sources = tuple(draw(st.sampled_from(sorted(sizes)[-4:])) for _ in range(count))
        smallest = min(sizes[source] for source in sources)
        name = f"t{i}"
        sizes[name] = draw(st.sampled_from([4, 8, 12])) if kind == "other" else smallest
        if kind == "view":
            sizes[name] = sizes[sources[0]]
        ops.append(Op(name, sources, kind))
    return ops, sizes


def lifetimes(ops: Sequence[Op], sizes: dict[str, int]) -> list[Block]:
    last = {source: step for step, op in enumerate(ops) for source in op.sources}
    return [
        Block(op.result, sizes[op.result], step, max(step, last.get(op.result, step))) for step, op in enumerate(ops)
    ]


@settings(max_examples=200, deadline=None)
@given(program=programs())
def test_no_value_is_lost_when_a_program_runs_in_its_plan(program: tuple[list[Op], dict[str, int]]) -> None:
    ops, sizes = program
    blocks = lifetimes(ops, sizes)
    required = [(op.result, op.sources[0]) for op in ops if op.kind == "view"]
    optional = [(op.result, source) for op in ops if op.kind == "elementwise" for source in op.sources]
    shares = choose_inplace(blocks, required, optional)
    merged, owner = merge_shared(blocks, shares)
    assert lower_bound(merged) <= lower_bound(merge_shared(blocks, required)[0])
    offsets = planned(merged, effort=0.05).offsets
    run(ops, sizes, {name: offsets[owner[name]] for name in sizes})


def run(ops: Sequence[Op], sizes: dict[str, int], offsets: dict[str, int]) -> None:
    """Write each value's mark into its bytes, and see that every layer still finds the marks of its sources.

    An elementwise layer may destroy its sources while it writes, any other may not.
    """
    arena: dict[int, str] = {}
    mark: dict[str, str] = {}

    def intact(name: str) -> bool:
        return all(arena[offsets[name] + i] == mark[name] for i in range(sizes[name]))

    for op in ops:
        assert all(intact(source) for source in op.sources), op
        mark[op.result] = mark[op.sources[0]] if op.kind == "view" else op.result
        if op.kind != "view":
            arena.update((offsets[op.result] + i, op.result) for i in range(sizes[op.result]))
        if op.kind == "other":
            assert all(intact(source) for source in op.sources), op
        assert intact(op.result)
