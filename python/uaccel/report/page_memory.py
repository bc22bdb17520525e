"""Makes the sections on memory: the arena over time, RAM against time, memories on chip, and flash as a treemap."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, groupby
from typing import Any, Final

from markupsafe import Markup

from uaccel.report.stored_run import StoredRun
from uaccel.report.svg import (
    DETAILS,
    Shown,
    count,
    drawing,
    ellipsize,
    join_words,
    percent,
    size,
    tag,
    text,
    ticks,
    title,
)

# The arena over time: which tensor or scratch has which bytes while each layer runs.

HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 340.0, 78.0, 34.0, 14.0, 12.0
NARROWEST, WIDEST, WHOLE = 14.0, 240.0, 900.0  # Pixels of a column, and of all together as far as those allow.
LETTERS: Final = 48  # Letters of a name in a sentence: names that converters give fused operators have hundreds.


@dataclass(frozen=True)
class Held:
    """States which bytes something holds from a first to a last step, both included."""

    name: str
    kind: str
    bytes: int
    offset: int
    first: int
    last: int
    pool: str = ""


def memory(run: StoredRun) -> Shown:
    """What the chart of the arena over time shows."""
    plan = run.section("plan")
    if not plan:
        return f"This result holds no memory plan; {DETAILS}."
    held = holders(run)
    step, most = peak(plan)
    memories = _memories(run)
    return {
        "charts": list(_charts(run, plan, held, step)),
        "held": sorted(held, key=lambda one: (one.first, one.offset)),
        "peak": _peak(run, held, step, most),
        "arena": plan["arena"],
        "bound": _bound(plan),
        "memories": memories,
        "placed": any(used is not None for _, used, _ in memories),
        "stored": any(constants is not None for _, _, constants in memories),
        "whole": len(plan.get("pools") or ()) < 2,
        "name_of": partial(_name, run),
    }


def holders(run: StoredRun) -> list[Held]:
    """All that lies in the arena: tensors, scratch and prefetched constants; views have no bytes of their own."""
    found = []
    for name, value in run.values.items():
        placed = value.get("memory") == "arena" and value.get("first") is not None
        if placed and not value.get("view_of"):
            words = str(value.get("tensor") or name)
            bytes_, offset, first, last = (value[key] for key in ("bytes", "offset", "first", "last"))
            found.append(Held(words, "tensor", bytes_, offset, first, last, value.get("pool", "")))
    plan = run.section("plan")
    found += [_apart(entry, "scratch", entry["step"], entry["step"]) for entry in plan.get("scratch", ())]
    return found + [_apart(entry, "constants", entry["first"], entry["last"]) for entry in plan.get("ahead", ())]


def _apart(entry: Mapping[str, Any], kind: str, first: int, last: int) -> Held:
    """The bytes that a layer holds beside its tensors, from a first to a last step."""
    words, place = f"{kind} of {entry['layer']}", (entry["bytes"], entry["offset"])
    return Held(words, "scratch", *place, first, last, entry.get("pool", ""))


def live(plan: Mapping[str, Any]) -> list[int]:
    """Bytes that must be intact at each step. An output that overwrites parts of an input which are read already counts
    once with it. An older result does not state them; then the sizes of all blocks that are alive are added up."""
    if any(plan.get("live") or ()):
        return list(plan["live"])
    steps = max(1, plan["steps"])
    return [sum(b["size"] for b in plan["blocks"] if b["first"] <= step <= b["last"]) for step in range(steps)]


def peak(plan: Mapping[str, Any]) -> tuple[int, int]:
    """The first step with the most live bytes, and their number."""
    sums = live(plan)
    most = max(sums)
    return sums.index(most), most


def _peak(run: StoredRun, held: list[Held], step: int, most: int) -> str:
    """The peak in words: its layer, its bytes, and who holds most of them."""
    there = sorted((one for one in held if one.first <= step <= one.last), key=lambda one: -one.bytes)
    names = [f"{ellipsize(one.name, LETTERS)} ({size(one.bytes)})" for one in there[:4]]
    more = [f"{len(there) - 4} more"] if len(there) > 4 else []
    what = f", held by {join_words([*names, *more])}" if there else ""
    return f"Most bytes are alive while {_name(run, step)} runs: {size(most)}{what}."


def _bound(plan: Mapping[str, Any]) -> str:
    arena, bound = plan["arena"], plan["lower_bound"]
    if arena <= bound:
        return "No arena can be smaller: it is as large as what is alive at once."
    proved = "; no plan of fewer bytes exists" if plan.get("optimal") else ""
    return f"At least {size(bound)} are alive at once; the plan takes {percent(arena - bound, bound)} more{proved}."


def _name(run: StoredRun, number: int) -> str:
    if number < 0:
        return "before the first layer"
    return run.steps[number].name if number < len(run.steps) else "after the last layer"


def _memories(run: StoredRun) -> list[tuple[Mapping[str, Any], int | None, int | None]]:
    """Each memory of the board, with its bytes of the arena and of constants, as far as they are known."""
    used = {
        pool.get("memory") or pool.get("name", ""): pool.get("bytes") or pool.get("size") or 0
        for pool in run.section("plan").get("pools", ())
    }
    constants = run.section("flash").get("pools") or {}
    memories = run.section("target").get("memories", ())
    return [(one, used.get(one["name"]), constants.get(one["name"])) for one in memories]


def _charts(run: StoredRun, plan: Mapping[str, Any], held: list[Held], step: int) -> Iterator[tuple[str, Markup]]:
    """Yields the chart of the arena, or one of each pool that it is divided among."""
    pools = [pool for pool in plan.get("pools", ()) if pool["bytes"]]
    if len(pools) > 1:
        for pool in pools:
            there = [one for one in held if one.pool == pool["name"]]
            yield (
                f"{pool['name']}: {size(pool['bytes'])}",
                _chart(run, dict(plan) | {"arena": pool["bytes"]}, there, step, whole=False),
            )
    elif plan["arena"]:
        yield "", _chart(run, plan, held, step, whole=True)


def _chart(run: StoredRun, plan: Mapping[str, Any], held: list[Held], peak_step: int, *, whole: bool) -> Markup:
    """Draws one chart. ``whole``: it is of the whole arena, so that live bytes and the lower bound can be drawn."""
    steps = max(1, plan["steps"])
    column = min(WIDEST, max(NARROWEST, WHOLE / steps))
    unit = 1024 if plan["arena"] >= 10 * 1024 else 1
    marks = [tick * unit for tick in ticks(plan["arena"] / unit)]
    top = marks[-1]
    width, height = LEFT + column * steps + RIGHT, TOP + HEIGHT + BOTTOM

    def y(offset: float) -> float:
        return TOP + HEIGHT * (1 - offset / top)

    parts = [Markup("")]
    for tick in marks:
        parts.append(tag("line", x1=LEFT, x2=width - RIGHT, y1=y(tick), y2=y(tick), class_="grid"))
        parts.append(text(LEFT - 6, y(tick) + 4, size(tick), "end"))
    parts.append(tag("rect", x=LEFT + column * peak_step, y=TOP, width=column, height=HEIGHT, class_="peak"))
    parts += [_rectangle(run, one, column, steps, y) for one in held]
    line = " ".join(
        f"{LEFT + column * x:.0f},{y(bytes_):.1f}" for i, bytes_ in enumerate(live(plan)) for x in (i, i + 1)
    )
    bound = y(plan["lower_bound"])
    if whole:
        parts.append(tag("polyline", points=line, class_="live"))
        parts.append(tag("line", x1=LEFT, x2=width - RIGHT, y1=bound, y2=bound, class_="bound"))
    every = max(1, round(46 / column))
    for step in range(0, steps, every):
        parts.append(text(LEFT + column * (step + 0.5), TOP + HEIGHT + 16, str(step), "middle"))
    parts.append(text(LEFT, height - 4, "layer, in order of execution"))
    label = f"The arena of {size(plan['arena'])} over {steps} layers: {len(held)} tensors and scratch areas"
    return drawing(round(width), round(height), label, parts, "memory")


def _rectangle(run: StoredRun, one: Held, column: float, steps: int, y: Any) -> Markup:
    first, last = max(0, one.first), min(steps - 1, one.last)
    x, width = LEFT + column * first, column * max(1, last - first + 1)
    upper, lower = y(one.offset + one.bytes), y(one.offset)
    when = f"{_name(run, one.first)} to {_name(run, one.last)}" if one.first != one.last else _name(run, one.first)
    tip = f"{one.name}: {size(one.bytes)} at {one.offset}, {when}"
    parts = [tag("rect", title(tip), x=x + 0.5, y=upper, width=width - 1, height=max(1.0, lower - upper))]
    letters = int((width - 8) / 7.2)
    if lower - upper > 14 and letters > 4:
        parts.append(text(x + 4, (upper + lower) / 2 + 4, ellipsize(one.name, letters)))
    producer = run.steps[first].engine if 0 <= one.first < len(run.steps) else ""
    class_ = one.kind if one.kind == "scratch" else f"tensor {run.engine_class(producer) if producer else 'io'}"
    return tag("g", *parts, class_=f"held {class_}", data_tip=tip)


# RAM against time: every way to run the model that is best in one of them.

WAYS_WIDTH, WAYS_HEIGHT, WAYS_LEFT, WAYS_BOTTOM, WAYS_TOP, WAYS_RIGHT = 720.0, 280.0, 92.0, 38.0, 16.0, 24.0
NO_WAYS: Final = "It takes a search: 'uaccel report MODEL --frontier', for a model that the CPU computes."


def frontier(run: StoredRun) -> Shown:
    """What the section shows; the point of this run is the one with its RAM, where that is on the frontier."""
    told = run.section("frontier")
    points = told.get("points") or ()
    if not points:
        return NO_WAYS
    ram = sum(run.section("ram").get(key) or 0 for key in ("arena", "state", "io"))
    return {"chart": _ways_chart(points, told["unit"], ram), "points": points, "unit": told["unit"], "ram": ram}


def _ways_chart(points: Sequence[Mapping[str, Any]], unit: str, ram: int) -> Markup:
    across, up = ticks(max(point["ram"] for point in points)), ticks(100 * max(point["slower"] for point in points))

    def place(point: Mapping[str, Any]) -> tuple[float, float]:
        x = WAYS_LEFT + (WAYS_WIDTH - WAYS_LEFT - WAYS_RIGHT) * point["ram"] / across[-1]
        return x, WAYS_HEIGHT - WAYS_BOTTOM - (WAYS_HEIGHT - WAYS_TOP - WAYS_BOTTOM) * 100 * point["slower"] / up[-1]

    parts = [Markup("")]
    for tick in across:
        x, _ = place({"ram": tick, "slower": 0})
        parts += [tag("line", x1=x, x2=x, y1=WAYS_TOP, y2=WAYS_HEIGHT - WAYS_BOTTOM, class_="grid")]
        parts += [text(x, WAYS_HEIGHT - WAYS_BOTTOM + 16, size(tick), "middle")]
    for tick in up:
        _, y = place({"ram": 0, "slower": tick / 100})
        parts += [tag("line", x1=WAYS_LEFT, x2=WAYS_WIDTH - WAYS_RIGHT, y1=y, y2=y, class_="grid")]
        parts += [text(WAYS_LEFT - 6, y + 4, f"+{tick:g} %", "end")]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(place, points))
    parts.append(tag("polyline", points=line, class_="roof e0"))
    for point in points:
        x, y = place(point)
        tip = f"{count(point['ram'])} bytes, {count(point['estimate'])} {unit} ({point['slower']:+.1%})"
        dot = tag("circle", title(tip), cx=x, cy=y, r=7 if point["ram"] == ram else 5)
        parts.append(tag("g", dot, class_="dot e1" if point["ram"] == ram else "dot e0", data_tip=tip))
    parts.append(text(WAYS_WIDTH - WAYS_RIGHT, WAYS_HEIGHT - 4, "bytes of RAM", "end"))
    parts.append(text(2, 12, "more time"))
    return drawing(round(WAYS_WIDTH), round(WAYS_HEIGHT), f"RAM against {unit}: {len(points)} ways", parts, "roofline")


# Memories on chip: how full an accelerator's are over time, for the timeline of its engines.


@dataclass(frozen=True)
class Filled:
    """Holds how many bytes of a memory are in use from each time on. ``whole``: its size, None if it is not known."""

    engine: str
    memory: str
    whole: int | None
    steps: tuple[tuple[float, int], ...]

    @property
    def most(self) -> int:
        return max(used for _, used in self.steps)

    @property
    def words(self) -> str:
        of_all = f" of {size(self.whole)} ({percent(self.most, self.whole)})" if self.whole else ""
        return f"{self.engine} {self.memory}: at most {size(self.most)}{of_all}"


def memories_of(run: StoredRun) -> list[Filled]:
    """The memories on chip of all engines, as far as the run tells what lies in them."""
    ran = _when_commands_ran(run.section("trace"))
    changes: dict[tuple[str, str], dict[float, int]] = {}
    for step in run.steps:
        for memory, begin, end, first, last in step.facts.get("on_chip", ()):
            if (step.name, first) in ran and (step.name, last) in ran:
                found = changes.setdefault((step.engine, memory), {})
                for at, bytes_ in ((ran[step.name, first][0], end - begin), (ran[step.name, last][1], begin - end)):
                    found[at] = found.get(at, 0) + bytes_
    sizes = {engine["name"]: engine.get("memories") or {} for engine in run.data.get("engines", ())}
    return [
        Filled(engine, memory, sizes.get(engine, {}).get(memory), tuple(_sums(found)))
        for (engine, memory), found in sorted(changes.items())
    ]


def _when_commands_ran(trace: Mapping[str, Any]) -> dict[tuple[str, int], tuple[float, float]]:
    """When each command of each layer began and ended."""
    found = {}
    for event in trace.get("traceEvents", ()):
        told = event.get("args", {})
        if event.get("ph") == "X" and "command" in told and "layer" in told:
            found[told["layer"], told["command"]] = (event["ts"], event["ts"] + event["dur"])
    return found


def _sums(changes: Mapping[float, int]) -> Iterator[tuple[float, int]]:
    """What is in use after each change, without those that change nothing."""
    times = sorted(changes)
    sums = zip(times, accumulate(changes[at] for at in times), strict=True)
    for _, same in groupby(sums, key=lambda step: step[1]):
        yield next(same)


def drawn(filled: Filled, left: float, scale: float, top: float, height: float, class_: str) -> Markup:
    """The bytes in use as an area over time; the whole height is the whole memory."""
    full = filled.whole or filled.most
    points, level = [], 0.0
    for at, used in filled.steps:
        x, y = left + at * scale, height * min(1.0, used / full)
        points += [f"{x:.1f},{top + height - level:.1f}", f"{x:.1f},{top + height - y:.1f}"]
        level = y
    area = tag("polygon", title(filled.words), points=" ".join(points))
    return tag("g", area, class_=f"filled {class_}", data_tip=filled.words)


# Treemap: rectangles of given areas, as square as possible, since areas of long thin ones are hard to compare.


@dataclass(frozen=True)
class TreemapBox:
    """Holds the place and extent of a rectangle."""

    x: float
    y: float
    width: float
    height: float

    @property
    def area(self) -> float:
        return self.width * self.height

    @property
    def turned(self) -> TreemapBox:
        """The same with its axes exchanged."""
        return TreemapBox(self.y, self.x, self.height, self.width)


def treemap(sizes: Sequence[float], box: TreemapBox) -> list[TreemapBox]:
    """Divides a box into one for each size, in their order. Sizes are above 0; the largest first give the best boxes.

    The squarified treemap of Bruls, Huizing and van Wijk: boxes are laid in a row along the shorter side of what is
    left. A row takes the next size as long as its least square box does not become worse; then it is fixed, and the
    rest of the box is divided in the same way.
    """
    total = sum(sizes)
    if not sizes or total <= 0:
        return []
    scale = box.area / total
    found: list[TreemapBox] = []
    rest, areas = box, [size * scale for size in sizes]
    while areas:
        side = min(rest.width, rest.height)
        taken = 1
        while taken < len(areas) and _worst(areas[: taken + 1], side) <= _worst(areas[:taken], side):
            taken += 1
        row, areas = areas[:taken], areas[taken:]
        boxes, rest = _row(row, rest)
        found += boxes
    return found


def _worst(row: Sequence[float], side: float) -> float:
    """The largest ratio of a longer to a shorter edge in a row along a side.

    The row is total / side deep. A box of area a has edges total / side and a * side / total, with ratio
    a * side**2 / total**2 or its inverse. The largest area has the largest ratio, the smallest the largest inverse.
    """
    total = sum(row)
    if not side or not total:
        return float("inf")
    return max(side * side * max(row) / (total * total), total * total / (side * side * min(row)))


def _row(row: Sequence[float], box: TreemapBox) -> tuple[list[TreemapBox], TreemapBox]:
    """The boxes of a row along the shorter side, and the rest of the box."""
    if box.width < box.height:
        found, rest = _row(row, box.turned)
        return [one.turned for one in found], rest.turned
    depth = sum(row) / box.height if box.height else 0.0
    found, y = [], box.y
    for area in row:
        height = area / depth if depth else 0.0
        found.append(TreemapBox(box.x, y, depth, height))
        y += height
    return found, TreemapBox(box.x + depth, box.y, max(0.0, box.width - depth), box.height)


# Flash: a rectangle for each constant and each piece of code, those of a layer together.

WIDTH, FLASH_HEIGHT, HEAD = 960.0, 460.0, 17.0
MOST = 60  # Rectangles of a group; one more stands for the rest.
SHARED, STARTUP, SESSION = "code that layers share", "start-up of the port", "test application"
PARTS = {
    "code": SHARED,
    "rodata": SHARED,
    "weights": "constants of several layers",
    "startup": STARTUP,
    "session": SESSION,
}


@dataclass(frozen=True)
class DrawnPiece:
    """Describes a constant or a piece of code, and the layer or other group that it belongs to."""

    group: str
    name: str
    part: str
    bytes: int

    @property
    def short(self) -> str:
        """The name without the model's and the layer's, which stand above it."""
        rest = self.name.partition(f"_{self.group}_")[2] if self.name.startswith("tvmgen_") else ""
        return rest or self.name.removeprefix("layer_")


def flash(run: StoredRun) -> Shown:
    """What the treemap of flash shows."""
    pieces = pieces_of(run)
    if not pieces:
        return f"This result tells no sizes of constants or symbols; {DETAILS}."
    groups: dict[str, list[DrawnPiece]] = {}
    for piece in sorted(pieces, key=lambda piece: -piece.bytes):
        groups.setdefault(piece.group, []).append(piece)
    ranked = sorted(groups.items(), key=lambda group: -_sum(group[1]))
    return {
        "chart": _flash_chart(run, ranked),
        "groups": [(name, _sum(members), members[:MOST]) for name, members in ranked],
        "whole": _sum(pieces),
        "linked": any(True for _ in run.symbols()),
        "hint": _hint(run),
    }


def _hint(run: StoredRun) -> str:
    """The advice on how to see every symbol."""
    asked = "symbols" in run.section("flash")
    return "This board's build tells no symbols; an emulated board's does." if asked else f"For every symbol {DETAILS}."


def pieces_of(run: StoredRun) -> list[DrawnPiece]:
    """The pieces by the linker's map if the result has it; else constants, and code of layers as far as it is known."""
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
        DrawnPiece(owner[constant["symbol"]], constant["symbol"], "weights", constant["bytes"])
        for constant in run.data.get("constants", ())
        if constant["bytes"]
    ]
    return found + [DrawnPiece(step.name, f"layer_{step.name}", "code", step.code) for step in run.steps if step.code]


