"""Pictures of docs from texts beside them: boxes and arrows. ``python scripts/box_pictures.py`` draws them."""

from __future__ import annotations

from html import escape
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"
TEXTS = ("architecture.txt", "devices.txt", "session.txt")
WIDTH, HEIGHT, ACROSS, DOWN = 200, 52, 60, 44
STYLE = (
    "text{font:13px sans-serif;fill:#222}.small{font-size:11px;fill:#555}"
    "rect{fill:#eef3fa;stroke:#5b7aa6;rx:6}path{fill:none;stroke:#5b7aa6;stroke-width:1.4;marker-end:url(#tip)}"
    "@media(prefers-color-scheme:dark){text{fill:#eee}.small{fill:#bbb}rect{fill:#26334a}}"
)
Box = tuple[int, int]


def picture(source: str) -> str:
    """The SVG; its title is the first comment. A name that is in no row is a KeyError."""
    lines = [line for line in source.splitlines() if line.strip() and not line.startswith("#")]
    rows = [[cell.partition(":") for cell in line.split("|")] for line in lines if "|" in line]
    places = {
        name.strip(): (20 + column * (WIDTH + ACROSS), 20 + row * (HEIGHT + DOWN))
        for row, cells in enumerate(rows)
        for column, (name, _, _) in enumerate(cells)
    }
    arrows = [[end.strip() for end in line.split("->")] for line in lines if "->" in line]
    drawn = [arrow(places[start], places[end]) for start, end in arrows]
    named = [(name.strip(), about.strip()) for cells in rows for name, _, about in cells if name.strip()]
    drawn += [box(places[name], name, about) for name, about in named]
    width = 40 + max(map(len, rows)) * (WIDTH + ACROSS) - ACROSS
    height = 40 + len(rows) * (HEIGHT + DOWN) - DOWN
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">'
    tip = '<marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    tip += '<path d="M0 0L8 4L0 8z" style="fill:#5b7aa6;stroke:none"/></marker>'
    title = f"<title>{escape(source.partition(chr(10))[0].lstrip('# '))}</title>"
    return "\n".join([head, title, f"<style>{STYLE}</style>", f"<defs>{tip}</defs>", *drawn, "</svg>"]) + "\n"


def box(place: Box, name: str, about: str) -> str:
    """A name, and below it what it is."""
    x, y = place
    middle = x + WIDTH // 2
    return (
        f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}"/>'
        f'<text x="{middle}" y="{y + 22}" text-anchor="middle">{escape(name)}</text>'
        f'<text class="small" x="{middle}" y="{y + 40}" text-anchor="middle">{escape(about)}</text>'
    )


def arrow(start: Box, end: Box) -> str:
    """From the side that is nearer to the other box: down or up within a column and to the row below, else across."""
    (x, y), (u, v) = start, end
    below = v > y
    if x == u or v - y == HEIGHT + DOWN:
        ends = (x + WIDTH // 2, y + (HEIGHT if below else 0), u + WIDTH // 2, v + (0 if below else HEIGHT))
    else:
        right = u > x
        ends = (x + (WIDTH if right else 0), y + HEIGHT // 2, u + (0 if right else WIDTH), v + HEIGHT // 2)
    return '<path d="M{} {}L{} {}"/>'.format(*ends)


if __name__ == "__main__":
    for name in TEXTS:
        drawn_of = DOCS / name
        drawn_of.with_suffix(".svg").write_text(picture(drawn_of.read_text(encoding="utf-8")), encoding="utf-8")
