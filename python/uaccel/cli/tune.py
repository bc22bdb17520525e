"""Defines ``uaccel tune``, which measures the promising kernels of each layer and records the figures."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uaccel.cli.command import group
from uaccel.cli.options import Cached, ModelCommand
from uaccel.cli.output import emit, new_table, progress, show_lines
from uaccel.codegen.options import EmitOptions
from uaccel.errors import InputError
from uaccel.frontend.bundle import stem
from uaccel.runner.options import EngineRequest
from uaccel.util.files import require_writable
from uaccel.util.option import option
from uaccel.util.text import named

if TYPE_CHECKING:
    from rich.console import Console

    from uaccel.lower.program import Layer
    from uaccel.runner.sweep.tune import Tuned, TuneSearch


class TuneCommand(ModelCommand, Cached):
    """Measure the promising ways to compute each layer on the board, and write what 'compile --records' chooses by."""

    output: Path | None = option(
        None, "Where the figures go (MODEL.BOARD.json); a file is added to.", "-o", metavar="RECORDS.json"
    )
    again: bool = option(False, "Measure also what the file knows already.")
    port: str = option("", "The serial port of a real board, which is flashed anew.", "-p", metavar="PORT")
    candidates: int | None = option(
        None, "Measure so many of each layer's kernels, the best by estimate (2).", metavar="N", least=1
    )
    every: bool = option(False, "Measure every kernel, also those that are estimated to be slow.", "--all")
    minutes: float | None = option(None, "Begin no further measurement after so many minutes.", metavar="N", least=0)
    jobs: int | None = option(None, "So many emulated boards at once (one for each core).", "-j", metavar="N", least=1)
    engines: EngineRequest = group("records")
    emit: EmitOptions = group(only=())

    def run(self) -> None:
        request = self.request(self.model, workspace_io=False)
        target = request.board
        path = self.output or Path(f"{stem(self.model)}.{target.name}.json")
        require_writable(path, "-o")
        search = self._search()
        with progress() as step:
            from uaccel.kernels import Records, read_records, write_records
            from uaccel.runner.sweep.tune import tune

            known = read_records(path, target.cpu.name) if path.exists() else Records(target.cpu.name)
            begun = Records(known.cpu, unit=known.unit) if self.again else known
            # Each layer is measured as a whole, whatever rows would save.
            whole = replace(request, emit=replace(request.emit, whole_layers=True))
            compiled = partial(whole.what().compiled, step)
            tuned = tune(compiled, target, begun, step, search, self.cache)
            write_records(path, known.merged(tuned.records))
        report = _report(self.model, target.name, path, tuned)
        emit(report, self.as_json, lambda console: _show(console, report))

    def _search(self) -> TuneSearch:
        from uaccel.runner.sweep.sweep import processes
        from uaccel.runner.sweep.tune import CANDIDATES, TuneSearch

        if self.every and self.candidates is not None:
            raise InputError("--all measures every kernel, and --candidates only some of them; leave one of them away")
        most = None if self.every else self.candidates or CANDIDATES
        return TuneSearch(most, self.minutes, self.jobs or processes(), self.port, self.compile.favour)


def _report(model: Path, board: str, path: Path, tuned: Tuned) -> dict[str, Any]:
    return {
        "model": str(model),
        "board": board,
        "records": str(path),
        "unit": tuned.after.unit,
        "before": tuned.before.total,
        "after": tuned.after.total,
        "measured": tuned.measured,
        "kept": tuned.kept,
        "left_out": [{"site": site, "kernel": kernel} for site, kernel in tuned.left_out],
        "layers": [_layer(layer, tuned) for layer in tuned.layers],
    }


def _layer(layer: Layer, tuned: Tuned) -> dict[str, Any]:
    choice = layer.choice
    assert choice is not None  # tune() leaves out the others
    costs, counted = tuned.records.sites[choice.site], tuned.records.counted().sites.get(choice.site, {})
    return {
        **named(layer, "name", "op", "engine"),
        "site": choice.site,
        "picked": choice.options[choice.picked],
        "before": tuned.before.costs[layer.index],
        "after": tuned.after.costs[layer.index],
        "candidates": [
            {"kernel": option, "cost": costs.get(option), "instructions": counted.get(option)}
            for option in choice.options
        ],
    }


def _show(console: Console, report: dict[str, Any]) -> None:
    table = new_table("Layer", "~Kernel", f">{report['unit'].capitalize()}", "")
    for layer in report["layers"]:
        for number, candidate in enumerate(layer["candidates"]):
            picked = "picked" if candidate["kernel"] == layer["picked"] else ""
            name = layer["name"] if number == 0 else ""
            cost = "not measured" if candidate["cost"] is None else f"{candidate['cost']:,}"
            table.add_row(name, candidate["kernel"].replace("uaccel_", ""), cost, picked)
    if report["layers"]:
        console.print(table)
    gained = 100 * (1 - report["after"] / max(1, report["before"]))
    unit, before, after = report["unit"], report["before"], report["after"]
    lines = [("Before", f"{before:,} {unit}, as estimated"), ("After", f"{after:,} {unit}: {gained:.1f} % less")]
    if report["left_out"]:
        count = len(report["left_out"])
        lines.append(("Left out", f"{count} kernel{'s' if count > 1 else ''}, as the minutes were over"))
    show_lines(console, [*lines, ("Records", f"{report['records']}; use them with --records")])
