"""Shows what a run or a compilation gave: its latency, the layers that matter, memory, outputs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from uaccel.board.types import ON_CHIP
from uaccel.cli.output import new_table, show_lines
from uaccel.errors import escape_terminal
from uaccel.util.text import CPU, seconds_in_words

if TYPE_CHECKING:
    from rich.console import Console

SHOWN_VALUES = 12


def show_frontier(console: Console, report: dict[str, Any]) -> None:
    """Shows a row for each way to run the model, from the most RAM to the least."""
    table = new_table(">RAM", f">{report['unit']}", ">slower", ">constants", ">functions")
    for point in report["points"]:
        numbers = (f"{point[key]:,}" for key in ("ram", "estimate"))
        table.add_row(*numbers, f"{point['slower']:.1%}", f"{point['constants']:,}", str(point["functions"]))
    console.print(table)


# Latency: how long one inference takes, and of what.

PARTS: Final = {
    "cpu": "cpu {}",
    "start": "start of {engines} {}",
    "copies": "{engines} moving data {}",
    "waiting": "{engines} computing {}",
}


def show_latency(console: Console, report: dict[str, Any]) -> None:
    show_lines(console, [("" if number else "Latency", line) for number, line in enumerate(_latency(report))])


def _latency(report: dict[str, Any]) -> Iterator[str]:
    """Yields the figure, its parts, the comparison with the CPU alone, and what was counted."""
    latency = report.get("latency")
    if latency is None:
        return
    engines = " and ".join(dict.fromkeys(layer["engine"] for layer in report["layers"] if layer["engine"] != CPU))
    counted = list(_counted(report, engines))
    if latency["missing"] is None:
        yield _figure(report, latency)
    elif counted:
        yield f"not known: {latency['missing']}"
    parts = {key: cycles for key, cycles in (latency["parts"] or {}).items() if cycles}
    if len(parts) > 1:
        cells = {key: f"{cycles:,} ({cycles / latency['cycles']:.0%})" for key, cycles in parts.items()}
        yield ", ".join(PARTS[key].format(cells[key], engines=engines) for key in PARTS if key in cells)
    if latency["cpu_alone"]:
        times = float(f"{latency['cpu_alone'] / latency['cycles']:.2g}")
        yield f"about {times:,g} times as fast as the CPU alone, by estimate {latency['cpu_alone']:,} cycles"
    if counted:
        yield ", ".join(counted)


def _figure(report: dict[str, Any], latency: dict[str, Any]) -> str:
    cycles, milliseconds, hz = latency["cycles"], latency["ms"], latency["hz"]
    words = [] if milliseconds is None else [_seconds(milliseconds / 1e3)]
    if report.get("seconds") is not None and cycles is None:
        return f"{words[0]}, the fastest inference"
    words.append(f"{cycles:,} cycles{f' at {hz / 1e6:g} MHz' if hz else ''}")
    if not latency["estimated"]:
        return ": ".join(words)
    return f"about {': '.join(words)}, estimated for {report['cycles_estimated_by']['core']}"


def _counted(report: dict[str, Any], engines: str) -> Iterator[str]:
    if report.get("instructions") is not None:
        yield f"{report['instructions']:,} instructions"
    if report.get("accelerator_cycles"):
        yield f"{report['accelerator_cycles']:,} cycles of {engines}"
    waited = [f"{cycles:,} for {name}" for name, cycles in (report.get("waited") or {}).items() if cycles]
    if waited:
        yield f"the core waited {', '.join(waited)}"


# Layers: those that take most, or all.

MOST, FEW = 16, 10  # Layers that are all shown; of more, so many that take most.
USUAL_WIDTH, WIDE = 80, 90  # Columns; on narrower screens MACs, shapes and estimates make room for measured costs.
WIDTH_OF_ENGINE = 20  # Columns that engines take, with the longer names of driver functions.
# Start and end of nearly every layer's reason, and the prefix of kernels: left away to save room.
USUAL = ("CPU kernel ", " (portable)", "uaccel_")


Column = tuple[str, Callable[[dict[str, Any]], str]]  # A title, as new_table() takes it, and what stands below it.


def show_layers(console: Console, report: dict[str, Any], *, every: bool = False) -> None:
    """Shows the latency, and a row for each layer, or for those that take most. An engine that runs all layers is named
    once, below."""
    show_latency(console, report)
    layers = report["layers"]
    engines = list(dict.fromkeys(layer["engine"] for layer in layers))
    columns = _columns(report, several_engines=len(engines) > 1, width=console.width)
    table = new_table(*(title for title, _ in columns))
    key = next((key for key in ("latency", "instructions", "seconds", "engine_cycles") if _known(layers, key)), "macs")
    shown = list(_told_once(layers))
    if not every and len(layers) > MOST:
        shown = sorted(layers, key=lambda layer: -(layer.get(key) or 0))[:FEW]
    for layer in shown:
        table.add_row(*(escape_terminal(cell(layer)) for _, cell in columns))
    console.print(table)
    if len(shown) < len(layers):
        show_lines(console, [("Others", _left_out(layers, shown, key))])
    show_lines(console, [("Layers", _shares(layers, engines))])
    show_warnings(console, report)


def _left_out(layers: list[dict[str, Any]], shown: list[dict[str, Any]], key: str) -> str:
    """Says how many layers are not shown, and what share of all they take together."""
    total, part = (sum(layer.get(key) or 0 for layer in some) for some in (layers, shown))
    what = "multiply-accumulates" if key == "macs" else "time"
    share = f", {1 - part / total:.1%} of the {what}" if total else ""
    return f"{len(layers) - len(shown)} more layers{share}; --layers shows them"


def _known(layers: list[dict[str, Any]], key: str) -> bool:
    return any(layer.get(key) is not None for layer in layers)


def _shares(layers: list[dict[str, Any]], engines: list[str]) -> str:
    """Says how many layers each engine computes, and what share of the products accelerators compute."""
    macs = {engine: sum(layer["macs"] for layer in layers if layer["engine"] == engine) for engine in engines}
    total = sum(macs.values())
    if len(engines) == 1:
        return f"{len(layers)} on {engines[0]}, {total:,} multiply-accumulates"
    counts = Counter(layer["engine"] for layer in layers)
    parts = [f"{counts[engine]} on {engine}" for engine in engines]
    shares = [f"{macs[engine] / total:.1%} on {engine}" for engine in engines if engine != CPU and macs[engine]]
    of_all = f" ({', '.join(shares)})" if shares else ""
    return f"{', '.join(parts)}, {total:,} multiply-accumulates{of_all}"


def show_warnings(console: Console, report: dict[str, Any]) -> None:
    for warning in report["warnings"]:
        show_lines(console, [("Warning", warning)], style="yellow")


def _told_once(layers: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Gives the layers; of those that one function computes together, the first alone has the reason."""
    last = None
    for layer in layers:
        same = (layer.get("region"), layer["reason"])
        yield layer | {"reason": "with the layer above"} if same[0] and same == last else layer
        last = same


