"""What was measured, by CPU and site: a JSON file that people commit, and the choice of the cheapest by it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, Final

from uaccel.basics.documents import parse_json
from uaccel.basics.favour import Favour
from uaccel.basics.files import write_atomically
from uaccel.cpu_kernels.choice import Option, Selector, Work
from uaccel.cpu_kernels.costs import INSTRUCTIONS, Estimated, smallest
from uaccel.errors import UaccelError

FORMAT: Final = 1
Costs = Mapping[str, int]
"""Of a site's options, by label: of the CPU in the unit of the records, and cycles of an accelerator."""


@dataclass(frozen=True)
class Records:
    """``cpu`` is the one that they were measured on."""

    cpu: str
    sites: Mapping[str, Costs] = field(default_factory=dict)
    unit: str = ""
    """What the costs count; empty where nothing was measured yet."""
    instructions: Mapping[str, Costs] = field(default_factory=dict)
    """Of the same sites where the costs count something else."""

    def counted(self) -> Records:
        """In instructions, as far as they are known."""
        return self if self.unit in (INSTRUCTIONS, "") else Records(self.cpu, self.instructions, INSTRUCTIONS)

    def with_site(self, site: str, costs: Costs, instructions: Costs | None = None) -> Records:
        known = replace(self, sites={**self.sites, site: {**self.sites.get(site, {}), **costs}})
        if not instructions:
            return known
        counted = {**self.instructions, site: {**self.instructions.get(site, {}), **instructions}}
        return replace(known, instructions=counted)

    def merged(self, newer: Records) -> Records:
        """Both, and of what both know the newer."""
        if self.unit and newer.unit and self.unit != newer.unit:
            raise UaccelError(f"the records count {self.unit}, and this board {newer.unit}: say another file with -o")
        merged = replace(self, unit=newer.unit or self.unit)
        for site, costs in newer.sites.items():
            merged = merged.with_site(site, costs, newer.instructions.get(site))
        return merged


@dataclass(frozen=True)
class Measured:
    """The cheapest by the records. They need not know every option, since what promises little is not measured; but
    where they do not know the one that ``otherwise`` would take, that decides."""

    records: Records
    otherwise: Selector = field(default_factory=Estimated)
    favour: Favour = Favour.balanced

    def __call__(self, site: str, options: Sequence[Option], work: Work) -> tuple[int, str]:
        costs = self.records.sites.get(site, {})
        known = [costs.get(option.label) for option in options]
        if None in known:
            number, why = self.otherwise(site, options, work)
            if known[number] is None or self.favour is Favour.size:
                return number, why
        if self.favour is Favour.size:
            return smallest(options, known)
        cost, best = min((cost, number) for number, cost in enumerate(known) if cost is not None)
        unit = self.records.unit
        return best, "the cheapest measured" + (f", {cost:,} {unit}" if unit else "")


def write_records(path: Path, records: Records) -> None:
    """Sorted, so that two measurements of the same give the same bytes."""
    content = {"format": FORMAT, "cpu": records.cpu, "unit": records.unit, "sites": records.sites}
    content |= {"instructions": records.instructions} if records.instructions else {}
    text = json.dumps(content, indent=1, sort_keys=True) + "\n"

    def write(stream: IO[bytes]) -> None:
        stream.write(text.encode())

    write_atomically(path, write, "records")


def read_records(path: Path, cpu: str) -> Records:
    """Refused where they were measured on another CPU: they would choose badly, and nobody would notice."""
    content = _content(path)
    sites = content["sites"]
    if content["cpu"] != cpu:
        raise UaccelError(
            f"{path}: measured on {content['cpu']}, and this is for {cpu}; measure with 'uaccel tune' and this board"
        )
    return Records(cpu, sites, content["unit"], content.get("instructions", {}))


def _content(path: Path) -> dict[str, Any]:
    try:
        content = parse_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UaccelError(f"{path}: {error.strerror or error}; 'uaccel tune' makes such files") from None
    except ValueError as error:
        raise UaccelError(f"{path}: no JSON ({error}); 'uaccel tune' writes such files") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT or not _is_records(content):
        raise UaccelError(
            f"{path}: no records of measurements in format {FORMAT}; make them anew with 'uaccel tune MODEL --board B'"
        )
    return content


def _is_records(content: Mapping[str, Any]) -> bool:
    known = isinstance(content.get("cpu"), str) and isinstance(content.get("unit"), str)
    return known and all(map(_are_sites, (content.get("sites"), content.get("instructions", {}))))


def _are_sites(sites: Any) -> bool:
    return isinstance(sites, dict) and all(
        isinstance(costs, dict) and all(_is_cost(cost) for cost in costs.values()) for costs in sites.values()
    )


def _is_cost(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
