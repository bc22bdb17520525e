"""What lies in flash: a rectangle for each constant and each piece of code, those of a layer together."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from uaccel.report.run import Run
from uaccel.report.section import DETAILS, Section
from uaccel.report.svg import drawing, tag, text, title
from uaccel.report.treemap import Box, treemap
from uaccel.report.words import percent, shortened, size

WIDTH, HEIGHT, HEAD = 960.0, 460.0, 17.0
MOST = 60
"""Rectangles of a group; the rest is one."""
SHARED, STARTUP, SESSION = "code that layers share", "start-up of the port", "test application"
PARTS = {
    "code": SHARED,
    "rodata": SHARED,
    "weights": "constants of several layers",
    "startup": STARTUP,
    "session": SESSION,
}


@dataclass(frozen=True)
class Piece:
    group: str
    name: str
    part: str
    bytes: int

    @property
    def short(self) -> str:
        """Without the model's name and the layer's, which stand above it."""
        rest = self.name.partition(f"_{self.group}_")[2] if self.name.startswith("tvmgen_") else ""
        return rest or self.name.removeprefix("layer_")


def section(run: Run) -> Section:
    pieces = pieces_of(run)
    if not pieces:
        return Section("flash", "Flash", missing=f"This result tells no sizes of constants or symbols; {DETAILS}.")
    groups: dict[str, list[Piece]] = {}
    for piece in sorted(pieces, key=lambda piece: -piece.bytes):
        groups.setdefault(piece.group, []).append(piece)
    ranked = sorted(groups.items(), key=lambda group: -_sum(group[1]))
    whole = _sum(pieces)
    context = {
        "chart": _chart(run, ranked),
        "groups": [
            (name, size(_sum(members)), percent(_sum(members), whole), members[:MOST]) for name, members in ranked
        ],
        "whole": size(whole),
        "linked": any(True for _ in run.symbols()),
        "hint": _hint(run),
    }
    return Section("flash", "Flash", "flash.html", context)


def _hint(run: Run) -> str:
    """How to see every symbol."""
    asked = "symbols" in run.section("flash")
    return "This board's build tells no symbols; an emulated board's does." if asked else f"For every symbol {DETAILS}."


def pieces_of(run: Run) -> list[Piece]:
    """By the linker's map where the result has it; else constants, and the code of layers as far as it is known."""
    owner = {constant["symbol"]: (constant["layers"] or [SHARED])[0] for constant in run.data.get("constants", ())}
    symbols = list(run.symbols())
    layers = {f"layer_{step.name}": step.name for step in run.steps}
    if symbols:
        return [
            _piece(symbol["name"], symbol["part"], symbol["bytes"], owner, layers)
            for symbol in symbols
            if symbol["bytes"]
        ]
    found = [
        Piece(owner[constant["symbol"]], constant["symbol"], "weights", constant["bytes"])
        for constant in run.data.get("constants", ())
        if constant["bytes"]
    ]
    return found + [Piece(step.name, f"layer_{step.name}", "code", step.code) for step in run.steps if step.code]


def _piece(name: str, part: str, bytes_: int, owner: dict[str, str], layers: dict[str, str]) -> Piece:
    plain = name.partition(".")[0] if name not in owner and name.partition(".")[0] in layers else name
    group = owner.get(name) or layers.get(plain.removesuffix("_on_cpu")) or PARTS.get(part, part)
    return Piece(group, name, part, bytes_)


def _row(name: str, members: list[Piece], whole: int) -> tuple[str, str, str, list[Piece]]:
    return name, size(_sum(members)), percent(_sum(members), whole), members[:MOST]


def _sum(pieces: list[Piece]) -> int:
    return sum(piece.bytes for piece in pieces)


def _chart(run: Run, groups: list[tuple[str, list[Piece]]]) -> Markup:
    engines = {step.name: step.engine for step in run.steps}
    boxes = treemap([_sum(members) for _, members in groups], Box(0, 0, WIDTH, HEIGHT))
    parts = [
        _group(run, name, members, box, engines.get(name)) for (name, members), box in zip(groups, boxes, strict=True)
    ]
    label = f"Flash: {len(groups)} groups of constants and code, areas by bytes"
    return drawing(round(WIDTH), round(HEIGHT), label, parts, "treemap")


def _group(run: Run, name: str, members: list[Piece], box: Box, engine: str | None) -> Markup:
    class_ = run.engine_class(engine) if engine else "io"
    head = HEAD if box.height > 3 * HEAD and box.width > 40 else 0.0
    inner = Box(box.x + 1.5, box.y + head, max(0.5, box.width - 3), max(0.5, box.height - head - 1.5))
    shown, rest = members[:MOST], members[MOST:]
    if rest:
        shown = [*shown, Piece(name, f"{len(rest)} smaller ones", "", _sum(rest))]
    parts = [tag("rect", x=box.x + 0.5, y=box.y + 0.5, width=max(0.5, box.width - 1), height=max(0.5, box.height - 1))]
    letters = int((box.width - 8) / 7.9)
    if head and letters > 3:
        parts.append(text(box.x + 4, box.y + 13, shortened(f"{name} {size(_sum(members))}", letters), class_="name"))
    for piece, at in zip(shown, treemap([piece.bytes for piece in shown], inner), strict=True):
        parts.append(_leaf(piece, at))
    return tag("g", *parts, class_=f"group {class_}")


def _leaf(piece: Piece, at: Box) -> Markup:
    tip = f"{piece.name}: {size(piece.bytes)}" + (f" of {piece.part}" if piece.part else "")
    words = f"{tip}, {piece.group}" if piece.group not in piece.name else tip
    parts = [
        tag(
            "rect",
            title(words),
            x=at.x + 0.5,
            y=at.y + 0.5,
            width=max(0.3, at.width - 1),
            height=max(0.3, at.height - 1),
        )
    ]
    letters = int((at.width - 8) / 6.9)
    if at.height > 16 and letters > 5:
        parts.append(text(at.x + 4, at.y + 13, shortened(piece.short, letters)))
    kind = piece.part if piece.part in ("weights", "code", "rodata") else "code"
    return tag("g", *parts, class_=f"leaf {kind}", data_tip=words)
