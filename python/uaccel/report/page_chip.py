"""Draws how full an accelerator's memories on chip are over time, below the timeline of its engines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import Any

from markupsafe import Markup

from uaccel.report.stored_run import StoredRun
from uaccel.report.svg import percent, size, tag, title


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
