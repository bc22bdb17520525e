"""Stored runs that no run wrote: each is shown, or refused in a line."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from report.conftest import write
from support.hostile.json_mutants import ANY_VALUES, change, places
from uaccel.errors import InputError
from uaccel.report.page import page_of_files

GONE = object()
ODD = [
    (("schema",), GONE),
    (("source",), {"x": 1}),
    (("source", "sha256"), GONE),
    (("target", "features"), GONE),
    (("target", "cpu"), GONE),
    (("graph", "layers", 0, "choice"), 1),
]


@pytest.mark.parametrize(("path", "value"), ODD)
def test_a_field_that_no_run_has_so(path: tuple[Any, ...], value: Any, stored: dict[str, Any], tmp_path: Path) -> None:
    holder: Any = stored
    for key in path[:-1]:
        holder = holder[key]
    if value is GONE:
        del holder[path[-1]]
    else:
        holder[path[-1]] = value
    with pytest.raises(InputError, match="wanted what 'uaccel run MODEL --json --details' writes"):
        page_of_files([write(stored, tmp_path / "run.json")])


@pytest.mark.parametrize("seed", range(10))
def test_any_field_may_be_odd(seed: int, stored: dict[str, Any], tmp_path: Path) -> None:
    rng = random.Random(seed)
    found = [place for place in places(stored, beside="trace") if place[1] != "data"]
    change(*rng.choice(found), found, rng, [value for value in ANY_VALUES if value not in (1 << 70, -1e30)])
    with suppress(InputError):
        page_of_files([write(stored, tmp_path / "run.json")])
