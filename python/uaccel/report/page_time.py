"""Makes the sections on time: a timeline of engines, times of layers, a roofline, and what was not offloaded."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from markupsafe import Markup

from uaccel.report.page_memory import Filled, drawn, memories_of
from uaccel.report.stored_run import LayerRow, StoredRun
from uaccel.report.svg import DETAILS, Shown, count, drawing, ellipsize, tag, text, ticks, title
from uaccel.session.monitor import MOVERS
from uaccel.util.text import CPU

# Timeline: when the CPU and each engine of each accelerator worked in one inference.

WIDTH, LEFT, ROW, BAR, FOOT, RIGHT = 1300.0, 10.0, 44.0, 22.0, 26.0, 50.0
FINEST: Final = 1.2  # Pixels of a gap below which narrow neighbours are drawn as one.


@dataclass(frozen=True)
class DrawnSpan:
    """Holds one bar of a track, in the trace's units of time."""

    name: str
    layer: str
    begin: float
    end: float


def timeline(run: StoredRun) -> Shown:
    """What the timeline shows."""
    trace = run.section("trace")
    if not trace:
        return f"This result holds no trace; {DETAILS}."
    tracks = tracks_of(trace)
    end = max((span.end for spans in tracks.values() for span in spans), default=0)
    note = trace.get("otherData", {}).get("note", "")
    if not end:
        return f"The trace has no lengths: {note}."
    busy = [(name, _busy(spans), len(spans)) for name, spans in tracks.items()]
    stalls = [(engine, causes) for engine in run.engines[1:] if (causes := stalls_of(engine, tracks))]
    filled = memories_of(run)
    return {
        "chart": _chart(run, tracks, filled, end),
        "busy": busy,
        "end": end,
        "note": note,
        "filled": filled,
        "stalls": stalls,
    }


def tracks_of(trace: Any) -> dict[str, list[DrawnSpan]]:
    """Spans by the names of their tracks, in the trace's order."""
    events = trace.get("traceEvents", ())
    names = {e["tid"]: e["args"]["name"] for e in events if e.get("ph") == "M" and e["name"] == "thread_name"}
    found: dict[str, list[DrawnSpan]] = {name: [] for name in names.values()}
    for event in events:
        if event.get("ph") == "X" and event["dur"]:
            layer = event.get("args", {}).get("layer", "")
            span = DrawnSpan(event["name"], layer, event["ts"], event["ts"] + event["dur"])
            found[names.get(event["tid"], "")].append(span)
    return found


def stalls_of(engine: str, tracks: dict[str, list[DrawnSpan]]) -> list[tuple[str, float]]:
    """Why an accelerator does not compute while it works, with the cycles of each cause; none if it has no engines."""
    own = {name.removeprefix(f"{engine} "): spans for name, spans in tracks.items() if name.startswith(f"{engine} ")}
    computing = [span for name, spans in own.items() if name not in MOVERS for span in spans]
    if len(own) < 2 or not computing:
        return []
    load, store = (own.get(name, []) for name in MOVERS)
    busy, loaded = _busy(computing), _busy(computing + load)
    stored = _busy(computing + load + store)
    return [("it computes", busy), ("it waits for loads", loaded - busy), ("it waits for stores", stored - loaded)]


def _busy(spans: Sequence[DrawnSpan]) -> float:
    """Cycles in which at least one span runs. Sorted by begin, each adds only what lies behind all before it, so that
    spans that overlap count once."""
    total, until = 0.0, 0.0
    for span in sorted(spans, key=lambda span: span.begin):
        total += max(0.0, span.end - max(span.begin, until))
        until = max(until, span.end)
    return total


def merged(spans: Sequence[DrawnSpan], finest: float) -> list[tuple[DrawnSpan, int]]:
    """Joins neighbours of one layer that are too narrow to be told apart; returns bars and how many spans each stands
    for.

    Thousands of bars would make a page slow. Two are joined if the gap is narrower than ``finest`` and one of them
    narrower than twice that: gaps that can be seen are kept, and wide bars stay apart.
    """
    found: list[tuple[DrawnSpan, int]] = []
    for span in sorted(spans, key=lambda span: span.begin):
        if found:
            last, many = found[-1]
            narrow = min(span.end - span.begin, last.end - last.begin) < 2 * finest
            if narrow and span.layer == last.layer and span.begin - last.end < finest:
                joined = DrawnSpan(last.layer, last.layer, last.begin, max(last.end, span.end))
                found[-1] = (joined, many + 1)
                continue
        found.append((span, 1))
    return found


