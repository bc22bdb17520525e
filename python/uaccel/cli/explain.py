"""Defines ``uaccel explain``, which says who computes each layer and why, without building anything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from uaccel.cli.options import ModelCommand
from uaccel.cli.output import emit, new_table, progress, show_lines
from uaccel.cli.tables import function_of, show_warnings
from uaccel.errors import escape_terminal

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

WIDE = 120  # Columns of a terminal from which on reasons stand beside the layers.


class ExplainCommand(ModelCommand):
    """Tell which engine computes each layer, why no other does, and what it is estimated to cost."""

    def run(self) -> None:
        request = self.request(self.model, workspace_io=False)
        with progress() as step:
            from uaccel.report.compile_json import explain

            compiled = request.what().compiled(step)
        report = explain(compiled)
        emit(report, self.as_json, lambda console: _show(console, report))
        request.engines.require_offload(compiled)


def _show(console: Console, report: dict[str, Any]) -> None:
    """Shows reasons beside the layers if there is room for them, else below. Without accelerators functions are shown:
    nothing was decided."""
    layers = report["layers"]
    if not report["accelerators"]:
        console.print(_functions(layers))
        show_lines(console, list(_summary(report)))
        show_warnings(console, report)
        return
    beside = console.width >= WIDE
    table = new_table("Layer", "Engine", ">MACs", ">Bytes", ">Cycles", ">On the CPU", *(("~Why",) if beside else ()))
    for row in layers:
        cycles = row["cycles"] if row["engine"] != "cpu" else None
        costs = map(_count, (row["macs"], row["bytes"], cycles, row["cpu_cycles"]))
        table.add_row(row["name"], row["engine"], *costs, *((escape_terminal(why(row)),) if beside else ()))
    console.print(table)
    if not beside:
        reasons = new_table("Layer", "Engine", "~Why")
        for row in layers:
            reasons.add_row(row["name"], row["engine"], escape_terminal(why(row)))
        console.print(reasons)
    if report["plans"]:
        console.print(_plans(report["plans"]))
    show_lines(console, list(_summary(report)))
    show_warnings(console, report)


def _functions(layers: Sequence[dict[str, Any]]) -> Table:
    table = new_table("Layer", ">MACs", ">Bytes", ">Cycles", "~Function")
    for row in layers:
        costs = map(_count, (row["macs"], row["bytes"], row["cpu_cycles"]))
        table.add_row(row["name"], *costs, escape_terminal(function_of(row["function"] or "")))
    return table


def _plans(plans: Sequence[dict[str, Any]]) -> Table:
    """Makes the table of plans, the cheapest first; those that could not be lowered come last."""
    table = new_table("~Plan", ">CPU", ">Cycles", ">Together", "~")
    for plan in sorted(plans, key=lambda plan: (plan["total"] is None, plan["total"] or 0)):
        name = " = ".join((plan["name"], *plan["same"]))
        said = "chosen" if plan["chosen"] else plan["refused"] or ""
        table.add_row(
            escape_terminal(name),
            *map(_count, (plan["instructions"], plan["cycles"], plan["total"])),
            escape_terminal(said),
        )
    return table


def why(row: dict[str, Any]) -> str:
    """Says why this engine computes a layer, and why no other does; a reason that several share is given once."""
    alike: dict[str, list[str]] = {}
    for rejection in row["rejections"]:
        names = alike.setdefault(rejection["reason"], [])
        names += [rejection["accelerator"]] if rejection["accelerator"] not in names else []
    others = [f"{', '.join(names)}: {reason}" for reason, names in alike.items()]
    refused_only = row["engine"] == "cpu" and others and not row["reason"].startswith("pinned")
    return "; ".join(others if refused_only else [row["reason"], *others])


def _summary(report: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for engine, share in report["engines"].items():
        yield "Engine", f"{engine}: {part_of(report['layers'], engine, share)}"
    for region in report["regions"]:
        if len(region["layers"]) > 1:
            yield "Region", f"{region['name']} on {region['engine']}: {len(region['layers'])} layers in one go"
    moved = sum(change["bytes"] for change in report["layout_changes"])
    if moved:
        names = ", ".join(change["layer"] for change in report["layout_changes"])
        yield "Layout", f"{moved:,} bytes change their order at run time: {names}"
    for off in report["estimates_off"]:
        yield "Estimate", f"{off['layer']}: {off['estimate']:,} estimated, {off['measured']:,} measured"
    if report["costs"] == "rule":
        yield "Costs", "of the CPU by a rough rule: this computer has no kernels of its own"
    else:
        yield "Costs", "estimated cycles of these functions, by measurements of others like them; 'run' tells more"
    yield from _slow(report)


def part_of(layers: Sequence[dict[str, Any]], engine: str, share: dict[str, Any]) -> str:
    """An engine's share of the layers, of the work as the CPU would do it, and of the products if any."""
    macs, cycles = (sum(row[key] for row in layers) for key in ("macs", "cpu_cycles"))
    mine = sum(row["cpu_cycles"] for row in layers if row["engine"] == engine)
    words = [f"{share['layers']} of {len(layers)} layers"]
    words += [f"{100 * mine / cycles:.1f} % of the CPU's work"] if cycles else []
    words += [f"{share['macs']:,} multiply-accumulates ({100 * share['macs'] / macs:.1f} %)"] if share["macs"] else []
    return ", ".join(words)


def _slow(report: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Tells of layers that the CPU's best kernels do not take: why, their cost, a remedy; at last their share."""
    slow = report["slow"]
    for layer in slow["layers"]:
        yield "Slow", slow_words(layer)
    if slow["layers"]:
        many = f"{len(slow['layers'])} layer{'s' if len(slow['layers']) > 1 else ''}"
        yield "Share", f"{100 * slow['share']:.1f} % of the CPU's cycles are in {many} without its best kernels"


def slow_words(layer: dict[str, Any]) -> str:
    fast, remedy = layer["fast_cycles"], layer["remedy"]
    instead = f" instead of about {fast:,}" if fast is not None else ""
    name, cost = f"{layer['layer']} ({layer['family']})", f"{layer['cycles']:,} cycles{instead}"
    return f"{name}: {layer['reason']}. {cost}. {remedy[:1].upper()}{remedy[1:]}"


def _count(count: float | None) -> str:
    return f"{count:,.0f}" if count else ""
