"""How near layers come to what the CPU and each accelerator can do at most."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

from markupsafe import Markup

from uaccel.basics.words import CPU
from uaccel.report.run import Run
from uaccel.report.section import DETAILS, Section
from uaccel.report.svg import drawing, tag, text, title

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 720.0, 360.0, 64.0, 42.0, 12.0, 16.0
FEATURES: Final = {"helium": (8.0, 8.0), "rvv": (8.0, 8.0), "dsp": (2.0, 4.0)}
SCALAR: Final = (1.0, 4.0)
"""int8 products a cycle by the widest multiply-accumulate, and bytes a cycle that a load brings."""


@dataclass(frozen=True)
class Point:
    """A layer: products for each byte that it reads or writes, and products a cycle."""

    name: str
    engine: str
    intensity: float
    speed: float
    number: int


@dataclass(frozen=True)
class Roof:
    engine: str
    products: float
    bytes: float

    def at(self, intensity: float) -> float:
        return min(self.products, self.bytes * intensity)


def section(run: Run) -> Section:
    missing = ""
    if run.unit not in ("cycles", "instructions"):
        missing = "It takes cycles of each layer: run on an emulated board."
    elif not run.section("graph"):
        missing = f"It takes the bytes that layers move, which this result does not hold; {DETAILS}."
    points = [] if missing else points_of(run)
    if not points and not missing:
        missing = "No layer of this model multiplies."
    if missing:
        return Section("roofline", "Roofline", missing=missing)
    seen = {point.engine for point in points}
    roofs = [roof for roof in roofs_of(run) if roof.engine in seen]
    context = {
        "chart": _chart(run, points, roofs),
        "legend": [(run.engine_class(name), name) for name in dict.fromkeys(point.engine for point in points)],
        "roofs": [_roof_words(roof) for roof in roofs],
        "unknown": [n for n in dict.fromkeys(p.engine for p in points) if n not in {roof.engine for roof in roofs}],
        "points": [_row(point, roofs) for point in sorted(points, key=lambda point: point.number)],
        "unit": run.unit,
    }
    return Section("roofline", "Roofline", "roofline.html", context)


def points_of(run: Run) -> list[Point]:
    """Of the layers that multiply; of an accelerator by its own cycles."""
    found = []
    for step in run.steps:
        moved = sum(run.values.get(name, {}).get("bytes") or 0 for name in (*step.inputs, *step.outputs))
        moved += run.constants.get(step.name, 0)
        cycles = step.device if step.engine != CPU and step.device else step.cost
        if step.macs and moved and cycles:
            found.append(Point(step.name, step.engine, step.macs / moved, step.macs / cycles, step.number))
    return found


def roofs_of(run: Run) -> list[Roof]:
    """Of the CPU by its instructions, of accelerators as their descriptions state them."""
    target = run.section("target")
    found = []
    if target:
        best = next((peak for feature, peak in FEATURES.items() if feature in target.get("features", ())), SCALAR)
        found.append(Roof(CPU, *best))
    for engine in run.data.get("engines", ()):
        if engine.get("macs_per_cycle") and engine.get("bytes_per_cycle"):
            found.append(Roof(engine["name"], engine["macs_per_cycle"], engine["bytes_per_cycle"]))
    return found


def _roof_words(roof: Roof) -> str:
    return f"{roof.engine}: at most {roof.products:g} products and {roof.bytes:g} bytes a cycle"


def _row(point: Point, roofs: list[Roof]) -> dict[str, Any]:
    roof = next((roof for roof in roofs if roof.engine == point.engine), None)
    share = f"{100 * point.speed / roof.at(point.intensity):.0f} %" if roof else ""
    bound = ("memory" if roof.bytes * point.intensity < roof.products else "products") if roof else ""
    return {"point": point, "share": share, "bound": bound}


def _chart(run: Run, points: list[Point], roofs: list[Roof]) -> Markup:
    left = 10 ** math.floor(math.log10(min(point.intensity for point in points)))
    right = 10 ** math.ceil(math.log10(max(point.intensity for point in points) * 1.01))
    highest = max([point.speed for point in points] + [roof.products for roof in roofs])
    low = 10 ** math.floor(math.log10(min(point.speed for point in points)))
    high = 10 ** math.ceil(math.log10(highest * 1.01))

    def x(value: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * math.log10(value / left) / math.log10(right / left)

    def y(value: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - math.log10(value / low) / math.log10(high / low))

    parts = [Markup("")]
    for value in _decades(left, right):
        parts.append(tag("line", x1=x(value), x2=x(value), y1=TOP, y2=HEIGHT - BOTTOM, class_="grid"))
        parts.append(text(x(value), HEIGHT - BOTTOM + 16, f"{value:g}", "middle"))
    for value in _decades(low, high):
        parts.append(tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y(value), y2=y(value), class_="grid"))
        parts.append(text(LEFT - 6, y(value) + 4, f"{value:g}", "end"))
    for roof in roofs:
        ridge = min(max(roof.products / roof.bytes, left), right)
        ends = [(max(left, low / roof.bytes), 0.0), (ridge, 0.0), (right, 0.0)]
        line = " ".join(f"{x(at):.1f},{max(TOP, y(max(low, roof.at(at)))):.1f}" for at, _ in ends)
        parts.append(tag("polyline", points=line, class_=f"roof {run.engine_class(roof.engine)}"))
    for point in points:
        tip = f"{point.name} on {point.engine}: {point.speed:.3g} products a cycle, {point.intensity:.3g} a byte"
        dot = tag("circle", title(tip), cx=x(point.intensity), cy=y(point.speed), r=5)
        parts.append(tag("g", dot, class_=f"dot {run.engine_class(point.engine)}", data_tip=tip))
    parts.append(text(WIDTH - RIGHT, HEIGHT - 6, "products for each byte moved", "end"))
    parts.append(tag("text", "products a cycle", x=-TOP, y=14, transform="rotate(-90)", text_anchor="end"))
    label = f"Roofline: {len(points)} layers by products a byte and products a cycle"
    return drawing(round(WIDTH), round(HEIGHT), label, parts, "roofline")


def _decades(first: float, last: float) -> list[float]:
    found = [first]
    while found[-1] < last * 0.999:
        found.append(found[-1] * 10)
    return found