def _columns(report: dict[str, Any], *, several_engines: bool, width: int) -> list[Column]:
    """Returns the columns; on a narrow screen those that matter least are left away."""
    layers, latency = report["layers"], report.get("latency") or {}
    counted, timed = _known(layers, "instructions"), _known(layers, "seconds")
    timed &= not counted
    of_engines = several_engines and not _known(layers, "latency") and _known(layers, "engine_cycles")
    key = "engine_cycles" if of_engines else "latency"
    clocked = width >= USUAL_WIDTH and _known(layers, key)
    whole = latency.get("cycles")
    cycles = ">Engine's cycles" if of_engines else ">Cycles, est." if latency.get("estimated") else ">Cycles"
    width -= WIDTH_OF_ENGINE if several_engines and (counted or timed) else 0
    shown: list[tuple[bool, Column]] = [
        (True, ("Layer", lambda layer: str(layer["name"]))),
        (width >= (WIDE if clocked else USUAL_WIDTH) or not (counted or timed), ("~Output", _shapes)),
        (width >= (WIDE if counted or timed else USUAL_WIDTH), (">MACs", lambda layer: _count(layer["macs"]))),
        (counted, (">Instructions", lambda layer: _count(layer.get("instructions")))),
        (clocked, (cycles, lambda layer: _count(layer.get(key)))),
        (clocked and bool(whole), (">Share", lambda layer: _share(layer.get("latency"), whole))),
        (timed, (">Time", lambda layer: _seconds(layer.get("seconds")))),
        (several_engines, ("Engine", lambda layer: str(layer["engine"]))),
        (True, ("~Function", lambda layer: function_of(layer["reason"]))),
    ]
    return [column for wanted, column in shown if wanted]


