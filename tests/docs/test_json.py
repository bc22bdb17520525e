"""The page of JSON is made of the schema, and the schema holds outputs to their fields."""

from __future__ import annotations

from typing import Any

import fastjsonschema
import pytest

from support.models.networks import OWN
from support.run.command import process
from support.run.schema import DEFINITIONS, require_described
from support.run.scripts import script_of


def test_the_page_shows_the_schema() -> None:
    script = script_of("scripts/json_page.py")
    assert script.PAGE.read_text(encoding="utf-8") == script.text(), "write it anew: python scripts/json_page.py"


def refers_to(schema: Any) -> set[str]:
    parts = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    found = {schema["$ref"].rpartition("/")[2]} if isinstance(schema, dict) and "$ref" in schema else set()
    return found.union(*map(refers_to, parts))


def test_definitions_are_used_and_described() -> None:
    outputs = {name for name, schema in DEFINITIONS.items() if schema.get("description", "").startswith("uaccel ")}
    assert set(DEFINITIONS) == outputs | refers_to(DEFINITIONS) | {"error"}
    assert refers_to(DEFINITIONS) < set(DEFINITIONS)


@pytest.mark.parametrize(
    "change",
    [
        lambda report: report.update(new=1),
        lambda report: report.pop("ram"),
        lambda report: report["layers"][0].update(macs="many"),
        lambda report: report["flash"].update(total=[1]),
    ],
)
def test_an_output_that_is_not_as_the_schema_says(change: Any) -> None:
    report = process("run", OWN / "gesture.tflite", "--json").report
    change(report)
    with pytest.raises(fastjsonschema.JsonSchemaException):
        require_described("run", report)
