"""Defines ``uaccel cache``, which shows what is kept of earlier runs and how large it is, and removes it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import typer

from uaccel.cli.command import Command, add_command, as_function
from uaccel.cli.output import emit, new_table, show_lines
from uaccel.util.cache import Cache, CacheRow, cache_folder, cache_of_user
from uaccel.util.option import option, read_size

if TYPE_CHECKING:
    from rich.console import Console


class CacheCommand(Command):
    """Tell where compiled models, firmware and verdicts are kept, and how much it is.

    UACCEL_CACHE names another folder; 'off' keeps nothing.
    """

    context: typer.Context

    def run(self) -> None:
        if self.context.invoked_subcommand is not None:
            return
        cache, entries = _cache()
        kinds: dict[str, dict[str, int]] = {}
        for entry in entries:
            row = kinds.setdefault(entry.kind, {"entries": 0, "bytes": 0})
            row["entries"] += 1
            row["bytes"] += entry.bytes
        report = _sizes(cache, entries) | {"limit": cache.limit, "kinds": kinds}
        emit(report, self.as_json, lambda console: _show(console, report))


class ListCommand(Command):
    """List every entry, the one that was used last first."""

    def run(self) -> None:
        cache, entries = _cache()
        rows = [
            {"kind": one.kind, "about": one.about, "bytes": one.bytes, "used": round(one.used), "digest": one.digest}
            for one in entries
        ]
        report = _sizes(cache, entries) | {"list": rows}
        emit(report, self.as_json, lambda console: _show_list(console, entries))


class PruneCommand(Command):
    """Remove what was used longest ago; what a run uses just now stays."""

    to: int = option(
        "0", "What may stay, as 500M or 2G; the latest used stays longest.", metavar="SIZE", read=read_size
    )

    def run(self) -> None:
        cache, _ = _cache()
        freed = cache.prune(self.to)
        report = _sizes(cache, cache.kept()) | {"freed": freed}
        emit(report, self.as_json, lambda console: _show_pruned(console, report))


def commands() -> typer.Typer:
    """Makes the command and its parts."""
    group = typer.Typer(rich_markup_mode=None, invoke_without_command=True)
    group.callback()(as_function(CacheCommand))
    add_command(group, "list", "Every entry, the one used last first.", ListCommand)
    add_command(group, "prune", "Remove what was used longest ago.", PruneCommand)
    return group


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
    state = "" if report["on"] else " (not used: UACCEL_CACHE is off)"
    kinds = [
        (kind.capitalize(), f"{row['entries']:,} entries, {row['bytes']:,} bytes")
        for kind, row in report["kinds"].items()
    ]
    total = f"{report['entries']:,} entries, {report['bytes']:,} of at most {report['limit']:,} bytes"
    show_lines(console, [("Folder", report["folder"] + state), *kinds, ("All", total)])


def _show_list(console: Console, entries: list[CacheRow]) -> None:
    table = new_table("~Kind", "~Of", ">Bytes", "~Used")
    for entry in entries:
        table.add_row(entry.kind, entry.about, f"{entry.bytes:,}", time.strftime("%F %T", time.localtime(entry.used)))
    console.print(table if entries else "  nothing is kept")


def _show_pruned(console: Console, report: dict[str, Any]) -> None:
    show_lines(console, [("Freed", f"{report['freed']:,} bytes"), ("Left", f"{report['bytes']:,} bytes")])