def _chart(run: StoredRun, tracks: dict[str, list[DrawnSpan]], filled: list[Filled], end: float) -> Markup:
    scale = (WIDTH - LEFT - RIGHT) / end
    height = ROW * len(tracks) + (ROW + BAR) * len(filled) + FOOT
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
    for number, one in enumerate(filled):
        top = ROW * len(tracks) + number * (ROW + BAR) + 16
        parts.append(text(LEFT, top - 3, one.words, class_="name"))
        parts.append(tag("rect", x=LEFT, y=top, width=WIDTH - LEFT - RIGHT, height=2 * BAR, class_="idle"))
        parts.append(drawn(one, LEFT, scale, top, 2 * BAR, run.engine_class(one.engine)))
    label = f"Timeline of {len(tracks)} engines over {count(end)} cycles and instructions"
    return drawing(round(WIDTH), round(height), label, parts, "timeline")


def _class(run: StoredRun, track: str) -> str:
    """The style of a track's engine. A track has an engine's name, or that and a part's; the longest name that fits
    wins, since one engine's name may begin another's."""
    owners = [name for name in run.engines if track == name or track.startswith(f"{name} ")]
    return run.engine_class(max(owners, key=len, default="cpu"))


def _bar(span: DrawnSpan, many: int, left: float, scale: float, top: float, class_: str) -> Markup:
    x, width = left + span.begin * scale, max(0.8, (span.end - span.begin) * scale)
    more = f", {many} commands" if many > 1 else ""
    tip = f"{span.name}{more}: {count(span.begin)} to {count(span.end)}, {count(span.end - span.begin)}"
    parts = [tag("rect", title(tip), x=x, y=top, width=width, height=BAR)]
    letters = int((width - 4) / 6.6)
    if letters > 4:
        parts.append(text(x + 3, top + 15, ellipsize(span.name, letters)))
    return tag("g", *parts, class_=f"span {class_}", data_tip=tip)


# Times: what each layer takes on each engine, its cost for each product, and the estimate beside the measurement.


def layer_times(run: StoredRun) -> Shown:
    """What the table of layers' times shows."""
    if not run.total:
        return (
            "Layers were not measured: this board counts no instructions. Run on an emulated board, or with --profile."
        )
    rows = [_row(run, step) for step in run.timed if step.cost or not step.facts.get("view")]
    return {
        "run": run,
        "rows": rows,
        "rest": run.total - run.layers,
        "parts": latency_parts(run),
        "most": max(row["step"].cost for row in rows),
        "has_macs": any(row["per_product"] is not None for row in rows),
        "has_estimates": any(row["estimate"] for row in rows),
        "slow": run.data.get("slow"),
    }


# Parts of an inference by their keys in the run; the CPU waits in the last two.
PARTS: Final = {
    "cpu": "the CPU computes",
    "start": "the CPU prepares accelerators",
    "copies": "accelerators only move data",
    "waiting": "accelerators compute",
}


def latency_parts(run: StoredRun) -> list[dict[str, Any]]:
    """The parts of an inference on one timeline, with their shares; none where one engine does all."""
    told = run.section("latency").get("parts") or {}
    parts = {key: cycles for key, cycles in told.items() if cycles and key in PARTS}
    whole = sum(parts.values())
    return [
        {"key": key, "words": words, "cycles": parts[key], "share": 100 * parts[key] / whole}
        for key, words in PARTS.items()
        if key in parts and len(parts) > 1
    ]


def _row(run: StoredRun, step: LayerRow) -> dict[str, Any]:
    """A layer with its costs. ``parts`` tells of an accelerated one what the driver took on the CPU, and the device."""
    estimated = step.facts.get("estimate") or {}
    estimate = estimated.get("instructions", 0) + estimated.get("cycles", 0)
    measured = sum(row.get("instructions") or 0 for row in step.rows) + step.device
    comparable = estimate and measured and run.unit != "seconds"
    both = step.device and step.cpu
    parts = f"{run.amount(step.cpu or 0)} of the CPU, {count(step.device)} of {step.engine}" if both else ""
    return {
        "step": step,
        "parts": parts,
        "per_product": step.cost / step.macs if step.macs and step.cost and run.unit != "seconds" else None,
        "estimate": estimate if comparable else None,
        "measured": measured if comparable else None,
        "off": f"{100 * (estimate / measured - 1):+.0f} %" if comparable else "",
    }


# Roofline: how near layers come to the most that the CPU and each accelerator can do.
#
# A layer with i products for each byte that it moves cannot be faster than the engine's products a cycle, nor than its
# bytes a cycle times i. Both axes are logarithmic, on which the second limit is a straight line.

