"""Pictures of docs that show what the compiler really does: the arena over time, rows of layers, tokens of a stream.

``python scripts/compiler_pictures.py`` writes docs/arena.svg, docs/rows.svg and docs/stream.svg of small models.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from markupsafe import Markup

from uaccel.codegen.options import EmitOptions
from uaccel.lower.rows.schedule import Chains, ComputeRows, bands_of, schedule
from uaccel.report.compile_json import compile_report, structure
from uaccel.report.page import TEMPLATES
from uaccel.report.page_memory import memory
from uaccel.report.stored_run import StoredRun
from uaccel.report.svg import drawing, tag, text, title
from uaccel.runner.job import Job

ROOT: Final = Path(__file__).resolve().parents[1]
MODELS, DOCS = ROOT / "tests" / "models", ROOT / "docs"
WHOLE: Final = EmitOptions(whole_layers=True)
LEFT, LANE, BAR, TOP = 130.0, 34.0, 22.0, 26.0
MORE: Final = (
    "rect.paper{fill:var(--paper)}.cell rect{fill:var(--e);stroke:var(--paper)}.cell text{fill:#fff;font-size:11px}"
    ".token{stroke:var(--ink);fill:none;marker-end:url(#tip)}#tip path{fill:var(--ink)}"
)
TIP: Final = Markup(
    '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0 0L8 4L0 8z"/></marker>'
)


def arena() -> str:
    """The arena of a network with branches: what lies where while which layer runs, outputs over their inputs."""
    compiled = Job.of(MODELS / "residual.tflite", options=WHOLE).compiled()
    run = StoredRun({**compile_report(compiled), **structure(compiled), "runs": 0})
    shown = memory(run)
    assert not isinstance(shown, str)
    ((_, chart),) = shown["charts"]
    return _alone(chart)


def rows() -> str:
    """Three layers that run a row at a time: columns are moments, a box computes rows of a layer."""
    program = Job.of(MODELS / "residual.tflite", options=WHOLE).compiled().program
    layers = [layer for layer in program.layers if layer.name in ("conv_2d_1", "conv_2d_2", "add_3")]
    chain = Chains(program).of(layers[0].index, layers[-1].index)
    assert chain is not None
    events = [event for step in schedule(chain, bands_of(chain, 1)).steps for event in step]
    computed = [event for event in events if isinstance(event, ComputeRows)]
    shown, wide = computed[:24], 26.0
    parts = [text(0, TOP + LANE * at + 15, f"{one.name}", class_="name") for at, one in enumerate(layers)]
    for moment, event in enumerate(shown):
        words = f"{event.first}" if event.last == event.first + 1 else f"{event.first}-{event.last - 1}"
        tip = f"{layers[event.layer].name}: rows {event.first} to {event.last - 1}"
        parts.append(_cell(LEFT + moment * wide, TOP + LANE * event.layer, wide - 2, words, tip, f"e{event.layer}"))
    parts.append(text(LEFT, 14, "time →, a number is the row that the layer computes"))
    return _alone(drawing(LEFT + wide * len(shown) + 10, TOP + LANE * len(layers), "Rows of three layers", parts))


COMMAND: Final = re.compile(r"^ +(\d+) +(\d+)\.\.(\d+) ([L.][C.][S.]|\S*)<([LCS])>(\S*) (\w+)")
ENGINES: Final = {"L": "load", "C": "compute", "S": "store"}


def stream() -> str:
    """The first commands of a stream on npu: when each runs, and whose tokens it waits for."""
    compiled = Job.of(MODELS / "gesture.tflite", accelerators=["npu"]).compiled()
    listing = next(str(layer.artefacts["stream.txt"]) for layer in compiled.program.layers if layer.artefacts)
    found = [match.groups() for match in map(COMMAND.match, listing.splitlines()) if match]
    scale, lane = 1.7, LANE * 1.4
    tops = {letter: TOP + lane * at for at, letter in enumerate(ENGINES)}
    parts = [text(0, tops[letter] + 15, name, class_="name") for letter, name in ENGINES.items()]
    arrows: list[Markup] = []
    pushed: dict[str, list[tuple[float, float]]] = {}
    for number, begin, end, awaited, engine, pushes, kind in found:
        x, y, width = LEFT + int(begin) * scale, tops[engine], (int(end) - int(begin)) * scale
        parts.append(_cell(x, y, width - 1, kind, f"command {number}: {kind}, cycles {begin} to {end}", "e1"))
        for giver in set(awaited) & set(ENGINES):
            ready = pushed[giver + engine].pop(0)
            path = f"M{ready[0]:.1f} {ready[1]:.1f}L{x:.1f} {y + BAR / 2:.1f}"
            arrows.append(tag("path", d=path, class_="token"))
        for taker in set(pushes) & set(ENGINES):
            pushed.setdefault(engine + taker, []).append((x + width, y + BAR / 2))
    parts.append(text(LEFT, 14, "cycles →, an arrow is a token that one engine gives and another waits for"))
    last = max(int(end) for _, _, end, *_ in found)
    return _alone(drawing(LEFT + last * scale + 10, TOP + lane * 3, "Commands and tokens", [*parts, *arrows]))


def _cell(x: float, y: float, width: float, words: str, tip: str, class_: str) -> Markup:
    inside = [text(x + width / 2, y + 15, words, "middle")] if width > 6.5 * len(words) else []
    return tag("g", tag("rect", title(tip), x=x, y=y, width=width, height=BAR), *inside, class_=f"cell {class_}")


def _alone(chart: Markup) -> str:
    """A drawing of a page as a file of its own, with the page's colours, light and dark."""
    style = (TEMPLATES / "style.css").read_text(encoding="utf-8")
    head, _, body = str(chart).partition(">")
    paper = '<rect class="paper" width="100%" height="100%"/>'
    own = f"<style>{style}{MORE}</style><defs>{TIP}</defs>{paper}"
    return head.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"') + f">{own}{body}\n"


PICTURES: Final = {"arena.svg": arena, "rows.svg": rows, "stream.svg": stream}

if __name__ == "__main__":
    for name, made in PICTURES.items():
        (DOCS / name).write_text(made(), encoding="utf-8")
