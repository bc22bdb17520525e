"""When the CPU and each engine of each accelerator worked in one inference, and when they waited."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from markupsafe import Markup

from uaccel.report.run import Run
from uaccel.report.section import DETAILS, Section
from uaccel.report.svg import drawing, tag, text, title
from uaccel.report.words import count, percent, shortened, ticks

WIDTH, LEFT, ROW, BAR, FOOT, RIGHT = 1300.0, 10.0, 44.0, 22.0, 26.0, 50.0
FINEST: Final = 1.2
"""Pixels below which neighbours become one."""


@dataclass(frozen=True)
class Span:
    name: str
    layer: str
    begin: float
    end: float


def section(run: Run) -> Section:
    trace = run.section("trace")
    if not trace:
        return Section("timeline", "Timeline", missing=f"This result holds no trace; {DETAILS}.")
    tracks = tracks_of(trace)
    end = max((span.end for spans in tracks.values() for span in spans), default=0)
    if not end:
        note = trace.get("otherData", {}).get("note", "")
        return Section("timeline", "Timeline", missing=f"The trace has no lengths: {note}.")
    busy = [(name, _busy(spans), len(spans)) for name, spans in tracks.items()]
    context = {
        "chart": _chart(run, tracks, end),
        "rows": [(name, count(took), percent(took, end), count(end - took), many) for name, took, many in busy],
        "end": count(end),
        "note": trace.get("otherData", {}).get("note", ""),
    }
    return Section("timeline", "Timeline", "timeline.html", context)


def tracks_of(trace: Any) -> dict[str, list[Span]]:
    """By their names, in the trace's order."""
    events = trace.get("traceEvents", ())
    names = {e["tid"]: e["args"]["name"] for e in events if e.get("ph") == "M" and e["name"] == "thread_name"}
    found: dict[str, list[Span]] = {name: [] for name in names.values()}
    for event in events:
        if event.get("ph") == "X" and event["dur"]:
            layer = event.get("args", {}).get("layer", "")
            span = Span(event["name"], layer, event["ts"], event["ts"] + event["dur"])
            found[names.get(event["tid"], "")].append(span)
    return found


def _busy(spans: Sequence[Span]) -> float:
    """Cycles in which at least one runs."""
    total, until = 0.0, 0.0
    for span in sorted(spans, key=lambda span: span.begin):
        total += max(0.0, span.end - max(span.begin, until))
        until = max(until, span.end)
    return total


def merged(spans: Sequence[Span], finest: float) -> list[tuple[Span, int]]:
    """Neighbours of the same layer that are too narrow to be seen apart as one, and how many each stands for."""
    found: list[tuple[Span, int]] = []
    for span in sorted(spans, key=lambda span: span.begin):
        if found:
            last, many = found[-1]
            narrow = min(span.end - span.begin, last.end - last.begin) < 2 * finest
            if narrow and span.layer == last.layer and span.begin - last.end < finest:
                joined = Span(last.layer, last.layer, last.begin, max(last.end, span.end))
                found[-1] = (joined, many + 1)
                continue
        found.append((span, 1))
    return found


def _chart(run: Run, tracks: dict[str, list[Span]], end: float) -> Markup:
    scale = (WIDTH - LEFT - RIGHT) / end
    height = ROW * len(tracks) + FOOT
    parts = [Markup("")]
    for tick in ticks(end, 8):
        if tick <= end:
            x = LEFT + tick * scale
            parts.append(tag("line", x1=x, x2=x, y1=0, y2=height - FOOT, class_="grid"))
            parts.append(text(x, height - 8, count(tick), "middle" if tick else "start"))
    for row, (name, spans) in enumerate(tracks.items()):
        top = row * ROW + 16
        parts.append(text(LEFT, top - 3, name, class_="name"))
        class_ = _class(run, name)
        parts.append(tag("rect", x=LEFT, y=top, width=WIDTH - LEFT - RIGHT, height=BAR, class_="idle"))
        parts += [_bar(span, many, LEFT, scale, top, class_) for span, many in merged(spans, FINEST / scale)]
    label = f"Timeline of {len(tracks)} engines over {count(end)} cycles and instructions"
    return drawing(round(WIDTH), round(height), label, parts, "timeline")


def _class(run: Run, track: str) -> str:
    """Of the engine whose track it is: its name, or its name and one of its parts."""
    owners = [name for name in run.engines if track == name or track.startswith(f"{name} ")]
    return run.engine_class(max(owners, key=len, default="cpu"))


def _bar(span: Span, many: int, left: float, scale: float, top: float, class_: str) -> Markup:
    x, width = left + span.begin * scale, max(0.8, (span.end - span.begin) * scale)
    more = f", {many} commands" if many > 1 else ""
    tip = f"{span.name}{more}: {count(span.begin)} to {count(span.end)}, {count(span.end - span.begin)}"
    parts = [tag("rect", title(tip), x=x, y=top, width=width, height=BAR)]
    letters = int((width - 4) / 6.6)
    if letters > 4:
        parts.append(text(x + 3, top + 15, shortened(span.name, letters)))
    return tag("g", *parts, class_=f"span {class_}", data_tip=tip)
