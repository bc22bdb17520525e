"""The arena over time: which bytes are whose while which layer runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from markupsafe import Markup

from uaccel.report.run import Run
from uaccel.report.section import DETAILS, Section
from uaccel.report.svg import drawing, tag, text, title
from uaccel.report.words import joined, percent, shortened, size, ticks

HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 340.0, 78.0, 34.0, 14.0, 12.0
NARROWEST, WIDEST, WHOLE = 14.0, 240.0, 900.0
LETTERS: Final = 48
"""Of a name within a sentence: those that converters make of fused operators have hundreds."""


@dataclass(frozen=True)
class Held:
    """Bytes that something holds from a first to a last step, both included."""

    name: str
    kind: str
    bytes: int
    offset: int
    first: int
    last: int
    pool: str = ""


def section(run: Run) -> Section:
    plan = run.section("plan")
    if not plan:
        return Section("memory", "Memory over time", missing=f"This result holds no memory plan; {DETAILS}.")
    held = holders(run)
    step, most = peak(plan)
    context = {
        "charts": list(_charts(run, plan, held, step)),
        "held": sorted(held, key=lambda one: (one.first, one.offset)),
        "step_names": [one.name for one in run.steps],
        "peak": _peak(run, held, step, most),
        "arena": size(plan["arena"]),
        "bound": _bound(plan),
        "memories": _memories(run),
        "placed": any(memory["used"] for memory in _memories(run)),
        "stored": any(memory["constants"] for memory in _memories(run)),
        "whole": len(plan.get("pools") or ()) < 2,
        "name_of": lambda number: _name(run, number),
    }
    return Section("memory", "Memory over time", "memory.html", context)


def holders(run: Run) -> list[Held]:
    """Tensors in the arena and layers' scratch; views have no bytes of their own."""
    found = []
    for name, value in run.values.items():
        placed = value.get("memory") == "arena" and value.get("first") is not None
        if placed and not value.get("view_of"):
            words = str(value.get("tensor") or name)
            found.append(
                Held(
                    words,
                    "tensor",
                    value["bytes"],
                    value["offset"],
                    value["first"],
                    value["last"],
                    value.get("pool", ""),
                )
            )
    plan = run.section("plan")
    found += [_apart(entry, "scratch", entry["step"], entry["step"]) for entry in plan.get("scratch", ())]
    return found + [_apart(entry, "constants", entry["first"], entry["last"]) for entry in plan.get("ahead", ())]


def _apart(entry: Mapping[str, Any], kind: str, first: int, last: int) -> Held:
    """What a layer has beside its tensors, from step to step."""
    words, place = f"{kind} of {entry['layer']}", (entry["bytes"], entry["offset"])
    return Held(words, "scratch", *place, first, last, entry.get("pool", ""))


def live(plan: Mapping[str, Any]) -> list[int]:
    """Bytes that must be intact at each step; outputs that lie over what is read of their inputs count once."""
    if any(plan.get("live") or ()):
        return list(plan["live"])
    steps = max(1, plan["steps"])
    return [sum(b["size"] for b in plan["blocks"] if b["first"] <= step <= b["last"]) for step in range(steps)]


def peak(plan: Mapping[str, Any]) -> tuple[int, int]:
    """The first step with the most live bytes, and how many."""
    sums = live(plan)
    most = max(sums)
    return sums.index(most), most


def _peak(run: Run, held: list[Held], step: int, most: int) -> str:
    """In words."""
    there = sorted((one for one in held if one.first <= step <= one.last), key=lambda one: -one.bytes)
    names = [f"{shortened(one.name, LETTERS)} ({size(one.bytes)})" for one in there[:4]]
    more = [f"{len(there) - 4} more"] if len(there) > 4 else []
    what = f", held by {joined([*names, *more])}" if there else ""
    return f"Most bytes are alive while {_name(run, step)} runs: {size(most)}{what}."


def _bound(plan: Mapping[str, Any]) -> str:
    arena, bound = plan["arena"], plan["lower_bound"]
    if arena <= bound:
        return "No arena can be smaller: it is as large as what is alive at once."
    proved = "; no plan of fewer bytes exists" if plan.get("optimal") else ""
    return f"At least {size(bound)} are alive at once; the plan takes {percent(arena - bound, bound)} more{proved}."


def _name(run: Run, number: int) -> str:
    if number < 0:
        return "before the first layer"
    return run.steps[number].name if number < len(run.steps) else "after the last layer"


def _memories(run: Run) -> list[dict[str, Any]]:
    """Each memory of the board, and what the plan has put there where it says so."""
    uses: dict[str, int] = {}
    for pool in run.section("plan").get("pools", ()):
        uses[pool.get("memory") or pool.get("name", "")] = pool.get("bytes") or pool.get("size") or 0
    constants = run.section("flash").get("pools") or {}
    return [
        {
            "name": m["name"],
            "kind": m["kind"],
            "bytes": size(m["bytes"]),
            "used": size(uses[m["name"]]) if m["name"] in uses else "",
            "constants": size(constants[m["name"]]) if m["name"] in constants else "",
        }
        for m in run.section("target").get("memories", ())
    ]


def _charts(run: Run, plan: Mapping[str, Any], held: list[Held], step: int) -> Iterator[tuple[str, Markup]]:
    """Of the arena, or of each pool that it is divided among."""
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


def _chart(run: Run, plan: Mapping[str, Any], held: list[Held], peak_step: int, *, whole: bool) -> Markup:
    """``whole``: of all bytes, so that what is alive and the bound can be drawn."""
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


def _rectangle(run: Run, one: Held, column: float, steps: int, y: Any) -> Markup:
    first, last = max(0, one.first), min(steps - 1, one.last)
    x, width = LEFT + column * first, column * max(1, last - first + 1)
    upper, lower = y(one.offset + one.bytes), y(one.offset)
    when = f"{_name(run, one.first)} to {_name(run, one.last)}" if one.first != one.last else _name(run, one.first)
    tip = f"{one.name}: {size(one.bytes)} at {one.offset}, {when}"
    parts = [tag("rect", title(tip), x=x + 0.5, y=upper, width=width - 1, height=max(1.0, lower - upper))]
    letters = int((width - 8) / 7.2)
    if lower - upper > 14 and letters > 4:
        parts.append(text(x + 4, (upper + lower) / 2 + 4, shortened(one.name, letters)))
    producer = run.steps[first].engine if 0 <= one.first < len(run.steps) else ""
    class_ = one.kind if one.kind == "scratch" else f"tensor {run.engine_class(producer) if producer else 'io'}"
    return tag("g", *parts, class_=f"held {class_}", data_tip=tip)
