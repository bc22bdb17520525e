"""TIR functions are held against their tensors before they become C, and guarded where data says where they read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from uaccel.errors import ModelError
from uaccel.lower.tir.checked import checked
from uaccel.model import TensorInfo
from uaccel.tvm_api import te, tirx
from uaccel.tvm_api.bounds import guarded
from uaccel.tvm_api.tir import lower_blocks

ROW = TensorInfo((4,), "float32")
PLACES = {dtype: TensorInfo((3,), dtype) for dtype in ("int32", "int64", "uint8", "float32")}


def function(place: Callable[[Any, Any], Any], dtype: str = "int32", entries: int = 4) -> Any:
    """``output[i] = row[place(i, places)]`` as loops."""
    row, places = te.placeholder((entries,), "float32", "row"), te.placeholder((3,), dtype, "places")
    output = te.compute((3,), lambda i: row[place(i, places)], name="output")
    return lower_blocks(te.create_prim_func([row, places, output]))


def infos(dtype: str = "int32") -> list[TensorInfo]:
    return [ROW, PLACES[dtype], TensorInfo((3,), "float32")]


@pytest.mark.parametrize(
    ("place", "said"),
    [
        (lambda i, _: i + 2, "its code touches element 4 of the 4 of row"),
        (lambda i, _: i - 1, "its code touches element -1 of the 4 of row"),
        (lambda i, _: i * 5 % 7, "its code touches element 5 of the 4 of row"),
    ],
)
def test_a_place_outside_is_a_fault(place: Callable[[Any, Any], Any], said: str) -> None:
    with pytest.raises(ModelError) as raised:
        checked(function(place), infos())
    assert str(raised.value) == said


def test_tensors_of_another_type_or_size_are_refused() -> None:
    taken = function(lambda i, _: i)
    with pytest.raises(ModelError, match=r"its code takes int32 \[3\] for int64 \[3\]"):
        checked(taken, infos("int64"))
    with pytest.raises(ModelError, match=r"its code takes float32 \[4\] for float32 \[5\]"):
        checked(taken, [TensorInfo((5,), "float32"), *infos()[1:]])


@pytest.mark.parametrize(
    "place",
    [
        lambda i, _: i + 1,
        lambda i, _: i * 5 % 4,  # no interval shows that, all values do
        lambda i, _: tirx.if_then_else(i < 2, i + 2, i),
        lambda i, places: tirx.max(tirx.min(places[i], 3), 0),
        lambda i, places: places[i] % 4,
    ],
)
def test_what_is_proven_needs_no_guard(place: Callable[[Any, Any], Any]) -> None:
    given = function(place)
    assert checked(given, infos()).same_as(given)


@pytest.mark.parametrize(
    ("dtype", "place", "entries"),
    [
        ("int32", lambda i, places: places[i], 4),
        ("int64", lambda i, places: places[i] * 3 + 1, 4),
        ("int64", lambda i, places: tirx.Cast("int32", places[i]), 4),
        ("uint8", lambda i, places: tirx.Cast("int32", places[i]), 4),
        ("float32", lambda i, places: tirx.Cast("int32", places[i]), 4),
        ("int32", lambda i, places: tirx.min(places[i] * 2, 3), 4),
        ("int32", lambda i, places: tirx.Select(places[i] > 0, places[i], 0), 4),
    ],
)
def test_what_data_says_is_guarded(dtype: str, place: Callable[[Any, Any], Any], entries: int) -> None:
    """And what is guarded once is proven."""
    given = function(place, dtype, entries)
    made = guarded(given)
    assert not made.same_as(given)
    assert guarded(made).same_as(made)


def test_every_byte_has_a_place_in_a_table() -> None:
    given = function(lambda i, places: tirx.Cast("int32", places[i]), "uint8", 256)
    assert guarded(given).same_as(given)
