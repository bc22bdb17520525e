"""Defines ``uaccel doctor``, which says what a user can do here, and how to get the rest."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from uaccel.board import available_boards
from uaccel.build.doctor import Ability, abilities, examine
from uaccel.build.programs import VersionCheck
from uaccel.cli.command import Command
from uaccel.cli.output import emit
from uaccel.util.option import option

if TYPE_CHECKING:
    from rich.console import Console


class DoctorCommand(Command):
    """Say what you can do here, and the line to paste for each thing that you cannot.

    The exit status is 1 if something is missing without which nothing works.
    """

    everything: bool = option(False, "Every program and package, contributors' tools too.", "--all")

    def run(self) -> None:
        checks = examine(everything=self.everything)
        can = abilities(checks, available_boards())
        ok = all(check.status == "ok" for check in checks if check.required)
        shown = checks if self.everything else _troubles(checks)
        report = {"ok": ok, "can": list(map(asdict, can)), "checks": list(map(asdict, checks))}
        emit(report, self.as_json, lambda console: _show(console, can, shown, ok))
        if not ok:
            raise typer.Exit(1)


def _troubles(checks: list[VersionCheck]) -> list[VersionCheck]:
    """Selects checks of programs that are there but do not work, and of those without which nothing works."""
    return [check for check in checks if check.status != "ok" and (check.required or check.status != "missing")]


def _show(console: Console, can: list[Ability], checks: list[VersionCheck], ok: bool) -> None:
    from rich.text import Text

    for ability in can:
        mark = Text("  ok  ", "green") if ability.works else Text("  --  ", "yellow")
        console.print(mark + Text(ability.what))
    if checks:
        _show_checks(console, checks)
    for check in checks:
        if check.fix:
            console.print(f"\n{check.name}: {check.detail}\n  {check.fix}", soft_wrap=True)
    for fix, names in _advice(can).items():
        console.print(f"\nFor {' and '.join(names)}:\n  {fix}", soft_wrap=True)
    console.print("\nuaccel can work here." if ok else "\nSomething that uaccel needs is missing: see above.")


def _advice(can: list[Ability]) -> dict[str, list[str]]:
    """Groups what is missing by the line to paste that adds it."""
    lines: dict[str, list[str]] = {}
    for ability in can:
        if ability.fix:
            lines.setdefault(ability.fix, []).append(ability.what)
    return lines


def _show_checks(console: Console, checks: list[VersionCheck]) -> None:
    from rich.table import Table

    table = Table("", "What", "Version", "Needed for", box=None, padding=(0, 2, 0, 0), pad_edge=False)
    table.columns[1].no_wrap = True
    for column in table.columns[2:]:
        column.overflow = "fold"
    for check in checks:
        good = check.status == "ok"
        mark, style = ("ok", "") if good else ("!!", "bold red") if check.required else ("--", "yellow")
        version = " ".join(filter(None, [check.version, None if good else check.status]))
        table.add_row(mark, check.name, version, check.needed_for, style=style)
    console.print()
    console.print(table)
