"""Several ways of a vendor's to compute one region: the first as a rule, another by records of measurements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from support.models.partitioned import accelerator, chain, operation
from uaccel.accelerator import Input, Lowered, Output, Region, library_call
from uaccel.errors import AcceleratorError
from uaccel.kernels import Records, RecordsSelector, Turn
from uaccel.kernels.choice import Selection
from uaccel.lower.from_relax import lower
from uaccel.lower.program import Layer
from uaccel.partition import Wishes, partition


def two_ways(region: Region) -> list[Lowered]:
    return [Lowered((library_call(f"tiny_{name}", Input(0), Output(0)),), name=name) for name in ("small", "fast")]


def nameless(region: Region) -> list[Lowered]:
    return [Lowered((library_call(f"tiny_{name}", Input(0), Output(0)),)) for name in ("small", "fast")]


def layer_of(way: Callable[[Region], Any], selection: Selection | None = None) -> Layer:
    done = partition(chain("exp", "tanh"), [accelerator("a", operation("tanh", lower=way))], Wishes())
    return lower(done, "model", selection=selection or Selection()).layers[1]


def function_of(layer: Layer) -> str:
    return layer.kernel.calls[0].function


def test_the_first_is_taken_as_a_rule() -> None:
    layer = layer_of(two_ways)
    assert function_of(layer) == "tiny_small"
    assert layer.choice is not None
    assert layer.choice.options == ("small", "fast")
    assert layer.choice.site.startswith("a.tanh: tanh float32")


def test_each_has_its_turn() -> None:
    assert [function_of(layer_of(two_ways, Selection(selector=Turn(n)))) for n in (0, 1)] == ["tiny_small", "tiny_fast"]


def test_records_decide() -> None:
    first = layer_of(nameless)
    assert first.choice is not None
    assert first.choice.options == ("lowering 1", "lowering 2")
    records = Records("", {first.choice.site: {"lowering 1": 20, "lowering 2": 10}})
    assert function_of(layer_of(nameless, Selection(selector=RecordsSelector(records)))) == "tiny_fast"


def test_what_is_wrong_with_any_of_them_is_said() -> None:
    with pytest.raises(AcceleratorError, match=r"returned no calls; wanted library_call"):
        layer_of(lambda region: [*two_ways(region), Lowered(())])
