"""Defines ``uaccel cache``, which shows what is kept of earlier runs and how large it is, and removes it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from uaccel.cli.output import JsonFlag, emit
from uaccel.errors import UaccelError
from uaccel.util.cache import Cache, CacheRow, cache_folder, cache_of_user

if TYPE_CHECKING:
    from rich.console import Console

UNITS: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
NoCacheFlag = Annotated[
    bool, typer.Option("--no-cache", help="Compile, build and judge anew, and keep nothing of it ('uaccel cache').")
]
ToOption = Annotated[
    str, typer.Option("--to", metavar="SIZE", help="What may stay, as 500M or 2G; the latest used stays longest.")
]


def open_cache(no_cache: bool) -> Cache | None:
    """Opens the user's cache, unless this run shall use none."""
    return None if no_cache else cache_of_user()


def register(app: typer.Typer) -> None:
    """Add the command and its parts."""
    group = typer.Typer(rich_markup_mode=None, invoke_without_command=True)
    group.callback()(cache_command)
    group.command("list", short_help="Every entry, the one used last first.")(list_command)
    group.command("prune", short_help="Remove what was used longest ago.")(prune_command)
    app.add_typer(group, name="cache", short_help="Show or prune what is kept of earlier runs.")


def cache_command(context: typer.Context, as_json: JsonFlag = False) -> None:
    """Tell where compiled models, firmware and verdicts are kept, and how much it is.

    UACCEL_CACHE names another folder; 'off' keeps nothing.
    """
    if context.invoked_subcommand is not None:
        return
    cache, entries = _cache()
    kinds: dict[str, dict[str, int]] = {}
    for entry in entries:
        row = kinds.setdefault(entry.kind, {"entries": 0, "bytes": 0})
        row["entries"] += 1
        row["bytes"] += entry.bytes
    report = _sizes(cache, entries) | {"limit": cache.limit, "kinds": kinds}
    emit(report, as_json, lambda console: _show(console, report))


def list_command(as_json: JsonFlag = False) -> None:
    """List every entry, the one that was used last first."""
    cache, entries = _cache()
    rows = [
        {"kind": one.kind, "about": one.about, "bytes": one.bytes, "used": round(one.used), "digest": one.digest}
        for one in entries
    ]
    report = _sizes(cache, entries) | {"list": rows}
    emit(report, as_json, lambda console: _show_list(console, entries))


def prune_command(to: ToOption = "0", as_json: JsonFlag = False) -> None:
    """Remove what was used longest ago; what a run uses just now stays."""
    limit = read_size(to)
    cache, _ = _cache()
    freed = cache.prune(limit)
    report = _sizes(cache, cache.kept()) | {"freed": freed}
    emit(report, as_json, lambda console: _show_pruned(console, report))


def read_size(text: str, option: str = "--to") -> int:
    """Reads a size such as ``500M``, ``2G`` or ``0`` as bytes."""
    unit = text[-1:].upper() if text[-1:].isalpha() else ""
    number = text[: len(text) - len(unit)]
    if not number.isascii() or not number.isdigit() or len(number) > 15 or unit not in UNITS:
        raise UaccelError(f"{option} {text!r} is no size; wanted bytes, or a number with K, M or G, as in 500M")
    return int(number) * UNITS[unit]


def _cache() -> tuple[Cache, list[CacheRow]]:
    cache = cache_of_user() or Cache(cache_folder() / "kept")
    return cache, cache.kept()


def _sizes(cache: Cache, entries: list[CacheRow]) -> dict[str, Any]:
    return {
        "folder": str(cache.folder),
        "on": cache_of_user() is not None,
        "entries": len(entries),
        "bytes": sum(entry.bytes for entry in entries),
    }


def _show(console: Console, report: dict[str, Any]) -> None:
    from uaccel.cli.output import show_lines

    state = "" if report["on"] else " (not used: UACCEL_CACHE is off)"
    kinds = [
        (kind.capitalize(), f"{row['entries']:,} entries, {row['bytes']:,} bytes")
        for kind, row in report["kinds"].items()
    ]
    total = f"{report['entries']:,} entries, {report['bytes']:,} of at most {report['limit']:,} bytes"
    show_lines(console, [("Folder", report["folder"] + state), *kinds, ("All", total)])


def _show_list(console: Console, entries: list[CacheRow]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, collapse_padding=True)
    for title in ("Kind", "Of", "Bytes", "Used"):
        table.add_column(title, justify="right" if title == "Bytes" else "left", overflow="fold")
    for entry in entries:
        table.add_row(entry.kind, entry.about, f"{entry.bytes:,}", time.strftime("%F %T", time.localtime(entry.used)))
    console.print(table if entries else "  nothing is kept")


def _show_pruned(console: Console, report: dict[str, Any]) -> None:
    from uaccel.cli.output import show_lines

    show_lines(console, [("Freed", f"{report['freed']:,} bytes"), ("Left", f"{report['bytes']:,} bytes")])
