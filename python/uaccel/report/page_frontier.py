"""Makes the section on RAM against time: every way to run the model that is best in one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from markupsafe import Markup

from uaccel.report.stored_run import StoredRun
from uaccel.report.svg import Shown, count, drawing, size, tag, text, ticks, title

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 720.0, 280.0, 92.0, 38.0, 16.0, 24.0
NONE: Final = "It takes a search: 'uaccel report MODEL --frontier', for a model that the CPU computes."


def frontier(run: StoredRun) -> Shown:
    """What the section shows; the point of this run is the one with its RAM, where that is on the frontier."""
    told = run.section("frontier")
    points = told.get("points") or ()
    if not points:
        return NONE
    ram = sum(run.section("ram").get(key) or 0 for key in ("arena", "state", "io"))
    return {"chart": _chart(points, told["unit"], ram), "points": points, "unit": told["unit"], "ram": ram}


def _chart(points: Sequence[Mapping[str, Any]], unit: str, ram: int) -> Markup:
    across, up = ticks(max(point["ram"] for point in points)), ticks(100 * max(point["slower"] for point in points))

    def place(point: Mapping[str, Any]) -> tuple[float, float]:
        x = LEFT + (WIDTH - LEFT - RIGHT) * point["ram"] / across[-1]
        return x, HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * 100 * point["slower"] / up[-1]

    parts = [Markup("")]
    for tick in across:
        x, _ = place({"ram": tick, "slower": 0})
        parts += [tag("line", x1=x, x2=x, y1=TOP, y2=HEIGHT - BOTTOM, class_="grid")]
        parts += [text(x, HEIGHT - BOTTOM + 16, size(tick), "middle")]
    for tick in up:
        _, y = place({"ram": 0, "slower": tick / 100})
        parts += [tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y, class_="grid")]
        parts += [text(LEFT - 6, y + 4, f"+{tick:g} %", "end")]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(place, points))
    parts.append(tag("polyline", points=line, class_="roof e0"))
    for point in points:
        x, y = place(point)
        tip = f"{count(point['ram'])} bytes, {count(point['estimate'])} {unit} ({point['slower']:+.1%})"
        dot = tag("circle", title(tip), cx=x, cy=y, r=7 if point["ram"] == ram else 5)
        parts.append(tag("g", dot, class_="dot e1" if point["ram"] == ram else "dot e0", data_tip=tip))
    parts.append(text(WIDTH - RIGHT, HEIGHT - 4, "bytes of RAM", "end"))
    parts.append(text(2, 12, "more time"))
    return drawing(round(WIDTH), round(HEIGHT), f"RAM against {unit}: {len(points)} ways", parts, "roofline")
