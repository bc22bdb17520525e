"""The page of the reference models names those that the tests use, and the very files."""

from __future__ import annotations

import hashlib
import re

import pytest

from support.models.networks import NETWORKS, PAGE, ROOT, network_named

ROWS = re.findall(r"^\| `(\w+)` \|.*\| `([0-9a-f]{64})` \|$", (ROOT / PAGE).read_text(encoding="utf-8"), re.MULTILINE)


def test_the_page_has_every_one() -> None:
    assert [name for name, _ in ROWS] == [network.name for network in NETWORKS if not network.own]


@pytest.mark.parametrize(("name", "digest"), ROWS)
def test_the_files_are_those_of_the_page(name: str, digest: str) -> None:
    assert hashlib.sha256(network_named(name).path.read_bytes()).hexdigest() == digest
