"""Puts a page together: one HTML file with its style, its script and its data, which loads nothing from elsewhere."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined, TemplateError
from markupsafe import Markup

from uaccel.errors import InputError
from uaccel.report.page_graph import graph
from uaccel.report.page_memory import flash, frontier, memory
from uaccel.report.page_summary import comparison, precision, summary
from uaccel.report.page_time import layer_times, offload, roofline, timeline
from uaccel.report.stored_run import HINT, StoredRun, read_run, with_quantised
from uaccel.report.svg import Section, Shown, count, numbered, percent, size
from uaccel.util import incoming

TEMPLATES: Final = Path(__file__).parent / "templates"
# The sections of a run in the order of the page: id, title, and what says what is shown.
SECTIONS: Final[Sequence[tuple[str, str, Callable[[StoredRun], Shown]]]] = (
    ("summary", "Summary", summary),
    ("graph", "Graph", graph),
    ("memory", "Memory over time", memory),
    ("frontier", "RAM against time", frontier),
    ("times", "Time per layer", layer_times),
    ("roofline", "Roofline", roofline),
    ("flash", "Flash", flash),
    ("timeline", "Timeline", timeline),
    ("offload", "Not offloaded", offload),
    ("precision", "Precision", precision),
)
FILTERS: Final = {"number": count, "size": size, "percent": percent}  # Numbers in words, for templates.
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
    first = runs[0].data
    if len(runs) > 1:
        heads = [Section(f"run-{i}", run.label, summary(run), "summary.html") for i, run in enumerate(runs)]
        sections = [Section("compare", "What differs", comparison(runs)), *heads]
    else:
        sections = [Section(id_, title, shown(runs[0])) for id_, title, shown in SECTIONS]
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
    labels = numbered([run.label for run in runs])
    return [replace(run, label=label) for run, label in zip(runs, labels, strict=True)]


def _body(section: Section) -> Markup:
    if isinstance(section.shown, str):
        return Markup('<p class="missing">{}</p>').format(section.shown)
    template = _environment().get_template(section.template or f"{section.id}.html")
    return Markup(template.render(s=section.shown))


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
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= FILTERS
    return environment