ROOFLINE_WIDTH, HEIGHT, ROOFLINE_LEFT, BOTTOM, TOP, ROOFLINE_RIGHT = 720.0, 360.0, 64.0, 42.0, 12.0, 16.0
# Peaks by a CPU's feature: int8 products a cycle of its widest multiply-accumulate, and bytes a cycle that it loads.
FEATURES: Final = {"helium": (8.0, 8.0), "rvv": (8.0, 8.0), "dsp": (2.0, 4.0)}
SCALAR: Final = (1.0, 4.0)  # The same for a CPU without any of them.


@dataclass(frozen=True)
class Point:
    """Places a layer: its products for each byte that it reads or writes, and its products a cycle."""

    name: str
    engine: str
    intensity: float
    speed: float
    number: int


@dataclass(frozen=True)
class Roof:
    """States the most products and bytes a cycle of an engine."""

    engine: str
    products: float
    bytes: float

    def at(self, intensity: float) -> float:
        """The most products a cycle of a layer with so many products for each byte."""
        return min(self.products, self.bytes * intensity)


def roofline(run: StoredRun) -> Shown:
    """What the roofline shows."""
    if run.unit not in ("cycles", "instructions"):
        return "It takes cycles of each layer: run on an emulated board."
    if not run.section("graph"):
        return f"It takes the bytes that layers move, which this result does not hold; {DETAILS}."
    points = points_of(run)
    if not points:
        return "No layer of this model multiplies."
    engines = list(dict.fromkeys(point.engine for point in points))
    roofs = [roof for roof in roofs_of(run) if roof.engine in engines]
    return {
        "run": run,
        "chart": _roofline_chart(run, points, roofs),
        "engines": engines,
        "roofs": roofs,
        "unknown": [name for name in engines if name not in {roof.engine for roof in roofs}],
        "points": [_roofline_row(point, roofs) for point in sorted(points, key=lambda point: point.number)],
    }


def points_of(run: StoredRun) -> list[Point]:
    """The points of layers that multiply; those of accelerators by the accelerator's own cycles."""
    found = []
    for step in run.timed:
        moved = step.moved if step.moved is not None else _moved(run, step)
        cycles = step.device if step.engine != CPU and step.device else step.cost
        if step.macs and moved and cycles:
            found.append(Point(step.name, step.engine, step.macs / moved, step.macs / cycles, step.number))
    return found


def _moved(run: StoredRun, step: LayerRow) -> int:
    """Bytes that a layer reads and writes, its constants among them."""
    tensors = sum(run.values.get(name, {}).get("bytes") or 0 for name in (*step.inputs, *step.outputs))
    return tensors + run.constants.get(step.name, 0)


def roofs_of(run: StoredRun) -> list[Roof]:
    """The CPU's roof by its instruction set, and those of accelerators whose descriptions state one."""
    target = run.section("target")
    found = []
    if target:
        best = next((peak for feature, peak in FEATURES.items() if feature in target.get("features", ())), SCALAR)
        found.append(Roof(CPU, *best))
    for engine in run.data.get("engines", ()):
        if engine.get("macs_per_cycle") and engine.get("bytes_per_cycle"):
            found.append(Roof(engine["name"], engine["macs_per_cycle"], engine["bytes_per_cycle"]))
    return found


def _roofline_row(point: Point, roofs: list[Roof]) -> tuple[Point, str, str]:
    """A point with its share of what is possible, and with what bounds it."""
    roof = next((roof for roof in roofs if roof.engine == point.engine), None)
    if roof is None:
        return point, "", ""
    bound = "memory" if roof.bytes * point.intensity < roof.products else "products"
    return point, f"{100 * point.speed / roof.at(point.intensity):.0f} %", bound


