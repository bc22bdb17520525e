"""Puts a page together: one HTML file with its style, its script and its data, which loads nothing from elsewhere."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined, TemplateError
from markupsafe import Markup

from uaccel.errors import InputError
from uaccel.report.page_graph import graph_section
from uaccel.report.page_memory import flash_section, memory_section
from uaccel.report.page_summary import comparison_sections, header_section, precision_section
from uaccel.report.page_time import layer_times_section, offload_section, roofline_section, timeline_section
from uaccel.report.stored_run import HINT, StoredRun, read_run, with_quantised
from uaccel.report.svg import Section
from uaccel.util import incoming

TEMPLATES: Final = Path(__file__).parent / "templates"
# Functions that make a section of a run, in the order of the page.
SECTIONS: Final = (
    header_section,
    graph_section,
    memory_section,
    layer_times_section,
    roofline_section,
    flash_section,
    timeline_section,
    offload_section,
    precision_section,
)
LARGEST_TRACE: Final = 1_000_000  # Characters of a trace that the page carries; larger ones are drawn only.
_UNSAFE: Final = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026", 0x2028: "\\u2028", 0x2029: "\\u2029"}


def page(runs: Sequence[Mapping[str, Any]]) -> str:
    """Makes the page of one run's JSON, or of several side by side."""
    return page_of([StoredRun(data, str(data["model"])) for data in runs])


def page_of_files(paths: Sequence[Path], quantised: Path | None = None) -> tuple[str, list[StoredRun]]:
    """Makes the page of stored runs, and returns it with the runs; what is wrong with a file is said in one line.
    ``quantised`` is what ``uaccel quantize --json`` wrote about the first one's model."""
    runs = [read_run(path) for path in paths]
    if quantised is not None:
        runs[0] = replace(runs[0], data=with_quantised(runs[0].data, quantised))
    try:
        return page_of(runs), runs
    except (
        LookupError,
        TypeError,
        AttributeError,
        TemplateError,  # of Jinja: a template names a field that is not there
        ValueError,
        ArithmeticError,
    ) as error:
        names = ", ".join(map(str, paths))
        raise InputError(f"{names} has a field that no run has so: {error!r}; {HINT}") from error


def page_of(runs: Sequence[StoredRun]) -> str:
    runs = _labelled(runs)
    sections = comparison_sections(runs) if len(runs) > 1 else [section(runs[0]) for section in SECTIONS]
    first = runs[0].data
    title = " and ".join(run.label for run in runs[:3]) if len(runs) > 1 else f"{first['model']} on {first['board']}"
    return rendered(title, sections, [_carried(run.data) for run in runs])


def rendered(
    title: str, sections: Sequence[Section], data: Any, script: str = "page.js", styles: Sequence[str] = ("style.css",)
) -> str:
    """Renders a page. ``data`` is what the script works on; script and styles lie in ``templates/``."""
    text: str = (
        _environment()
        .get_template("page.html")
        .render(
            title=title,
            sections=[(section, _body(section)) for section in sections],
            style=Markup("".join(incoming.read_text(TEMPLATES / name) for name in styles)),
            script=Markup(incoming.read_text(TEMPLATES / script)),
            data=embedded(data),
        )
    )
    return text


def _labelled(runs: Sequence[StoredRun]) -> list[StoredRun]:
    """Numbers the runs of equal labels, so that each has a label of its own."""
    seen = Counter(run.label for run in runs)
    alike = [f"{run.label} {i}" if seen[run.label] > 1 else run.label for i, run in enumerate(runs, 1)]
    return [replace(run, label=label) for run, label in zip(runs, alike, strict=True)]


def _body(section: Section) -> Markup:
    if section.missing:
        return Markup('<p class="missing">{}</p>').format(section.missing)
    text = _environment().get_template(section.template).render(s=section.context)
    return Markup(text)


def embedded(value: Any) -> Markup:
    """JSON for a script element. The characters that could end the element or begin a comment are escaped."""
    text = json.dumps(value, separators=(",", ":")).translate(_UNSAFE)
    return Markup(text)


def _carried(data: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a run that the page keeps: all but the outputs' elements, code that templates hold, a huge trace."""
    kept = {key: value for key, value in data.items() if key not in ("sources", "hot")}
    outputs = data.get("outputs", {})
    kept["outputs"] = {name: {k: v for k, v in spec.items() if k != "data"} for name, spec in outputs.items()}
    if len(json.dumps(data.get("trace"))) > LARGEST_TRACE:
        kept["trace"] = None
    return kept


@lru_cache(maxsize=1)
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