def _piece(name: str, part: str, bytes_: int, owner: dict[str, str], layers: dict[str, str]) -> DrawnPiece:
    plain = name.partition(".")[0] if name not in owner and name.partition(".")[0] in layers else name
    group = owner.get(name) or layers.get(plain.removesuffix("_on_cpu")) or PARTS.get(part, part)
    return DrawnPiece(group, name, part, bytes_)


def _sum(pieces: list[DrawnPiece]) -> int:
    return sum(piece.bytes for piece in pieces)


def _flash_chart(run: StoredRun, groups: list[tuple[str, list[DrawnPiece]]]) -> Markup:
    engines = {step.name: step.engine for step in run.steps}
    boxes = treemap([_sum(members) for _, members in groups], TreemapBox(0, 0, WIDTH, FLASH_HEIGHT))
    parts = [
        _group(run, name, members, box, engines.get(name)) for (name, members), box in zip(groups, boxes, strict=True)
    ]
    label = f"Flash: {len(groups)} groups of constants and code, areas by bytes"
    return drawing(round(WIDTH), round(FLASH_HEIGHT), label, parts, "treemap")


def _group(run: StoredRun, name: str, members: list[DrawnPiece], box: TreemapBox, engine: str | None) -> Markup:
    class_ = run.engine_class(engine) if engine else "io"
    head = HEAD if box.height > 3 * HEAD and box.width > 40 else 0.0
    inner = TreemapBox(box.x + 1.5, box.y + head, max(0.5, box.width - 3), max(0.5, box.height - head - 1.5))
    shown, rest = members[:MOST], members[MOST:]
    if rest:
        shown = [*shown, DrawnPiece(name, f"{len(rest)} smaller ones", "", _sum(rest))]
    parts = [_rect(box, 0.5)]
    letters = int((box.width - 8) / 7.9)
    if head and letters > 3:
        parts.append(text(box.x + 4, box.y + 13, ellipsize(f"{name} {size(_sum(members))}", letters), class_="name"))
    for piece, at in zip(shown, treemap([piece.bytes for piece in shown], inner), strict=True):
        parts.append(_leaf(piece, at))
    return tag("g", *parts, class_=f"group {class_}")


def _rect(box: TreemapBox, least: float, *inside: Markup) -> Markup:
    """The rectangle of a box, with a gap around it; its edges have a least length."""
    width, height = max(least, box.width - 1), max(least, box.height - 1)
    return tag("rect", *inside, x=box.x + 0.5, y=box.y + 0.5, width=width, height=height)


def _leaf(piece: DrawnPiece, at: TreemapBox) -> Markup:
    tip = f"{piece.name}: {size(piece.bytes)}" + (f" of {piece.part}" if piece.part else "")
    words = f"{tip}, {piece.group}" if piece.group not in piece.name else tip
    parts = [_rect(at, 0.3, title(words))]
    letters = int((at.width - 8) / 6.9)
    if at.height > 16 and letters > 5:
        parts.append(text(at.x + 4, at.y + 13, ellipsize(piece.short, letters)))
    kind = piece.part if piece.part in ("weights", "code", "rodata") else "code"
    return tag("g", *parts, class_=f"leaf {kind}", data_tip=words)
