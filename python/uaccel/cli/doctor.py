"""``uaccel doctor``: what is installed, what is missing and how to get it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from uaccel.cli.output import JsonFlag, emit
from uaccel.toolchain import Check, examine

if TYPE_CHECKING:
    from rich.console import Console

_MARKS = {"ok": ("ok", "green"), "required": ("!!", "bold red"), "optional": ("--", "yellow")}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("doctor", short_help="What is installed, what is missing.")(doctor)


def doctor(as_json: JsonFlag = False) -> None:
    """Say what is installed, what is missing and how to get it.

    The exit status is 1 if something required is missing.
    """
    checks = examine()
    ok = all(check.status == "ok" for check in checks if check.required)
    emit(
        {"ok": ok, "checks": [asdict(check) for check in checks]},
        as_json,
        lambda console: _show(console, checks, ok),
    )
    if not ok:
        raise typer.Exit(1)


def _show(console: Console, checks: list[Check], ok: bool) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table("", "What", "Version", "Needed for", box=None, padding=(0, 2, 0, 0), pad_edge=False)
    table.columns[1].no_wrap = True
    for column in table.columns[2:]:
        column.overflow = "fold"
    for check in checks:
        mark, style = _MARKS["ok" if check.status == "ok" else "required" if check.required else "optional"]
        state = [check.version or "", "" if check.status == "ok" else check.status]
        words = (check.name, " ".join(filter(None, state)), check.needed_for)
        table.add_row(Text(mark, style), *words, style="" if check.status == "ok" else style)
    console.print(table)
    for check in checks:
        if check.fix:
            console.print(f"\n{check.name}: {check.detail}\n  {check.fix}", soft_wrap=True)
    console.print("\nuaccel can work here." if ok else "\nSomething that uaccel needs is missing: see above.")
