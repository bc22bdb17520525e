"""Defines ``uaccel synth``, which tells what an accelerator's RTL takes of an FPGA, and how fast its clock may be."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uaccel.build.rtl.synthesis import DEFAULT, KINDS, PARTS, part_of
from uaccel.cli.command import Command
from uaccel.cli.output import emit, new_table, progress
from uaccel.errors import UaccelError
from uaccel.util import incoming
from uaccel.util.files import parse_json, require_writable
from uaccel.util.option import argument, option

if TYPE_CHECKING:
    from rich.console import Console


class SynthCommand(Command):
    """Synthesise an accelerator's RTL with yosys, place and route it with nextpnr, and tell its area and highest clock.

    What was synthesised once is kept in the cache."""

    accelerator: str = argument("The accelerator, with RTL.", "NAME|PATH")
    part: str = option(DEFAULT, f"One of {', '.join(PARTS)}.", metavar="PART")
    place: bool = option(True, "Place and route, which tells the clock.", "--place/--no-place")
    bitstream: Path | None = option(None, "Write a bitstream; the tool chooses the pins.", metavar="FILE")
    against: Path | None = option(None, "Compare with what --json wrote earlier.", metavar="FILE.json")
    limit: float = option(1800, "How long a tool may take.", metavar="SECONDS", least=1)

    def run(self) -> None:
        part = part_of(self.part)
        if self.bitstream is not None and not self.place:
            raise UaccelError("--bitstream is made of a placed design; leave out --no-place")
        if self.bitstream is not None:
            require_writable(self.bitstream, "--bitstream")
        earlier = read_synthesis(self.against, f"--against {self.against}") if self.against is not None else None
        with progress() as step:
            from uaccel.accelerator import load_accelerator
            from uaccel.build.rtl.synthesis import SynthesisRequest, synthesise

            found = load_accelerator(self.accelerator)
            asked = SynthesisRequest(found.name, found.folder, self.part, part, self.place, self.bitstream, self.limit)
            document = synthesise(asked, step).to_json()
        if earlier is not None:
            document["against"] = change(earlier, document)
        emit(document, self.as_json, lambda console: _show(console, document, earlier))
        if self.bitstream is not None and document["bitstream"] is None:
            raise UaccelError(f"--bitstream {self.bitstream}: nothing to write: {document['not_placed']}")


def read_synthesis(path: Path, name: str) -> dict[str, Any]:
    """Reads what ``uaccel synth --json`` wrote; errors begin with ``name``."""
    try:
        found = parse_json(incoming.read_bytes(path))
        area, clocks = found["area"], found.get("clock_mhz", {})
        numbers = [*area.values(), *clocks.values()]
        named = set(area) == set(KINDS) and isinstance(found["part"], str)
        if named and all(isinstance(number, (int, float)) for number in numbers):
            return dict(found)
    except OSError as error:
        raise UaccelError(f"{name}: cannot read it: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    raise UaccelError(f"{name}: wanted what 'uaccel synth --json' writes")


def change(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Returns how area and slowest clock changed, and the earlier ``tools`` and ``part`` if they were others."""
    was, now = (min(one.get("clock_mhz", {}).values(), default=None) for one in (before, after))
    others = {key: before.get(key) for key in ("part", "tools") if before.get(key) != after[key]}
    return {
        "area": {kind: after["area"][kind] - before["area"][kind] for kind in KINDS},
        "clock_mhz": None if was is None or now is None else round(now - was, 2),
        "was": others,
    }


def _show(console: Console, document: Mapping[str, Any], earlier: Mapping[str, Any] | None) -> None:
    more = (">Before", ">Change") if earlier is not None else ()
    table = new_table(document["part"], ">Taken", ">Of", ">", *more)
    for kind, taken in document["area"].items():
        has = document["available"][kind]
        share = f"{taken / has:.1%}" if has else ""
        rest = (f"{earlier['area'][kind]:,}", f"{document['against']['area'][kind]:+,}") if earlier is not None else ()
        table.add_row(kind.upper(), f"{taken:,}", f"{has:,}", share, *rest)
    for net, mhz in document["clock_mhz"].items():
        rest = ("", "") if earlier is not None else ()
        table.add_row(f"clock {net}", f"{mhz:.1f} MHz", "", "", *rest)
    console.print(table)
    if document["not_placed"] is not None and document["not_placed"] != "not asked for":
        console.print(f"  Not placed: {document['not_placed']}")
    if earlier is not None:
        _tell_change(console, document["against"])
    if document["bitstream"] is not None:
        console.print(f"  Bitstream in {document['bitstream']}")
    console.print(f"  By {', '.join(f'{tool} {version}' for tool, version in document['tools'].items())}")


def _tell_change(console: Console, against: Mapping[str, Any]) -> None:
    if against["clock_mhz"] is not None:
        console.print(f"  The slowest clock changes by {against['clock_mhz']:+.1f} MHz")
    for key, was in against["was"].items():
        words = ", ".join(f"{tool} {version}" for tool, version in was.items()) if isinstance(was, dict) else was
        console.print(f"  Compared with another {'part' if key == 'part' else 'set of tools'}: {words}")
