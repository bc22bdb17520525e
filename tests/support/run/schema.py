"""Holds what commands write with ``--json`` to docs/reference/output.schema.json."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import fastjsonschema

SCHEMA = Path(__file__).resolve().parents[3] / "docs" / "reference" / "output.schema.json"
DEFINITIONS: dict[str, Any] = json.loads(SCHEMA.read_text(encoding="utf-8"))["$defs"]
OTHERWISE = {"demo": "run", "flash": "flashed"}


def require_described(command: str, report: Mapping[str, Any]) -> None:
    """Fails where a command wrote something that the schema does not tell of; commands without a definition pass."""
    name = OTHERWISE.get(command, command)
    name = "error" if "error" in report else "frontier" if (name, "points" in report) == ("compile", True) else name
    if name in DEFINITIONS:
        judge(name)(report)


@lru_cache
def judge(name: str) -> Callable[[Mapping[str, Any]], Any]:
    """Gives the judge of one definition, or of a part of it: ``verdict/properties/first_wrong_layer``."""
    schema = {"$ref": f"#/$defs/{name}", "$defs": DEFINITIONS, "$schema": "http://json-schema.org/draft-07/schema#"}
    found: Callable[[Mapping[str, Any]], Any] = fastjsonschema.compile(schema, use_default=False)
    return found
