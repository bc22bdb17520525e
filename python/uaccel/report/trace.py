"""Makes a trace of a run for Perfetto and chrome://tracing: the CPU and each accelerator's engines side by side.

One microsecond of the trace is one cycle, or one instruction of a CPU whose cycles are not known. The CPU waits while
an accelerator works. All that it does for an accelerated layer, before and after, is drawn before the accelerator's
work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from uaccel.report.latency import Facts
from uaccel.session.description import LayerTime
from uaccel.session.monitor import EngineJob

CPU_TRACK: Final = "cpu"
WHOLE: Final = "work"  # The track of a device whose model does not tell of engines.
SCALE: Final = "1 us is 1 cycle; the first inference is shown"
BY_INSTRUCTIONS: Final = "1 us is 1 accelerator cycle or 1 CPU instruction; the first inference is shown"
UNCOUNTED: Final = "this board counts no instructions: layers of the CPU have no width; run on an emulated board"


def trace_of(
    title: str,
    layers: Sequence[Facts],
    times: Mapping[int, LayerTime],
    jobs: Mapping[int, Sequence[EngineJob]],
) -> dict[str, Any]:
    """Makes the trace of the first inference. ``jobs``: those of each layer, by :func:`jobs_by_layer`."""
    trace = _Trace()
    counted = any(taken.instructions is not None for taken in times.values())
    clocked = any(taken.alone(0) is not None for taken in times.values())
    for layer in layers:
        taken, own = times.get(layer["index"]), jobs.get(layer["index"], ())
        waited = sum(job.cycles for job in own)
        length = None if taken is None else taken.alone(waited) if clocked else taken.instructions
        trace.cpu(layer, length, taken)
        for job in own:
            trace.job(layer, job)
    note = SCALE if clocked else BY_INSTRUCTIONS
    return trace.document(title, note if counted else f"{note}; {UNCOUNTED}")


def _lasted(job: EngineJob) -> dict[str, Any]:
    """Details of a job; ``from`` and ``to`` are its place in the waveform of its RTL, a nanosecond for each cycle."""
    return {"cycles": job.cycles, "from": job.begin, "to": job.end}


class _Trace:
    """Collects events; ``now`` is the end of all that was added."""

    def __init__(self) -> None:
        self.now = 0
        self.tracks: dict[str, int] = {CPU_TRACK: 0}
        self.events: list[dict[str, Any]] = []

    def cpu(self, layer: Facts, length: int | None, taken: LayerTime | None) -> None:
        what = layer["name"] if layer["engine"] == CPU_TRACK else f"{layer['name']}: driver of {layer['engine']}"
        details = {"operator": layer["op"], "instructions": taken.instructions if taken else None}
        self._event(CPU_TRACK, what, layer, self.now, length or 0, details)
        self.now += length or 0

    def job(self, layer: Facts, job: EngineJob) -> None:
        if not job.spans:
            self._event(f"{job.device} {WHOLE}", layer["name"], layer, self.now, job.cycles, _lasted(job))
        labels = layer.get("commands") or []
        for span in job.spans:
            label = labels[span.command] if span.command < len(labels) else f"{layer['name']}: command {span.command}"
            details = {"command": span.command, "cycles": span.end - span.begin}
            begin = self.now + span.begin - job.begin
            self._event(f"{job.device} {span.engine}", label, layer, begin, span.end - span.begin, details)
        self.now += job.cycles

    def _event(self, track: str, name: str, layer: Facts, begin: int, length: int, details: dict[str, Any]) -> None:
        number = self.tracks.setdefault(track, len(self.tracks))
        event = {"name": name, "cat": layer["name"], "ph": "X", "ts": begin, "dur": length, "pid": 1, "tid": number}
        self.events.append(event | {"args": {"layer": layer["name"], **details}})

    def document(self, title: str, note: str) -> dict[str, Any]:
        named = [_named("process_name", 0, title)]
        named += [_named("thread_name", number, track) for track, number in self.tracks.items()]
        events = sorted(self.events, key=lambda event: (event["ts"], event["tid"]))
        return {"displayTimeUnit": "ms", "otherData": {"note": note}, "traceEvents": named + events}


def _named(what: str, number: int, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": 1, "tid": number, "args": {"name": name}}
