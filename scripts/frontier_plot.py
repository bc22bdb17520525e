"""docs/frontier-MODEL.svg from benchmarks/frontier.json: RAM against estimated cycles, a picture for each model."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS, DOCS = ROOT / "benchmarks" / "frontier.json", ROOT / "docs"
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 460, 264, 62, 20, 48, 44
STYLE = (
    "text{font:11px sans-serif;fill:#333}.name{font-size:13px}.grid{stroke:#ccc;stroke-width:.5}"
    "path{fill:none;stroke-width:1.6}.whole{stroke:#2b6cb0}.fed{stroke:#c05621}"
    "circle.whole{fill:#2b6cb0}circle.fed{fill:#c05621}"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}.grid{stroke:#555}}"
)
WORDS = {"whole": "input whole", "fed": "input by rows (--feed)"}
KILO = 1024
Point = tuple[float, float]


def picture(name: str, kinds: dict[str, list[list[int]]]) -> str:
    """The SVG of a model; RAM goes from 0 to the right, cycles begin a little below the least."""
    every = [(ram / KILO, cycles / 1e6) for rows in kinds.values() for ram, cycles in rows]
    across = ticks(0, max(ram for ram, _ in every))
    down = ticks(min(cycles for _, cycles in every), max(cycles for _, cycles in every))

    def place(ram: float, cycles: float) -> Point:
        x = LEFT + (WIDTH - LEFT - RIGHT) * ram / across[-1]
        return x, HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (cycles - down[0]) / (down[-1] - down[0])

    title = f"{name}: bytes of RAM against estimated cycles"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        f"<title>{escape(title)}</title><style>{STYLE}</style>",
        f'<text class="name" x="{LEFT}" y="18">{escape(name)}</text>',
    ]
    for tick in across:
        x, y = place(tick, down[0])
        parts.append(f'<path class="grid" d="M{x:.1f} {TOP}V{y:.1f}"/>')
        parts.append(f'<text x="{x:.1f}" y="{y + 15:.1f}" text-anchor="middle">{tick:g}</text>')
    for tick in down:
        x, y = place(0, tick)
        parts.append(f'<path class="grid" d="M{x:.1f} {y:.1f}H{WIDTH - RIGHT}"/>')
        parts.append(f'<text x="{x - 6:.1f}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
    parts.append(f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 8}" text-anchor="end">KiB of RAM</text>')
    parts.append(f'<text x="6" y="{TOP - 12}">million cycles</text>')
    for number, (kind, rows) in enumerate(kinds.items()):
        parts += curve(kind, [place(ram / KILO, cycles / 1e6) for ram, cycles in rows], number)
    return "\n".join([*parts, "</svg>"]) + "\n"


def curve(kind: str, points: Sequence[Point], number: int) -> list[str]:
    """Steps: in a little less RAM than a point takes, only the next one runs."""
    (x, y), *rest = points
    steps = f"M{x:.1f} {y:.1f}" + "".join(f"V{v:.1f}H{u:.1f}" for u, v in rest)
    row = 18 + 14 * number
    return [
        *([f'<path class="{kind}" d="{steps}"/>'] if rest else []),
        *(f'<circle class="{kind}" cx="{u:.1f}" cy="{v:.1f}" r="3"/>' for u, v in points),
        f'<circle class="{kind}" cx="{WIDTH - 160}" cy="{row - 4}" r="3"/>',
        f'<text x="{WIDTH - 152}" y="{row}">{escape(WORDS[kind])}</text>',
    ]


def ticks(low: float, high: float) -> list[float]:
    """Round numbers from at most ``low`` to at least ``high``, four to eight of them."""
    spread = (high - low) or abs(high) * 0.1 or 1.0
    rough = spread / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * 0.999)
    first, last = math.floor(low / step), math.ceil(high / step)
    return [round(count * step, 9) for count in range(first, max(last, first + 1) + 1)]


def pictures() -> dict[str, str]:
    """By their files' names."""
    stored: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return {f"frontier-{name}.svg": picture(name, kinds) for name, kinds in stored["models"].items()}


if __name__ == "__main__":
    for file, text in pictures().items():
        (DOCS / file).write_text(text, encoding="utf-8")
