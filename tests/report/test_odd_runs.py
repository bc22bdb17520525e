"""Stored runs that no run wrote: each is shown, or refused in a line that names the field."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from report.conftest import write
from support.hostile.json_mutants import ANY_VALUES, change, places
from uaccel.errors import InputError
from uaccel.report.page import page_of, page_of_files
from uaccel.report.stored_run import HINT, StoredRun, wrong_with

GONE = object()
TEXT, NUMBER = "wanted text", "wanted a whole number from 0 to 1099511627776"
ODD = [
    (("schema",), GONE, "was written by an older uaccel"),
    (("source",), {"x": 1}, "source.file is missing"),
    (("source", "sha256"), GONE, "source.sha256 is missing"),
    (("target", "features"), GONE, "target.features is missing"),
    (("target", "cpu"), GONE, "target.cpu is missing"),
    (("graph", "layers", 0, "choice"), 1, "graph.layers[0].choice is 1, wanted an object"),
    (("layers", 1, "op"), None, f"layers[1].op is None, {TEXT}"),
    (("layers", 1, "macs"), -1, f"layers[1].macs is -1, {NUMBER}"),
    (("graph", "values", "motion", "offset"), None, f"graph.values['motion'].offset is None, {NUMBER}"),
    (("trace", "traceEvents", 5, "dur"), "long", "trace.traceEvents[5].dur is 'long', wanted a number from 0"),
    (("trace", "traceEvents", 1, "args"), GONE, "trace.traceEvents[1].args is missing"),
    (("verify", "tensors"), "all", "verify.tensors is 'all', wanted a list"),
    (("hot", "conv_2d_0", 0, "loop"), 1, "hot['conv_2d_0'][0].loop is 1, wanted true or false"),
]
KINDS: tuple[Any, ...] = (None, "odd", 7, -1.5, True, [], [1], {}, {"odd": 1}, GONE)
SHARES = 30
NAMED = re.compile(
    r"has a field that no run has so: \S.* (is missing|is .*, wanted .+)"
    r"|has schema |is no result of a run|was written by an older"
)


def put(holder: Any, key: Any, value: Any) -> None:
    if value is GONE:
        del holder[key]
    else:
        holder[key] = value


@pytest.mark.parametrize(("path", "value", "words"), ODD)
def test_a_field_that_no_run_has_so(
    path: tuple[Any, ...], value: Any, words: str, stored: dict[str, Any], tmp_path: Path
) -> None:
    holder: Any = stored
    for key in path[:-1]:
        holder = holder[key]
    put(holder, path[-1], value)
    with pytest.raises(InputError) as caught:
        page_of_files([write(stored, tmp_path / "run.json")])
    assert words in str(caught.value)
    assert str(caught.value).endswith(HINT)


def kinds_of_places(document: Any, path: tuple[Any, ...] = (), seen: set[Any] | None = None) -> Iterator[Any]:
    """Each value's holder and key, of the entries of a list or a table of names the first with these fields."""
    seen = set() if seen is None else seen
    keys = document if isinstance(document, dict) else range(len(document)) if isinstance(document, list) else ()
    for key in keys:
        by_name = path in (("hot",), ("sources",), ("graph", "values"), ("inputs",), ("outputs",))
        place = (*path, "*" if by_name or isinstance(key, int) else key)
        if place not in seen:
            seen.add(place)
            yield document, key
        yield from kinds_of_places(document[key], place, seen)


@pytest.mark.rotating(2)
@pytest.mark.parametrize("share", range(SHARES))
def test_every_field_of_another_type(share: int, stored: dict[str, Any]) -> None:
    """Of what the check of form lets through, a page can be made, alone and beside another run."""
    stored["trace"]["traceEvents"] = stored["trace"]["traceEvents"][:12]
    found = list(kinds_of_places(stored))
    assert len(found) > 2 * SHARES
    for holder, key in found[share::SHARES]:
        before = dict(holder) if isinstance(holder, dict) else list(holder)
        for value in KINDS:
            put(holder, key, value)
            wrong = wrong_with(stored)
            if not wrong:
                page_of([StoredRun(stored, "one")])
                page_of([StoredRun(stored, "one"), StoredRun(stored, "other")])
            assert not wrong or NAMED.search(wrong), wrong
            holder.clear()
            holder.update(before) if isinstance(holder, dict) else holder.extend(before)


@pytest.mark.parametrize("seed", range(10))
def test_any_field_may_be_odd(seed: int, stored: dict[str, Any], tmp_path: Path) -> None:
    rng = random.Random(seed)
    found = [place for place in places(stored, beside="trace") if place[1] != "data"]
    change(*rng.choice(found), found, rng, [value for value in ANY_VALUES if value not in (1 << 70, -1e30)])
    with suppress(InputError):
        page_of_files([write(stored, tmp_path / "run.json")])
