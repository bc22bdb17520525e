"""docs/reference/json.md, made of docs/reference/output.schema.json. ``python scripts/json_page.py`` writes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

REFERENCE = Path(__file__).resolve().parents[1] / "docs" / "reference"
SCHEMA, PAGE = REFERENCE / "output.schema.json", REFERENCE / "json.md"
HEAD = """# JSON

The tables show what commands write with `--json`. They are made of [output.schema.json](output.schema.json), a JSON
Schema, which tests hold every output to. A `?` marks fields that some outputs lack. What is not known is null.
A shape is a list of extents. What failed writes [error](#error) alone.
"""


def text() -> str:
    definitions = json.loads(SCHEMA.read_text(encoding="utf-8"))["$defs"]
    return HEAD + "".join(_section(name, schema) for name, schema in definitions.items() if "properties" in schema)


def _section(name: str, schema: dict[str, Any]) -> str:
    about = schema.get("description", "")
    lines = [f"\n## {name}\n", *([f"{about[:1].upper()}{about[1:]}.\n"] if about else [])]
    lines += ["| field | type | meaning |", "|---|---|---|"]
    lines += [f"| {field} | {kind} | {meaning} |" for field, kind, meaning in _rows("", schema)]
    return "\n".join(lines) + "\n"


def _rows(above: str, schema: dict[str, Any]) -> list[tuple[str, str, str]]:
    """A row for each field; those of objects inside stand below it, behind a dot."""
    rows = []
    for name, field in schema["properties"].items():
        there = "" if name in schema["required"] else "?"
        path = f"{above}{name}"
        rows.append((f"`{path}`{there}", kind_of(field), field.get("description", "")))
        inside = _inside(field)
        if inside is not None:
            rows += _rows(f"{path}.", inside)
    return rows


def _inside(field: dict[str, Any]) -> dict[str, Any] | None:
    """The object that a field is, or whose list or map it is."""
    for inner in (field, field.get("items"), field.get("additionalProperties")):
        if isinstance(inner, dict) and "properties" in inner:
            return inner
    return None


def kind_of(field: dict[str, Any]) -> str:
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        return name if name == "shape" else f"[{name}](#{name})"
    if "anyOf" in field:
        return " or ".join(map(kind_of, field["anyOf"]))
    kinds = field.get("type", "any")
    words = []
    for kind in [kinds] if isinstance(kinds, str) else kinds:
        inner = field.get({"array": "items", "object": "additionalProperties"}.get(kind, ""))
        name = {"array": "list", "object": "map" if inner else "object"}.get(kind, kind)
        words.append(f"{name} of {kind_of(inner)}" if inner else name)
    return " or ".join(words)


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
