"""What users see is what it was: `facts.json` holds it, and changes only on purpose (``tests/package/facts.py``)."""

from __future__ import annotations

from typing import Any

import pytest

from package.facts import all_facts, archive_facts, made_with, stored

FACTS = all_facts()
QUICK = [name for name in FACTS if name not in archive_facts()]
CHANGE = 'changed what users see; where that is wanted: python tests/package/facts.py --write "why"'


def differences(then: Any, now: Any, where: str = "") -> list[str]:
    """The places in which two facts differ."""
    if isinstance(then, dict) and isinstance(now, dict):
        keys = sorted({*then, *now})
        return [text for key in keys for text in differences(then.get(key), now.get(key), f"{where}/{key}")]
    return [] if then == now else [f"{where}: {then!r} became {now!r}"]


def check(name: str) -> None:
    found = differences(stored()["facts"].get(name), FACTS[name]())
    assert found == [], CHANGE


@pytest.mark.parametrize("name", QUICK)
def test_what_users_see(name: str) -> None:
    check(name)


@pytest.mark.sample(16)
@pytest.mark.parametrize("name", list(archive_facts()))
def test_archives_are_equal_to_the_byte(name: str) -> None:
    then, now = stored()["made_with"], made_with()
    if then != now:
        pytest.skip(f"the stored digests were made with {then}, and this is {now}")
    check(name)


def test_every_fact_is_stored() -> None:
    assert set(stored()["facts"]) == set(FACTS)
    assert all(stored()["changes"])


def test_a_difference_is_named() -> None:
    assert differences({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}) == ["/a/c: 2 became 3"]
    assert differences({"a": 1}, {"a": 1}) == []