def _share(part: int | None, whole: int | None) -> str:
    return f"{part / whole:.1%}" if part and whole else ""


def _seconds(seconds: float | None) -> str:
    return "" if seconds is None else seconds_in_words(seconds)


def _shapes(layer: dict[str, Any]) -> str:
    """Writes shapes as 1x8x8x4, or as 2 of 1x8x8x4 if several outputs are alike."""
    shapes = ["x".join(map(str, shape)) or "scalar" for shape in layer["outputs"]]
    if len(shapes) > 1 and len(set(shapes)) == 1:
        return f"{len(shapes)} of {shapes[0]}"
    return " ".join(shapes)


def _count(count: int | None) -> str:
    return f"{count:,}" if count else ""


def function_of(reason: str) -> str:
    """The C function that computes a layer. Why it is this one, 'uaccel explain' says."""
    driver = re.search(r"(?:^|; )driver functions? (.*)", reason)
    if driver:
        return driver[1]
    reason = reason.partition("; ")[0] if reason.startswith((USUAL[0], "no work")) else reason  # '--json' says why
    start, end, prefix = USUAL
    return reason.removeprefix(start).removesuffix(end).replace(prefix, "") if reason.startswith(start) else reason


# Memory against what the board has, and outputs.

KINDS: Final = {"ram": ON_CHIP, "flash": ("flash",)}  # Kinds of a board's memories.


def show_memory(console: Console, report: dict[str, Any]) -> None:
    ram, flash = report["ram"], report["flash"]
    holds = " with inputs and outputs" if report["workspace_io"] else ""
    arena = f"arena {ram['arena']:,}{holds} (lower bound {ram['arena_lower_bound']:,})"
    lasting = ("state",) if ram.get("static") is None else ()  # once it is linked, it is part of what is static
    apart = ("constants", *lasting, *(() if report["workspace_io"] else ("io",)), "static", "stack")
    divided = ", ".join(f"{name} {size:,}" for name, size in flash.get("pools", {}).items())
    show_lines(
        console,
        [
            ("RAM", _parts(ram, apart, [arena]) + _of_the_board(report, "ram")),
            ("Flash", _parts(flash, ("weights", "code"), []) + _of_the_board(report, "flash")),
            *([("Pools", divided)] if divided else []),
        ],
    )


def _parts(sizes: dict[str, int | None], names: tuple[str, ...], parts: list[str]) -> str:
    parts += [f"{name} {sizes[name]:,}" for name in names if sizes.get(name) is not None]
    total = f" = {sizes['total']:,} bytes" if sizes["total"] is not None else " bytes"
    return " + ".join(parts) + total


def _of_the_board(report: dict[str, Any], kind: str) -> str:
    """Says what share of the board's memories of a kind that is; empty where one of both is not known."""
    memories = (report.get("target") or {}).get("memories", ())
    whole = sum(memory["bytes"] for memory in memories if memory["kind"] in KINDS[kind])
    total = report[kind]["total"]
    return f", {total / whole:.1%} of the board's {whole:,}" if whole and total is not None else ""


def show_outputs(console: Console, outputs: dict[str, Any]) -> None:
    """Shows the first values of each output."""
    for name, tensor in outputs.items():
        values = [_number(value) for value in tensor["data"][:SHOWN_VALUES]]
        more = ["..."] if len(tensor["data"]) > SHOWN_VALUES else []
        shape = "x".join(map(str, tensor["shape"])) or "scalar"
        show_lines(console, [("Output", f"{name} ({tensor['dtype']} {shape}): {', '.join(values + more)}")])


def _number(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
