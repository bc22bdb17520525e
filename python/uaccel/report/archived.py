"""Reads from an archive what reports and pages tell of its compilation, which may have been elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from uaccel.build.archive_reader import Metadata
from uaccel.errors import UaccelError, escape_terminal
from uaccel.report.run_json import (
    fallback_report,
    flash_report,
    layer_reports,
    memory_report,
    offloaded_report,
    with_code,
)
from uaccel.report.stored_form import STRUCTURE_KEYS, wrong_structure
from uaccel.util.files import CODE, parse_json
from uaccel.util.text import BOUNDED, BOUNDED_ONCE, named

STRUCTURE: Final = "report.json"  # The archive's file of ``uaccel.report.compile_json.structure``.
LONGEST_SOURCE: Final = 60_000  # Characters of one layer's C that are kept; constants are not among them.


def archive_report(metadata: Metadata, structure: Mapping[str, Any]) -> dict[str, Any]:
    """The report of a compilation without a build: sizes that only a linker knows are null.

    ``structure`` is empty for archives of older versions."""
    own, main, layers = metadata.at("uaccel"), metadata.main, metadata.at("uaccel", "layers")
    bound, bounds = metadata.at("uaccel", "arena", "lower_bound"), own["arena"].get("bounds")
    state, divided = own.get("state"), own.get("constant_pools") or []
    pools = (structure.get("plan") or {}).get("pools", ())
    engines = structure.get("engines", metadata.at("uaccel", "accelerators"))
    return ({"state": state["tensors"]} if state else {}) | {
        "model": metadata.at("uaccel", "model", "name"),
        "name": metadata.model,
        **named(metadata, "board", "workspace_io", "favour"),
        "accelerators": [engine["name"] for engine in engines],
        "inputs": metadata.at("uaccel", "inputs"),
        "outputs": metadata.at("uaccel", "outputs"),
        "layers": with_code(layer_reports(layers, None, {}, {}, {}), None),
        "ram": ({"pools": {pool["name"]: pool["bytes"] for pool in pools}} if len(pools) > 1 else {})
        | memory_report(
            main["workspace_size_bytes"],
            bound,
            BOUNDED if bounds == BOUNDED else BOUNDED_ONCE,
            main["io_size_bytes"],
            None,
            stack=None,
            state=state["bytes"] if state else None,
            copied=sum(part["bytes"] for part in divided if part["copied"]),
        ),
        "flash": flash_report(main["constants_size_bytes"], None, {part["name"]: part["bytes"] for part in divided}),
        "offloaded": offloaded_report(layers),
        "fallback": fallback_report(layers),
        "warnings": own.get("warnings", []),
    }


def told_of_archive(metadata: Metadata, content: Callable[[str], bytes | None]) -> dict[str, Any]:
    """What runs and pages tell of a compilation, as data for JSON; ``content`` gives a file of the archive by its path.

    These are the report, the structure for pages, and the C of layers."""
    structure, layers = _structure(content(STRUCTURE)), metadata.at("uaccel", "layers")
    executor = (content(f"{CODE}/src/tvmgen_{metadata.model}.c") or b"").decode(errors="replace")
    spans = structure.pop("sources", {})
    return {
        "report": archive_report(metadata, structure),
        "structure": structure,
        "sources": {each["name"]: _source(executor, spans[each["name"]]) for each in layers if each["name"] in spans},
    }


def _structure(text: bytes | None) -> dict[str, Any]:
    """Reads the structure, which anybody may have written; an archive of an older version has none."""
    try:
        data = {} if text is None else parse_json(text)
        wrong = wrong_structure(data) if data else ""
    except ValueError as error:
        wrong = f"no JSON: {error}"
    if wrong:
        raise UaccelError(f"{STRUCTURE} of the archive: {escape_terminal(wrong)}; compile the model with this uaccel")
    return {key: data[key] for key in STRUCTURE_KEYS if key in data}


def _source(executor: str, spans: list[list[int]]) -> str:
    text = ""
    for begin, end in spans:
        if len(text) <= LONGEST_SOURCE:
            text += ("\n" if text else "") + executor[begin:end]
    rest = len(text) - LONGEST_SOURCE
    return text if rest <= 0 else f"{text[:LONGEST_SOURCE]}\n/* {rest} more characters: see the generated file */\n"
