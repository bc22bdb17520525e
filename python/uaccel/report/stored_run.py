"""Reads stored runs for the sections of a page, and the results of quantising their models."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from uaccel.errors import InputError, need
from uaccel.report.stored_form import wrong_field
from uaccel.report.svg import count, seconds
from uaccel.util import incoming
from uaccel.util.files import parse_json
from uaccel.util.form import TEXT, Maybe, Value, complaint
from uaccel.util.text import CPU

# Runs: what ``uaccel run --json`` wrote. Parts may be missing, depending on the options and the version.

SCHEMA: Final = 1
LARGEST: Final = 1 << 28  # Bytes of a stored run.
HINT: Final = "wanted what 'uaccel run MODEL --json --details' writes"
UNITS: Final = ("cycles", "instructions", "seconds")


@dataclass(frozen=True)
class LayerRow:
    """Holds a layer as it runs, with all operators of the model that it computes. ``cpu`` and ``device`` are what it
    took on each, in the run's unit; None if it is not known. ``moved``: bytes that an accelerator carries for it."""

    number: int
    name: str
    op: str
    engine: str
    rows: Sequence[Mapping[str, Any]]
    inputs: Sequence[str] = ()
    outputs: Sequence[str] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    cpu: float | None = None
    device: float = 0
    moved: int | None = None

    @property
    def macs(self) -> int:
        return sum(row.get("macs") or 0 for row in self.rows)

    @property
    def cost(self) -> float:
        return (self.cpu or 0) + self.device

    @property
    def code(self) -> int:
        return sum(row.get("code") or 0 for row in self.rows)


@dataclass(frozen=True)
class StoredRun:
    """Holds a stored run; ``label`` is how a page calls it."""

    data: Mapping[str, Any]
    label: str = ""

    @cached_property
    def unit(self) -> str:
        """The unit of layers' times; empty if they were not measured."""
        rows = self.data["layers"]
        return next((unit for unit in UNITS if any(_taken(row, unit) is not None for row in rows)), "")

    @cached_property
    def steps(self) -> list[LayerRow]:
        groups: dict[str, list[Mapping[str, Any]]] = {}
        for row in self.data["layers"]:
            groups.setdefault(row.get("region") or row["name"], []).append(row)
        facts = {layer["name"]: layer for layer in self.section("graph").get("layers", ())}
        return [self._step(i, name, rows, facts.get(name, {})) for i, (name, rows) in enumerate(groups.items())]

    def _step(self, number: int, name: str, rows: Sequence[Mapping[str, Any]], facts: Mapping[str, Any]) -> LayerRow:
        cpu, device = self._shares(rows)
        op = rows[0]["op"] if len(rows) == 1 else f"{len(rows)} operators"
        ends = (facts.get("inputs", ()), facts.get("outputs", ()))
        return LayerRow(number, name, op, rows[0]["engine"], rows, *ends, facts, cpu, device)

    def _shares(self, rows: Sequence[Mapping[str, Any]]) -> tuple[float | None, float]:
        """What rows of one engine took on the CPU and on the engine. Seconds of an accelerated layer are the engine's,
        as nothing tells them apart."""
        known = [taken for taken in (_taken(row, self.unit) for row in rows) if taken is not None]
        if self.unit == "seconds":
            return (sum(known) if known else None, 0) if rows[0]["engine"] == CPU else (0, sum(known))
        device = sum(row.get("cycles") or 0 for row in rows) if self.unit else 0
        return sum(known) - (device if self.unit == "cycles" else 0) if known else None, device

    @cached_property
    def timed(self) -> list[LayerRow]:
        """The steps with each operator of a region apart where the device told of it, behind what starts the region."""
        return [part for step in self.steps for part in self._parts(step)]

    def _parts(self, step: LayerRow) -> list[LayerRow]:
        apart = len(step.rows) > 1 and step.device and all(row.get("engine_cycles") is not None for row in step.rows)
        if not apart or self.unit not in ("cycles", "instructions"):
            return [step]
        moved = {inner["name"]: inner.get("moved") for inner in step.facts.get("inner", ())}
        start = replace(step, name=f"start of {step.engine}", op="driver", rows=(), facts={}, device=0)
        operators = [
            LayerRow(step.number, row["name"], row["op"], step.engine, [row], cpu=0, device=row["engine_cycles"])
            for row in step.rows
            if row["engine_cycles"]
        ]
        return [start, *(replace(one, moved=moved.get(one.name)) for one in operators)]

    @cached_property
    def values(self) -> Mapping[str, Mapping[str, Any]]:
        found: Mapping[str, Mapping[str, Any]] = self.section("graph").get("values", {})
        return found

    @cached_property
    def engines(self) -> list[str]:
        """The CPU first, then accelerators in the order in which they were asked for."""
        return list(dict.fromkeys([CPU, *self.data.get("accelerators", ()), *(step.engine for step in self.steps)]))

    @cached_property
    def total(self) -> float:
        """What an inference took, in the run's unit; all layers together where nothing tells."""
        latency = self.section("latency").get("cycles") if self.unit == "cycles" else None
        whole = self.data.get("seconds") if self.unit == "seconds" else latency
        return float(whole or self.layers)

    @cached_property
    def layers(self) -> float:
        """What all layers took together; the rest is what lies between them, or what measuring them added."""
        return sum(step.cost for step in self.steps)

    @cached_property
    def constants(self) -> dict[str, int]:
        """Bytes of each step's constants; a constant that several read counts for the first."""
        found: dict[str, int] = {}
        for constant in self.data.get("constants", ()):
            for name in constant["layers"][:1]:
                found[name] = found.get(name, 0) + constant["bytes"]
        return found

    @cached_property
    def decisions(self) -> dict[str, Mapping[str, Any]]:
        return {row["name"]: row for row in self.data.get("decisions", ())}

    @cached_property
    def hz(self) -> int | None:
        found: int | None = self.section("target").get("hz")
        return found

    def amount(self, number: float) -> str:
        """A time of layers in words, in the run's unit."""
        return seconds(number) if self.unit == "seconds" else count(number)

    def section(self, name: str) -> Mapping[str, Any]:
        """A part of the data; empty in a result that lacks it."""
        found: Mapping[str, Any] = self.data.get(name) or {}
        return found

    def symbols(self) -> Iterator[Mapping[str, Any]]:
        """Symbols in flash, if they were asked for."""
        yield from self.section("flash").get("symbols") or ()

    def engine_class(self, engine: str) -> str:
        """The class of an engine in the style sheet, which gives each its colour."""
        return f"e{self.engines.index(engine) % 8}" if engine in self.engines else "e0"