def _roofline_chart(run: StoredRun, points: list[Point], roofs: list[Roof]) -> Markup:
    """Draws points and roofs. The axes end at powers of ten. The factor 1.01 keeps the ends apart if all values are the
    same power of ten. A roof is a line through three points: at the left or lower edge, its ridge, the right edge.
    """
    left = 10 ** math.floor(math.log10(min(point.intensity for point in points)))
    right = 10 ** math.ceil(math.log10(max(point.intensity for point in points) * 1.01))
    highest = max([point.speed for point in points] + [roof.products for roof in roofs])
    low = 10 ** math.floor(math.log10(min(point.speed for point in points)))
    high = 10 ** math.ceil(math.log10(highest * 1.01))

    def x(value: float) -> float:
        return ROOFLINE_LEFT + (ROOFLINE_WIDTH - ROOFLINE_LEFT - ROOFLINE_RIGHT) * math.log10(
            value / left
        ) / math.log10(right / left)

    def y(value: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - math.log10(value / low) / math.log10(high / low))

    parts = [Markup("")]
    for value in _decades(left, right):
        parts.append(tag("line", x1=x(value), x2=x(value), y1=TOP, y2=HEIGHT - BOTTOM, class_="grid"))
        parts.append(text(x(value), HEIGHT - BOTTOM + 16, f"{value:g}", "middle"))
    for value in _decades(low, high):
        parts.append(
            tag("line", x1=ROOFLINE_LEFT, x2=ROOFLINE_WIDTH - ROOFLINE_RIGHT, y1=y(value), y2=y(value), class_="grid")
        )
        parts.append(text(ROOFLINE_LEFT - 6, y(value) + 4, f"{value:g}", "end"))
    for roof in roofs:
        ridge = min(max(roof.products / roof.bytes, left), right)
        ends = [(max(left, low / roof.bytes), 0.0), (ridge, 0.0), (right, 0.0)]
        line = " ".join(f"{x(at):.1f},{max(TOP, y(max(low, roof.at(at)))):.1f}" for at, _ in ends)
        parts.append(tag("polyline", points=line, class_=f"roof {run.engine_class(roof.engine)}"))
    for point in points:
        tip = f"{point.name} on {point.engine}: {point.speed:.3g} products a cycle, {point.intensity:.3g} a byte"
        dot = tag("circle", title(tip), cx=x(point.intensity), cy=y(point.speed), r=5)
        parts.append(tag("g", dot, class_=f"dot {run.engine_class(point.engine)}", data_tip=tip))
    parts.append(text(ROOFLINE_WIDTH - ROOFLINE_RIGHT, HEIGHT - 6, "products for each byte moved", "end"))
    parts.append(tag("text", "products a cycle", x=-TOP, y=14, transform="rotate(-90)", text_anchor="end"))
    label = f"Roofline: {len(points)} layers by products a byte and products a cycle"
    return drawing(round(ROOFLINE_WIDTH), round(HEIGHT), label, parts, "roofline")


def _decades(first: float, last: float) -> list[float]:
    found = [first]
    while found[-1] < last * 0.999:
        found.append(found[-1] * 10)
    return found


# Not offloaded: what the CPU computes although accelerators were asked, why, and what offloading could save.


@dataclass(frozen=True)
class Refusal:
    """States why an accelerator does not compute a layer. ``cost`` is what the CPU takes; ``saves`` is the most that
    could be saved, if the accelerator were as fast as its description says."""

    step: LayerRow
    accelerator: str
    reason: str
    cost: float
    saves: float


def offload(run: StoredRun) -> Shown:
    """What is shown of layers that were not offloaded."""
    if not run.data.get("accelerators"):
        return "No accelerator was asked; --accelerator NAME asks one."
    if "decisions" not in run.data:
        return f"This result does not hold why; {DETAILS}."
    refusals = sorted(refusals_of(run), key=lambda refusal: -refusal.saves)
    if not refusals:
        return "Nothing was refused: accelerators compute every layer."
    return {"run": run, "refusals": refusals, "reasons": _reasons(refusals)}


def refusals_of(run: StoredRun) -> Iterator[Refusal]:
    """Yields one refusal for each layer of the CPU and each accelerator, with all its reasons in one sentence."""
    for step in run.steps:
        if step.engine != CPU or step.facts.get("view"):
            continue
        decision = run.decisions.get(step.name, {})
        reasons: dict[str, str] = {}
        for rejection in decision.get("rejections", ()):
            known = reasons.get(rejection["accelerator"], "")
            new = rejection["reason"]
            reasons[rejection["accelerator"]] = f"{known}; {new}" if known and new not in known else known or new
        cost = step.cost if run.total else float(step.macs)
        for accelerator, reason in reasons.items():
            yield Refusal(step, accelerator, reason, cost, max(0.0, cost - _least(run, step, accelerator)))


def _least(run: StoredRun, step: LayerRow, accelerator: str) -> float:
    """Cycles that the accelerator would take at best, by its roofline; 0 as far as its description states none."""
    if run.unit not in ("cycles", "instructions"):
        return 0.0
    engine: dict[str, Any] = next((e for e in run.data.get("engines", ()) if e["name"] == accelerator), {})
    products, bandwidth = engine.get("macs_per_cycle"), engine.get("bytes_per_cycle")
    moved = _moved(run, step)
    return max(step.macs / products if products else 0.0, moved / bandwidth if bandwidth else 0.0)


def _reasons(refusals: list[Refusal]) -> list[tuple[str, str, int, float]]:
    """Each reason once, with the number of its layers and what they would save together, the largest first."""
    found: dict[tuple[str, str], list[float]] = {}
    for refusal in refusals:
        found.setdefault((refusal.accelerator, refusal.reason), []).append(refusal.saves)
    rows = [(engine, reason, len(saves), sum(saves)) for (engine, reason), saves in found.items()]
    return sorted(rows, key=lambda row: -row[3])