def _taken(row: Mapping[str, Any], unit: str) -> float | None:
    """What a layer's row says that it took. Runs of older versions state no ``latency``."""
    if unit != "cycles" or "latency" in row:
        found: float | None = row.get("latency" if unit == "cycles" else unit or "seconds")
        return found
    estimated = row.get("cycles_estimated")
    return None if estimated is None else estimated + (row.get("cycles") or 0)


def read_run(path: Path) -> StoredRun:
    """Reads a file that ``uaccel run --json`` wrote; what is wrong with any other is said in one line."""
    data = _json(path, LARGEST, HINT)
    problem = wrong_with(data)
    need(not problem, f"{path} {problem}; {HINT}", InputError)
    return StoredRun(data, path.stem)


def _json(path: Path, most: int, wanted: str) -> Any:
    with incoming.reading(InputError, path, wanted, "no JSON, or only a part of it"):
        return parse_json(incoming.read_bytes(path, most))


def wrong_with(data: Any) -> str:
    """Says why the data is no run that a page can show; empty if it is one."""
    if not isinstance(data, dict):
        return "is no JSON object"
    if "error" in data:
        return "is the report of a command that failed"
    if "schema" not in data and "layers" in data and "runs" in data:
        return "was written by an older uaccel: run the model again with this one"
    if "runs" not in data:
        return "is no result of a run"
    if data.get("schema") != SCHEMA:
        seen = data.get("schema")
        return f"has schema {seen!r}, and this uaccel reads {SCHEMA}: use the uaccel that wrote it, or run again"
    wrong = wrong_field(data)
    return f"has a field that no run has so: {wrong}" if wrong else ""


# Quantisation: what ``uaccel quantize --json`` wrote about the model of a run.

QUANTIZED: Final = "quantized"  # The key of a run's data that holds it.
LARGEST_QUALITY_FILE: Final = 1 << 26
WANTED: Final = "wanted what 'uaccel quantize MODEL --json' writes"


def with_quantised(run: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """The run with the difference of each layer from the float model; InputError if that is of another model."""
    told, source = _read(path), run.get("source") or {}
    _require_same(path, told, source.get("sha256"), str(source.get("file", run["model"])))
    return {**run, QUANTIZED: {"samples": told["samples"], "layers": told["layers"]}}


def require_quantised(path: Path, model: Path) -> None:
    """Checks before a run that the results of quantising are about this model file; InputError if not."""
    told = _read(path)
    if model.is_file():
        _require_same(path, told, hashlib.sha256(incoming.read_bytes(model)).hexdigest(), str(model))


def _require_same(path: Path, told: Mapping[str, Any], digest: str | None, file: str) -> None:
    if told["sha256"] != digest:
        raise InputError(
            f"{path} is about {told['output']} as it was made, and not about {file}: "
            "give what 'uaccel quantize --json' wrote when it made that file"
        )


def _read(path: Path) -> dict[str, Any]:
    told = _json(path, LARGEST_QUALITY_FILE, WANTED)
    need(not complaint(told, _QUANTISED), f"{path} tells of no quantised model; {WANTED}", InputError)
    if complaint(told["layers"], [_QUANTISED_LAYER]):
        raise InputError(f"{path} has layers without name, op, tensor, snr_db and max_difference; {WANTED}")
    found: dict[str, Any] = told
    return found


_FIGURE: Final = Maybe(Value("a number", lambda value: isinstance(value, (int, float))))
_QUANTISED: Final = {
    **dict.fromkeys(("output", "sha256"), TEXT),
    "samples": Value("a number", lambda value: isinstance(value, int)),
    "layers": Value("a list", lambda value: isinstance(value, list)),
}
_QUANTISED_LAYER: Final = {
    **dict.fromkeys(("name", "op", "tensor"), TEXT),
    **dict.fromkeys(("snr_db", "max_difference"), _FIGURE),
}
